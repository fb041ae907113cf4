"""Heuristics whose groups take the size that the data suggest, from k up."""
