"""The table with which kernels are compiled: small, and of the types that they will meet."""

from __future__ import annotations

import numpy as np

from microagg.grouping.require.requirement import demands_of
from microagg.grouping.require.value_rules import Units

N, K, D = 24, 3, 2  # records, k and columns
X = np.random.default_rng(0).normal(size=(N, D))
WEIGHTS = np.linspace(0.5, 1.5, N)
LABELS = np.arange(N) // K
FIXED_LABELS = LABELS.copy()  # of a partition, which nobody may change: another type to numba
FIXED_LABELS.flags.writeable = False
DEMANDS = demands_of([Units(np.arange(N), 1)], N)  # at least one unit in each group
