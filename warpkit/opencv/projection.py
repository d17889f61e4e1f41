"""cv2's projection of scenes to pixels, with gradients: Rodrigues and projectPoints.

Values are computed by OpenCV's steps, and gradients by the exact formulas. Jacobians are returned
as in cv2, without gradients.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.camera import rotations
from warpkit.camera.points import own_view
from warpkit.core import checks, exports
from warpkit.engine.arithmetic import opencv_projection
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import finite, lens_models
from warpkit.engine.definitions.lens_models import Lens
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.opencv import cameras, door, jacobians, point_lists
from warpkit.opencv.door import as_given, check_output, written
from warpkit.opencv.layout import has_tensor, is_followed
from warpkit.opencv.point_lists import FLOATS
from warpkit.types import ImageLike, MatrixLike, NumbersLike, PointsLike

BROWN = ("cameraMatrix", "distCoeffs")
NEAR_NO_TURN = 1e-3
"""For 1 - cos below this, the series of angle / sine to the fourth power is exact to 1e-17."""
LARGEST = 100
"""OpenCV returns a zero vector for a matrix with entries of this size."""
NEWTON_STEPS = 2
"""Newton steps from the constant rotation: k steps have its derivatives up to order 2^k - 1."""


def Rodrigues(
    src: PointsLike, dst: ImageLike | None = None, jacobian: ImageLike | None = None
) -> tuple[Any, Any]:
    """cv2.Rodrigues: convert a rotation vector to a matrix, or back, with the derivatives.

    src (3,), (3, 1), (1, 3) or (1, 1, 3), the axis times the angle in radians, or a matrix (3, 3),
    which is replaced by the nearest orthogonal one. Returns (3, 3) and (3, 9), or (3, 1) and (9,
    3), of src's type; entry (i, j) of the jacobian is the derivative of output j with respect to
    input i. Gradients, if src is a tensor: up to the third order of the matrix or vector, 0 at 180
    degrees; the jacobian has none.

    >>> import numpy as np
    >>> Rodrigues(np.array([0, 0, np.pi / 2]))[0].round(6)
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    found = plan.call(_plan_rodrigues, (src,), ())
    if dst is not None or jacobian is not None:
        outputs = (("dst", dst), ("jacobian", jacobian))
        outputs = [check_output("Rodrigues", name, output, src) for name, output in outputs]
        if not isinstance(src, Tensor):
            return written(outputs[0], found[0]), written(outputs[1], found[1])
    return found


def _plan_rodrigues(keeps: bool, src: Any) -> Plan | Once:
    """The plan of `Rodrigues`, with its first argument."""
    name = "Rodrigues"
    exports.refuse_values(f"opencv.{name}", src)
    numbers = cameras.as_numbers(name, "src", src, cameras.common_device(src))
    values = numbers.double()
    if values.numel() != 3 and tuple(values.shape) != (3, 3):
        checks.fail(name, "src", "three numbers or of shape (3, 3)", checks.shape_of(values))
    if keeps and door.is_plain(src) and numbers.dtype in (torch.float32, torch.float64):
        dtype = np.dtype(str(numbers.dtype).removeprefix("torch."))
        if isinstance(src, Tensor):
            return lambda src: tuple(
                torch.from_numpy(part.astype(dtype)) for part in _converted(src.ravel().tolist())
            )
        return lambda src: tuple(
            np.ascontiguousarray(part, dtype) for part in _converted(src.ravel().tolist())
        )
    parts = [part.to(numbers.dtype) for part in _followed(values)]
    return Once(tuple(as_given(has_tensor(src), part) for part in parts))


def _followed(values: Tensor) -> tuple[Tensor, Tensor]:
    """`_converted` of a vector or a matrix (3, 3), with the exact gradient of the first result."""
    made = _converted(values.detach().flatten().tolist())
    value, slopes = (torch.from_numpy(part).to(values.device) for part in made)
    if is_followed(values):
        if values.numel() == 3:
            value = with_gradient_of(value, rotations.of_vector(values.flatten()))
        elif bool(slopes.any()):  # except at 180 degrees
            vector = _logarithm(_nearest(values, _orthogonal(values.detach())))
            value = with_gradient_of(value, vector[:, None])
    return value, slopes


