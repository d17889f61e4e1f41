"""cv2's lens functions: undistorts images and points as OpenCV does, with gradients.

Values are OpenCV's own: maps are computed in float64 and rounded once, images are sampled by a map
of 1/32 pixels, and points take OpenCV's five steps (`warpkit.camera` iterates to convergence).
Gradients are those of the exact model, straight-through for the rounding; for points, those of the
solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit import warp
from warpkit.camera import maps, optimal
from warpkit.camera.points import directions as exact_directions
from warpkit.camera.points import own_view
from warpkit.core import checks, exports
from warpkit.core.tracing import wants_derivative
from warpkit.engine.arithmetic import opencv_lenses
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.arithmetic.opencv_lenses import BROWN_AT_ONCE, FIVE_STEPS, Criteria
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import finite
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.maps import rows_at
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.opencv import cameras, door, lens_maps, plain_calls, point_lists, sampling
from warpkit.opencv.door import as_given, check_output
from warpkit.opencv.layout import check_picture, finish, has_tensor, is_followed, planes
from warpkit.opencv.point_lists import FLOATS
from warpkit.opencv.sizes import as_list, as_size, is_empty
from warpkit.opencv.values import as_arithmetic, resolved
from warpkit.types import FaceArithmetic, Image, ImageLike, MatrixLike, NumbersLike, PointsLike

BROWN = ("cameraMatrix", "distCoeffs")
KINDS = ("planes", "pairs", "fixed")


def initUndistortRectifyMap(
    cameraMatrix: MatrixLike,
    distCoeffs: NumbersLike | None,
    R: MatrixLike | None,
    newCameraMatrix: MatrixLike | None,
    size: Sequence[int],
    m1type: int,
    map1: ImageLike | None = None,
    map2: ImageLike | None = None,
) -> tuple[Any, Any]:
    """cv2.initUndistortRectifyMap: `warpkit.camera.undistort_map` as two maps for `remap`.

    cameraMatrix (3, 3); distCoeffs None or 4, 5, 8, 12 or 14 numbers; R (3, 3) or None;
    newCameraMatrix (3, 3) or (3, 4), None for the camera's with its principal point in the centre;
    size (W, H); m1type CV_32FC1, CV_32FC2 or CV_16SC2. Returns two (H, W) float32, or (H, W, 2)
    float32 and None, or (H, W, 2) int16 and (H, W) uint16. Gradients, if an argument is a tensor
    and the maps are floats: all orders, to all.

    >>> import numpy as np
    >>> x, y = initUndistortRectifyMap(np.eye(3), None, None, np.eye(3), (2, 1), 5)
    >>> x
    array([[0., 1.]], dtype=float32)
    """
    name = "initUndistortRectifyMap"
    values, outputs = (cameraMatrix, distCoeffs, R, newCameraMatrix), (map1, map2)
    height, width = as_size(name, "size", size)
    kind = cameras.map_kind(name, "m1type", m1type, KINDS)
    found = plan.call(_plan_map, values, ((height, width), kind))
    return cameras.as_given_maps(found, has_tensor(*values), outputs)


def _plan_map(
    keeps: bool, camera: Any, k: Any, R: Any, view: Any, size: tuple[int, int], kind: str
) -> Plan | Once:
    """The plan of `initUndistortRectifyMap`, with its first four arguments."""
    name = "initUndistortRectifyMap"
    device = cameras.common_device(camera, k, R, view)
    lens = cameras.as_lens(name, camera, k, device, "brown", BROWN)
    if view is None:
        height, width = size
        middle = lens._replace(
            cx=torch.full_like(lens.cx, (width - 1) / 2),
            cy=torch.full_like(lens.cy, (height - 1) / 2),
        )
        matrix = own_view(middle)
    else:
        matrix = cameras.as_view(name, "newCameraMatrix", view, device)
    matrix = matrix if R is None else matrix @ cameras.as_turn(name, R, device)
    if keeps and lens_maps.has_kernel(camera, k, R, view):
        return lens_maps.lens_plan("brown", k, size, kind)
    if (found := plain_calls.lens_map(lens, matrix, size, kind)) is not None:
        return Once(found)
    points = maps.undistorting(lens, matrix, size, opencv=True)
    fixed = opencv_lenses.fixed_map(points.detach(), BROWN_AT_ONCE) if kind == "fixed" else None
    return Once(cameras.as_maps(points, kind, True, (None, None), fixed))


def undistort(
    src: Image,
    cameraMatrix: MatrixLike,
    distCoeffs: NumbersLike | None,
    dst: Image | None = None,
    newCameraMatrix: MatrixLike | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.undistort: `warpkit.camera.undistort` through OpenCV's map of 1/32 pixels.

    src (H, W) or (H, W, C); cameraMatrix (3, 3); distCoeffs None or 4, 5, 8, 12 or 14 numbers;
    newCameraMatrix (3, 3), the camera's if None. Bilinear, with 0 around the image. Returns src's
    shape and type. Gradients, if src is a tensor: to src, camera and coefficients.

    >>> import numpy as np
    >>> undistort(np.arange(6, dtype=np.uint8).reshape(2, 3), np.eye(3), None)
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    name = "undistort"
    dst = dst if dst is None else check_output(name, "dst", dst, src)
    arrays = (src, cameraMatrix, distCoeffs, newCameraMatrix)
    return door.call(_plan_undistort, arrays, (name, resolved(arithmetic)), dst)


def _plan_undistort(
    keeps: bool, src: Any, camera: Any, k: Any, view: Any, name: str, arithmetic: str
) -> Plan | Once:
    """The plan of `undistort`; camera, k and view: its matrices and coefficients."""
    device = cameras.common_device(src, camera, k, view)
    check_source(name, "src", src, device)
    lens = cameras.as_lens(name, camera, k, device, "brown", BROWN)
    if view is None:
        matrix = cameras.as_view(name, "cameraMatrix", camera, device)
    else:
        matrix = cameras.as_view(name, "newCameraMatrix", view, device)
    size = (src.shape[0], src.shape[1])
    if keeps and has_plan(name, src, (camera, k, view), arithmetic):
        rule = SamplingRule("bilinear", "constant", arithmetic)
        return lens_maps.image_plan("brown", src, k, size, rule)
    made_of = {"cameraMatrix": camera, "distCoeffs": k, "newCameraMatrix": view}

    def rounded(lens: Lens, view: Tensor) -> Tensor:
        """view (3, 3)."""
        points = maps.undistorting(lens, view, size, opencv=True)
        return on_fixed_map(points, BROWN_AT_ONCE)

    exact = partial(maps.undistorting, size=size)
    return Once(sample(name, src, (lens, matrix), size, exact, rounded, arithmetic, made_of))


def has_plan(name: str, src: Any, numbers: tuple[Any, ...], arithmetic: str) -> bool:
    """Whether kernels undistort images like src, (H, W) or (H, W, C), by such numbers."""
    rule = SamplingRule("bilinear", "constant", as_arithmetic(name, arithmetic))
    if not (door.is_dense(src) and lens_maps.has_kernel(*numbers)):
        return False
    return sampling.has_kernel(planes(src), rule)


def check_source(name: str, argument: str, src: Any, device: torch.device) -> None:
    """Check an image of a type that OpenCV remaps, on the device of the other tensors."""
    check_picture(name, argument, src, OPENCV_TYPES)
    if isinstance(src, Tensor):
        checks.check_device(name, argument, src, device, "the first tensor")


def sample(
    name: str,
    src: Any,
    seen: tuple[Lens, Tensor],
    size: tuple[int, int],
    exact: Callable[[Lens, Tensor], Tensor],
    rounded: Callable[[Lens, Tensor], Tensor],
    arithmetic: str,
    made_of: dict[str, Any],
) -> Any:
    """Sample src at the points (h, w, 2), float64, of a lens in a view (3, 3): `seen`.

    Values are those at the points of `rounded`, gradients those at the points of `exact`, which
    have both with arithmetic "exact". made_of: the arguments of lens and view, by name.
    """
    arithmetic = as_arithmetic(name, arithmetic)
    image, (lens, view) = planes(src), seen
    options: dict[str, Any] = {"made_of": made_of}
    if arithmetic == "exact":
        points = exact(lens, view)
    else:
        fixed = lens.detach(), view.detach()
        found = plain_calls.lens_map(*fixed, size, "steps")
        at = rounded(*fixed) if found is None else torch.from_numpy(found[0])
        followed = wants_derivative(image, view, *lens.tensors())
        points = exact(lens, view) if followed else at
        options |= {"fixed_map": True, "values_at": at}
    rule = SamplingRule("bilinear", "constant", arithmetic)
    return finish(src, None, warp.remap_by(name, image, points, rule, 0.0, None, "auto", **options))


def on_fixed_map(points: Tensor, at_once: int = 0) -> Tensor:
    """Points (h, w, 2), float64, rounded to OpenCV's 1/32 pixel: see `opencv_lenses.fixed_map`."""
    return opencv_lenses.from_fixed_map(*opencv_lenses.fixed_map(points, at_once))


