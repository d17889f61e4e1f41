"""cv2's functions for matrices and box corners: OpenCV's own bits, exact gradients.

Arrays and numbers give float64 arrays, as in cv2. If an argument is a tensor, the result is a
float64 tensor, batched and with gradients; values on another device are read back. With
torch.compile, torch.func and forward mode, where values cannot be read, it is the result of
warpkit's own function, equal up to the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit import geometry
from warpkit.core import checks
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.arithmetic import opencv_matrices
from warpkit.engine.definitions import quads
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry import arguments
from warpkit.opencv import plain_calls, plain_matrices
from warpkit.opencv.constants import DECOMP_LU, DECOMP_NORMAL, DECOMP_QR, DECOMP_SVD
from warpkit.opencv.door import check_output, written
from warpkit.types import ImageLike, MatrixLike, NumbersLike, PointsLike

SINGLE = torch.float32
"""OpenCV's points."""


def getRotationMatrix2D(center: PointsLike, angle: NumbersLike, scale: NumbersLike) -> Any:
    """cv2.getRotationMatrix2D: `warpkit.rotation_matrix` of the centre rounded to float32.

    center (x, y) in pixels, angle in degrees; of tensors (..., 2), (...) and (...). Returns (2, 3),
    of tensors (..., 2, 3).

    >>> getRotationMatrix2D((2, 1), 0, 2)
    array([[ 2.,  0., -2.],
           [-0.,  2., -1.]])
    """
    if (matrix := plain_matrices.rotation(center, angle, scale)) is not None:
        return matrix
    name, values = "getRotationMatrix2D", (center, angle, scale)
    if not _is_readable(values):
        return _call(name, geometry.rotation_matrix, *values)
    device = checks.result_kind(*values)[0]
    pair = _floats(name, "center", center, device, checks.as_pair)
    angle, scale = (_floats(name, a, v, device) for a, v in (("angle", angle), ("scale", scale)))
    checks.broadcast_batch(name, center=pair.shape[:-1], angle=angle.shape, scale=scale.shape)
    found = opencv_matrices.rotation(_array(pair, SINGLE), _array(angle), _array(scale))
    values = (pair, angle, scale)
    return _result(found, device, values, lambda value: geometry.rotation_matrix(*values))


def getAffineTransform(src: PointsLike, dst: PointsLike) -> Any:
    """cv2.getAffineTransform: `warpkit.affine_from_points` of points rounded to float32.

    src and dst (3, 2), (3, 1, 2) or (1, 3, 2), (x, y) in pixels; of tensors (..., 3, 2). Returns
    (2, 3), of tensors (..., 2, 3); zeros, with gradient 0, for collinear `src`.

    >>> getAffineTransform([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    array([[1., 0., 5.],
           [0., 2., 7.]])
    """
    if (matrix := plain_calls.matrix_of_pairs(src, dst, 3)) is not None:
        return plain_calls.given((src, dst), matrix)
    name = "getAffineTransform"
    if not _is_readable((src, dst)):
        return _call(name, geometry.affine_from_points, *_checked_points(name, src, dst, 3))
    device, src, dst = _pairs(name, src, dst, 3)
    found, solved = opencv_matrices.affine(_array(src, SINGLE), _array(dst, SINGLE))

    def exact(value: Tensor) -> Tensor:
        good = _mask(solved, device) & ~quads.collinear(src, torch.float64)
        corners = torch.where(good[..., None, None], src, _unit_square(src)[:3])
        made = geometry.affine_from_points(corners, dst)
        return torch.where(good[..., None, None], made, 0.0)

    return _result(found, device, (src, dst), exact)


