"""From the values of a table to the space in which distances are taken."""
