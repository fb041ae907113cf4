"""Other plans for the same table: what each would lose and hide; nothing is written."""
