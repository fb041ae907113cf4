"""The formats of files, one class each."""