def _converted(numbers: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """The matrix (3, 3) for a vector of three numbers, or the vector (3, 1) for a matrix of nine,
    and the derivatives, (3, 9) or (9, 3)."""
    if len(numbers) == 3:
        rotation, slopes = opencv_projection.turn_of(numbers)
        return np.array(rotation).reshape(3, 3), np.array(slopes)
    if not all(-LARGEST <= entry < LARGEST for entry in numbers):
        return np.zeros((3, 1)), np.zeros((9, 3))
    matrix = torch.from_numpy(np.array(numbers, np.float64).reshape(3, 3))
    vector, slopes = opencv_projection.vector_of(_orthogonal(matrix).tolist())
    return np.array(vector)[:, None], np.array(slopes).T


def _orthogonal(matrix: Tensor) -> Tensor:
    """The orthogonal matrix that is nearest to a matrix (3, 3)."""
    u, _, v = torch.linalg.svd(matrix)
    return u @ v


def _nearest(matrix: Tensor, rotation: Tensor) -> Tensor:
    """The rotation that is nearest to a matrix, with its derivatives.

    rotation: its value; both are of one shape, (3, 3). Newton's steps do not divide by differences
    of singular values, which are all 1 for a rotation.
    """
    unit = torch.eye(3, dtype=matrix.dtype, device=matrix.device)
    for _ in range(NEWTON_STEPS):
        inner = rotation.mT @ matrix
        skew = inner - inner.mT
        sides = torch.stack((skew[2, 1], skew[0, 2], skew[1, 0]))
        both = (inner + inner.mT) / 2
        step = torch.linalg.solve(both.diagonal().sum() * unit - both, sides)
        rotation = rotation @ rotations.of_vector(step)
    return rotation


def _logarithm(turn: Tensor) -> Tensor:
    """The vector (3,) of a rotation (3, 3) by less than 180 degrees."""
    sides = (turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1])
    cosine = (turn.diagonal().sum() - 1) / 2
    less = 1 - cosine
    near = less < NEAR_NO_TURN
    small = torch.where(near, less, 0.0)
    series = 1 + small * (1 / 3 + small * (2 / 15 + small * (2 / 35 + small * (8 / 315))))
    safe = torch.where(near, 0.0, cosine)
    factor = torch.where(near, series, safe.acos() / (1 - safe * safe).sqrt())
    return torch.stack(sides) / 2 * factor


def projectPoints(
    objectPoints: PointsLike,
    rvec: NumbersLike,
    tvec: NumbersLike,
    cameraMatrix: MatrixLike,
    distCoeffs: NumbersLike | None,
    imagePoints: ImageLike | None = None,
    jacobian: ImageLike | None = None,
    aspectRatio: float = 0,
) -> tuple[Any, Any]:
    """cv2.projectPoints: project points of a scene to pixels, with the derivatives.

    objectPoints (N, 3), (N, 1, 3), (1, N, 3), (3, N) or (3,); (3, 3) has a point in each row; rvec
    three numbers or a matrix (3, 3); tvec three numbers; cameraMatrix (3, 3); distCoeffs None or 4,
    5, 8, 12 or 14 numbers; aspectRatio: a fixed fx / fy, or 0. Returns pixels (N, 1, 2) of
    objectPoints' type, and (2N, 10 + n), float64: their derivatives with respect to rvec, tvec, fx,
    fy, cx, cy and the n coefficients. Gradients of the pixels, if an argument is a tensor: all
    orders, to all; the jacobian has none.

    >>> import numpy as np
    >>> still, camera = np.zeros(3), np.array([[100.0, 0, 50], [0, 100, 40], [0, 0, 1]])
    >>> projectPoints(np.array([[1.0, 0.0, 2.0]]), still, still, camera, None)[0]
    array([[[100.,  40.]]])
    """
    name = "projectPoints"
    first = check_output(name, "imagePoints", imagePoints, objectPoints)
    second = check_output(name, "jacobian", jacobian, objectPoints)
    k = np.zeros(5) if cameras.is_nothing(distCoeffs) else distCoeffs  # cv2's Jacobian has these
    arrays = (objectPoints, rvec, tvec, cameraMatrix, k)
    return door.numbers(_plan_projection, arrays, (aspectRatio,), first, second, width=3)


def _plan_projection(
    keeps: bool, points: Any, rvec: Any, tvec: Any, camera: Any, k: Any, ratio: Any
) -> Plan | Once:
    """The plan of `projectPoints`."""
    name = "projectPoints"
    exports.refuse_values(f"opencv.{name}", points, rvec, tvec, camera, k)
    arrays = (points, rvec, tvec, camera, k)
    device = cameras.common_device(*arrays)
    scene = cameras.as_points(name, "objectPoints", points, device, 3)
    lens = cameras.as_lens(name, camera, k, device, "brown", BROWN)
    ratio = cameras.as_number(name, "aspectRatio", ratio, device)
    fixed = bool(ratio > torch.finfo(torch.float32).eps)
    turn, shift = check_pose(name, rvec, tvec, device)
    if _has_kernel(scene, turn, shift, ratio, *lens.tensors()):
        extra = float(ratio) if fixed else 0.0
        make = partial(point_lists.projecting, model="brown", extra=extra, vector_of=_axis)
        tensors = (scene, turn, shift, own_view(lens), torch.stack(lens.k))
        return door.planned(keeps, make, arrays, tensors)
    lens = lens._replace(fx=lens.fy * ratio) if fixed else lens
    shown, slopes = projected(scene.double(), as_pose(turn, shift), lens, torch.zeros_like(lens.fx))
    by_pose, by_camera, _, by_lens = slopes
    if fixed:
        fx, fy, centre = by_camera.split((1, 1, 2), dim=-1)
        by_camera = torch.cat((torch.zeros_like(fx), fy + ratio.detach() * fx, centre), dim=-1)
    slopes = torch.cat((by_pose, by_camera, by_lens), dim=-1)
    return Once((shown[:, None].to(scene.dtype), slopes))


