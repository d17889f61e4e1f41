"""Cameras that show what a fisheye sees, and the directions of its pixels by OpenCV's steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.camera.points import directions, own_view
from warpkit.core import exports
from warpkit.engine.arithmetic import opencv_lenses
from warpkit.engine.arithmetic.opencv_lenses import FISHEYE_STEPS, NOWHERE, Criteria
from warpkit.engine.arithmetic.opencv_projection import turn_of
from warpkit.engine.binding.plan import Once, Plan, once
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import matrix_of
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.opencv import cameras, door, lenses, point_lists
from warpkit.opencv.door import as_array, check_output
from warpkit.opencv.layout import is_followed
from warpkit.opencv.sizes import as_list, as_size, is_empty
from warpkit.types import MatrixLike, NumbersLike

NAMES = ("K", "D")
IDENTITY = np.eye(3)


def undistorted_by_steps(lens: Lens, points: Tensor, steps: Criteria) -> tuple[Tensor, Tensor]:
    """Pixels (N, 2) as directions (N, 2) by OpenCV's steps, and where it finds any, (N,)."""
    fixed = lens.detach()
    shown = torch.stack(lens_models.from_pixels(fixed, *points.detach().unbind(-1)), dim=-1)
    value, found = opencv_lenses.undistort_fisheye(shown, torch.stack(fixed.k), steps)
    if is_followed(points, *lens.tensors()):
        x, y, _ = directions(lens.beside(1), points)
        value = with_gradient_of(value, torch.stack((x, y), dim=-1))
    return value, found


def estimateNewCameraMatrixForUndistortRectify(
    K: MatrixLike,
    D: NumbersLike,
    image_size: Any,
    R: MatrixLike | None,
    P: MatrixLike | None = None,
    balance: Any = 0.0,
    new_size: Sequence[int] | None = None,
    fov_scale: Any = 1.0,
) -> Any:
    """cv2.fisheye's: a camera for `initUndistortRectifyMap`, from the middles of the four sides.

    K (3, 3); D 4 numbers; image_size and new_size (W, H); R (3, 3), three numbers or None; balance
    from 0, the longest focal length, to 1, the shortest; fov_scale divides it. Returns (3, 3) of
    K's type, or of P's, which it is written to. `warpkit.camera.optimal_camera_matrix` considers
    the whole border. Gradients, if an argument is a tensor: those of the exact solution, to all.

    >>> import numpy as np
    >>> camera = np.array([[100.0, 0, 50], [0, 100, 40], [0, 0, 1]])
    >>> view = estimateNewCameraMatrixForUndistortRectify(camera, np.zeros(4), (100, 80), None)
    >>> view.round(2)
    array([[94.61,  0.  , 50.  ],
           [ 0.  , 94.61, 40.  ],
           [ 0.  ,  0.  ,  1.  ]])
    """
    name = "fisheye.estimateNewCameraMatrixForUndistortRectify"
    size = as_size(name, "image_size", image_size)
    new_size = as_list(name, "new_size", new_size)
    new = size if is_empty(new_size) else as_size(name, "new_size", new_size)
    output = check_output(name, "P", P, K)
    options = (balance, fov_scale, size, new)
    return door.numbers(_plan_camera, (K, D, R, output), options, output)


