"""Which entry every item of a batch has: worked out once for each shape."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np


@lru_cache(maxsize=256)
def entries(
    own: tuple[int, ...], batch: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> np.ndarray:
    """For every item of `batch`, counted through, the entry of `own` that broadcasts to it.

    Its number; with the strides of `own`, where it begins in memory.
    """
    numbers = np.arange(prod(own)).reshape(own)
    if strides is not None:
        numbers = np.tensordot(np.array(strides, np.intp), np.indices(own), 1)
    # a copy: a view that cannot be written to is another type to Numba, and compiled for again
    return np.array(np.broadcast_to(numbers, batch)).reshape(-1)
