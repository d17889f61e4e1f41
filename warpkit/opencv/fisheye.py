"""cv2.fisheye: fisheye lenses as OpenCV computes them, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import maps
from warpkit.camera.points import own_view
from warpkit.core import checks, exports
from warpkit.core.public import listing
from warpkit.engine.arithmetic.opencv_lenses import FISHEYE_STEPS, NOWHERE, Criteria
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import finite, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.inverse import inverse_map
from warpkit.opencv import (
    cameras,
    door,
    lens_maps,
    lenses,
    plain_calls,
    point_lists,
    projection,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.fisheye_cameras import (
    estimateNewCameraMatrixForUndistortRectify,
    undistorted_by_steps,
)
from warpkit.opencv.layout import has_tensor
from warpkit.opencv.point_lists import FLOATS
from warpkit.opencv.sizes import as_list, as_size, is_empty
from warpkit.opencv.values import resolved
from warpkit.types import FaceArithmetic, Image, ImageLike, MatrixLike, NumbersLike, PointsLike

__all__ = [
    "distortPoints",
    "estimateNewCameraMatrixForUndistortRectify",
    "initUndistortRectifyMap",
    "projectPoints",
    "undistortImage",
    "undistortPoints",
]
__dir__ = listing(__all__)

NAMES = ("K", "D")
IDENTITY = np.eye(3)


def initUndistortRectifyMap(
    K: MatrixLike,
    D: NumbersLike,
    R: MatrixLike | None,
    P: MatrixLike | None,
    size: Sequence[int],
    m1type: int,
    map1: ImageLike | None = None,
    map2: ImageLike | None = None,
) -> tuple[Any, Any]:
    """cv2.fisheye.initUndistortRectifyMap: two maps for `remap`.

    K (3, 3); D None or 4 numbers; R (3, 3), three numbers, or None; P (3, 3) or (3, 4), the
    identity if None; size (W, H); m1type CV_32FC1 or CV_16SC2. Returns two (H, W) float32, or
    (H, W, 2) int16 and (H, W) uint16. Gradients, if an argument is a tensor and the maps are
    floats: all orders, to all.

    >>> import numpy as np
    >>> x, y = initUndistortRectifyMap(np.eye(3), None, None, None, (2, 1), 5)
    >>> x.round(4)
    array([[0.    , 0.7854]], dtype=float32)
    """
    name = "fisheye.initUndistortRectifyMap"
    exports.refuse_values(f"opencv.{name}", K, D, R, P)
    values, outputs = (K, D, R, P), (map1, map2)
    kind = cameras.map_kind(name, "m1type", m1type, ("planes", "fixed"))
    sides = as_size(name, "size", size)
    found = plan.call(_plan_map, values, (sides, kind))
    return cameras.as_given_maps(found, has_tensor(*values), outputs)


def _plan_map(
    keeps: bool, K: Any, D: Any, R: Any, P: Any, size: tuple[int, int], kind: str
) -> Plan | Once:
    """The plan of `initUndistortRectifyMap`, with its first four arguments."""
    name = "fisheye.initUndistortRectifyMap"
    device = cameras.common_device(K, D, R, P)
    lens, view = cameras.as_lens(name, K, D, device, "fisheye", NAMES), _view(name, R, P, device)
    turns_by_matrix = R is None or checks.shape_if_any(R) == (3, 3)
    if keeps and turns_by_matrix and lens_maps.has_kernel(K, D, R, P):
        make = lens_maps.lens_plan("fisheye", D, size, kind)
        return lambda K, D, R, P: make(K, D, R, IDENTITY if P is None else P)
    if (found := plain_calls.lens_map(lens, view, size, kind)) is not None:
        return Once(found)
    return Once(cameras.as_maps(_map(lens, view, size), kind, True, (None, None)))


def _view(name: str, R: Any, P: Any, device: torch.device) -> Tensor:
    """The matrix (3, 3) from the camera's directions to pixels of the new view."""
    view = cameras.as_turn(name, None, device)
    view = view if P is None else cameras.as_view(name, "P", P, device)
    return view if R is None else view @ cameras.as_turn(name, R, device, vectors=True)


