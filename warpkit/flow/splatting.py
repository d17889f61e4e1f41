"""Splats images along a flow: adds every pixel to its target, the adjoint of the warp."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_points
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.sharding import batched
from warpkit.engine.backends import select_splat
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rules import LIMIT, SamplingRule
from warpkit.flow import front
from warpkit.flow.arguments import as_field
from warpkit.flow.positions import places, stack_planes
from warpkit.geometry.arguments import floats
from warpkit.types import FlowLike, NumbersLike, SplatMode

MODES = ("sum", "average", "softmax", "front")

SPREAD = SamplingRule("bilinear", "constant", "exact")
WHOLE_PIXELS = SamplingRule("nearest", "constant", "exact")

LEAST = 2.0**-60
"""A weight below this counts as a hole in a division: the square of its inverse, which a second
derivative contains, is 1e36, which float32 can still represent."""

LARGEST_LOGIT = 1e300
"""Twice this is still finite; the difference of infinities is NaN."""

NOWHERE = -2.0
"""A position from which no tap reaches a target."""


class Splat(NamedTuple):
    """The result of `splat`."""

    image: Tensor
    """(..., C, h, w)."""
    weight: Tensor
    """(..., 1, h, w): how much reached each pixel; 0 marks a hole."""


@batched(2, image=3, flow=3, weights=3, temperature=0, depth=3)
def splat(
    image: Tensor,
    flow: FlowLike,
    *,
    size: Sequence[int] | None = None,
    mode: SplatMode = "sum",
    weights: Tensor | None = None,
    temperature: NumbersLike = 1.0,
    depth: Tensor | None = None,
) -> Splat:
    """Splat images along flows: pixel p lands on p + flow(p), spread bilinearly over four pixels.

    Args:
        image: (..., C, H, W), floats, or integers as in `warp_affine`, rounded at the end; labels
            with "front".
        flow: (..., H, W, 2), the offset (dx, dy) in pixels of every pixel of the image.
        size: (h, w) of the result; None keeps the image's. Pixels that land outside, at NaN or at
            2^31 and beyond are lost.
        mode: "sum" adds everything that lands on a pixel: the adjoint of `warpkit.warp_flow` with a
            zero border. "average" divides by the accumulated weight. "softmax" averages with
            exp(weights / temperature), shifted by the largest that reaches each pixel, so that
            nothing overflows and a pixel that lands alone is visible whatever its weight. "front"
            is a z-buffer: a pixel goes whole to the pixel nearest to p + flow(p) (half to even),
            and of all that land on one the smallest `depth` is shown, of equal ones the first.
        weights: (..., 1, H, W): factors of the pixels; at least 0 for "average", of any size for
            "softmax" (-inf: invisible). None: all equal. All batches broadcast.
        temperature: for "softmax", above 0: a number or (...); small values select the largest
            weight.
        depth: (..., 1, H, W), for "front" alone: any numbers (a disparity is passed negated).
            Infinity is visible, NaN is not.

    Returns:
        Splat(image (..., C, h, w), weight (..., 1, h, w)): the weight is the sum of the shares of
        the pixels that land (for "softmax" of those with a weight), times `weights` for "sum" and
        "average". In a hole, where the weight is 0, the image is 0; the averages also treat a
        weight below 1e-18 as a hole. Of "front" the weight is 1, or 0 in a hole. The same bits for
        any number of threads.

    Gradients: all orders, to image, flow, weights and temperature; of "front" to the image alone,
    with a warning if flow or depth wants one.

    >>> flow = torch.tensor([[[1.0, 0.0], [0.5, 0.0], [0.0, 0.0]]])
    >>> image, weight = splat(torch.tensor([[[1.0, 2.0, 4.0]]]), flow)
    >>> image, weight
    (tensor([[[0., 2., 5.]]]), tensor([[[0.0000, 1.5000, 1.5000]]]))
    """
    name = "splat"
    mode = checks.check_name(name, "mode", mode, MODES)
    image = checks.check_image(name, "image", image, labels=mode == "front")
    flow = as_field(name, "flow", flow, image.device)
    checks.check_device(name, "flow", flow, image.device)
    height, width = image.shape[-2:]
    if tuple(flow.shape[-3:-1]) != (height, width):
        wanted = f"of shape (..., {height}, {width}, 2), an offset for every pixel of `image`"
        checks.fail(name, "flow", wanted, checks.shape_of(flow))
    size = (height, width) if size is None else checks.check_size(name, "size", size)
    warn_if_points(name, flow, size)
    cool = _temperature(name, temperature, mode, image.device)
    if mode == "front":
        if weights is not None:
            checks.fail(name, "weights", "None with mode='front'", checks.kind_of(weights))
        near = front.as_depth(name, depth, image)
        value, filled = front.front_values(name, image, flow, near, (size[0], size[1]))
        kind = image.dtype if image.is_floating_point() else torch.float32
        return Splat(value, filled.to(kind))
    if depth is not None:
        checks.fail(name, "depth", f"None with mode={mode!r}", checks.kind_of(depth))
    alike, weights = weights is None, _weights(name, weights, mode, image)
    checks.broadcast_batch(
        name, image=image.shape[:-3], flow=flow.shape[:-3],
        weights=weights.shape[:-3], temperature=cool.shape,
    )  # fmt: skip
    real = compute_dtype(image.dtype)
    pixels = image.to(real)
    backend = select_splat(name, pixels, SPREAD)
    if mode == "softmax":
        logits = weights.double() / cool[..., None, None, None]
        total = _softmax(partial(backend.splat, size=size), pixels, places(flow), logits, size)
        value, mass, weight = total.split((image.shape[-3], 1, 1), -3)
        value = value / torch.where(weight > 0, mass, 1.0)
    else:
        factors = None if alike else weights.to(real)
        heavy = pixels if factors is None else pixels * factors
        ones = pixels.new_ones(1, height, width)
        both = stack_planes(heavy, ones if factors is None else factors)
        if hasattr(backend, "splat_offsets"):
            total = backend.splat_offsets(both, flow, size, SPREAD)  # pyright: ignore
        else:
            total = backend.splat(both, places(flow), size, SPREAD)
        value, weight = total.split((image.shape[-3], 1), -3)
    if mode == "average":
        covered = weight > LEAST
        value = torch.where(covered, value, 0.0) / torch.where(covered, weight, 1.0)
        weight = torch.where(covered, weight, 0.0)
    kind = image.dtype if image.is_floating_point() else real
    return Splat(convert(value, image.dtype), weight.to(kind))


def _temperature(name: str, value: Any, mode: str, device: torch.device) -> Tensor:
    """The temperature, () or (...), float64."""
    if mode != "softmax":
        if not (isinstance(value, (int, float)) and value == 1):
            checks.fail(name, "temperature", f"1 with mode={mode!r}", f"{value!r:.60}")
        return torch.ones((), dtype=torch.float64, device=device)
    cool = floats(name, "temperature", value, device).double()
    checks.check_values(name, "temperature", ~(cool.detach() > 0), "above 0", cool.detach())
    return cool


def _weights(name: str, value: Any, mode: str, image: Tensor) -> Tensor:
    """The weights, (..., 1, H, W); for None, 1 for each pixel of image (..., C, H, W)."""
    shape = (1, *image.shape[-2:])
    if value is None:
        return torch.ones(shape, dtype=compute_dtype(image.dtype), device=image.device)
    weights = floats(name, "weights", value, image.device)
    checks.check_last(name, "weights", weights, *shape)
    values = weights.detach()
    bad = values.isnan() if mode != "average" else ~(values >= 0)
    wanted = "at least 0 with mode='average'" if mode == "average" else "other than NaN"
    checks.check_values(name, "weights", bad, wanted, values)
    return weights


def _softmax(
    add: Any, image: Tensor, points: Tensor, logits: Tensor, size: tuple[int, int]
) -> Tensor:
    """Image times weight, weight, and shares, added up: (..., C + 2, h, w).

    image (..., C, H, W); points (..., H, W, 2), where its pixels land in `size`; logits
    (..., 1, H, W), float64; add is a backend's `splat`. The weight of a pixel, exp(logit - largest
    that reaches the target), differs among its four targets, so each is a splat of its own.
    """
    near = (points.abs() < LIMIT).all(-1, keepdim=True)  # false for NaN
    points = torch.where(near, points, NOWHERE)
    base = points.detach().floor()
    (x, y), (height, width) = (points - base).unbind(-1), size
    batch = broadcast_shapes(logits.shape[:-3], points.shape[:-3])
    limited = logits.clamp(-LARGEST_LOGIT, LARGEST_LOGIT).expand(*batch, *logits.shape[-3:])
    taps: list[tuple[Tensor, Tensor, Tensor]] = []
    peak = torch.full_like(limited.detach().flatten(-2)[..., :1], -torch.inf)
    peak = peak.expand(*batch, 1, height * width)
    for row, along_y in ((0, 1 - y), (1, y)):
        for column, along_x in ((0, 1 - x), (1, x)):
            place = base + base.new_tensor((column, row))
            u, v = place.unbind(-1)
            share = (along_y * along_x)[..., None, :, :]
            reaches = ((u >= 0) & (u < width) & (v >= 0) & (v < height))[..., None, :, :]
            reaches = reaches & (share.detach() > LEAST) & (logits.detach() > -torch.inf)
            place = torch.where(reaches.movedim(-3, -1), place, NOWHERE)
            index = torch.where(reaches, (v * width + u)[..., None, :, :], 0.0).long().flatten(-2)
            level = torch.where(reaches, limited.detach(), -torch.inf).flatten(-2)
            peak = peak.scatter_reduce(-1, index, level, "amax")
            taps.append((place, torch.where(reaches, share, 0.0), index))
    total = torch.zeros_like(image[..., :1, :1, :1])
    for place, share, index in taps:
        largest = peak.gather(-1, index).unflatten(-1, limited.shape[-2:])
        # the shift cancels in the mean, so it is treated as constant
        below = torch.where(share.detach() > 0, limited - largest, -torch.inf)
        share, factor = share.to(image.dtype), (share * below.exp()).to(image.dtype)
        total = total + add(
            stack_planes(image * factor, torch.cat((factor, share.expand_as(factor)), -3)),
            place,
            rule=WHOLE_PIXELS,
        )
    return total
