"""The evidence as a page that a disclosure board can read, print and check."""
