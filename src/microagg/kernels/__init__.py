"""Numba primitives that two or more methods use."""
