"""Partitions that are proved to be the best, or near it."""
