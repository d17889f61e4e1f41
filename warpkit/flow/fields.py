"""Makes flows from matrices and points; composes, integrates and measures them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.core.mistakes import warn_if_no_pixels, warn_if_points
from warpkit.core.numbers import check_count
from warpkit.core.sharding import batched
from warpkit.engine.definitions.maps import output_points, pixel_points
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.inverse import inverse_map
from warpkit.flow.arguments import as_field
from warpkit.flow.positions import places
from warpkit.geometry.arguments import as_matrix
from warpkit.types import FlowLike, MatrixLike, PointsLike

BETWEEN_PIXELS = SamplingRule("bilinear", "replicate", "exact")
"""How a flow continues beyond its pixels."""

MOST_STEPS = 60
"""The most steps of `integrate`: 2^-60 of a velocity is below the last bit of a position."""


@batched(matrix=2)
def from_matrix(matrix: MatrixLike, size: Sequence[int], *, inverse: bool = False) -> Tensor:
    """The flow of an affine or perspective matrix: `warp_flow` by it is `warp_affine`.

    matrix (..., 2, 3) or (..., 3, 3), source -> destination pixels, or with inverse=True
    destination -> source; size (h, w) of the result. Returns (..., h, w, 2), pixels, computed in
    float64; NaN under a singular matrix. Gradients: all orders, to the matrix.

    >>> from_matrix([[1, 0, 5], [0, 2, 0]], (2, 1))
    tensor([[[-5.0000,  0.0000]],
    <BLANKLINE>
            [[-5.0000, -0.5000]]])
    """
    name = "from_matrix"
    device, dtype = checks.result_kind(matrix)
    to_source = as_matrix(name, matrix, "matrix", device).double()
    size = checks.check_size(name, "size", size)
    if not checks.check_bool(name, "inverse", inverse):
        to_source = inverse_map(to_source)
    points = output_points(to_source, size)
    return (points - pixel_points(size, torch.float64, points.device) + 0.0).to(dtype)


@batched(points=3)
def from_points(points: PointsLike) -> Tensor:
    """The flow of a point field, as `warpkit.remap` takes it: points minus pixel coordinates.

    points (..., h, w, 2), (x, y) in pixels. Returns (..., h, w, 2), pixels. Gradients: all orders.

    >>> from_points([[[0.0, 0.0], [3.0, 1.0]]])
    tensor([[[0., 0.],
             [2., 1.]]])
    """
    name = "from_points"
    device, dtype = checks.result_kind(points)
    point_field = as_field(name, "points", points, device)
    warn_if_no_pixels(name, point_field, point_field.shape[-3:-1])
    field = point_field.double()
    return (field - pixel_points(field.shape[-3:-1], field.dtype, field.device)).to(dtype)


@batched(flow=3)
def to_points(flow: FlowLike) -> Tensor:
    """The point field of a flow, for `warpkit.remap`: pixel coordinates plus flow.

    flow (..., h, w, 2), pixels. Returns (..., h, w, 2), pixels, rounded to the flow's type, where
    `warpkit.warp_flow` adds in float64. Gradients: all orders.

    >>> to_points([[[0.0, 0.0], [2.0, 1.0]]])
    tensor([[[0., 0.],
             [3., 1.]]])
    """
    name = "to_points"
    device, dtype = checks.result_kind(flow)
    field = as_field(name, "flow", flow, device)
    warn_if_points(name, field)
    return places(field).to(dtype)


@batched(first=3, second=3)
def compose(first: FlowLike, second: FlowLike) -> Tensor:
    """One flow for two warps in a row: by `first`, then by `second`.

    first (..., H, W, 2) and second (..., h, w, 2), pixels; their batches broadcast. Returns (...,
    h, w, 2), second(p) + first(p + second(p)): warp_flow(image, compose(first, second)) is
    warp_flow(warp_flow(image, first), second), sampled once. Beyond its edges `first` keeps its
    value at the edge, where the two warps would show their border. NaN where `second` is.
    Gradients: all orders, to both.

    >>> compose([[[1.0, 0.0], [3.0, 0.0]]], [[[0.5, 0.0], [0.0, 0.0]]])
    tensor([[[2.5000, 0.0000],
             [3.0000, 0.0000]]])
    """
    name = "compose"
    device, dtype = checks.result_kind(first, second)
    first = as_field(name, "first", first, device)
    second = as_field(name, "second", second, device or first.device)
    checks.broadcast_batch(name, first=first.shape[:-3], second=second.shape[:-3])
    if not warn_if_points(name, first, argument="first"):
        warn_if_points(name, second, first.shape[-3:-1], "second")
    wide = compute_dtype(dtype)
    return _compose(name, first.to(wide), second.to(wide)).to(dtype)


@batched(velocity=3)
def integrate(velocity: FlowLike, *, steps: int = 7) -> Tensor:
    """The flow along a steady velocity over the time 1, by scaling and squaring.

    velocity (..., h, w, 2), pixels; beyond its edges it keeps its value at the edge. steps: the
    motion over 2^-steps of the time is taken as straight, and composed with itself `steps` times,
    so that the error is about |slope| |velocity| / 2^(steps + 1). Returns (..., h, w, 2): it does
    not fold if the velocity changes by less than 2^steps per pixel, and the flow of -velocity is
    its inverse, up to resampling. Gradients: all orders.

    >>> integrate(torch.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """
    name = "integrate"
    device, dtype = checks.result_kind(velocity)
    field = as_field(name, "velocity", velocity, device)
    steps = check_count(name, "steps", steps, 0, MOST_STEPS)
    warn_if_points(name, field, argument="velocity")
    field = field.to(compute_dtype(dtype)) * 2.0**-steps
    for _ in range(steps):
        field = _compose(name, field, field)
    return field.to(dtype)


@batched(flow=3)
def jacobian_determinant(flow: FlowLike) -> Tensor:
    """The change of area by p + flow(p): 1 for no change, <= 0 where it folds.

    flow (..., h, w, 2), pixels. Returns (..., h, w). Slopes are central differences, one-sided at
    the edges (numpy.gradient), and 0 along an axis of one pixel. Gradients: all orders.

    >>> jacobian_determinant([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
    tensor([[2., 2.],
            [2., 2.]])
    """
    name = "jacobian_determinant"
    device, dtype = checks.result_kind(flow)
    flow_tensor = as_field(name, "flow", flow, device)
    warn_if_points(name, flow_tensor)
    field = flow_tensor.double()
    (ux, vx), (uy, vy) = (_slopes(field, axis).unbind(-1) for axis in (-2, -3))
    return ((1 + ux) * (1 + vy) - uy * vx).to(dtype)


def _slopes(field: Tensor, axis: int) -> Tensor:
    """The differences of a field (..., h, w, 2) along an axis: see `jacobian_determinant`."""
    n = field.shape[axis]
    if n == 1:
        return torch.zeros_like(field)
    steps = field.narrow(axis, 1, n - 1) - field.narrow(axis, 0, n - 1)
    inner = (steps.narrow(axis, 1, n - 2) + steps.narrow(axis, 0, n - 2)) / 2
    ends = steps.narrow(axis, 0, 1), steps.narrow(axis, n - 2, 1)
    return torch.cat((ends[0], inner, ends[1]), dim=axis)


def _compose(name: str, first: Tensor, second: Tensor) -> Tensor:
    """`compose` of checked fields of one type, (..., H, W, 2) and (..., h, w, 2)."""
    channels = first.movedim(-1, -3)
    at_second = warp.remap_by(name, channels, places(second), BETWEEN_PIXELS, 0.0, None, "auto")
    return second + at_second.movedim(-3, -1)
