"""Releases over time: base groups that never change, and the private file that remembers them."""
