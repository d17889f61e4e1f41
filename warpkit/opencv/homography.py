"""cv2.findHomography over all points: least squares of the reprojection error."""

from __future__ import annotations

from math import isnan, prod
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.backends import select_fits
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.geometry.arguments import floats
from warpkit.geometry.from_points import perspective_from_points
from warpkit.geometry.matrices import transform_points
from warpkit.opencv import door, homography_fit, numbers
from warpkit.opencv.cameras import common_device
from warpkit.opencv.door import as_given, check_output, written
from warpkit.opencv.homography_fit import LEAST
from warpkit.opencv.layout import has_tensor, is_followed
from warpkit.types import ImageLike, PointsLike

STEPS = 30
"""The most steps of the descent, each of which halves the number of wrong digits."""

FAR = 1e6
"""A matrix with entries of this size, for points near 1, maps their middle to infinity."""


def findHomography(
    srcPoints: PointsLike,
    dstPoints: PointsLike,
    method: int = 0,
    ransacReprojThreshold: float = 3,
    mask: ImageLike | None = None,
    maxIters: int = 2000,
    confidence: float = 0.995,
) -> tuple[Any, Any]:
    """cv2.findHomography with method 0: the homography of all pairs of points by least squares.

    srcPoints and dstPoints (N, 2), (N, 1, 2) or (1, N, 2), N of at least 4, rounded to float32 as
    in cv2; of tensors (..., N, 2). Returns the matrix (3, 3), float64, whose last entry is 1 (0 if
    the origin goes to infinity: the other entries are then cv2's up to one sign for all), and
    cv2's mask (N, 1), uint8; of tensors (..., 3, 3) and (..., N, 1). For more than four pairs the
    mask says which lie within ransacReprojThreshold pixels, as in cv2, and the sum of squared
    distances in pixels is minimal. cv2 stops after ten steps: within 1e-5 of a pixel of the minimum
    if the pairs agree to a few pixels, and anywhere otherwise. If all points have one x or one y,
    the result is None and zeros, as in cv2. Other methods select points, which has no gradient, and
    raise an error; arguments that only they use (maxIters, confidence) are ignored.

    Gradients, if an argument is a tensor: first order, for four pairs all orders, to both. Raises
    ValueError if no four of the source's points are in general position.

    >>> square = np.float32([[0, 0], [1, 0], [1, 1], [0, 1]])
    >>> findHomography(square, square * 2 + 1)[0].round(6) + 0.0
    array([[2., 0., 1.],
           [0., 2., 1.],
           [0., 0., 1.]])
    """
    name = "findHomography"
    if not isinstance(method, Integral) or method != 0:
        wanted = "0: others select points, which has no gradient (use cv2.findHomography)"
        checks.fail(name, "method", wanted, f"{method!r:.60}")
    given = has_tensor(srcPoints, dstPoints)
    mask = check_output(name, "mask", mask, torch.empty(0, device="cpu") if given else np.empty(0))
    threshold = checks.float64_of(name, "ransacReprojThreshold", ransacReprojThreshold)
    pairs = (srcPoints, dstPoints) if given else map(_as_array, (srcPoints, dstPoints))
    matrix, found = plan.call(_plan_homography, tuple(pairs), (threshold,))
    return matrix, found if given else written(mask, found)


def _plan_homography(keeps: bool, src: Any, dst: Any, threshold: float) -> Plan | Once:
    """The plan of `findHomography`, with its points."""
    given = has_tensor(src, dst)
    if not keeps or not door.is_plain(src, dst) or (given and src.ndim + dst.ndim > 4):
        return Once(_defined(src, dst, threshold, given))
    device = common_device(src, dst)
    first = _points("findHomography", "srcPoints", src, device, given)
    second = _points("findHomography", "dstPoints", dst, device, given)
    if first.shape != second.shape:
        return Once(_defined(src, dst, threshold, given))  # the error

    def run(src: Any, dst: Any) -> tuple[Any, Any]:
        points = door.as_array(src), door.as_array(dst)
        matrix, found = homography_fit.fitted(*points, STEPS, threshold)
        if isnan(matrix[0, 0]):
            return _defined(src, dst, threshold, given)
        return (torch.from_numpy(matrix), torch.from_numpy(found)) if given else (matrix, found)

    return run


