"""Flows from few numbers: lattices of B-splines, and thin plates through pairs of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.sharding import batched
from warpkit.core.tracing import is_eager, is_readable, wants_gradient
from warpkit.engine.sampling.maps import pixel_points
from warpkit.flow.arguments import as_field
from warpkit.geometry.arguments import floats

AT_ONCE = 1 << 16
"""Distances that are evaluated together: 512 KB each of six arrays, which stay in the cache."""

SMALLEST = 1e-300
"""Of the logarithms' arguments: what it is multiplied by is 0 there."""

LARGEST = 1e150
"""Of the system's diagonal: its square is a number."""

FLAT = 1e-10
"""Of the larger spread of points: a smaller one across it is a line's, 1e-14 by rounding."""


@batched(control=3)
def bspline(control: Any, size: Sequence[int]) -> Tensor:
    """The flow of a uniform cubic B-spline lattice over an image.

    control (..., m, n, 2), the displacements (dx, dy) in pixels of m rows and n columns of control
    points, at least 4 each; size (h, w). The m - 3 by n - 3 spans share the image from edge to
    edge, -1/2 to w - 1/2 and h - 1/2. Returns (..., h, w, 2), pixels, computed in float64: a sum of
    the control points around with weights that add to 1. Gradients: all orders.

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
    source: Any, target: Any, size: Sequence[int], *, smoothing: Any = 0.0
) -> Tensor:
    """The smoothest flow that carries points of an image to where they shall appear.

    source (..., N, 2), (x, y) in pixels of the image; target (..., N, 2), where they appear in
    warp_flow(image, flow); N >= 3; size (h, w); smoothing (...), at least 0, what is added to the
    kernel's diagonal (scipy.interpolate.RBFInterpolator's): 0 meets every point, larger values bend
    less, towards the affine map of least squares. All broadcast. Returns (..., h, w, 2), pixels: at
    p a point's place minus p, an affine map plus a sum of r^2 log r about the targets, solved and
    evaluated in float64, by blocks of rows. Exactly affine where the pairs are.

    Targets that lie on a line, or twice in one place, are an error with smoothing 0, that names
    the item; with smoothing the affine part across a line is 0. Gradients: all orders, to source,
    target and smoothing; of second order to a target only at pixels apart from it.

    >>> corners = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> flow = thin_plate_spline([[x + 1, y] for x, y in corners], corners, (1, 2))
    >>> flow.round(decimals=4) + 0.0
    tensor([[[1., 0.],
             [1., 0.]]])
    """
    name = "thin_plate_spline"
    device, dtype = checks.result_kind(source, target)
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
    height, width = checks.check_size(name, "size", size)
    checks.broadcast_batch(
        name, source=source.shape[:-2], target=target.shape[:-2], smoothing=smooth.shape
    )
    source, target = source.double(), target.double()
    for argument, points in (("source", source), ("target", target)):
        bad = ~points.detach().isfinite().all(-1).all(-1)
        checks.check_values(name, argument, bad, "finite")
    smooth = smooth.double()
    negative = ~(smooth.detach() >= 0)
    checks.check_values(name, "smoothing", negative, "at least 0", smooth.detach())
    checks.check_values(name, "smoothing", smooth.detach().isinf(), "finite", smooth.detach())
    fit = _fit(name, source, target, smooth)
    return _evaluate(fit, (height, width)).to(dtype)


def _fit(name: str, source: Tensor, target: Tensor, smooth: Tensor) -> tuple[Tensor, ...]:
    """The plate: targets in its own units (..., N, 2), coefficients (..., N + 3, 2), middle, unit.

    source and target (..., N, 2), pixels; smooth (...), the diagonal's: all broadcast, and one
    set of targets has one system for all sources. The unit is the targets'
    spread, so that all entries of the system are near 1; a change of unit adds a square of r to the
    kernel, which coefficients without moments of order 0 and 1 turn into an affine map.
    """
    with torch.no_grad():
        middle = target.mean(-2, keepdim=True)
        spread = (target - middle).abs().amax((-1, -2), keepdim=True)
        unit = torch.where(spread > 0, spread, 1.0)
    sites, moves = (target - middle) / unit, source - target
    flat = _on_a_line(sites.detach())
    twice = _apart(sites.detach()) < FLAT
    exact = smooth.detach() == 0
    wanted = "points that are not all on one line, with smoothing=0"
    checks.check_values(name, "target", flat & exact, wanted)
    wanted = "points of which no two are in one place, with smoothing=0"
    checks.check_values(name, "target", twice & exact, wanted)
    count = sites.shape[-2]
    kernel = _kernel(sites, sites)
    eye = torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    # a unit of 1e-200 has no square; and no solver takes infinity
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
        # across the line nothing is known: the smallest coefficients of least squares
        return sites, torch.linalg.pinv(system, rtol=FLAT, hermitian=True) @ right, middle, unit
    coefficients = _for_all(system, right, lambda a, b: torch.linalg.solve_ex(a, b).result)
    bad = ((flat | twice) & exact) | flat
    return sites, torch.where(bad[..., None, None], torch.nan, coefficients), middle, unit


def _for_all(matrix: Tensor, right: Tensor, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What `function` makes of matrix (..., n, m) and right (..., m, 2), which broadcast.

    One matrix for many is not repeated: their columns stand side by side.
    """
    if matrix.ndim > 2 or right.ndim == 2:
        return function(matrix, right)
    columns = right.movedim(-2, 0)
    return function(matrix, columns.flatten(1)).unflatten(1, columns.shape[1:]).movedim(0, -2)


