"""protect() a table in memory, and the Release that it returns."""
