"""Heuristics whose groups all have k records, but for the last ones."""