def undistortPoints(
    src: PointsLike,
    cameraMatrix: MatrixLike,
    distCoeffs: NumbersLike | None,
    dst: ImageLike | None = None,
    R: MatrixLike | None = None,
    P: MatrixLike | None = None,
    criteria: Any = None,
) -> Any:
    """cv2.undistortPoints: `warpkit.camera.undistort_points` with OpenCV's five steps.

    src (N, 2), (N, 1, 2), (1, N, 2), (2, N) or (2,), pixels; (2, 2) has a point in each row;
    cameraMatrix (3, 3); distCoeffs None or 4, 5, 8, 12 or 14 numbers; R (3, 3); P (3, 3) or (3, 4),
    without which the result is in directions, not in pixels; criteria (type, steps, error in
    pixels). Returns (N, 1, 2) of src's type. Gradients, if an argument is a tensor: those of
    the exact solution, 0 where there is none.

    >>> import numpy as np
    >>> undistortPoints(np.array([[3.0, 4.0]]), np.diag([2.0, 2, 1]), None)
    array([[[1.5, 2. ]]])
    """
    name = "undistortPoints"
    steps = cameras.as_criteria(name, criteria, FIVE_STEPS)
    output = dst if dst is None else check_output(name, "dst", dst, src)
    arrays = (src, cameraMatrix, distCoeffs, R, P)
    return door.numbers(_plan_points, arrays, tuple(steps), output, width=2)


