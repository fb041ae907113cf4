"""Write a table, read it back, count in it, and give it its name."""