def _on_a_line(sites: Tensor) -> Tensor:
    """Whether points (..., N, 2) of spread 1 lie on one line, or in one place."""
    x, y = sites.unbind(-1)
    a, b, c = (x * x).sum(-1), (x * y).sum(-1), (y * y).sum(-1)
    # the smaller moment by the determinant, of rows apart from the line: see the larger's direction
    angle = torch.atan2(2 * b, a - c) / 2
    across = x * -angle.sin()[..., None] + y * angle.cos()[..., None]
    return across.abs().amax(-1) < FLAT


def _apart(sites: Tensor) -> Tensor:
    """The smallest distance of two of points (..., N, 2)."""
    x, y = (p[..., :, None] - p[..., None, :] for p in sites.unbind(-1))
    distance = torch.hypot(x, y)
    here = torch.eye(sites.shape[-2], dtype=torch.bool, device=sites.device)
    return torch.where(here, torch.inf, distance).amin((-1, -2))


def _kernel(points: Tensor, sites: Tensor) -> Tensor:
    """r^2 log r of points (..., M, 2) and sites (..., N, 2), which broadcast: (..., M, N)."""
    (x, y), (u, v) = points.unbind(-1), sites.unbind(-1)
    x, y = x[..., :, None] - u[..., None, :], y[..., :, None] - v[..., None, :]
    square = torch.addcmul(x * x, y, y)
    # at r = 0 value and slope are 0, where the logarithm has none
    return square * (square.clamp(min=SMALLEST).log() / 2)


def _evaluate(fit: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
    """The plate at every pixel of `size`, (..., h, w, 2), by blocks of pixels."""
    sites, _, middle, _ = fit
    pixels = pixel_points(size, torch.float64, middle.device).flatten(0, 1)
    plates = max(1, sites[..., 0, 0].numel())
    step = max(1, AT_ONCE // (sites.shape[-2] * plates))
    if len(pixels) <= step:
        return _plate(pixels, *fit).unflatten(-2, size)
    again = is_eager(*fit) and wants_gradient(*fit)
    plate: Any = PlateAgain.apply if again else _plate
    parts = [plate(part, *fit) for part in pixels.split(step)]
    return torch.cat(parts, -2).unflatten(-2, size)


class PlateAgain(torch.autograd.Function):
    """`_plate`, computed again for its gradient.

    1,000 points on 512 x 512 pixels would keep 2 GB of each of six arrays. torch's checkpoint would
    do, but loads 400 MB of torch's compiler when it is first used.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        """As `_plate`."""
        ctx.save_for_backward(*inputs)
        return _plate(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Of what autograd records of the same; differentiable where it shall be."""
        twice, wanted = torch.is_grad_enabled(), ctx.needs_input_grad
        with torch.enable_grad():
            # views: the coefficients come from the sites, and a gradient to those ends here
            inputs = [
                t.view_as(t) if twice else t.detach().requires_grad_(want)
                for t, want in zip(ctx.saved_tensors, wanted, strict=True)
            ]
            needed = [t for t, want in zip(inputs, wanted, strict=True) if want]
            found = torch.autograd.grad(_plate(*inputs), needed, grads[0], create_graph=twice)
        parts = iter(found)
        return tuple(next(parts) if want else None for want in wanted)


def _plate(
    pixels: Tensor, sites: Tensor, coefficients: Tensor, middle: Tensor, unit: Tensor
) -> Tensor:
    """The plate of `_fit` at pixels (P, 2): (..., P, 2).

    sites (..., N, 2), coefficients (..., N + 3, 2), middle and unit (..., 1, 2 or 1).
    """
    places = (pixels - middle) / unit
    bent = _for_all(_kernel(places, sites), coefficients[..., :-3, :], torch.matmul)
    affine = _for_all(places, coefficients[..., -2:, :], torch.matmul)
    return bent + coefficients[..., -3:-2, :] + affine
