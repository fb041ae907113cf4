"""Exact microaggregation of one column: optimal cuts of the sorted values."""