def getPerspectiveTransform(
    src: PointsLike, dst: PointsLike, solveMethod: int | None = None
) -> Any:
    """cv2.getPerspectiveTransform: `warpkit.perspective_from_points` of points rounded to float32.

    src and dst (4, 2), (4, 1, 2) or (1, 4, 2), (x, y) in pixels; of tensors (..., 4, 2). Returns
    (3, 3), of tensors (..., 3, 3). Its last entry is 1; where OpenCV finds no such matrix (the
    source's origin goes to infinity, points that lie on a line) it is OpenCV's of norm 1. If
    several matrices map the points, OpenCV's choice has no gradient. solveMethod: a DECOMP_* value
    that can solve the equations; the numbers are always DECOMP_LU's.

    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> getPerspectiveTransform(square, [[0, 0], [2, 0], [2, 2], [0, 2]]) + 0.0
    array([[2., 0., 0.],
           [0., 2., 0.],
           [0., 0., 1.]])
    """
    name = "getPerspectiveTransform"
    if solveMethod is not None and solveMethod not in _METHODS:
        wanted = "DECOMP_LU, _SVD, _QR, _NORMAL or DECOMP_NORMAL | DECOMP_SVD"
        checks.fail(name, "solveMethod", wanted, repr(solveMethod))
    if (matrix := plain_calls.matrix_of_pairs(src, dst, 4)) is not None:
        return plain_calls.given((src, dst), matrix)
    if not _is_readable((src, dst)):
        return _call(name, geometry.perspective_from_points, *_checked_points(name, src, dst, 4))
    device, src, dst = _pairs(name, src, dst, 4)
    found, solved = opencv_matrices.perspective(_array(src, SINGLE), _array(dst, SINGLE))

    def exact(value: Tensor) -> Tensor:
        # rounding changes nearly singular matrices: only an exact one close to OpenCV's is used
        raw = quads.quad_to_quad(src, dst).detach()
        along = (raw * value).sum((-1, -2)).abs() / (
            raw.norm(dim=(-1, -2)) * value.norm(dim=(-1, -2))
        )
        alone = (along > 0.999)[..., None, None]
        square = _unit_square(src)
        corners, targets = (torch.where(alone, points, square) for points in (src, dst))
        made = quads.quad_to_quad(corners, targets)
        far = ~_mask(solved, device) | quads.origin_is_far(made, corners, torch.float64)
        made = quads.normalised(made, far)
        length = torch.where(far, (made.detach() * value).sum((-1, -2)), 1.0)  # of either sign
        return torch.where(alone, made * length[..., None, None], 0.0)

    return _result(found, device, (src, dst), exact)


def invertAffineTransform(M: MatrixLike, iM: ImageLike | None = None) -> Any:
    """cv2.invertAffineTransform: `warpkit.invert` of a matrix (2, 3), of tensors (..., 2, 3).

    Returns the same shape, float32 for float32 and float64 for all others; zeros, with gradient 0,
    if there is no inverse. iM: an array to write to, if it has the result's shape and type.

    >>> invertAffineTransform(np.array([[2.0, 0, 4], [0, 1, -3]]))
    array([[ 0.5, -0. , -2. ],
           [-0. ,  1. ,  3. ]])
    """
    name = "invertAffineTransform"
    iM = check_output(name, "iM", iM, M if isinstance(M, Tensor) else np.zeros(0))
    own = checks.array_dtype(M) if isinstance(M, np.ndarray) else getattr(M, "dtype", None)
    single = own == SINGLE  # in any byte order
    if not _is_readable((M,)):
        found = _call(name, geometry.invert, M)
        return found.float() if single else found
    if (matrix := plain_matrices.inverse(M)) is not None:
        return written(iM, matrix)
    device = checks.result_kind(M)[0]
    matrix = _floats(name, "M", M, device)
    checks.check_matrix_shape(name, "M", matrix, (2,))
    found = opencv_matrices.inverse(_array(matrix, SINGLE if single else torch.float64))
    if device is None:
        return written(iM, found)
    return _result(found, device, (matrix,), lambda value: inverse_map(matrix).to(value.dtype))


def boxPoints(box: Any, points: ImageLike | None = None) -> Any:
    """cv2.boxPoints: the four corners of a rotated box, `box` as cv2.minAreaRect returns it.

    box ((x, y), (w, h), angle), the centre and the sides in pixels, degrees clockwise on the
    screen; of tensors (..., 2), (..., 2) and (...). Returns (4, 2), float32, of tensors (..., 4, 2)
    in their type: clockwise from (-w, h) / 2. points: an array to write to, if it has the result's
    shape and type. Gradients, if a part is a tensor: all orders, to all three.

    >>> boxPoints(((3, 4), (2, 6), 0))
    array([[2., 7.],
           [2., 1.],
           [4., 1.],
           [4., 7.]], dtype=float32)
    """
    name = "boxPoints"
    if not isinstance(box, checks.LISTS) or len(box) != 3:
        checks.fail(name, "box", "((x, y), (w, h), angle)", f"{box!r:.60}")
    if points is None and (found := plain_matrices.corners(box)) is not None:
        return found
    device, dtype = checks.result_kind(*box)
    points = check_output(
        name, "points", points, None if device is None else torch.empty(0, device="cpu")
    )
    center, size = (_floats(name, "box", part, device, checks.as_pair) for part in box[:2])
    angle = _floats(name, "box", box[2], device)
    batches = {"box[0]": center.shape[:-1], "box[1]": size.shape[:-1], "box[2]": angle.shape}
    batch = checks.broadcast_batch(name, **batches)

    def exact() -> Tensor:
        turn = torch.deg2rad(angle)
        x_axis, y_axis = (
            torch.stack(torch.broadcast_tensors(*axis), dim=-1) * size[..., i : i + 1] / 2
            for i, axis in enumerate(((turn.cos(), turn.sin()), (-turn.sin(), turn.cos())))
        )
        corners = (y_axis - x_axis, -y_axis - x_axis, x_axis - y_axis, x_axis + y_axis)
        made = [(center + corner).expand(*batch, 2) for corner in corners]
        return torch.stack(made, dim=-2).to(dtype)

    if not _is_readable(tuple(box)):
        return exact()
    found = opencv_matrices.box_corners(*(_array(part, SINGLE) for part in (center, size, angle)))
    if device is None:
        return written(points, found)
    value = torch.from_numpy(found).to(device, dtype)
    return with_gradient_of(value, exact()) if wants_gradient(center, size, angle) else value


