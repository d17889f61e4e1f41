"""Flows from few parameters: B-spline lattices, and thin-plate splines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_16_bit_numbers, warn_if_relative_points
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_eager, is_readable, wants_gradient
from warpkit.engine.definitions.maps import pixel_points
from warpkit.flow.arguments import as_field
from warpkit.flow.solving import solve
from warpkit.geometry.arguments import as_points, floats
from warpkit.types import FlowLike, NumbersLike, PointsLike

AT_ONCE = 1 << 16
"""Distances that are evaluated together: six arrays of 512 KB, which stay in the cache."""

SMALLEST = 1e-300
"""The smallest argument of a logarithm; below it, the logarithm's factor r^2 counts as 0."""

LARGEST = 1e150
"""The largest value on the system's diagonal: its square is still finite."""

FLAT = 1e-10
"""The part of the points' spread below which a distance counts as 0, to a line or between two
points. Rounding causes 1e-14."""


@batched(control=3)
def bspline(control: FlowLike, size: Sequence[int]) -> Tensor:
    """The flow of a uniform cubic B-spline lattice over an image.

    control (..., m, n, 2), the displacements (dx, dy) in pixels of m rows and n columns of control
    points, at least 4 each; size (h, w). The m - 3 by n - 3 spans divide the image evenly from edge
    to edge, -1/2 to w - 1/2 and h - 1/2. Returns (..., h, w, 2), pixels, computed in float64: a
    weighted mean of the nearby control points. Gradients: all orders.

    >>> bspline(torch.ones(4, 4, 2), (1, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    name = "bspline"
    device, dtype = checks.result_kind(control)
    lattice = as_field(name, "control", control, device).double()
    if min(lattice.shape[-3:-1]) < 4:
        wanted = "of shape (..., m, n, 2) with m and n of at least 4"
        checks.fail(name, "control", wanted, checks.shape_of(lattice))
    bad = ~lattice.detach().isfinite().flatten(-3).all(-1)
    checks.check_values(name, "control", bad, "finite")
    height, width = checks.check_size(name, "size", size)
    rows = _cubic_weights(height, lattice.shape[-3], lattice.device)
    columns = _cubic_weights(width, lattice.shape[-2], lattice.device)
    return torch.einsum("hm,...mnc,wn->...hwc", rows, lattice, columns).to(dtype)


def _cubic_weights(length: int, count: int, device: torch.device) -> Tensor:
    """The weights of `count` control points at `length` pixels, (length, count), float64."""
    pixels = torch.arange(length, dtype=torch.float64, device=device)
    place = (pixels + 0.5) * ((count - 3) / length)
    distance = (place[:, None] + 1 - torch.arange(count, dtype=place.dtype, device=device)).abs()
    near = 2 / 3 - distance.square() * (1 - distance / 2)
    far = (2 - distance).clamp(min=0) ** 3 / 6
    return torch.where(distance < 1, near, far)


@batched(source=2, target=2, smoothing=0)
def thin_plate_spline(
    source: PointsLike, target: PointsLike, size: Sequence[int], *, smoothing: NumbersLike = 0.0
) -> Tensor:
    """The smoothest flow that moves points of an image to given positions.

    source (..., N, 2), (x, y) in pixels of the image; target (..., N, 2), where they appear in
    warp_flow(image, flow); N >= 3; size (h, w); smoothing (...), at least 0, is added to the
    kernel's diagonal (as in scipy.interpolate.RBFInterpolator): 0 interpolates every point, larger
    values bend less, towards the least-squares affine map. All broadcast. Returns (..., h, w, 2),
    pixels: at p the source position minus p, an affine map plus a sum of r^2 log r about the
    targets, solved and evaluated in float64, in blocks of rows. Exactly affine if the pairs are.

    Collinear or coinciding targets raise an error with smoothing 0, which names the item; with
    smoothing, the affine part across a line is 0. Gradients: all orders, to source, target and
    smoothing; to a target, the second order only exists at other pixels.

    >>> corners = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> flow = thin_plate_spline([[x + 1, y] for x, y in corners], corners, (1, 2))
    >>> flow.round(decimals=4) + 0.0
    tensor([[[1., 0.],
             [1., 0.]]])
    """
    name = "thin_plate_spline"
    device, dtype = checks.result_kind(source, target)
    pairs = _pairs(name, source, target, smoothing, device)
    size = checks.check_size(name, "size", size)
    warn_if_relative_points(name, *pairs[:2], size)
    for argument, points in (("source", source), ("target", target)):
        warn_if_16_bit_numbers(name, argument, points, (size,))
    looks_at = _fit(name, *pairs, at="target")
    pixels = pixel_points(size, torch.float64, pairs[0].device).flatten(0, 1)
    return _evaluate(looks_at, pixels).unflatten(-2, size).to(dtype)


@batched(points=2, source=2, target=2, smoothing=0)
def thin_plate_points(
    points: PointsLike, source: PointsLike, target: PointsLike, *, smoothing: NumbersLike = 0.0
) -> Tensor:
    """Map points by the smoothest map from `source` to `target`.

    points (..., P, 2) or (2,), (x, y) in pixels; source and target (..., N, 2), N >= 3 pairs;
    smoothing (...), as in `thin_plate_spline`: with 0 a source lands on its target. All batches
    broadcast. Returns (..., P, 2) or (..., 2): an affine map plus a sum of r^2 log r about the
    sources, solved and evaluated in float64, without a grid; NaN for points that are not finite.
    This is scipy.interpolate.RBFInterpolator(source, target, kernel="thin_plate_spline")(points).

    A flow points back, from where things appear to where they are: at p, `thin_plate_spline(source,
    target, size)` is thin_plate_points(p, target, source) - p. The two maps are inverse only at the
    pairs; elsewhere, `flow.transform_points` inverts the flow.

    Errors name `source`; those of thin_plate_spline name `target`. Gradients: all orders, to
    points, source, target and smoothing; the second order only for points apart from the sources.

    >>> square = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> result = thin_plate_points([[1.0, 0.5]], square, [[2 * x, y + 1] for x, y in square])
    >>> result.round(decimals=4)
    tensor([[2.0000, 1.5000]])
    """
    name = "thin_plate_points"
    device, dtype = checks.result_kind(points, source, target)
    points, single = as_points(name, points, device)
    source, target, smooth = _pairs(name, source, target, smoothing, device or points.device)
    checks.broadcast_batch(
        name, points=points.shape[:-2], source=source.shape[:-2],
        target=target.shape[:-2], smoothing=smooth.shape,
    )  # fmt: skip
    fit = _fit(name, target, source, smooth, at="source")
    points = points.double()
    finite = points.detach().isfinite().all(-1, keepdim=True)
    # a point without a solution does not affect other gradients
    safe = torch.where(finite, points, 0.0)
    result = torch.where(finite, safe + _evaluate(fit, safe), torch.nan).to(dtype)
    return result[..., 0, :] if single else result


def _pairs(
    name: str, source: Any, target: Any, smoothing: Any, device: torch.device | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Checked pairs of points (..., N, 2) and smoothing (...), which broadcast, in float64."""
    source = floats(name, "source", source, device)
    device = device or source.device
    target, smooth = (
        floats(name, "target", target, device),
        floats(name, "smoothing", smoothing, device),
    )
    for argument, points in (("source", source), ("target", target)):
        if points.ndim < 2 or points.shape[-1] != 2 or points.shape[-2] < 3:
            wanted = "of shape (..., N, 2) with N of at least 3"
            checks.fail(name, argument, wanted, checks.shape_of(points))
    if source.shape[-2] != target.shape[-2]:
        wanted = f"of as many points as `source`, {source.shape[-2]}"
        checks.fail(name, "target", wanted, checks.shape_of(target))
    checks.broadcast_batch(
        name, source=source.shape[:-2], target=target.shape[:-2], smoothing=smooth.shape
    )
    source, target, smooth = source.double(), target.double(), smooth.double()
    for argument, points in (("source", source), ("target", target)):
        bad = ~points.detach().isfinite().all(-1).all(-1)
        checks.check_values(name, argument, bad, "finite")
    negative = ~(smooth.detach() >= 0)
    checks.check_values(name, "smoothing", negative, "at least 0", smooth.detach())
    checks.check_values(name, "smoothing", smooth.detach().isinf(), "finite", smooth.detach())
    return source, target, smooth


