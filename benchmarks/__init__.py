"""Side by side with peers: ratios in one run, and how cost grows."""
