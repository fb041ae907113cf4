"""The k-th smallest of some values, in linear time on average.

numba's own ``np.partition`` does the same, but takes eight seconds to compile.
"""

from __future__ import annotations

from microagg.kernels.jit import kernel


@kernel
def kth_smallest(values, k):  # type: ignore[no-untyped-def]
    """Return the k-th smallest (k from 1) of ``values``, which it reorders: Hoare's quickselect.

    The pivot is the median of the first, middle and last value, and both scans stop at
    values equal to it, so that sorted and tied data do not make it quadratic.
    """
    low, high, target = 0, values.size - 1, k - 1
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return values[target]
