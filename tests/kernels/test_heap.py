"""The heap against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from entries import in_python
from microagg.kernels import heap as heaps
from microagg.kernels.heap import new_heap, put

pop, take_out = in_python(heaps.pop), in_python(heaps.take_out)


@given(seed=st.integers(0, 2**32 - 1))
def test_heap_gives_the_least_key(seed):
    rng = np.random.default_rng(seed)
    heap, keys = new_heap(30), {}
    for _ in range(200):
        item = int(rng.integers(30))
        action = rng.random()
        if action < 0.6:
            keys[item] = (float(rng.integers(4)), float(rng.integers(3)))
            put(heap, item, *keys[item])
        elif action < 0.8:
            take_out(heap, item)
            keys.pop(item, None)
        elif keys:
            expected = min(keys, key=lambda i: (keys[i], i))
            assert pop(heap) == expected
            del keys[expected]
        assert heap.size[0] == len(keys)
