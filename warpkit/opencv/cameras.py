"""Validates the arguments of cv2's lens functions: matrices, coefficients, points, map types."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import rotations
from warpkit.core import checks
from warpkit.engine.arithmetic.opencv_lenses import Criteria, fixed_map
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.geometry.arguments import floats
from warpkit.opencv.door import as_given, written

MAP_KINDS = {5: "planes", 13: "pairs", 37: "pairs", 11: "fixed", 35: "fixed"}
"""CV_32FC1, CV_32FC2 and CV_16SC2, by their numbers in OpenCV 4 and 5."""


def common_device(*values: Any) -> torch.device:
    """The device of the first tensor; the CPU if there is none."""
    return checks.result_kind(*(v for v in values if v is not None))[0] or torch.device("cpu")


def as_array(name: str, argument: str, value: Any, device: torch.device) -> Tensor:
    """Numbers in float64, whose values must be readable, because cv2's loops depend on them."""
    return as_numbers(name, argument, value, device).double()


def as_number(name: str, argument: str, value: Any, device: torch.device) -> Tensor:
    """One number in float64, ()."""
    number = as_array(name, argument, value, device)
    if number.ndim:
        checks.fail(name, argument, "a number", checks.shape_of(number))
    return number


def is_nothing(value: Any) -> bool:
    """Whether a value is None, or an empty array or list: cv2's ways to pass no lens."""
    if isinstance(value, (np.ndarray, Tensor)):
        return tuple(value.shape) == (0,)
    return value is None or (isinstance(value, Sequence) and len(value) == 0)


def as_lens(
    name: str, camera: Any, k: Any, device: torch.device, model: str, names: tuple[str, str]
) -> Lens:
    """The lens of a camera matrix and coefficients: a vector, or a matrix of one row or column."""
    matrix = as_array(name, names[0], camera, device)
    if tuple(matrix.shape) != (3, 3):
        checks.fail(name, names[0], "of shape (3, 3)", checks.shape_of(matrix))
    counts = COUNTS[model]
    if is_nothing(k):
        k = torch.zeros(counts[0], dtype=torch.float64, device=device)
    k = as_array(name, names[1], k, device)
    if k.numel() not in counts or k.numel() != max(k.shape, default=0):
        wanted = "None, or of " + ", ".join(map(str, counts)) + " numbers"
        checks.fail(name, names[1], wanted, f"shape {checks.shape_of(k)}")
    k = k.flatten().unbind()
    return Lens(model, matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], k)


def as_view(name: str, argument: str, value: Any, device: torch.device) -> Tensor:
    """A camera matrix (3, 3), or the left three columns of a projection (3, 4)."""
    matrix = as_array(name, argument, value, device)
    if tuple(matrix.shape) not in ((3, 3), (3, 4)):
        checks.fail(name, argument, "of shape (3, 3) or (3, 4)", checks.shape_of(matrix))
    return matrix[:, :3]


def as_turn(name: str, value: Any, device: torch.device, vectors: bool = False) -> Tensor:
    """A rotation (3, 3), the identity for None; with `vectors`, also from a rotation vector."""
    if value is None:
        return torch.eye(3, dtype=torch.float64, device=device)
    turn = as_array(name, "R", value, device)
    if vectors and turn.numel() == 3:
        return rotations.of_vector(turn.flatten())
    if tuple(turn.shape) != (3, 3):
        wanted = "of shape (3, 3)" + ", or three numbers" * vectors
        checks.fail(name, "R", wanted, checks.shape_of(turn))
    return turn


def as_points(
    name: str, argument: str, value: Any, device: torch.device, numbers: int = 2
) -> Tensor:
    """Points (N, n) with n = `numbers`, from (N, n), (N, 1, n), (1, N, n), (n, N) or (n,)."""
    points, n = as_numbers(name, argument, value, device), numbers
    rows = point_rows(points, n)
    if rows is None:
        wanted = f"of shape (N, {n}), (N, 1, {n}), (1, N, {n}) or ({n}, N)"
        checks.fail(name, argument, wanted, checks.shape_of(points))
    return rows


