"""cv2.projectPoints and cv2.fisheye.projectPoints of plain numbers, by the native library.

Both return pixels (N, 2) and their Jacobian, or None if an argument is not plain or not valid: the
caller then raises the error, or computes by torch operations. Pixels of brown lenses have the same
bits either way. Fisheye pixels and all Jacobians have OpenCV's bits here, but may differ from them
in some last bits if computed by torch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warpkit.opencv import jacobians, plain_calls
from warpkit.opencv.cameras import point_rows
from warpkit.opencv.plain_calls import FLOATS, floats, numbers

LEAST_RATIO = 2.0**-23
"""An aspect ratio up to this size counts as not given."""

UPRIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

Projection = tuple[np.ndarray, np.ndarray]


def brown(
    scene: Any, rvec: Any, tvec: Any, camera: Any, k: Any, ratio: Any, vector: Any = None
) -> Projection | None:
    """cv2.projectPoints of points in any form that `cameras.point_rows` takes.

    k: not None; ratio: a fixed fx / fy, or 0; vector: rvec's rotation vector, if rvec is a matrix.
    """
    points, coefficients = numbers(scene, FLOATS), numbers(k)
    points = None if points is None else point_rows(points, 3)
    lens, pose = plain_calls.brown_lens(camera, coefficients), _pose(rvec, tvec, vector)
    if points is None or coefficients is None or lens is None or pose is None or not len(points):
        return None
    if type(ratio) not in (int, float):
        return None
    if coefficients.size == 14:
        flat = floats(coefficients)
        tilt = lens.tilt if any(flat[12:]) else UPRIGHT
        slopes = [v for slope in jacobians.tilting(*flat[12:]) for v in slope.flatten().tolist()]
        lens = lens._replace(k=flat, tilt=tilt, tilting=slopes)
    fixed = ratio > LEAST_RATIO
    if fixed:
        _, fy, cx, cy = lens.camera
        lens = lens._replace(camera=(fy * ratio, fy, cx, cy))
    return plain_calls.kernels().projected(points, lens, pose, ratio if fixed else 0.0)  # pyright: ignore


def fisheye(scene: Any, rvec: Any, tvec: Any, K: Any, D: Any, alpha: Any) -> Projection | None:
    """cv2.fisheye.projectPoints of points (..., 3)."""
    points, lens = numbers(scene, FLOATS), plain_calls.fisheye_lens(K, D)
    pose = _pose(rvec, tvec)
    if points is None or lens is None or pose is None or not points.size:
        return None
    if points.ndim not in (2, 3) or points.shape[-1] != 3 or type(alpha) not in (int, float):
        return None
    known = plain_calls.kernels()
    return known.projected(points.reshape(-1, 3), lens, pose, float(alpha))  # pyright: ignore


def _pose(rvec: Any, tvec: Any, vector: Any = None) -> Any:
    """The `PlainPose`; vector: rvec's rotation vector, if rvec is a matrix."""
    known, turn, shift = plain_calls.kernels(), numbers(rvec), numbers(tvec)
    if known is None or turn is None or shift is None or shift.size != 3:
        return None
    axis = turn if vector is None else vector
    if axis.size != 3 or not all(map(math.isfinite, axis.ravel().tolist())):
        return None  # Python's sine of infinity raises an error
    return known.PlainPose(floats(axis), None if vector is None else floats(turn), floats(shift))