def _plan_points(
    keeps: bool, src: Any, camera: Any, k: Any, R: Any, P: Any, steps: Any, error: Any
) -> Plan | Once:
    """The plan of `undistortPoints`; steps and error: its criteria."""
    name, criteria = "undistortPoints", Criteria(steps, error)
    exports.refuse_values(f"opencv.{name}", src, camera, k)
    device = cameras.common_device(src, camera, k, R, P)
    points = cameras.as_points(name, "src", src, device)
    lens = cameras.as_lens(name, camera, k, device, "brown", BROWN)
    turn = None if R is None else cameras.as_turn(name, R, device)
    projection = None if P is None else cameras.as_view(name, "P", P, device)
    if points.dtype in FLOATS and door.runs_kernels(points, *lens.tensors(), turn, projection):
        make = partial(point_lists.undistorting, criteria=criteria)
        tensors = (points, own_view(lens), torch.stack(lens.k), turn, projection)
        return door.planned(keeps, make, (src, camera, k, R, P), tensors)
    directions = undistorted(lens, points.double(), criteria)
    if turn is not None or projection is not None:
        turn = cameras.as_turn(name, None, device) if turn is None else turn
        directions = project(turn if projection is None else projection @ turn, directions)
    return Once(directions[:, None].to(points.dtype))


def undistorted(lens: Lens, points: Tensor, steps: Criteria) -> Tensor:
    """Pixels (N, 2) as directions (N, 2), by OpenCV's steps, with the solution's gradient."""
    fixed = lens.detach()
    k = torch.stack([*fixed.k, *[torch.zeros_like(fixed.fx)] * (14 - len(fixed.k))])
    value = opencv_lenses.undistort(points.detach(), own_view(fixed), k, steps)
    if not is_followed(points, *lens.tensors()):
        return value
    x, y, _ = exact_directions(lens.beside(1), points)
    return with_gradient_of(value, torch.stack((x, y), dim=-1))


def project(view: Tensor, directions: Tensor) -> Tensor:
    """Directions (..., 2) projected by a matrix (3, 3), with OpenCV's division.

    Gradients: 0 where the result is infinite or NaN, which does not affect other points.
    """
    fixed, moved = view.detach(), directions.detach()
    value = _divided(*rows_at(fixed, *moved.unbind(-1)))
    good = finite.within(*moved.unbind(-1), *value.unbind(-1))
    if not is_followed(view, directions):
        return value
    a, b, w = rows_at(view, *torch.where(good[..., None], directions, 0.0).unbind(-1))
    projected = _divided(a, b, torch.where(good, w, 1.0))
    return torch.where(good[..., None], projected, value)


