"""Tables beyond memory: the same groups from disk and on Spark."""
