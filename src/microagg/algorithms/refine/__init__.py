"""Improving any partition by local search."""
