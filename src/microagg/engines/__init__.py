"""The engines for tables that are read in parts: disk and Spark, and the steps that both run."""
