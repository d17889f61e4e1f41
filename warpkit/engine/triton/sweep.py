"""Plane sweeps and their first gradients: see `sweep_kernels`."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from warpkit.engine.definitions.depth import KINDS, Depths
from warpkit.engine.definitions.rules import CODE, borders_of
from warpkit.engine.definitions.sweep import MEASURES, Sweep, batch_of
from warpkit.engine.triton import depth as points
from warpkit.engine.triton.fixed_point import Sums, largest, sums_for
from warpkit.engine.triton.sweep_kernels import sweep_backward_kernel, sweep_kernel
from warpkit.engine.triton.work import in_cycle, launch

PIXELS = 128
"""Pixels of a program."""

CHANNELS = 16
"""Channels of a program, for which it makes places once."""

SLOPED, SCATTERED = 8, 4
"""The same of the gradients, and of those with sources': of 8, these spill."""

PLANES = 8
"""Planes of a program of the gradients: their sum to the view stays in registers."""


class Call(NamedTuple):
    """What the kernels read."""

    batch: tuple[int, ...]
    arrays: tuple[Tensor, ...]
    """The view, or the sources if there is none; sources, depths, rays, and cameras' numbers."""
    options: dict[str, Any]

    @property
    def items(self) -> int:
        """The number of costs."""
        return prod(self.batch)


def call_of(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
) -> Call:
    """Tensors as in `definitions.sweep.cost`, float32 features."""
    batch, views = batch_of(options, sources, depths, rays, poses, numbers, ends, view)
    own = rays.unsqueeze(-2) if options.pinhole else None
    rows = points.rows_of((*batch, views), own, poses, numbers, ends)
    sources, source_div, source_mod = in_cycle(sources, (*batch, views), 3)
    depths, depth_div, depth_mod = in_cycle(depths, batch, 3)
    ray_div, ray_mod, view_div, view_mod = 1, 1, 1, 1
    if not options.pinhole:
        rays, ray_div, ray_mod = in_cycle(rays, batch, 3)
    if view is not None:
        view, view_div, view_mod = in_cycle(view, batch, 3)
    channels, from_height, from_width = sources.shape[-3:]
    area = options.size[0] * options.size[1]
    border_y, border_x = borders_of(options.border or "constant")
    given = {
        "count": views, "planes": depths.shape[-3], "channels": channels,
        "groups": options.groups, "each": channels // options.groups,
        "width": options.size[1], "area": area, "from_height": from_height,
        "from_width": from_width, "tiles": triton.cdiv(area, PIXELS),
        "view_div": view_div, "view_mod": view_mod, "source_div": source_div,
        "source_mod": source_mod, "depth_div": depth_div, "depth_mod": depth_mod,
        "ray_div": ray_div, "ray_mod": ray_mod,
        "KIND": KINDS.index(options.kind), "PINHOLE": options.pinhole, "NUMBERS": points.NUMBERS,
        "COUNT": points.count_of(options.model, numbers), "INSIDE": options.border is None,
        "FLAT": tuple(depths.shape[-2:]) != options.size,
        "BORDER_Y": CODE[border_y], "BORDER_X": CODE[border_x],
        "MEASURE": MEASURES.index(options.measure), "HAS_VIEW": view is not None,
        "PIXELS": PIXELS,
    }  # fmt: skip
    return Call(batch, (sources if view is None else view, sources, depths, rays, rows), given)


