"""Lists of points in the native library, on arrays and tensors: blocks made once for all calls.

The results have no gradients. native/points/maps_call.h describes the numbers of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from warpkit.engine.arithmetic import opencv_angles
from warpkit.engine.arithmetic.opencv_lenses import MOST_STEPS, Criteria
from warpkit.engine.cpu.calls import address, address_of, launch
from warpkit.engine.cpu.maps import MAPS
from warpkit.engine.cpu.memory import allocator, empty

NUMBERS, FIRST, COUNT = (MAPS.fields[name] for name in ("numbers", "first", "count"))
WIDE = np.dtype(np.float64)
OUT, OUT_SECOND = MAPS.fields["out"], MAPS.fields["out_second"]

SECOND, FAR = MAPS.fields["second"], MAPS.fields["far"]

SINES = np.array(opencv_angles.TABLE)

POINTS_AT_ONCE = 1024
"""The size of a unit of a list of points."""

Run = Callable[..., np.ndarray]
"""Computes points of a shape: of dense points, an array or a tensor, of the numbers of a block,
float64, and of the count of the points.
"""


def caller(task: str, dtype: np.dtype, **codes: int) -> Run:
    """Calls a task for points of a type, float32 or float64, with a result of their type.

    codes: other numbers of the block.
    """
    block = MAPS.block(task, {"double_points": int(dtype == np.float64), **codes})

    def run(points: Any, numbers: Any, shape: Sequence[int], count: int) -> np.ndarray:
        out, call = empty(shape, dtype), block.copy()
        call[NUMBERS], call[FIRST], call[OUT] = address(numbers), address(points), address_of(out)
        call[COUNT] = count
        launch(call, 0, -(-count // POINTS_AT_ONCE), out.size)
        return out

    return run


def codes_of(criteria: Criteria) -> dict[str, int]:
    """When an iteration ends, as a block has it."""
    steps = MOST_STEPS if criteria.steps is None else max(criteria.steps, 0)
    return {"steps": steps, "ends_by_error": int(criteria.error is not None)}


def projector(
    task: str, dtype: np.dtype, columns: int, **codes: int
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """As `caller`, for cv2.projectPoints: pixels of a shape, and a jacobian (2N, columns)."""
    double = int(dtype == np.float64)
    block = MAPS.block(task, {"double_points": double, "channels": columns, **codes})

    def run(
        points: Any, numbers: np.ndarray, shape: Sequence[int], count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        shown, slopes = empty(shape, dtype), empty((2 * count, columns), WIDE)
        call = block.copy()
        call[COUNT] = count
        call[NUMBERS], call[FIRST] = address_of(numbers), address(points)
        call[OUT], call[OUT_SECOND] = address_of(shown), address_of(slopes)
        launch(call, 0, -(-count // POINTS_AT_ONCE), slopes.size)
        return shown, slopes

    return run


def polar_caller(
    task: str, shape: Sequence[int], dtype: np.dtype, at_once: int, degrees: bool
) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray, bool]]:
    """`opencv_angles.to_polar` or `from_polar` of two dense arrays or tensors, in blocks.

    The first may be None for 1. Also returns whether an angle is too large for this.
    """
    numbers = {"double_points": int(dtype == np.float64), "degrees": int(degrees)}
    values, allocate = prod(shape), allocator(shape, dtype)
    block = MAPS.block(task, {"channels": at_once, "count": values, **numbers})
    block[NUMBERS], units = address_of(SINES), -(-values // at_once)

    def run(first: Any, second: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        one, other, far, call = allocate(), allocate(), np.zeros(1, np.int64), block.copy()
        call[FIRST] = 0 if first is None else address(first)
        call[SECOND], call[FAR] = address(second), address_of(far)
        call[OUT], call[OUT_SECOND] = address_of(one), address_of(other)
        launch(call, 0, units, 2 * values)
        return one, other, bool(far[0])

    return run
