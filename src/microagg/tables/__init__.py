"""Files and frames: reading, writing, and what is in them."""
