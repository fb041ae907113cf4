"""A job from file to file: read, protect, measure, write, report."""
