"""Distorts and undistorts fisheye points by the native library, without derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.camera.models import Lens
from warpkit.engine.arithmetic.opencv_lenses import Criteria
from warpkit.opencv import numbers_alone

FLOATS = (torch.float32, torch.float64)


def distorted(directions: Tensor, lens: Lens, skew: Tensor) -> Tensor | None:
    """cv2.fisheye.distortPoints of directions (..., 2), in their type; None if unsupported."""
    known, points = _plain(directions, lens, skew)
    if known is None:
        return None
    found = known.fisheye_shown(points, _numbers(known, lens), float(skew.detach()))
    return torch.from_numpy(found).view(directions.shape)


def undistorted(
    pixels: Tensor, lens: Lens, view: Tensor | None, criteria: Criteria
) -> Tensor | None:
    """cv2.fisheye.undistortPoints of pixels (..., 2), in their type; None if unsupported.

    view (3, 3): what directions are multiplied by.
    """
    known, points = _plain(pixels, lens, *(() if view is None else (view,)))
    if known is None:
        return None
    matrix = None if view is None else view.detach().flatten().tolist()
    found = known.fisheye_found(points, _numbers(known, lens), criteria, matrix)
    return torch.from_numpy(found).view(pixels.shape)


def distorted_numbers(directions: Any, K: Any, D: Any, alpha: Any) -> np.ndarray | None:
    """`distorted` of plain arguments; None of others."""
    points, lens = _places(directions), numbers_alone.fisheye_lens(K, D)
    if points is None or lens is None or type(alpha) not in (int, float):
        return None
    return _known().fisheye_shown(points.reshape(-1, 2), lens, float(alpha)).reshape(points.shape)


def undistorted_numbers(
    pixels: Any, K: Any, D: Any, R: Any, P: Any, criteria: Criteria
) -> np.ndarray | None:
    """`undistorted` of plain arguments; None of others."""
    points, lens = _places(pixels), numbers_alone.fisheye_lens(K, D)
    looks = R is not None or P is not None
    view = numbers_alone.view_of(R, P) if looks else None
    if points is None or lens is None or (looks and view is None):
        return None
    found = _known().fisheye_found(points.reshape(-1, 2), lens, criteria, view)
    return found.reshape(points.shape)


def _known() -> Any:
    return numbers_alone.kernels()


def _places(value: Any) -> np.ndarray | None:
    points = numbers_alone.numbers(value, numbers_alone.FLOATS)
    good = points is not None and points.ndim in (2, 3) and points.shape[-1] == 2
    return points if good else None


def _plain(places: Tensor, lens: Lens, *others: Tensor) -> tuple[Any, Any]:
    """The library's points, and positions (..., 2) as an array (N, 2); None if unsupported."""
    known, tensors = numbers_alone.kernels(), (places, *lens.tensors(), *others)
    if known is None or places.dtype not in FLOATS or not numbers_alone.are_plain(*tensors):
        return None, None
    return known, places.detach().reshape(-1, 2).numpy()


def _numbers(known: Any, lens: Lens) -> Any:
    """A `PlainLens`."""
    fx, fy, cx, cy, *k = (float(value.detach()) for value in lens.tensors())
    return known.PlainLens(lens.model, (fx, fy, cx, cy), tuple(k))
