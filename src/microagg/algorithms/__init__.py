"""The algorithms, a folder a family and a file a paper's name; see microagg.plan.registry.

A method is a function ``name(X, k, *, state=None, ...) -> Outcome``. An order is one that returns the row
numbers in their order, an int64 array of shape (n,).

X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
k : int, at least 1
state : shared state of a watched run, see :mod:`microagg.base.progress`
weights : float64 array of shape (n,), above 0 and with mean 1, or None; for methods that can weigh

What else it takes are its options, described where they are, and in the registry.
"""
