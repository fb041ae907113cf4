"""Types of arrays that the whole package uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Members = NDArray[np.int32]  # groups as rows of record numbers, filled up with −1
