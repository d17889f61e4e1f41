"""cv2's functions for matrices and box corners: OpenCV's own bits, exact gradients.

Arrays and numbers give float64 arrays, as in cv2. If an argument is a tensor, the result is a
float64 tensor, batched and with gradients; values on another device are read back. With
torch.compile, torch.func and forward mode, where values cannot be read, it is the result of
warpkit's own function, equal up to the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit import geometry
from warpkit.core import checks
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.arithmetic import opencv_matrices
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import quads
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry import arguments
from warpkit.opencv import door, lens_maps, numbers
from warpkit.opencv.constants import DECOMP_LU, DECOMP_NORMAL, DECOMP_QR, DECOMP_SVD
from warpkit.opencv.door import check_output, written
from warpkit.opencv.layout import has_tensor
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
    if numbers.are_numbers(angle, scale) and numbers.are_pairs(center):
        return _rotation(center, angle, scale)
    return plan.call(_plan_rotation, (center, angle, scale), ())


def _plan_rotation(keeps: bool, *values: Any) -> Plan | Once:
    """The plan of `getRotationMatrix2D`, with its arguments."""
    name, (center, angle, scale) = "getRotationMatrix2D", values
    if not _is_readable(values):
        return Once(_call(name, geometry.rotation_matrix, *values))
    device = checks.result_kind(*values)[0]
    pair = _floats(name, "center", center, device, checks.as_pair)
    angle, scale = (_floats(name, a, v, device) for a, v in (("angle", angle), ("scale", scale)))
    batch = checks.broadcast_batch(
        name, center=pair.shape[:-1], angle=angle.shape, scale=scale.shape
    )
    if keeps and not batch and door.is_plain(*values):

        def run(center: Any, angle: Any, scale: Any) -> Any:
            found = _rotation(center.tolist(), angle, scale)
            return found if device is None else torch.from_numpy(found)

        return run
    x, y = _along(_array(pair, SINGLE).astype(np.float64))
    parts = (x, y, _array(angle), _array(scale))
    found = opencv_matrices.matrices(opencv_matrices.rotation, *parts)
    values = (pair, angle, scale)
    return Once(_result(found, device, values, lambda value: geometry.rotation_matrix(*values)))


def _rotation(center: Any, angle: Any, scale: Any) -> np.ndarray:
    """`getRotationMatrix2D` of numbers."""
    x, y = numbers.single(center)
    return np.array(opencv_matrices.rotation(x, y, float(angle), float(scale)))


def getAffineTransform(src: PointsLike, dst: PointsLike) -> Any:
    """cv2.getAffineTransform: `warpkit.affine_from_points` of points rounded to float32.

    src and dst (3, 2), (3, 1, 2) or (1, 3, 2), (x, y) in pixels; of tensors (..., 3, 2). Returns
    (2, 3), of tensors (..., 2, 3); zeros, with gradient 0, for collinear `src`.

    >>> getAffineTransform([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    array([[1., 0., 5.],
           [0., 2., 7.]])
    """
    return plan.call(_plan_affine, (src, dst), ())


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
    return plan.call(_plan_perspective, (src, dst), ())


def _plan_pairs(name: str, keeps: bool, src: Any, dst: Any) -> Plan | Once:
    """The plan of a function of `n` pairs of points."""
    n, function, exact = _OF_PAIRS[name]
    if not _is_readable((src, dst)):
        return Once(_call(name, function, *_checked_points(name, src, dst, n)))
    given, (device, src, dst) = (src, dst), _pairs(name, src, dst, n)
    if keeps and lens_maps.has_kernel(*given):
        return _pairs_plan(given, n, src.shape, dst.shape)
    solve = opencv_matrices.affine if n == 3 else opencv_matrices.perspective
    found, solved = solve(_array(src, SINGLE), _array(dst, SINGLE))

    def gradient(value: Tensor) -> Tensor:
        return exact(value, src, dst, torch.as_tensor(solved, device=src.device))

    return Once(_result(found, device, (src, dst), gradient))


def _exact_affine(value: Tensor, src: Tensor, dst: Tensor, solved: Tensor) -> Tensor:
    """`value` with the exact gradient: of points (..., 3, 2), `solved` by OpenCV, (...), or 0."""
    good = (solved & ~quads.collinear(src, torch.float64))[..., None, None]
    corners = torch.where(good, src, _unit_square(src)[:3])
    return torch.where(good, geometry.affine_from_points(corners, dst), 0.0)


def _exact_perspective(value: Tensor, src: Tensor, dst: Tensor, solved: Tensor) -> Tensor:
    """The same of points (..., 4, 2), with matrices that OpenCV did not solve scaled to norm 1."""
    # rounding changes nearly singular matrices: only an exact one close to OpenCV's is used
    raw = quads.quad_to_quad(src, dst).detach()
    along = (raw * value).sum((-1, -2)).abs()
    along = along / (raw.norm(dim=(-1, -2)) * value.norm(dim=(-1, -2)))
    alone = (along > 0.999)[..., None, None]
    square = _unit_square(src)
    corners, targets = (torch.where(alone, points, square) for points in (src, dst))
    made = quads.quad_to_quad(corners, targets)
    far = ~solved | quads.origin_is_far(made, corners, torch.float64)
    made = quads.normalised(made, far)
    length = torch.where(far, (made.detach() * value).sum((-1, -2)), 1.0)  # of either sign
    return torch.where(alone, made * length[..., None, None], 0.0)


_OF_PAIRS = {
    "getAffineTransform": (3, geometry.affine_from_points, _exact_affine),
    "getPerspectiveTransform": (4, geometry.perspective_from_points, _exact_perspective),
}
"""The number of pairs, warpkit's own function, and the gradient."""
_plan_affine, _plan_perspective = (partial(_plan_pairs, name) for name in _OF_PAIRS)


def invertAffineTransform(M: MatrixLike, iM: ImageLike | None = None) -> Any:
    """cv2.invertAffineTransform: `warpkit.invert` of a matrix (2, 3), of tensors (..., 2, 3).

    Returns the same shape, float32 for float32 and float64 for all others; zeros, with gradient 0,
    if there is no inverse. iM: an array to write to, if it has the result's shape and type.

    >>> invertAffineTransform(np.array([[2.0, 0, 4], [0, 1, -3]]))
    array([[ 0.5, -0. , -2. ],
           [-0. ,  1. ,  3. ]])
    """
    if iM is not None:
        src = M if isinstance(M, Tensor) else np.zeros(0)
        iM = check_output("invertAffineTransform", "iM", iM, src)
    return door.call(_plan_inverse, (M,), (), iM)


def _plan_inverse(keeps: bool, M: Any) -> Plan | Once:
    """The plan of `invertAffineTransform`, with its first argument."""
    name = "invertAffineTransform"
    own = checks.array_dtype(M) if isinstance(M, np.ndarray) else getattr(M, "dtype", None)
    single = own == SINGLE  # in any byte order
    if not _is_readable((M,)):
        found = _call(name, geometry.invert, M)
        return Once(found.float() if single else found)
    device = checks.result_kind(M)[0]
    matrix = _floats(name, "M", M, device)
    checks.check_matrix_shape(name, "M", matrix, (2,))
    dtype = SINGLE if single else torch.float64
    invert = opencv_matrices.inverse
    if keeps and door.is_plain(M):
        if M.ndim == 2 and own == torch.float64:  # floats take a tenth of the time
            return lambda M: np.array(invert(*M.ravel().tolist()))
        return lambda M: _inverted(door.as_array(M))
    found = _inverted(_array(matrix, dtype))
    return Once(
        _result(found, device, (matrix,), lambda value: inverse_map(matrix).to(value.dtype))
    )


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
    if points is None and numbers.are_pairs(*box[:2]) and numbers.are_numbers(box[2]):
        return _corners(*box)
    if points is not None:
        device, _ = checks.result_kind(*box)
        src = None if device is None else torch.empty(0, device="cpu")
        points = check_output(name, "points", points, src)
    found = plan.call(_plan_corners, tuple(box), ())
    return found if isinstance(found, Tensor) else written(points, found)


def _plan_corners(keeps: bool, *box: Any) -> Plan | Once:
    """The plan of `boxPoints`, with the parts of its box."""
    name, (device, dtype) = "boxPoints", checks.result_kind(*box)
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

    if not _is_readable(box):
        return Once(exact())
    if keeps and not batch and door.is_plain(*box):

        def run(center: Any, size: Any, angle: Any) -> Any:
            found = _corners(center.tolist(), size.tolist(), float(angle))
            return found if device is None else torch.from_numpy(found).to(dtype)

        return run
    parts = (*_along(_array(center, SINGLE)), *_along(_array(size, SINGLE)), _array(angle, SINGLE))
    found = opencv_matrices.matrices(opencv_matrices.box_corners, *parts)
    if device is None:
        return Once(found)
    value = torch.from_numpy(found).to(device, dtype)
    if wants_gradient(center, size, angle):
        value = with_gradient_of(value, exact())
    return Once(value)


def _corners(center: Sequence[float], size: Sequence[float], angle: float) -> np.ndarray:
    """`boxPoints` of numbers."""
    with np.errstate(all="ignore"):
        return np.array(opencv_matrices.box_corners(*map(np.float32, (*center, *size, angle))))


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


def _pairs_plan(
    given: tuple[Any, Any], n: int, src_shape: Sequence[int], dst_shape: Sequence[int]
) -> Plan:
    """The plan of the matrices of `n` pairs of points, which are of the shapes (..., n, 2)."""
    from warpkit.engine.cpu.maps import affine_matrices, perspective_matrices

    solve = opencv_matrices.affine if n == 3 else opencv_matrices.perspective
    solve_by_kernel = affine_matrices if n == 3 else perspective_matrices
    batch = broadcast_shapes(src_shape[:-2], dst_shape[:-2])
    gives_tensor = has_tensor(*given)

    def points(value: Any, shape: Sequence[int]) -> np.ndarray:
        array = door.as_array(value)
        if array.dtype != np.float32:
            array = array.astype(np.float64, copy=False).astype(np.float32)
        if batch:
            array = np.broadcast_to(array.reshape(shape), (*batch, n, 2))
        return np.ascontiguousarray(array).reshape(-1, n, 2)

    def run(src: Any, dst: Any) -> Any:
        pairs = points(src, src_shape), points(dst, dst_shape)
        found, solved = solve_by_kernel(*pairs)
        if not solved:
            found, _ = solve(*pairs)
        found = found.reshape(*batch, n - 1, 3)
        return torch.from_numpy(found) if gives_tensor else found

    return run


def _inverted(matrix: np.ndarray) -> np.ndarray:
    """`opencv_matrices.inverse` of (..., 2, 3), float32 or in float64."""
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    entries = matrix.reshape(-1, 6).T.reshape(6, *matrix.shape[:-2])
    return opencv_matrices.matrices(opencv_matrices.inverse, *entries)


def _along(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and y (...) of (..., 2)."""
    return pairs[..., 0], pairs[..., 1]


def _array(tensor: Tensor, dtype: torch.dtype = torch.float64) -> np.ndarray:
    return tensor.detach().to("cpu", dtype).numpy()


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