def plan_fisheye(
    keeps: bool, points: Any, rvec: Any, tvec: Any, K: Any, D: Any, alpha: Any
) -> Plan | Once:
    """The plan of cv2.fisheye.projectPoints."""
    name = "fisheye.projectPoints"
    exports.refuse_values(f"opencv.{name}", points, rvec, tvec, K, D)
    arrays = (points, rvec, tvec, K, D)
    device = cameras.common_device(*arrays, alpha)
    scene = cameras.as_places(name, "objectPoints", points, device, 3)
    lens = cameras.as_lens(name, K, D, device, "fisheye", ("K", "D"))
    turn, shift = check_pose(name, rvec, tvec, device, matrices=False)
    skew = cameras.as_number(name, "alpha", alpha, device)
    if _has_kernel(scene, turn, shift, skew, *lens.tensors()):
        make = partial(point_lists.projecting, model="fisheye", extra=float(skew), vector_of=_axis)
        tensors = (scene, turn, shift, own_view(lens), torch.stack(lens.k))
        return door.planned(keeps, make, arrays, tensors)
    shown, slopes = projected(scene.double().reshape(-1, 3), as_pose(turn, shift), lens, skew)
    by_pose, by_camera, by_skew, by_lens = slopes
    slopes = torch.cat((by_camera, by_lens, by_pose, by_skew), dim=-1)
    return Once((shown.reshape(*scene.shape[:-1], 2).to(scene.dtype), slopes))


def _has_kernel(scene: Tensor, *numbers: Tensor) -> bool:
    return scene.dtype in FLOATS and scene.numel() > 0 and door.runs_kernels(scene, *numbers)


def _axis(turn: np.ndarray) -> Any:
    """The rotation vector of a matrix (3, 3), float64."""
    return _converted(turn.ravel().tolist())[0]


class Pose(NamedTuple):
    """The pose of a scene relative to a camera."""

    turn: Tensor
    """(3, 3), OpenCV's own numbers, with the exact gradient."""
    turning: Tensor
    """(3, 3, 3), without a gradient: the rotation's derivative with respect to its vector."""
    shift: Tensor
    """(3,)."""


def check_pose(
    name: str, rvec: Any, tvec: Any, device: torch.device, matrices: bool = True
) -> tuple[Tensor, Tensor]:
    """cv2's rvec, three numbers or with `matrices` a matrix (3, 3), and tvec, three numbers."""
    turn, shift = (
        cameras.as_array(name, argument, value, device)
        for argument, value in (("rvec", rvec), ("tvec", tvec))
    )
    if shift.numel() != 3:
        checks.fail(name, "tvec", "three numbers", checks.shape_of(shift))
    if turn.numel() != 3 and not (matrices and tuple(turn.shape) == (3, 3)):
        wanted = "three numbers" + ", or of shape (3, 3)" * matrices
        checks.fail(name, "rvec", wanted, checks.shape_of(turn))
    return turn, shift


def as_pose(turn: Tensor, shift: Tensor) -> Pose:
    """The pose of turn, (3, 3) or three numbers of any shape, and of three numbers, shift."""
    if turn.numel() == 3:
        turn, turning = _followed(turn)
    else:
        turning = _followed(_followed(turn.detach())[0])[1]
    return Pose(turn, turning.reshape(3, 3, 3), shift.flatten())


def projected(
    scene: Tensor, pose: Pose, lens: Lens, skew: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Pixels (N, 2) of points (N, 3), and the derivatives of `jacobians.of_projection`."""
    fixed = lens.detach()
    camera = (fixed.fx, fixed.fy, fixed.cx, fixed.cy)
    k = torch.stack(fixed.k)
    seen = opencv_projection.moved(scene.detach(), pose.turn.detach(), pose.shift.detach())
    if lens.model == "fisheye":
        value = opencv_projection.project_fisheye(seen, camera, k, skew.detach())
    else:
        k = torch.cat((k, k.new_zeros(14 - len(k))))
        value = opencv_projection.project(seen, camera, k)
    if is_followed(scene, pose.turn, pose.shift, skew, *lens.tensors()):
        real = scene.detach().isfinite().all(-1)
        x, y, z = opencv_projection.moved(
            torch.where(real[:, None], scene, 0.0), pose.turn, pose.shift
        )
        far = z.detach()
        near = real & finite.within(x.detach() / far, y.detach() / far)
        x, y = (torch.where(near, v, 0.0) for v in (x, y))
        exact = _shown(lens, skew, x, y, torch.where(near, z, 1.0))
        value = with_gradient_of(value, torch.where(near[:, None], exact, torch.nan))
    turning, skew = pose.turning, skew.detach()
    return value, jacobians.of_projection(scene.detach(), seen, turning, fixed, skew)


def _shown(lens: Lens, skew: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Pixels (N, 2) of points x, y, z (N,) in the camera's coordinates."""
    u, v = lens_models.distort(lens, x / z, y / z)
    return torch.stack(lens_models.to_pixels(lens, u + skew * v, v), dim=-1)