def _as_array(points: Any) -> Any:
    """Lists of numbers as an array, so that both give the same bits; others unchanged."""
    if not isinstance(points, checks.LISTS):
        return points
    try:
        array = np.asarray(points)
    except (RuntimeError, TypeError, ValueError):
        return points
    return array if array.dtype in numbers.ARRAYS else points


def _defined(src: Any, dst: Any, threshold: float, given: bool) -> tuple[Any, Any]:
    """`findHomography` by torch's operations; given: whether a tensor is returned."""
    name, device = "findHomography", common_device(src, dst)
    src = _points(name, "srcPoints", src, device, given)
    dst = _points(name, "dstPoints", dst, device, given)
    if dst.shape[-2] != src.shape[-2]:
        wanted = f"as many points as `srcPoints`, {src.shape[-2]}"
        checks.fail(name, "dstPoints", wanted, dst.shape[-2])
    batch = checks.broadcast_batch(name, srcPoints=src.shape[:-2], dstPoints=dst.shape[:-2])
    rounded = [points.detach().float().double() for points in (src, dst)]
    if not given and any(bool((p == p[:1]).all(0).any()) for p in rounded):
        return None, np.zeros((len(src), 1), np.uint8)
    matrix, found = _values(name, rounded[0], rounded[1], batch, threshold)
    if is_followed(src, dst):
        matrix = with_gradient_of(matrix, _exact(name, src, dst))
    return as_given(given, matrix), as_given(given, found)


def _values(
    name: str, src: Tensor, dst: Tensor, batch: tuple[int, ...], threshold: float
) -> tuple[Tensor, Tensor]:
    """The matrix (..., 3, 3) and the mask (..., N, 1) for src and dst (..., N, 2)."""
    if not batch and src.ndim == 2 and dst.ndim == 2 and door.runs_kernels(src, dst):
        points = src.numpy(), dst.numpy()
        matrix, found = map(torch.from_numpy, homography_fit.fitted(*points, STEPS, threshold))
        if not isnan(matrix[0, 0]):
            return matrix, found
    matrix = _fitted(name, src, dst)
    near = torch.ones((*batch, src.shape[-2]), dtype=torch.bool, device=src.device)
    if src.shape[-2] > 4:
        carried = transform_points(matrix, src)
        near = (carried - dst).norm(dim=-1) <= homography_fit.reach(threshold)
    return matrix, near[..., None].to(torch.uint8)


def _points(name: str, argument: str, value: Any, device: torch.device, given: bool) -> Tensor:
    """Points (..., N, 2) in float64."""
    points = floats(name, argument, value, device).double()
    if not given and points.ndim == 3 and 1 in points.shape[:2]:
        points = points.reshape(-1, points.shape[-1])
    good = points.ndim >= 2 and (given or points.ndim == 2)
    if not good or points.shape[-1] != 2 or points.shape[-2] < 4:
        wanted = "of shape (..., N, 2)" if given else "of shape (N, 2), (N, 1, 2) or (1, N, 2)"
        checks.fail(name, argument, f"{wanted} with N of at least 4", checks.shape_of(points))
    checks.check_values(name, argument, ~points.detach().isfinite().all(-1).all(-1), "finite")
    return points


def _direct(name: str, src: Tensor, dst: Tensor) -> Tensor:
    """`perspective_from_points` of src and dst (..., N, 2); errors have cv2's argument names."""
    try:
        return perspective_from_points(src, dst)
    except ValueError as error:
        text = str(error).removeprefix("perspective_from_points: ")
        text = text.replace("`src", "`srcPoints").replace("`dst", "`dstPoints")
        raise ValueError(f"{name}: {text}") from None


