"""How the documentation site is made: code of pages is run, references are read from the program."""
