"""The engine for tables that are in memory as a whole: one path, from a frame to a release."""