def _divided(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    """(a / w, b / w), (..., 2), from a, b and w (...), computed by products with 1 / w."""
    per = 1 / w
    return torch.stack((a * per, b * per), dim=-1)


def getOptimalNewCameraMatrix(
    cameraMatrix: MatrixLike,
    distCoeffs: NumbersLike | None,
    imageSize: Sequence[int],
    alpha: NumbersLike,
    newImgSize: Sequence[int] | None = None,
    centerPrincipalPoint: bool = False,
) -> tuple[Any, tuple[int, int, int, int]]:
    """cv2.getOptimalNewCameraMatrix: `camera.optimal_camera_matrix` with OpenCV's five steps.

    cameraMatrix (3, 3); distCoeffs None or 4, 5, 8, 12 or 14 numbers; imageSize and newImgSize (W,
    H); alpha from 0, only valid pixels, to 1, all pixels of the image. Returns the matrix (3, 3)
    and the rectangle (x, y, w, h) of valid pixels in the new image. Gradients, if an argument is a
    tensor: to camera, coefficients and alpha, those of the exact solution.

    >>> import numpy as np
    >>> camera = np.array([[100.0, 0, 50], [0, 100, 50], [0, 0, 1]])
    >>> getOptimalNewCameraMatrix(camera, None, (101, 101), 0.0)[1]
    (0, 0, 100, 100)
    """
    name = "getOptimalNewCameraMatrix"
    exports.refuse_values(f"opencv.{name}", cameraMatrix, distCoeffs)
    values = (cameraMatrix, distCoeffs, alpha)
    size = as_size(name, "imageSize", imageSize)
    newImgSize = as_list(name, "newImgSize", newImgSize)
    new = size if is_empty(newImgSize) else as_size(name, "newImgSize", newImgSize)
    centred = cameras.as_flag(name, "centerPrincipalPoint", centerPrincipalPoint)
    if not centred and (
        found := plain_calls.optimal_matrix(cameraMatrix, distCoeffs, size, alpha, new)
    ):
        return plain_calls.given(values, found[0]), _within(_rounded_rect(found[1]), new)
    device = cameras.common_device(*values)
    lens = cameras.as_lens(name, cameraMatrix, distCoeffs, device, "brown", BROWN)
    share = cameras.as_array(name, "alpha", alpha, device)
    if share.ndim:
        checks.fail(name, "alpha", "one number", f"shape {checks.shape_of(share)}")
    checks.check_values(name, "alpha", ~share.detach().isfinite(), "finite", share.detach())
    directions = undistorted(lens, optimal.border(size, device), FIVE_STEPS)
    if centred:
        matrix, roi = _centred(lens, directions, new, share)
    else:
        matrix = optimal.between(optimal.rectangles(*directions.unbind(-1)), new, share)
        roi = _rounded_rect(_inner(project(matrix.detach(), directions.detach())))
    return as_given(has_tensor(*values), matrix), _within(roi, new)


def _centred(
    lens: Lens, directions: Tensor, size: tuple[int, int], share: Tensor
) -> tuple[Tensor, tuple[int, ...]]:
    """The camera's matrix scaled about a principal point in the middle of the new image.

    directions (N, 2); share ().
    """
    pixels = project(own_view(lens), directions)
    cx, cy = (torch.full_like(share, (n - 1) * 0.5) for n in reversed(size))
    scales = []
    for rectangle in optimal.rectangles(*pixels.unbind(-1)):
        left, top, right, bottom = rectangle
        right, bottom = left + (right - left), top + (bottom - top)  # cv2 stores width and height
        sides = (cx / (lens.cx - left), cy / (lens.cy - top))
        sides += (cx / (right - lens.cx), cy / (bottom - lens.cy))
        scales.append(torch.stack(sides))
    s = scales[0].amax() * (1 - share) + scales[1].amin() * share
    middle = lens._replace(fx=lens.fx * s, fy=lens.fy * s, cx=cx, cy=cy)
    left, top, right, bottom = _inner(pixels.detach())
    by, x0, y0, cx, cy = (float(v.detach()) for v in (s, lens.cx, lens.cy, cx, cy))
    corner = _as_ints(math.ceil, (left - x0) * by + cx, (top - y0) * by + cy)
    sides = _as_ints(math.floor, (right - left) * by, (bottom - top) * by)
    return own_view(middle), (*corner, *sides)


def _rounded_rect(sides: Sequence[float]) -> tuple[int, ...]:
    """cv::Rect (x, y, w, h) from Rect_<double>: all four numbers are rounded half to even."""
    left, top, right, bottom = sides
    return _as_ints(round, left, top, right - left, bottom - top)


def _as_ints(rounded: Callable[[float], int], *numbers: float) -> tuple[int, ...]:
    """Pixels of a rectangle as C's int: numbers out of range become the lowest int."""
    return tuple(rounded(n) if abs(n) < 2**31 else -(2**31) for n in numbers)


def _inner(points: Tensor) -> list[float]:
    """The inner rectangle of the border's points (36, 2)."""
    return [float(v) for v in optimal.rectangles(*points.unbind(-1)).inner]


def _within(roi: tuple[int, ...], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """(x, y, w, h) clipped to an image of `size`; all zeros if nothing is left."""
    if min(roi[2:]) <= 0:
        return (0, 0, 0, 0)
    x, y = max(roi[0], 0), max(roi[1], 0)
    w, h = min(roi[0] + roi[2], size[1]) - x, min(roi[1] + roi[3], size[0]) - y
    return (x, y, w, h) if w > 0 and h > 0 else (0, 0, 0, 0)
