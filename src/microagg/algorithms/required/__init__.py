"""Groups that satisfy more than a number of records: the repair, the search, methods of the literature."""
