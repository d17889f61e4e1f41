"""cv2.fisheye: fisheye lenses as OpenCV computes them, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import maps
from warpkit.camera.points import directions
from warpkit.core import checks, exports
from warpkit.core.public import listing
from warpkit.engine.arithmetic import opencv_lenses
from warpkit.engine.arithmetic.opencv_lenses import FISHEYE_STEPS, NOWHERE, Criteria
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import finite, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import matrix_of, pixel_points
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.inverse import inverse_map
from warpkit.opencv import (
    cameras,
    door,
    fisheye_points,
    lens_maps,
    lenses,
    plain_calls,
    plain_projections,
    projection,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import as_given, has_tensor, is_followed
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
    exports.refuse_values(f"opencv.{name}", distorted, K, D)
    values = (distorted, K, D, R, P)
    steps = cameras.as_criteria(name, criteria, FISHEYE_STEPS)
    output = check_output(name, "undistorted", undistorted, distorted)
    plain = fisheye_points.undistorted_numbers(*values, steps)
    if plain is not None:
        return plain_calls.given(values, plain, output)
    device = cameras.common_device(*values)
    given = cameras.as_places(name, "distorted", distorted, device, 2)
    points = given.double().reshape(-1, 2)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    turn = cameras.as_turn(name, R, device, vectors=True)
    view = turn if P is None else cameras.as_view(name, "P", P, device) @ turn
    seen_by = None if R is None and P is None else view
    if (moved := fisheye_points.undistorted(given, lens, seen_by, steps)) is not None:
        return as_given(has_tensor(*values), moved, output)
    value, found = _undistorted(lens, points, steps)
    moved = value if seen_by is None else lenses.project(view, value)
    moved = torch.where(found[:, None], moved, NOWHERE)
    return as_given(has_tensor(*values), moved.reshape(given.shape).to(given.dtype), output)


def _undistorted(lens: Lens, points: Tensor, steps: Criteria) -> tuple[Tensor, Tensor]:
    """Pixels (N, 2) as directions (N, 2) by OpenCV's steps, and where it finds any, (N,)."""
    fixed = lens.detach()
    shown = torch.stack(lens_models.from_pixels(fixed, *points.detach().unbind(-1)), dim=-1)
    value, found = opencv_lenses.undistort_fisheye(shown, torch.stack(fixed.k), steps)
    if is_followed(points, *lens.tensors()):
        x, y, _ = directions(lens.beside(1), points)
        value = with_gradient_of(value, torch.stack((x, y), dim=-1))
    return value, found


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
    exports.refuse_values(f"opencv.{name}", objectPoints, rvec, tvec, K, D)
    values = (objectPoints, rvec, tvec, K, D, alpha)
    if (found := plain_projections.fisheye(*values)) is not None:
        pixels = found[0].reshape(*objectPoints.shape[:-1], 2)  # pyright: ignore
        outputs = (imagePoints, jacobian)
        return projection.as_given_pair(name, (pixels, found[1]), values, outputs)
    device = cameras.common_device(*values)
    scene = cameras.as_places(name, "objectPoints", objectPoints, device, 3)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    pose = projection.as_pose(name, rvec, tvec, device, matrices=False)
    skew = cameras.as_number(name, "alpha", alpha, device)
    shown, slopes = projection.projected(scene.double().reshape(-1, 3), pose, lens, skew)
    by_pose, by_camera, by_skew, by_lens = slopes
    slopes = torch.cat((by_camera, by_lens, by_pose, by_skew), dim=-1)
    shown = shown.reshape(*scene.shape[:-1], 2).to(scene.dtype)
    output = check_output(name, "imagePoints", imagePoints, objectPoints)
    first = as_given(has_tensor(*values), shown, output)
    second = check_output(name, "jacobian", jacobian, objectPoints)
    return first, as_given(has_tensor(*values), slopes, second)


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
    exports.refuse_values(f"opencv.{name}", K, D)
    values = (K, D, R, balance, fov_scale)
    height, width = size = as_size(name, "image_size", image_size)
    new_size = as_list(name, "new_size", new_size)
    new = size if is_empty(new_size) else as_size(name, "new_size", new_size)
    if isinstance(K, np.ndarray) and (P is None or isinstance(P, np.ndarray)):
        made = fisheye_points.new_camera(K, D, R, size, new, balance, fov_scale)
        if made is not None:
            output = check_output(name, "P", P, K)
            kind = (K if output is None else output).dtype
            kind = kind if kind in plain_calls.FLOATS else made.dtype
            return plain_calls.given(values, made.astype(kind), output)
    device = cameras.common_device(*values)
    sides = (width // 2, 0), (width, height // 2), (width // 2, height), (0, height // 2)
    middles = torch.tensor(sides, dtype=torch.float64, device=device)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    share = cameras.as_number(name, "balance", balance, device).clamp(0, 1)
    wide = cameras.as_number(name, "fov_scale", fov_scale, device)
    turn = cameras.as_turn(name, R, device, vectors=True)
    if (seen := fisheye_points.undistorted(middles, lens, turn, FISHEYE_STEPS)) is None:
        value, found = _undistorted(lens, middles, FISHEYE_STEPS)
        seen = torch.where(found[:, None], lenses.project(turn, value), NOWHERE)
    numbers = cameras.as_numbers(name, "K", K, device)
    squash = (numbers[0, 0] / numbers[1, 1]).double()  # divided in K's type, as in cv2
    x, y = seen[:, 0], seen[:, 1] * squash
    cx, cy = x.sum() / 4, seen[:, 1].sum() / 4 * squash
    half_x, half_y = torch.full_like(cx, width * 0.5), height * 0.5 * squash
    lengths = half_x / (cx - x.amin()), half_x / (x.amax() - cx)
    lengths += half_y / (cy - y.amin()), half_y / (y.amax() - cy)
    all_of_them = torch.stack(lengths)
    f = share * all_of_them.amin() + (1 - share) * all_of_them.amax()
    f = f * (1 / wide) if bool(wide > 0) else f
    by_x, by_y = new[1] / width, new[0] / height
    fx, fy, cx, cy = f, f / squash, -cx * f + half_x, (-cy * f + half_y) / squash
    zero, one = torch.zeros_like(f), torch.ones_like(f)
    rows = (fx * by_x, zero, cx * by_x), (zero, fy * by_y, cy * by_y), (zero, zero, one)
    output = check_output(name, "P", P, K)
    dtype = numbers.dtype if output is None else cameras.as_numbers(name, "P", P, device).dtype
    return as_given(has_tensor(*values), matrix_of(rows).to(dtype), output)


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
    values = (undistorted, K, D, alpha, Kundistorted)
    output = check_output(name, "distorted", distorted, undistorted)
    plain = None
    if Kundistorted is None:
        plain = fisheye_points.distorted_numbers(undistorted, K, D, alpha)
    if plain is not None:
        return plain_calls.given(values, plain, output)
    device = cameras.common_device(*values)
    given = cameras.as_places(name, "undistorted", undistorted, device, 2)
    points, dtype = given.double(), given.dtype
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    skew = cameras.as_number(name, "alpha", alpha, device)
    if Kundistorted is not None:
        view = cameras.as_array(name, "Kundistorted", Kundistorted, device)
        if tuple(view.shape) != (3, 3):
            checks.fail(name, "Kundistorted", "of shape (3, 3)", checks.shape_of(view))
        real = points.detach().isfinite().all(-1, keepdim=True)
        # cv2 reads only the focal lengths and the centre, not the skew
        seen = (torch.where(real, points, 0.0) - view[:2, 2]) / view.diagonal()[:2]
        points, dtype = torch.where(real, seen, torch.nan), torch.float64
    if (shown := fisheye_points.distorted(points.to(dtype), lens, skew)) is not None:
        return as_given(has_tensor(*values), shown, output)
    shown = _skewed(lens, points, skew)
    return as_given(has_tensor(*values), shown.to(dtype), output)


def _skewed(lens: Lens, points: Tensor, skew: Tensor) -> Tensor:
    """The pixels of directions (..., 2) through one lens, with the camera's skew; NaN stays NaN."""
    near = finite.within(*points.detach().unbind(-1))
    x, y = torch.where(near[..., None], points, 0.0).unbind(-1)
    u, v = lens_models.bend(lens, x, y)
    shown = torch.stack(lens_models.to_pixels(lens, u + skew * v, v), dim=-1)
    return torch.where(near[..., None], shown, torch.nan)
