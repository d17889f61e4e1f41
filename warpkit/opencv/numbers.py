"""Plain numbers, of which cv2's small matrices are computed without arrays."""

from __future__ import annotations

from ctypes import c_float
from typing import Any

import numpy as np

EXACT = 2**53
"""Below this, float64 represents all integers."""


ARRAYS = set(map(np.dtype, (np.float32, np.float64, np.int32, np.int64)))


def are_numbers(*values: Any) -> bool:
    """Whether all are numbers that float64 represents."""
    for value in values:
        if type(value) is int:
            if not -EXACT < value < EXACT:
                return False
        elif type(value) is not float and type(value) is not np.float64:
            return False
    return True


def are_pairs(*values: Any) -> bool:
    """Whether all are sequences or arrays of two such numbers."""
    for value in values:
        if type(value) is np.ndarray:
            if value.shape != (2,) or value.dtype not in ARRAYS or not are_numbers(*value.tolist()):
                return False
        elif type(value) not in (tuple, list) or len(value) != 2 or not are_numbers(*value):
            return False
    return True


def single(pair: Any) -> tuple[float, float]:
    """Two numbers rounded to float32, as in cv2.Point2f."""
    return c_float(pair[0]).value, c_float(pair[1]).value
