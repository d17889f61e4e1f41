"""Plane sweeps in the native library: native/sweep*.cpp."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.channels import PIECE, copies, dense, entries
from warpkit.engine.cpu.depth import ALL, gradients_of_rows, rows_of
from warpkit.engine.cpu.gradient_sums import sum_to
from warpkit.engine.cpu.launch import room
from warpkit.engine.cpu.lens_fields import K
from warpkit.engine.definitions.depth import KINDS
from warpkit.engine.definitions.rules import CODE, borders_of
from warpkit.engine.definitions.sweep import MEASURES, Sweep, batch_of

SWEEPS = calls.Family("sweep")

STRIP = 8
"""The least rows of a strip."""


class Kept(NamedTuple):
    """What a forward pass keeps for the gradient."""

    ranges: np.ndarray
    """(items, V, h, 2), int32: the first and last row of a source that a row reads."""


class Call(NamedTuple):
    """The numbers of a block, and what it points to."""

    codes: dict[str, int]
    arrays: dict[str, Any]
    batch: tuple[int, ...]
    views: int

    def run(self, task: str, units: int, **more: Any) -> None:
        given = {k: calls.address(v) for k, v in (self.arrays | more).items() if v is not None}
        given = {k: v for k, v in given.items() if k in SWEEPS.fields}
        codes = self.codes
        work = codes["items"] * codes["planes"] * codes["height"] * codes["width"]
        work *= self.views * codes["padded"]
        calls.launch(SWEEPS.block(task, codes | given), 0, units, work)


def forward(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
) -> tuple[tuple[Tensor, Tensor], Kept]:
    """As `definitions.sweep.cost`, of float32 features."""
    call = _call(options, sources, depths, rays, poses, numbers, ends, view)
    planes = depths.shape[-3]
    out = room((*call.batch, options.groups, planes, *options.size), torch.float32, False)
    seen = room((*call.batch, planes, *options.size), torch.int32, False)
    ranges = np.empty((prod(call.batch), call.views, options.size[0], 2), np.int32)
    units = call.codes["items"] * options.size[0]
    call.run("sweep", units, out=out, seen=seen, ranges=ranges)
    return (out, seen), Kept(ranges)


def backward(
    options: Sweep,
    kept: Kept,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of `forward`'s tensors; none of the ends."""
    sources, depths, rays, poses, numbers, _, *rest = tensors
    to_sources, to_depths, to_own, to_pose, to_other, _, to_view = (*wanted, False)[:7]
    call = _call(options, *tensors, whole=to_sources)
    codes, items, size = call.codes, call.codes["items"], options.size
    height, width = codes["source_height"], codes["source_width"]
    band, windows, pixels = _windows(kept.ranges, height, width)
    codes |= {"band": band, "strips": windows.shape[1]}
    flags = {"needs_pose": to_pose, "needs_other": to_other, "needs_own": to_own}
    codes |= {k: int(v) for k, v in (flags | {"needs_depths": to_depths}).items()}
    made: dict[str, Any] = {"windows": windows, "grad": grads[0].contiguous()}
    if to_view:
        made["to_view"] = room((*call.batch, *rest[0].shape[-3:]), torch.float32, False)
    if to_sources:
        made["to_sources"] = room(call.arrays["pictures"].shape, torch.float32, False)
        made["sums"] = room((pixels + PIECE, codes["padded"]), torch.float32, False)
    if any((to_depths, to_own, to_pose, to_other)):
        shape = (items, size[0], call.views, ALL)
        made["row_sums"] = torch.empty(shape, dtype=torch.float64, device="cpu")
    planes = codes["planes"]
    if to_depths and codes["flat"]:
        made["to_depths"] = torch.empty((items, size[0], planes), dtype=torch.float64, device="cpu")
    elif to_depths:
        made["to_depths"] = room((*call.batch, planes, *size), call.arrays["depths"].dtype, False)
    if to_own and not options.pinhole:
        made["to_rays"] = torch.empty((*call.batch, 3, *size), dtype=torch.float64, device="cpu")
    call.run("sweep_backward", items * windows.shape[1], **made)
    results: list[Tensor | None] = [None] * len(tensors)
    if to_sources:
        units = codes["entries"] * height
        call.run("sweep_to_sources", units, windows=windows, **_some(made, "to_sources", "sums"))
        results[0] = sum_to(made["to_sources"].numpy(), sources)
    if to_depths:
        found = made["to_depths"].numpy()
        if codes["flat"]:
            found = found.sum(1).reshape(*call.batch, planes, 1, 1)
        results[1] = sum_to(found, depths)
    if "row_sums" in made:
        total = made["row_sums"].numpy().sum(1).reshape(*call.batch, call.views, ALL)
        own, pose, lens = gradients_of_rows(total, numbers)
        if to_own:
            field = made["to_rays"].numpy() if "to_rays" in made else own.sum(-2)
            results[2] = sum_to(field, rays)
        results[3] = sum_to(pose, poses) if to_pose else None
        results[4] = sum_to(lens, numbers) if to_other else None
    if to_view:
        results[6] = sum_to(made["to_view"].numpy(), rest[0])
    return tuple(results)


