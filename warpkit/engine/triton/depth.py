"""Points of a view's depths in another camera, and their gradients: see `depth_points`."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.depth import KINDS, REACH, Depths, batch_of
from warpkit.engine.triton.depth_lenses import END, FISHEYE, OWN, POSE, SOUND, TILT, K
from warpkit.engine.triton.depth_points import points_backward_kernel, points_kernel
from warpkit.engine.triton.work import in_cycle, launch

NUMBERS = SOUND.value + 1
"""Numbers of an item."""

PIXELS = 128
"""Pixels of a program: their numbers stay in registers."""


class View(NamedTuple):
    """What the kernels read."""

    batch: tuple[int, ...]
    arrays: tuple[Tensor, Tensor, Tensor]
    """Depths, rays, and the items' numbers (*batch, NUMBERS)."""
    switches: dict[str, Any]

    @property
    def tiles(self) -> int:
        return self.switches["tiles"]

    @property
    def programs(self) -> int:
        return prod(self.batch) * self.tiles


def rows_of(
    batch: tuple[int, ...], own: Tensor | None, pose: Tensor, numbers: Tensor, end: Tensor
) -> Tensor:
    """The numbers (*batch, NUMBERS) of items; own (..., 4): the camera of the view, a pinhole."""
    count = numbers.shape[-1] - K.value
    rows = numbers.new_zeros((*batch, NUMBERS))
    rows[..., : K.value + count] = numbers
    rows[..., POSE.value : OWN.value] = pose.flatten(-2)
    at = [0, 1]
    if own is not None:
        rows[..., OWN.value : END.value] = own
        at += [OWN.value, OWN.value + 1]
    sound = rows.isfinite().all(-1)
    for n in at:
        sound = sound & (rows[..., n] != 0)
    if count == lens_models.TILTED:
        tilt = lens_models.tilt_by(*numbers[..., -2:].unbind(-1))
        rows[..., TILT.value : POSE.value] = tilt.flatten(-2)
    # numbers that give no NaN: points of such an item have no value
    rows = torch.where(sound[..., None], rows, 0.0)
    for n in at:
        rows[..., n] = torch.where(sound, rows[..., n], 1.0)
    rows[..., END.value], rows[..., SOUND.value] = end, sound
    return rows


def count_of(model: str, numbers: Tensor) -> int:
    """A lens's number of coefficients, as kernels have it; numbers (..., 4 + n)."""
    return FISHEYE.value if model == "fisheye" else numbers.shape[-1] - K.value


def view_of(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> View:
    """Tensors as in `definitions.depth.points`."""
    batch = batch_of(options, depth, rays, pose, numbers, end)
    height, width = depth.shape[-2:]
    rows = rows_of(batch, rays if options.pinhole else None, pose, numbers, end)
    depth, depth_div, depth_mod = in_cycle(depth, batch, 2)
    ray_div, ray_mod = 1, 1
    if not options.pinhole:
        rays, ray_div, ray_mod = in_cycle(rays, batch, 3)
    switches = {
        "width": width, "area": height * width, "tiles": triton.cdiv(height * width, PIXELS),
        "depth_div": depth_div, "depth_mod": depth_mod, "ray_div": ray_div, "ray_mod": ray_mod,
        "KIND": KINDS.index(options.kind), "PINHOLE": options.pinhole, "NUMBERS": NUMBERS,
        "COUNT": count_of(options.model, numbers),
        "HAS_OWN": options.own, "PIXELS": PIXELS,
    }  # fmt: skip
    return View(batch, (depth, rays, rows), switches)


def forward(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> tuple[tuple[Tensor, ...], View]:
    """As `definitions.depth.points`; also what the kernels read."""
    view = view_of(options, depth, rays, pose, numbers, end)
    shape = (*view.batch, *depth.shape[-2:])
    results = [depth.new_empty((*shape, 2), dtype=torch.float64)]
    masks = {"image_height": 0, "image_width": 0, "FIRST": 0, "LAST": 0, "NEAREST": False}
    if options.own:
        results.append(depth.new_empty(shape, dtype=torch.float64))
    if options.inside is not None:
        interpolation, masks["image_height"], masks["image_width"] = options.inside
        masks["FIRST"], masks["LAST"] = REACH[interpolation]
        masks["NEAREST"] = interpolation == "nearest"
        results.append(depth.new_empty(shape, dtype=torch.bool))
    if view.programs:
        # an array that is not wanted is not written
        outs = results[0], results[int(options.own)], results[-1]
        switches = view.switches | masks | {"HAS_INSIDE": options.inside is not None}
        launch(points_kernel, view.programs, *view.arrays, *outs, **switches)
    return tuple(results), view


def backward(
    options: Depths,
    view: View,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of `forward`'s tensors from those of points and own depths; none of the end."""
    depth, rays, _, numbers, end = tensors
    given = [grad.contiguous() for grad in grads]
    area = (*view.batch, *depth.shape[-2:])
    to_depth = depth.new_empty(area)
    to_rays = to_depth if options.pinhole else rays.new_empty((*area[:-2], 3, *area[-2:]))
    sums = rays.new_zeros((*view.batch, view.tiles, NUMBERS), dtype=torch.float64)
    if view.programs:
        made = to_depth, to_rays, sums
        launch(
            points_backward_kernel, view.programs, *view.arrays, given[0], given[-1], *made,
            **view.switches,
        )  # fmt: skip
    total, count = sums.sum(-2), view.switches["COUNT"]
    to_numbers = total[..., : numbers.shape[-1]]
    if count == lens_models.TILTED:
        to_tilt = total[..., TILT.value : POSE.value].unflatten(-1, (3, 3))
        to_numbers = torch.cat(
            (to_numbers[..., :-2], lens_models.through_tilt(numbers[..., -2:], to_tilt)), -1
        )
    if options.pinhole:
        to_rays = total[..., OWN.value : END.value]
    to_pose = total[..., POSE.value : OWN.value].unflatten(-1, (3, 4))
    pairs = zip((to_depth, to_rays, to_pose, to_numbers), tensors, strict=False)
    return (*(grad.sum_to_size(tensor.shape) for grad, tensor in pairs), end)