def _fitted(name: str, src: Tensor, dst: Tensor) -> Tensor:
    """The least-squares matrix (..., 3, 3) for src and dst (..., N, 2)."""
    start = _direct(name, src, dst)
    if src.shape[-2] == 4:
        return _scaled(start, src, dst)
    pixels = src, dst
    src, dst, into, out_of = _near_one(src, dst)
    matrix = torch.linalg.inv(out_of) @ start @ torch.linalg.inv(into)
    entries = (matrix / matrix[..., 2:, 2:]).flatten(-2)[..., :8]
    if (fast := select_fits(entries, src, dst)) is not None:
        batch = entries.shape[:-1]
        pairs = [
            p.expand(*batch, *p.shape[-2:]).reshape(prod(batch), *p.shape[-2:]) for p in (src, dst)
        ]
        found = fast.homography(entries.reshape(prod(batch), 8), *pairs, STEPS)
        return _scaled(_between_pixels(found.view(entries.shape), into, out_of), *pixels)
    rest, slopes = _residuals(entries, src, dst)
    error = rest.square().sum(-1)
    damping = torch.full_like(error, 1e-3)
    unit = torch.eye(8, dtype=src.dtype, device=src.device)
    for _ in range(STEPS):
        square = slopes.mT @ slopes
        down = (slopes.mT @ rest[..., None])[..., 0]
        damped = square + damping[..., None, None] * unit * square
        step, singular = torch.linalg.solve_ex(damped, down)
        tried = entries - step
        left, steeper = _residuals(tried, src, dst)
        better = (left.square().sum(-1) <= error) & (singular == 0)
        entries = torch.where(better[..., None], tried, entries)
        rest = torch.where(better[..., None], left, rest)
        slopes = torch.where(better[..., None, None], steeper, slopes)
        error = rest.square().sum(-1)
        damping = torch.where(better, damping * 0.1, damping * 10)
        if bool((step.abs().amax(-1) < 1e-14).all()):
            break
    return _scaled(_between_pixels(entries, into, out_of), *pixels)


def _exact(name: str, src: Tensor, dst: Tensor) -> Tensor:
    """The same, with the gradient of the optimum by the implicit function theorem: (..., 3, 3).

    src and dst (..., N, 2).
    """
    if src.shape[-2] == 4:
        return _scaled(_direct(name, src, dst), src, dst)
    found = _fitted(name, src.detach(), dst.detach())
    near_src, near_dst, into, out_of = _near_one(src, dst)
    matrix = torch.linalg.inv(out_of) @ found @ torch.linalg.inv(into)
    entries = (matrix / matrix[..., 2:, 2:]).flatten(-2)[..., :8].detach()
    near = (entries.abs() < FAR).all(-1)  # false for NaN
    entries = torch.where(near[..., None], entries, 0.0)
    rest, slopes = _residuals(entries, near_src, near_dst)
    down = (slopes.mT @ rest[..., None])[..., 0]  # 0 at the optimum
    curved = _curvature(entries, near_src.detach(), rest.detach(), slopes.detach())
    # if pairs hardly agree, the cost may have a valley without a minimum: the gradient is then 0
    with torch.no_grad():
        change, singular = torch.linalg.solve_ex(curved, down)
        sharp = (singular == 0) & change.isfinite().all(-1) & near
    unit = torch.eye(8, dtype=curved.dtype, device=curved.device)
    curved = torch.where(sharp[..., None, None], curved, unit)
    change = torch.linalg.solve(curved, torch.where(sharp[..., None], down, 0.0))
    return _scaled(_between_pixels(entries - change, into, out_of), src, dst)


