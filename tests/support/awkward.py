"""Tables that searches may stumble over."""

import numpy as np


def data(kind, n, d):
    rng = np.random.default_rng(n + d)
    if kind in ("ties", "equal", "binary"):
        return rng.integers(0, {"ties": 5, "equal": 1, "binary": 2}[kind], (n, d)).astype(float)
    X = rng.normal(size=(n, d))
    if kind == "tiny":  # squares underflow
        return X.round(1) * 1e-161
    if kind == "scales":
        X[::7] *= 1e12
    return X + 1e9 if kind == "far from 0" else X
