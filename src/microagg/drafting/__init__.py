"""What the columns of a table are, and the roles that follow: the parts of the draft."""