def _map(lens: Lens, view: Tensor, size: tuple[int, int]) -> Tensor:
    """Source positions (h, w, 2), float64; infinite behind the camera, as in OpenCV."""
    points = maps.undistorting(lens, view, size)
    behind = points.detach().isnan()
    if not bool(behind.any()):
        return points
    to_ray, pixels = inverse_map(view.detach()), pixel_points(size, torch.float64, view.device)
    rays = torch.cat((pixels, torch.ones_like(pixels[..., :1])), dim=-1) @ to_ray.mT
    off = torch.where(rays[..., :2] > 0, -torch.inf, torch.inf)
    return torch.where(behind, off, points)


def undistortImage(
    distorted: Image,
    K: MatrixLike,
    D: NumbersLike,
    undistorted: Any = None,
    Knew: MatrixLike | None = None,
    new_size: Sequence[int] | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.fisheye.undistortImage: `warpkit.camera.undistort` through OpenCV's map of 1/32 pixels.

    distorted (H, W) or (H, W, C); K (3, 3); D 4 numbers; Knew (3, 3), the identity if None, which
    shows a single pixel of the centre: pass K; new_size (W, H). Bilinear, with 0 around the image.
    Gradients, if `distorted` is a tensor: to it, K, D and Knew.

    >>> import numpy as np
    >>> camera = np.array([[9.0, 0, 1], [0, 9, 0], [0, 0, 1]])
    >>> undistortImage(np.arange(3, dtype=np.float32)[None] * 8, camera, np.zeros(4), None, camera)
    array([[ 0.,  8., 16.]], dtype=float32)
    """
    name = "fisheye.undistortImage"
    exports.refuse_values(f"opencv.{name}", K, D, Knew)
    new_size = as_list(name, "new_size", new_size)
    sides = None if is_empty(new_size) else as_size(name, "new_size", new_size)
    undistorted = check_output(name, "dst", undistorted, distorted)
    arrays = (distorted, K, D, IDENTITY if Knew is None else Knew)
    return door.call(_plan_undistort, arrays, (name, sides, resolved(arithmetic)), undistorted)


def _plan_undistort(
    keeps: bool, src: Any, K: Any, D: Any, Knew: Any, name: str, size: Any, arithmetic: str
) -> Plan | Once:
    """The plan of `undistortImage`, with its arguments."""
    device = cameras.common_device(src, K, D, *([] if Knew is IDENTITY else [Knew]))
    lenses.check_source(name, "distorted", src, device)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    sides = (src.shape[0], src.shape[1]) if size is None else size
    view = _view(name, None, None if Knew is IDENTITY else Knew, device)
    if keeps and lenses.has_plan(name, src, (K, D, Knew), arithmetic):
        rule = SamplingRule("bilinear", "constant", arithmetic)
        return lens_maps.image_plan("fisheye", src, D, sides, rule)
    made_of, exact = {"K": K, "D": D, "Knew": Knew}, partial(_map, size=sides)

    def rounded(lens: Lens, view: Tensor) -> Tensor:
        return lenses.on_fixed_map(exact(lens, view))  # view (3, 3)

    args = (name, src, (lens, view), sides, exact, rounded, arithmetic, made_of)
    return Once(lenses.sample(*args))


def undistortPoints(
    distorted: Any,
    K: MatrixLike,
    D: NumbersLike,
    undistorted: Any = None,
    R: MatrixLike | None = None,
    P: MatrixLike | None = None,
    criteria: Any = None,
) -> Any:
    """cv2.fisheye.undistortPoints: ten Newton steps of each point's angle.

    distorted (N, 1, 2), (1, N, 2), (H, W, 2) or (N, 2), pixels; K (3, 3); D 4 numbers; R (3, 3) or
    three numbers; P (3, 3) or (3, 4), without which the result is in directions; criteria (type,
    steps, error of the angle). Returns the shape and type of `distorted`, (-1000000, -1000000) if
    OpenCV finds no solution. Gradients, if an argument is a tensor: those of the exact solution, 0
    if there is none.

    >>> import numpy as np
    >>> undistortPoints(np.array([[[np.pi / 4, 0.0]]]), np.eye(3), np.zeros(4)).round(6)
    array([[[1., 0.]]])
    """
    name = "fisheye.undistortPoints"
    steps = cameras.as_criteria(name, criteria, FISHEYE_STEPS)
    output = check_output(name, "undistorted", undistorted, distorted)
    arrays = (distorted, K, D, R, P)
    return door.numbers(_plan_points, arrays, tuple(steps), output, width=2)


def _plan_points(
    keeps: bool, distorted: Any, K: Any, D: Any, R: Any, P: Any, steps: Any, error: Any
) -> Plan | Once:
    """The plan of `undistortPoints`; steps and error: its criteria."""
    name, criteria = "fisheye.undistortPoints", Criteria(steps, error)
    exports.refuse_values(f"opencv.{name}", distorted, K, D)
    device = cameras.common_device(distorted, K, D, R, P)
    points = cameras.as_places(name, "distorted", distorted, device, 2)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    turn = None if R is None else cameras.as_turn(name, R, device, vectors=True)
    projection = None if P is None else cameras.as_view(name, "P", P, device)
    if points.dtype in FLOATS and door.runs_kernels(points, *lens.tensors(), turn, projection):
        make = partial(point_lists.fisheye_undistorting, criteria=criteria)
        tensors = (points, own_view(lens), torch.stack(lens.k), turn, projection)
        keeps = keeps and (R is None or R.shape == (3, 3))
        return door.planned(keeps, make, (distorted, K, D, R, P), tensors)
    value, found = undistorted_by_steps(lens, points.double().reshape(-1, 2), criteria)
    if turn is not None or projection is not None:
        turn = cameras.as_turn(name, None, device) if turn is None else turn
        value = lenses.project(turn if projection is None else projection @ turn, value)
    value = torch.where(found[:, None], value, NOWHERE)
    return Once(value.reshape(points.shape).to(points.dtype))


def projectPoints(
    objectPoints: PointsLike,
    rvec: NumbersLike,
    tvec: NumbersLike,
    K: MatrixLike,
    D: NumbersLike,
    imagePoints: ImageLike | None = None,
    alpha: NumbersLike = 0,
    jacobian: ImageLike | None = None,
) -> tuple[Any, Any]:
    """cv2.fisheye.projectPoints: project points of a scene to pixels, with the derivatives.

    objectPoints (N, 1, 3), (1, N, 3), (H, W, 3) or (N, 3); rvec and tvec three numbers; K (3, 3); D
    4 numbers; alpha the skew. Returns pixels of objectPoints' type and shape, with 2 in place of 3,
    and (2N, 15), float64: their derivatives by fx, fy, cx, cy, D, rvec, tvec and alpha. Gradients
    of the pixels, where an argument is a tensor: all orders, to all; the jacobian has none.

    >>> import numpy as np
    >>> still, camera = np.zeros(3), np.array([[100.0, 0, 50], [0, 100, 40], [0, 0, 1]])
    >>> projectPoints(np.array([[[2.0, 0.0, 2.0]]]), still, still, camera, np.zeros(4))[0].round(4)
    array([[[128.5398,  40.    ]]])
    """
    name = "fisheye.projectPoints"
    first = check_output(name, "imagePoints", imagePoints, objectPoints)
    second = check_output(name, "jacobian", jacobian, objectPoints)
    arrays = (objectPoints, rvec, tvec, K, D)
    return door.numbers(projection.plan_fisheye, arrays, (alpha,), first, second, width=3)


def distortPoints(
    undistorted: Any,
    K: NumbersLike,
    D: NumbersLike,
    distorted: Any = None,
    alpha: NumbersLike = 0,
    *rest: Any,
    Kundistorted: Any = None,
) -> Any:
    """cv2.fisheye.distortPoints: `warpkit.camera.distort_points` of directions, not of pixels.

    undistorted (N, 1, 2), (1, N, 2), (H, W, 2) or (N, 2), directions, or pixels of the camera
    Kundistorted, (3, 3); K (3, 3); D 4 numbers; alpha the skew. cv2's other argument order works,
    too: (undistorted, Kundistorted, K, D, distorted, alpha). Returns pixels of the shape and type
    of `undistorted`, with Kundistorted always float64, as in cv2. Gradients, if an argument is a
    tensor: all orders, to all.

    >>> import numpy as np
    >>> distortPoints(np.array([[[1.0, 0.0]]]), np.eye(3), np.zeros(4)).round(4)
    array([[[0.7854, 0.    ]]])
    """
    name = "fisheye.distortPoints"
    if Kundistorted is None and checks.shape_if_any(D) == (3, 3):
        skews = rest or (0,)
        Kundistorted, K, D, distorted, alpha, rest = K, D, distorted, alpha, skews[0], skews[1:]
        distorted = None if isinstance(distorted, (int, float)) else distorted
    if rest:
        checks.fail(name, "alpha", "the last argument", f"{len(rest)} more", TypeError)
    output = check_output(name, "distorted", distorted, undistorted)
    arrays = (undistorted, K, D, Kundistorted)
    return door.numbers(_plan_distortion, arrays, (alpha,), output, width=2)


def _plan_distortion(
    keeps: bool, undistorted: Any, K: Any, D: Any, seen_by: Any, alpha: Any
) -> Plan | Once:
    """The plan of `distortPoints` of pixels of a camera, `seen_by`."""
    name = "fisheye.distortPoints"
    device = cameras.common_device(undistorted, K, D, alpha, seen_by)
    given = cameras.as_places(name, "undistorted", undistorted, device, 2)
    points, dtype = given.double(), given.dtype
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    skew = cameras.as_number(name, "alpha", alpha, device)
    if seen_by is not None:
        view = cameras.as_array(name, "Kundistorted", seen_by, device)
        if tuple(view.shape) != (3, 3):
            checks.fail(name, "Kundistorted", "of shape (3, 3)", checks.shape_of(view))
        real = points.detach().isfinite().all(-1, keepdim=True)
        # cv2 reads only the focal lengths and the centre, not the skew
        seen = (torch.where(real, points, 0.0) - view[:2, 2]) / view.diagonal()[:2]
        given = points = torch.where(real, seen, torch.nan)
        dtype = torch.float64
    if dtype in FLOATS and door.runs_kernels(given, *lens.tensors(), skew):
        make = partial(point_lists.fisheye_distorting, skew=float(skew))
        tensors = (given, own_view(lens), torch.stack(lens.k), None)
        keeps = keeps and seen_by is None
        return door.planned(keeps, make, (undistorted, K, D, None), tensors)
    return Once(_skewed(lens, points, skew).to(dtype))


def _skewed(lens: Lens, points: Tensor, skew: Tensor) -> Tensor:
    """The pixels of directions (..., 2) through one lens, with the camera's skew; NaN stays NaN."""
    near = finite.within(*points.detach().unbind(-1))
    x, y = torch.where(near[..., None], points, 0.0).unbind(-1)
    u, v = lens_models.bend(lens, x, y)
    shown = torch.stack(lens_models.to_pixels(lens, u + skew * v, v), dim=-1)
    return torch.where(near[..., None], shown, torch.nan)
