"""Requirements of groups other than k, and the search for groups that satisfy them."""
