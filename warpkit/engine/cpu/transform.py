"""cv2.transform in the native library, on arrays.

The bits are those of `arithmetic.opencv_points`. transform_call.h describes the numbers of a block.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warpkit.engine.arithmetic.opencv_points import in_vectors, line_of
from warpkit.engine.cpu.calls import KEPT, Family, address_of, launch
from warpkit.engine.cpu.memory import empty
from warpkit.engine.cpu.pictures import TYPES

TRANSFORM = Family("transform")
MATRIX, POINTS, OUT = (TRANSFORM.fields[name] for name in ("matrix", "points", "out"))

PIXELS_AT_ONCE = 1024
"""The size of a unit."""

DOUBLE = np.dtype(np.float64)


def transformed(points: np.ndarray, matrix: np.ndarray, arithmetic: str) -> np.ndarray | None:
    """points (H, W, C), or (H, W) for one channel; matrix (R, C) or (R, C + 1): (H, W, R) or (H,
    W).

    None for other shapes.
    """
    made = _call(points.shape, points.strides, points.dtype, matrix.shape, arithmetic)
    if made is None:
        return None
    call, units, shape, values = made
    if matrix.dtype != DOUBLE or not matrix.flags.c_contiguous:
        matrix = np.ascontiguousarray(matrix, DOUBLE)
    points = np.ascontiguousarray(points)
    out, block = empty(shape, points.dtype), call.copy()
    block[MATRIX], block[POINTS] = address_of(matrix), address_of(points)
    block[OUT] = address_of(out)
    launch(block, 0, units, values)
    return out


@lru_cache(maxsize=KEPT)
def _call(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    of_matrix: tuple[int, ...],
    arithmetic: str,
) -> tuple[np.ndarray, int, tuple[int, ...], int] | None:
    """The block without addresses, its units, and the result's shape and size."""
    if len(shape) not in (2, 3) or 0 in shape or len(of_matrix) != 2 or not of_matrix[0]:
        return None
    channels, (rows, columns) = shape[2] if len(shape) == 3 else 1, of_matrix
    if columns - channels not in (0, 1):
        return None
    count, steps = shape[0] * shape[1], [step // dtype.itemsize for step in strides]
    line = line_of((*shape[:2], channels), (*steps[:2], 1 if len(shape) == 2 else steps[2]))
    vectors, pairs = in_vectors(line, dtype.name, arithmetic)
    numbers = {
        "rows": rows,
        "columns": columns,
        "count": count,
        "channels": channels,
        "type": TYPES[dtype],
        "line": line,
        "vectors": vectors,
        "pairs": pairs,
    }
    made = TRANSFORM.block("transformed", numbers)
    found = (*shape[:2], rows) if rows > 1 else shape[:2]
    return made, -(-count // PIXELS_AT_ONCE), found, count * rows