def _plan_camera(
    keeps: bool, K: Any, D: Any, R: Any, P: Any, balance: Any, scale: Any, *sizes: tuple[int, int]
) -> Plan | Once:
    """The plan of `estimateNewCameraMatrixForUndistortRectify`; sizes: both, (h, w)."""
    name = "fisheye.estimateNewCameraMatrixForUndistortRectify"
    exports.refuse_values(f"opencv.{name}", K, D)
    device = cameras.common_device(K, D, R, balance, scale)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    share = cameras.as_number(name, "balance", balance, device).clamp(0, 1)
    wide = cameras.as_number(name, "fov_scale", scale, device)
    turn = cameras.as_turn(name, R, device, vectors=True)
    f = cameras.as_numbers(name, "K", K, device).diagonal()
    dtype = f.dtype if P is None else cameras.as_numbers(name, "P", P, device).dtype
    (height, width), k = sizes[0], torch.stack(lens.k)
    sides = (width // 2, 0), (width, height // 2), (width // 2, height), (0, height // 2)
    middles = torch.tensor(sides, dtype=torch.float64, device=device)
    make = partial(point_lists.fisheye_undistorting, criteria=FISHEYE_STEPS)
    if door.runs_kernels(k, *lens.tensors(), turn, share, wide):
        if keeps and door.is_plain(K, D, R, P):
            places, by, per = middles.numpy(), float(share), float(wide)
            find = make(places, K, D, IDENTITY, None)

            def run(K: Any, D: Any, R: Any, P: Any) -> np.ndarray:
                try:
                    turn = _turn(R)
                    xs, ys = find(places, K, D, turn, None).T.tolist()
                    squash = _squash(as_array(K))
                    fx, fy, cx, cy = camera_of(xs, ys, squash, by, per, sizes, min, max)
                except (ValueError, ZeroDivisionError):  # torch gives infinities
                    fx = fy = cx = cy = math.nan
                if not math.isfinite(fx + fy + cx + cy):
                    return once(_plan_camera(False, K, D, R, P, balance, scale, *sizes))
                return np.array(((fx, 0.0, cx), (0.0, fy, cy), (0.0, 0.0, 1.0)), kind)

            kind = torch.empty(0, dtype=dtype, device="cpu").numpy().dtype
            return run
        tensors = (middles, own_view(lens), k, turn, None)
        seen = torch.from_numpy(once(door.planned(False, make, (), tensors)))
    else:
        value, found = undistorted_by_steps(lens, middles, FISHEYE_STEPS)
        seen = torch.where(found[:, None], lenses.project(turn, value), NOWHERE)
    squash = (f[0] / f[1]).double()  # divided in K's type, as in cv2
    xs, ys = (part.unbind() for part in seen.unbind(-1))
    fx, fy, cx, cy = camera_of(xs, ys, squash, share, wide, sizes, _least, _most)
    zero, one = torch.zeros_like(fx), torch.ones_like(fx)
    return Once(matrix_of(((fx, zero, cx), (zero, fy, cy), (zero, zero, one))).to(dtype))


def camera_of(
    xs: Sequence[Any],
    ys: Sequence[Any],
    squash: Any,
    share: Any,
    wide: Any,
    sizes: Sequence[tuple[int, int]],
    least: Callable[[Sequence[Any]], Any],
    most: Callable[[Sequence[Any]], Any],
) -> tuple[Any, Any, Any, Any]:
    """fx, fy, cx and cy of the new camera, from the directions of the middles of the four sides.

    squash: the old camera's fx / fy. All are numbers, or all tensors (), with `least` and `most`
    of them.
    """
    (height, width), new = sizes
    cx, cy = (0.25 * (v[0] + v[1] + v[2] + v[3]) for v in (xs, ys))
    cy, ys = cy * squash, [y * squash for y in ys]
    half_x, half_y = width * 0.5, height * 0.5 * squash
    lengths = half_x / (cx - least(xs)), half_x / (most(xs) - cx)
    lengths += half_y / (cy - least(ys)), half_y / (most(ys) - cy)
    f = share * least(lengths) + (1 - share) * most(lengths)
    f = f * (1 / wide) if wide > 0 else f
    by_x, by_y = new[1] / width, new[0] / height
    cx, cy = -cx * f + half_x, (-cy * f + half_y) / squash
    return f * by_x, f / squash * by_y, cx * by_x, cy * by_y


def _least(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(tensors)).amin()


def _most(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(tensors)).amax()


def _squash(K: np.ndarray) -> float:
    """fx / fy, divided in K's type, as in cv2."""
    if not K[1, 1]:
        raise ZeroDivisionError
    return float(K[0, 0] / K[1, 1])


def _turn(R: Any) -> Any:
    """The rotation (3, 3) of None, a matrix or a rotation vector."""
    if R is None or R.shape == (3, 3):
        return IDENTITY if R is None else R
    return np.array(turn_of(as_array(R).ravel().tolist())[0]).reshape(3, 3)
