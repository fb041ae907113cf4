"""From a table and a plan to groups of at least k records."""