def _fit(
    name: str, values: Tensor, centres: Tensor, smooth: Tensor, *, at: str
) -> tuple[Tensor, ...]:
    """The plate: centres in its own units (..., N, 2), coefficients (..., N + 3, 2), middle, unit.

    The plate is the offset of the map that moves centres to their values, both (..., N, 2), pixels;
    `at` is the centres' name in errors. smooth (...) is added to the diagonal. All broadcast, and
    one set of centres has one system for all values. The unit is the centres' spread, so that all
    entries of the system are near 1. Another unit adds a multiple of r^2 to the kernel; since the
    coefficients have no moments of order 0 and 1, that amounts to an affine map.
    """
    with torch.no_grad():
        middle = centres.mean(-2, keepdim=True)
        spread = (centres - middle).abs().amax((-1, -2), keepdim=True)
        unit = torch.where(spread > 0, spread, 1.0)
    sites, moves = (centres - middle) / unit, values - centres
    flat = _on_a_line(sites.detach())
    twice = _apart(sites.detach()) < FLAT
    exact = smooth.detach() == 0
    wanted = "points that are not all on one line, with smoothing=0"
    checks.check_values(name, at, flat & exact, wanted)
    wanted = "points of which no two are in one place, with smoothing=0"
    checks.check_values(name, at, twice & exact, wanted)
    count = sites.shape[-2]
    kernel = _kernel(sites, sites)
    eye = torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    # the square of a unit of 1e-200 underflows; and solvers reject infinity
    diagonal = (smooth[..., None, None] / unit / unit).clamp(max=LARGEST)
    kernel = kernel + diagonal * eye
    ones = torch.ones_like(sites[..., :1])
    powers = torch.cat((ones, sites), -1)
    powers = powers.expand(*kernel.shape[:-1], 3)
    corner = torch.zeros_like(powers[..., :3, :])
    system = torch.cat(
        (torch.cat((kernel, powers), -1), torch.cat((powers.mT, corner), -1)), dim=-2
    )
    right = torch.nn.functional.pad(moves, (0, 0, 0, 3))
    if is_readable(flat) and bool(flat.any()):
        # undetermined across the line: the minimum-norm coefficients of least squares
        return sites, torch.linalg.pinv(system, rtol=FLAT, hermitian=True) @ right, middle, unit
    coefficients = _for_all(system, right, solve)
    bad = ((flat | twice) & exact) | flat
    return sites, torch.where(bad[..., None, None], torch.nan, coefficients), middle, unit


