"""Put the records of several columns in a sequence, then cut the sequence optimally."""