def _some(made: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: made[name] for name in names}


@lru_cache(maxsize=calls.KEPT)
def by_groups(channels: int, groups: int) -> tuple[np.ndarray, int]:
    """The channel at each place of a pixel, -1 for none, and the lanes of all groups.

    Place n of a piece belongs to the group n modulo `lanes`; of more than 16 groups, pieces take
    turns.
    """
    each = channels // groups
    lanes = next((n for n in (1, 2, 4, 8, 16) if n >= groups), -(-groups // PIECE) * PIECE)
    blocks, deep = max(1, lanes // PIECE), max(1, PIECE // lanes)
    pieces = blocks * -(-each // deep)
    piece, place = np.arange(pieces)[:, None], np.arange(PIECE)[None]
    if lanes >= PIECE:
        group, number = piece % blocks * PIECE + place, piece // blocks
    else:
        group, number = place % lanes, piece * deep + place // lanes
    good = (group < groups) & (number < each)
    order = np.where(good, group * each + number, -1).astype(np.int32)
    return np.ascontiguousarray(order.reshape(-1)), lanes


def _windows(ranges: np.ndarray, height: int, width: int) -> tuple[int, np.ndarray, int]:
    """The rows of a strip, its windows (items, strips, V, 3), int64, and the pixels of all.

    Strips are higher while their windows take more than twice the memory of the sources: of shapes
    and places alone.
    """
    items, views, rows, _ = ranges.shape
    band = STRIP
    while True:
        strips = -(-rows // band)
        low = np.full((items, views, strips * band), np.iinfo(np.int32).max, np.int64)
        high = np.full(low.shape, -1, np.int64)
        low[..., :rows], high[..., :rows] = ranges[..., 0], ranges[..., 1]
        low = low.reshape(items, views, strips, band).min(-1, initial=2**31 - 1)
        high = high.reshape(items, views, strips, band).max(-1, initial=-1)
        count = np.maximum(high - low + 1, 0).swapaxes(1, 2)
        ends = np.cumsum(count.reshape(-1) * width)
        pixels = int(ends[-1]) if ends.size else 0
        if band >= rows or pixels <= 2 * items * views * height * width:
            break
        band *= 2
    start = (ends - count.reshape(-1) * width).reshape(count.shape)
    first = np.where(count > 0, low.swapaxes(1, 2), 0)
    return band, np.ascontiguousarray(np.stack((first, count, start), -1)), pixels


def _call(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
    *,
    whole: bool = False,
) -> Call:
    """The tensors of `forward` as the kernels read them; whole: as in `dense`, of sources."""
    batch, views = batch_of(options, sources, depths, rays, poses, numbers, ends, view)
    own = rays.unsqueeze(-2) if options.pinhole else None
    rows = rows_of((*batch, views), own, poses, numbers, ends)
    order, lanes = by_groups(sources.shape[-3], options.groups)
    pictures = dense(sources, whole=whole)
    arrays: dict[str, Any] = {"numbers": rows, "order": order, "pictures": pictures}
    arrays |= {"sources": copies(pictures, order)}
    arrays["source_of"] = entries(pictures, (*batch, views))
    arrays["depths"] = dense(depths)
    arrays["depths_of"] = entries(arrays["depths"], batch)
    if not options.pinhole:
        arrays["rays"] = dense(rays)
        arrays["rays_of"] = entries(arrays["rays"], batch)
    measure = MEASURES.index(options.measure)
    if view is None:
        measure = len(MEASURES)  # the variance alone
    else:
        arrays["view"] = dense(view)
        arrays["view_of"] = entries(arrays["view"], batch)
    border_y, border_x = borders_of(options.border or "constant")
    codes = {
        "items": prod(batch),
        "views": views,
        "planes": depths.shape[-3],
        "entries": prod(pictures.shape[:-3]),
        "channels": sources.shape[-3],
        "padded": len(order),
        "groups": options.groups,
        "lanes": lanes,
        "measure": measure,
        "height": options.size[0],
        "width": options.size[1],
        "source_height": sources.shape[-2],
        "source_width": sources.shape[-1],
        "inside": int(options.border is None),
        "border_y": CODE[border_y],
        "border_x": CODE[border_x],
        "kind": KINDS.index(options.kind),
        "wide": int(depths.dtype == torch.float64),
        "flat": int(tuple(depths.shape[-2:]) != options.size),
        "coefficients": numbers.shape[-1] - K,
        "fisheye": int(options.model == "fisheye"),
        "pinhole": int(options.pinhole),
    }
    return Call(codes, arrays, batch, views)