def _for_all(matrix: Tensor, right: Tensor, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """`function(matrix, right)` of (..., n, m) and (..., m, 2), which broadcast.

    One matrix for many right-hand sides is not repeated: their columns are concatenated.
    """
    if matrix.ndim > 2 or right.ndim == 2:
        return function(matrix, right)
    columns = right.movedim(-2, 0)
    return function(matrix, columns.flatten(1)).unflatten(1, columns.shape[1:]).movedim(0, -2)


def _on_a_line(sites: Tensor) -> Tensor:
    """Whether points (..., N, 2) of spread 1 lie on one line, or coincide."""
    x, y = sites.unbind(-1)
    a, b, c = (x * x).sum(-1), (x * y).sum(-1), (y * y).sum(-1)
    # the smaller moment by the determinant, from the rows' distances to the line; the larger
    # moment's direction, (u, v), by roots: onnxruntime has no arctangent of float64
    apart, both = a - c, 2 * b
    length = (apart * apart + both * both).sqrt()
    u = torch.where(apart < 0, both, length + apart)
    v = torch.where(apart < 0, length - apart, both)
    u = torch.where(length > 0, u, 1.0)  # both moments are equal: any direction
    unit = (u * u + v * v).sqrt()
    across = y * (u / unit)[..., None] - x * (v / unit)[..., None]
    return across.abs().amax(-1) < FLAT


def _apart(sites: Tensor) -> Tensor:
    """The smallest distance of two of points (..., N, 2)."""
    x, y = (p[..., :, None] - p[..., None, :] for p in sites.unbind(-1))
    square = x * x + y * y  # torch.hypot has no ONNX operator
    here = torch.eye(sites.shape[-2], dtype=torch.bool, device=sites.device)
    return torch.where(here, torch.inf, square).amin((-1, -2)).sqrt()


def _kernel(points: Tensor, sites: Tensor) -> Tensor:
    """r^2 log r of points (..., M, 2) and sites (..., N, 2), which broadcast: (..., M, N)."""
    (x, y), (u, v) = points.unbind(-1), sites.unbind(-1)
    x, y = x[..., :, None] - u[..., None, :], y[..., :, None] - v[..., None, :]
    square = torch.addcmul(x * x, y, y)
    # at r = 0 the value and the slope are 0, but the logarithm is infinite; a clamp would not help,
    # because its bound becomes 0 in an ONNX graph's float32
    return square * (torch.where(square > SMALLEST, square, 1.0).log() / 2)


def _evaluate(fit: tuple[Tensor, ...], points: Tensor) -> Tensor:
    """The plate at points (..., P, 2), whose batch broadcasts with its own, by blocks of points."""
    sites = fit[0]
    plates = math.prod(broadcast_shapes(points.shape[:-2], sites.shape[:-2]))
    step = max(1, AT_ONCE // (sites.shape[-2] * max(1, plates)))
    if points.shape[-2] <= step:
        return _plate(points, *fit)
    again = is_eager(points, *fit) and wants_gradient(points, *fit)
    plate: Any = PlateAgain.apply if again else _plate
    return torch.cat([plate(part, *fit) for part in points.split(step, -2)], -2)


class PlateAgain(torch.autograd.Function):
    """`_plate`, recomputed for its gradient.

    1,000 points on 512 x 512 pixels would need six arrays of 2 GB. torch's checkpoint would work,
    but loads 400 MB of torch's compiler on first use.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*inputs)
        return _plate(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Differentiates the recomputed plate; differentiable if needed."""
        twice, wanted = torch.is_grad_enabled(), ctx.needs_input_grad
        with torch.enable_grad():
            # views, because the coefficients depend on the sites: the gradient must end here
            inputs = [
                t.view_as(t) if twice else t.detach().requires_grad_(want)
                for t, want in zip(ctx.saved_tensors, wanted, strict=True)
            ]
            needed = [t for t, want in zip(inputs, wanted, strict=True) if want]
            gradients = torch.autograd.grad(_plate(*inputs), needed, grads[0], create_graph=twice)
        parts = iter(gradients)
        return tuple(next(parts) if want else None for want in wanted)


def _plate(
    points: Tensor, sites: Tensor, coefficients: Tensor, middle: Tensor, unit: Tensor
) -> Tensor:
    """The plate of `_fit` at points (..., P, 2): (..., P, 2).

    sites (..., N, 2), coefficients (..., N + 3, 2), middle and unit (..., 1, 2 or 1).
    """
    places = (points - middle) / unit
    bent = _for_all(_kernel(places, sites), coefficients[..., :-3, :], torch.matmul)
    affine = _for_all(places, coefficients[..., -2:, :], torch.matmul)
    return bent + coefficients[..., -3:-2, :] + affine
