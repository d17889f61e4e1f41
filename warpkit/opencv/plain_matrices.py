"""cv2's small matrices from Python numbers and arrays, without tensors.

The bits are those of `engine.arithmetic.opencv_matrices`. Each function returns None if an argument
is not plain or not valid; its caller then raises the error.
"""

from __future__ import annotations

import math
from ctypes import c_float
from typing import Any

import numpy as np
import torch

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


def rotation(center: Any, angle: Any, scale: Any) -> np.ndarray | None:
    """cv2.getRotationMatrix2D."""
    middle, angle, scale = pair(center), number(angle), number(scale)
    if middle is None or angle is None or scale is None or not math.isfinite(angle):
        return None
    if torch.compiler.is_compiling():
        return None
    (x, y), radians = middle, angle * (math.pi / 180)
    a, b = math.cos(radians) * scale, math.sin(radians) * scale
    return np.array(((a, b, (1 - a) * x - b * y), (-b, a, b * x + (1 - a) * y)))


def inverse(M: Any) -> np.ndarray | None:
    """cv2.invertAffineTransform of float64."""
    if type(M) is not np.ndarray or M.shape != (2, 3) or M.dtype != FLOAT64:
        return None
    (a, b, c), (d, e, f) = M.tolist()
    det = a * e - b * d
    per = 1 / det if det else 0.0
    a11, a12, a21, a22 = e * per, -b * per, -d * per, a * per
    return np.array(((a11, a12, -a11 * c - a12 * f), (a21, a22, -a21 * c - a22 * f)))


def corners(box: Any) -> np.ndarray | None:
    """cv2.boxPoints."""
    if type(box) not in (tuple, list) or len(box) != 3:
        return None
    center, size, angle = pair(box[0]), pair(box[1]), number(box[2])
    if center is None or size is None or angle is None or torch.compiler.is_compiling():
        return None
    turn = c_float(angle).value
    if not math.isfinite(turn):
        return None
    radians = turn * math.pi / 180
    with np.errstate(all="ignore"):
        single, half = np.float32, np.float32(0.5)
        b, a = single(math.cos(radians)) * half, single(math.sin(radians)) * half
        x, y, width, height = map(single, (*center, *size))
        ah, aw, bh, bw = a * height, a * width, b * height, b * width
        found = (
            (x - ah - bw, y + bh - aw),
            (x + ah - bw, y - bh - aw),
            (x + ah + bw, y - bh + aw),
            (x - ah + bw, y + bh + aw),
        )
    return np.array(found, single)
