"""cv2.transform in the native library, on arrays and tensors.

The bits are those of `arithmetic.opencv_points`. transform_call.h describes the numbers of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpkit.engine.arithmetic.opencv_points import in_vectors, line_of
from warpkit.engine.cpu.calls import Family, address, address_of, launch
from warpkit.engine.cpu.memory import allocator
from warpkit.engine.cpu.pictures import TYPES

TRANSFORM = Family("transform")
MATRIX, POINTS, OUT = (TRANSFORM.fields[name] for name in ("matrix", "points", "out"))

PIXELS_AT_ONCE = 1024
"""The size of a unit."""


def caller(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    of_matrix: tuple[int, ...],
    arithmetic: str,
) -> Callable[[Any, Any], np.ndarray]:
    """Transforms points of a shape, (H, W, C), or (H, W) for one channel, whose strides in numbers
    decide OpenCV's order of sums: a function of them, dense, and of a matrix (R, C) or (R, C + 1),
    dense, float64, that returns (H, W, R) or (H, W).
    """
    channels, (rows, columns) = shape[2] if len(shape) == 3 else 1, of_matrix
    count = shape[0] * shape[1]
    line = line_of((*shape[:2], channels), (*strides[:2], 1 if len(shape) == 2 else strides[2]))
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
    block, units = TRANSFORM.block("transformed", numbers), -(-count // PIXELS_AT_ONCE)
    result, values = (*shape[:2], rows) if rows > 1 else shape[:2], count * rows
    allocate = allocator(result, dtype)

    def run(points: Any, matrix: Any) -> np.ndarray:
        out, call = allocate(), block.copy()
        call[MATRIX], call[POINTS], call[OUT] = address(matrix), address(points), address_of(out)
        launch(call, 0, units, values)
        return out

    return run