_METHODS = (DECOMP_LU, DECOMP_SVD, DECOMP_QR, DECOMP_NORMAL, DECOMP_NORMAL | DECOMP_SVD)
"""The methods with which OpenCV itself finds the solution; others need a symmetric system."""


def _unit_square(src: Tensor) -> Tensor:
    """(4, 2): replaces points without a gradient; any for which the formulas are finite."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1))
    return torch.tensor(corners, dtype=torch.float64, device=src.device)


def _is_readable(values: tuple[Any, ...]) -> bool:
    if checks.result_kind(*values)[0] is None:
        return True  # numbers and arrays, even while torch traces
    tensors = [value for value in values if isinstance(value, Tensor)]
    return is_eager(*tensors) and not any(tensor.is_meta for tensor in tensors)


def _call(name: str, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """The core function's result in float64; errors have cv2's names."""
    try:
        return function(*(arg.double() if isinstance(arg, Tensor) else arg for arg in args))
    except (ValueError, TypeError) as error:
        text = str(error).removeprefix(f"{function.__name__}: ").replace("`matrix`", "`M`")
        raise type(error)(f"{name}: {text}") from None


def _floats(
    name: str,
    argument: str,
    value: Any,
    device: torch.device | None,
    read: Callable[..., Tensor] = checks.as_float,
) -> Tensor:
    """A float64 tensor; numbers and arrays are on the CPU, whatever torch's default device is."""
    return arguments.floats(name, argument, value, device or torch.device("cpu"), read).double()


def _pairs(name: str, src: Any, dst: Any, n: int) -> tuple[torch.device | None, Tensor, Tensor]:
    """The points (..., n, 2) in float64, and the device of tensors among them, if any."""
    device = checks.result_kind(src, dst)[0]
    pairs = [_floats(name, argument, p, device) for argument, p in (("src", src), ("dst", dst))]
    if device is None:  # cv2 also takes (n, 1, 2) and (1, n, 2), which its functions return
        pairs = [p.reshape(n, 2) if p.numel() == 2 * n and p.shape[-1] == 2 else p for p in pairs]
    for argument, points in zip(("src", "dst"), pairs, strict=True):
        checks.check_last(name, argument, points, n, 2)
    src, dst = pairs
    checks.broadcast_batch(name, src=src.shape[:-2], dst=dst.shape[:-2])
    return device, src, dst


def _checked_points(name: str, src: Any, dst: Any, n: int) -> tuple[Any, Any]:
    """The points, checked to be `n`: warpkit's own functions take more, too."""
    for argument, points in (("src", src), ("dst", dst)):
        if isinstance(points, Tensor):
            checks.check_last(name, argument, points, n, 2)
    return src, dst


def _array(tensor: Tensor, dtype: torch.dtype = torch.float64) -> np.ndarray:
    return tensor.detach().to("cpu", dtype).numpy()


def _mask(mask: np.ndarray, device: torch.device | None) -> Tensor:
    return torch.as_tensor(mask, device=device or torch.device("cpu"))


def _result(
    found: np.ndarray,
    device: torch.device | None,
    tensors: tuple[Tensor, ...],
    exact: Callable[[Tensor], Tensor],
) -> Any:
    """An array; if a tensor is among the arguments, a tensor with the gradient of `exact`.

    `exact` takes the value, and is called only if a gradient is wanted.
    """
    if device is None:
        return found
    value = torch.from_numpy(found).to(device)
    return with_gradient_of(value, exact(value)) if wants_gradient(*tensors) else value
