"""cv2's small matrices from Python numbers and arrays, without tensors.

The bits are those of `engine.arithmetic.opencv_matrices`. Each function returns None if an argument
is not plain or not valid; its caller then raises the error.
"""

from __future__ import annotations

from ctypes import c_float
from typing import Any

import numpy as np

from warpkit.opencv.plain_calls import NUMBERS

FLOAT64 = np.dtype(np.float64)
EXACT = 2**53
"""Below this, float64 represents all integers."""


def number(value: Any) -> float | None:
    """A plain number as a float."""
    if type(value) is float or type(value) is np.float64:
        return float(value)
    return float(value) if type(value) is int and -EXACT < value < EXACT else None


def pair(value: Any) -> tuple[float, float] | None:
    """Two plain numbers of a sequence or an array, rounded to float32 as in cv2.Point2f."""
    if type(value) is np.ndarray and value.shape == (2,) and value.dtype in NUMBERS:
        value = value.tolist()
    if type(value) not in (tuple, list) or len(value) != 2:
        return None
    x, y = number(value[0]), number(value[1])
    return None if x is None or y is None else (c_float(x).value, c_float(y).value)