def _near_one(src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """src and dst (..., N, 2), moved to 0 and scaled to about 1; the matrices back to pixels."""
    near, back = [], []
    for points in (src, dst):
        with torch.no_grad():
            middle = points.mean(-2, keepdim=True)
            scale = (points - middle).abs().mean((-1, -2))[..., None, None]
        near.append((points - middle) / scale)
        last = points.new_tensor([0.0, 0.0, 1.0]).expand(*points.shape[:-2], 1, 3)
        unit = torch.eye(2, dtype=points.dtype, device=points.device)
        top = torch.cat((scale * unit, middle.mT), dim=-1)
        back.append(torch.cat((top, last), dim=-2))
    return *near, torch.linalg.inv(back[0]), back[1]  # pyright: ignore


def _between_pixels(entries: Tensor, into: Tensor, out_of: Tensor) -> Tensor:
    """The matrix between pixels, up to a factor, of entries (..., 8); into, out_of (..., 3, 3)."""
    nine = torch.cat((entries, torch.ones_like(entries[..., :1])), dim=-1)
    return out_of @ nine.unflatten(-1, (3, 3)) @ into


def _scaled(matrix: Tensor, src: Tensor, dst: Tensor) -> Tensor:
    """The matrix (..., 3, 3) for src and dst (..., N, 2), with a last entry of 1 or cv2's scale.

    cv2 solves for a matrix of norm 1 between points whose coordinates have a mean of 0 and a mean
    size of 1 along each axis, and divides by the last entry where that is not 0.
    """
    last, frames = src.new_tensor([0.0, 0.0, 1.0]), []
    for points in (src, dst):
        middle = points.mean(-2, keepdim=True)
        spread = torch.diag_embed((points - middle).abs().mean(-2))
        top = torch.cat((spread, middle.mT), dim=-1)
        frames.append(torch.cat((top, last.expand(*top.shape[:-2], 1, 3)), dim=-2))
    solved = torch.linalg.solve(frames[1], matrix @ frames[0])
    norm = solved.square().sum((-1, -2), keepdim=True).sqrt()
    divisor = matrix[..., 2:, 2:]
    return matrix / torch.where(divisor.abs() <= LEAST * norm, norm, divisor)


def _residuals(entries: Tensor, src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """The residuals (..., 2 N) of pairs (..., N, 2) for entries (..., 8), and their slopes."""
    rows = torch.cat((src, torch.ones_like(src[..., :1])), dim=-1)
    a, b, c = (entries[..., None, i : i + 3] for i in (0, 3, 6))
    w = 1 + (src * c).sum(-1)
    u, v = ((rows * row).sum(-1) / w for row in (a, b))
    rest = torch.cat((u - dst[..., 0], v - dst[..., 1]), dim=-1)
    top, low = rows / w[..., None], src / w[..., None]
    none = torch.zeros_like(top)
    along_u = torch.cat((top, none, -low * u[..., None]), dim=-1)
    along_v = torch.cat((none, top, -low * v[..., None]), dim=-1)
    return rest, torch.cat((along_u, along_v), dim=-2)


def _curvature(entries: Tensor, src: Tensor, rest: Tensor, slopes: Tensor) -> Tensor:
    """The second derivatives (..., 8, 8) of half the sum of squares.

    entries (..., 8), src (..., N, 2), rest (..., 2 N) and slopes (..., 2 N, 8), as of `_residuals`.
    """
    count = src.shape[-2]
    rows = torch.cat((src, torch.ones_like(src[..., :1])), dim=-1)
    w = (1 + (src * entries[..., None, 6:8]).sum(-1))[..., None]
    top, low = rows / w, src / w
    curved = slopes.mT @ slopes
    for first, left in ((0, rest[..., :count]), (3, rest[..., count:])):
        mixed = -(top * left[..., None]).mT @ low
        place = (entries[..., None, first : first + 3] * top).sum(-1)
        twice = 2 * (low * (left * place)[..., None]).mT @ low
        block = torch.zeros_like(curved)
        block[..., first : first + 3, 6:8] = mixed
        block[..., 6:8, first : first + 3] = mixed.mT
        block[..., 6:8, 6:8] = twice
        curved = curved + block
    return curved