def point_rows(points: Any, n: int) -> Any:
    """Points (N, n), from an array or tensor that `as_points` takes; None for others."""
    if points.shape[-1:] == (1,) and points.ndim == 3:
        points = points[..., 0]  # a dimension for cv2's channels
    if tuple(points.shape) == (n,) or (points.ndim == 2 and len(points) == n != points.shape[1]):
        return points.reshape(n, -1).T
    fits = points.ndim == 2 or (points.ndim == 3 and 1 in points.shape[:2])
    if not fits or points.shape[-1] != n:
        return None
    return points.reshape(-1, n)


def as_places(name: str, argument: str, value: Any, device: torch.device, numbers: int) -> Tensor:
    """Points (N, `numbers`) or (H, W, `numbers`), as cv2.fisheye takes them."""
    points = as_numbers(name, argument, value, device)
    if points.ndim not in (2, 3) or points.shape[-1] != numbers:
        wanted = f"of shape (N, {numbers}) or (H, W, {numbers})"
        checks.fail(name, argument, wanted, checks.shape_of(points))
    return points


def as_numbers(name: str, argument: str, value: Any, device: torch.device) -> Tensor:
    """Numbers in their floating type, or float64, whose values must be readable."""
    numbers = floats(name, argument, value, device)
    checks.check_held(name, argument, numbers)
    return numbers


def as_criteria(name: str, value: Any, default: Criteria) -> Criteria:
    """cv2.TermCriteria as (type, steps, error); None is the default."""
    if value is None:
        return default
    kind, steps, error = checked_criteria(name, value)
    return Criteria(int(steps) if kind & 1 else None, float(error) if kind & 2 else None)


def checked_criteria(name: str, value: Any) -> tuple[int, Any, Any]:
    """cv2.TermCriteria (type, steps, error), of which the type's numbers are finite."""
    good = isinstance(value, checks.LISTS) and len(value) == 3
    good = good and isinstance(value[0], Integral) and value[0] in (1, 2, 3)
    if not good or not all(
        isinstance(number, Real) and abs(cast(float, number)) <= sys.float_info.max
        for flag, number in zip((1, 2), value[1:], strict=True)
        if value[0] & flag
    ):
        wanted = "(type, steps, error) with type of TERM_CRITERIA_COUNT, _EPS or both"
        checks.fail(name, "criteria", wanted, f"{value!r:.60}")
    return value[0], value[1], value[2]


def as_flag(name: str, argument: str, value: Any) -> bool:
    """A bool as cv2 takes it: a bool or an integer, Python's or numpy's."""
    if not isinstance(value, (bool, np.bool_, Integral)):
        checks.fail(name, argument, "True or False", f"{value!r:.60}", TypeError)
    return bool(value)


def as_maps(
    points: Tensor,
    kind: str,
    given: bool,
    outputs: tuple[Any, Any],
    fixed: tuple[Tensor, Tensor | None] | None = None,
) -> tuple[Any, Any]:
    """Points (h, w, 2), float64, as maps of a kind, in float32 or as integers.

    fixed: the integers, (h, w, 2) and (h, w), if already known.
    """
    if kind == "fixed":
        pair = fixed_map(points.detach()) if fixed is None else fixed
    elif kind == "pairs":
        pair = (points.float(), None)
    else:
        pair = points.float().unbind(-1)
    return as_given_maps(pair, given, outputs)


def as_given_maps(pair: Sequence[Any], given: bool, outputs: tuple[Any, Any]) -> tuple[Any, Any]:
    """Both maps of a pair, as tensors if one was `given`, otherwise as arrays.

    The second may be None.
    """
    made = []
    for found, output in zip(pair, outputs, strict=True):
        if isinstance(found, Tensor):
            made.append(as_given(given, found, output))
        elif given and found is not None:
            made.append(torch.from_numpy(found))
        else:
            made.append(found if found is None or output is None else written(output, found))
    return made[0], made[1]


def map_kind(name: str, argument: str, value: Any, kinds: Sequence[str]) -> str:
    """The kind of a map of a cv2 type; negative numbers and None mean the fixed one."""
    if value is None or (isinstance(value, Integral) and value <= 0):
        return "fixed"
    kind = MAP_KINDS.get(int(value)) if isinstance(value, Integral) else None
    if kind is None or kind not in kinds:
        names = {"planes": "CV_32FC1", "pairs": "CV_32FC2", "fixed": "CV_16SC2"}
        wanted = "one of " + ", ".join(names[kind] for kind in kinds)
        checks.fail(name, argument, wanted, repr(value))
    return kind
