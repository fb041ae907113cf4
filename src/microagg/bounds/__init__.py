"""Proved lower bounds on the SSE of any partition."""