def block_of(options: dict[str, Any], channels: int) -> tuple[dict[str, int], int]:
    """The groups and the channels of each that a program has, and how many programs all take."""
    each = min(channels, triton.next_power_of_2(options["each"]))
    groups = min(channels // each, triton.next_power_of_2(options["groups"]))
    return {"GROUPS": groups, "EACH": each}, triton.cdiv(options["groups"], groups)


def forward(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
) -> tuple[tuple[Tensor, Tensor], None]:
    """As `definitions.sweep.cost`, of float32 features."""
    call = call_of(options, sources, depths, rays, poses, numbers, ends, view)
    planes = depths.shape[-3]
    out = sources.new_empty((*call.batch, options.groups, planes, *options.size))
    seen = sources.new_empty((*call.batch, planes, *options.size), dtype=torch.int32)
    shape, blocks = block_of(call.options, CHANNELS)
    programs = call.items * planes * blocks * call.options["tiles"]
    if programs:
        arrays = *call.arrays, out, seen
        launch(sweep_kernel, programs, *arrays, blocks=blocks, **call.options, **shape)
    return (out, seen), None


def backward(
    options: Sweep,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of `forward`'s tensors; none of the ends."""
    to_sources, to_view = wanted[0], len(tensors) > 6 and wanted[6]
    used = list(tensors)
    if to_sources:  # every entry of repeated pictures has a gradient of its own
        used[0] = used[0].contiguous()
    call, grad = call_of(options, *used), grads[0].contiguous()
    given, sources = call.options, call.arrays[1]
    shape, blocks = block_of(given, SCATTERED if to_sources else SLOPED)
    chunks, splits = triton.cdiv(given["each"], shape["EACH"]), triton.cdiv(given["planes"], PLANES)
    blocks, to_places = blocks * chunks, any(wanted[1:5])
    own = sources.new_zeros((splits, *call.batch, *used[6].shape[-3:]) if to_view else (0,))
    field = (given["count"], *call.batch, given["planes"], *options.size, 2)
    places = sources.new_zeros(field if to_places else (0,))
    units = call.items * splits * given["tiles"]
    sums = _sums(call, grad) if to_sources and units else None
    integers = (grad, grad, grad) if sums is None else sums
    # one launch after another adds to the gradient of places: one for each block would be as much
    # memory as all samples
    together = 1 if to_places else blocks
    for first in range(0, blocks if units else 0, together):
        launch(
            sweep_backward_kernel, units * together, grad, *call.arrays, *integers, own, places,
            items=call.items, first_block=first, blocks=together, chunks=chunks, splits=splits,
            **given, **shape, NEEDS_VIEW=to_view, NEEDS_SOURCES=to_sources,
            NEEDS_PLACES=to_places, PLANES=PLANES,
        )  # fmt: skip
    results: list[Tensor | None] = [None] * len(used)
    if to_sources:
        found = torch.zeros_like(sources) if sums is None else sums.total().reshape(sources.shape)
        results[0] = found.sum_to_size(used[0].shape)
    if to_places:
        results[1:5] = _through_places(options, call.batch, places, tensors, wanted)
    if to_view:
        results[6] = own.sum(0).sum_to_size(used[6].shape)
    return tuple(results)


def _sums(call: Call, grad: Tensor) -> Sums:
    """Integers for the gradient of sources, by the largest that samples can have."""
    given, (view, sources, *_) = call.options, call.arrays
    count, each, channels = given["count"], given["each"], given["channels"]
    at = torch.arange(call.items * count, device=grad.device)
    entries = largest(sources).reshape(-1, channels)
    samples = entries[at // given["source_div"] % given["source_mod"]]
    samples = samples.reshape(call.items, count, channels).amax(1)  # of all views
    own = torch.zeros_like(samples)
    if given["HAS_VIEW"]:
        at = at[: call.items] // given["view_div"] % given["view_mod"]
        own = largest(view).reshape(-1, channels)[at]
    # at every pixel of a plane its largest gradient, over the channels of a group
    push = largest(grad).sum(-1).reshape(call.items, -1).repeat_interleave(each, -1)
    push = push * (given["area"] / each)
    most = {"correlation": own, "squared": 2.1 * (samples + own)}
    most["variance"] = 4.2 * torch.maximum(samples, own)
    bound = push * most.get(MEASURES[given["MEASURE"]], torch.ones_like(own))
    turns = given["source_div"], given["source_mod"]
    size = (given["from_height"], given["from_width"])
    return sums_for(bound.repeat_interleave(count, 0), turns, size)


def _through_places(
    options: Sweep,
    batch: tuple[int, ...],
    grad: Tensor,
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> list[Tensor | None]:
    """The gradients of depths, rays, poses and numbers from that of places.

    grad (V, *batch, D, h, w, 2). The points' batch is (V, *batch, D): so no depth is copied for
    each view.
    """
    _, depths, rays, poses, numbers, ends, *_ = tensors
    deep = len(batch)

    def beside(tensor: Tensor, core: int, *, views: bool, planes: bool) -> Tensor:
        """A tensor (..., [V,] [D,] core) as (V or 1, *batch, D or 1, core)."""
        core += planes
        own = tensor.ndim - core - views
        tensor = tensor.reshape((1,) * (deep - own) + tensor.shape)
        tensor = tensor.movedim(deep, 0) if views else tensor[None]
        return tensor if planes else tensor.unsqueeze(deep + 1)

    used = (
        beside(depths.expand(*depths.shape[:-2], *options.size), 2, views=False, planes=True),
        beside(rays, 1 if options.pinhole else 3, views=False, planes=False),
        beside(poses, 2, views=True, planes=False),
        beside(numbers, 1, views=True, planes=False),
        beside(ends, 0, views=True, planes=False),
    )
    scene = Depths(options.kind, options.model, options.pinhole, False, None)
    view = points.view_of(scene, *used)
    found = points.backward(scene, view, (grad,), used, (*wanted[1:5], False))
    results: list[Tensor | None] = []
    for n, (slope, tensor, want) in enumerate(zip(found, tensors[1:5], wanted[1:5], strict=False)):
        slope = slope.movedim(0, deep) if n >= 2 else slope
        if n == 0:
            slope = slope[0].sum_to_size((1,) * (deep + 3 - tensor.ndim) + tensor.shape)
        results.append(slope.reshape(tensor.shape) if want else None)
    return results
