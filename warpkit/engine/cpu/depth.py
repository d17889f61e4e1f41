"""Points of a view's depths in the native library: native/depth/depth_points.cpp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu.calls import Family, address, launch
from warpkit.engine.cpu.gradient_sums import sum_to
from warpkit.engine.cpu.lens_fields import NUMBERS, TILT, K, tilt
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions import lens_models
from warpkit.engine.definitions.depth import KINDS, REACH, Depths, batch_of
from warpkit.engine.definitions.layout import broadcast_index

DEPTHS = Family("depth")

POSE, OWN, END, SOUND = NUMBERS, NUMBERS + 12, NUMBERS + 16, NUMBERS + 17
"""The first positions of a pose and of the view's camera, behind the other lens's numbers; the
lens's end, and whether all are finite."""

ALL = NUMBERS + 18
WIDE = np.dtype(np.float64)


class View(NamedTuple):
    """What the kernels read."""

    rows: Tensor
    """(..., ALL), float64: `DepthNumbers` of each item."""
    arrays: dict[str, Tensor]
    """Depths (..., h, w), and rays (..., 3, h, w) if it is no pinhole."""
    starts: dict[str, np.ndarray]
    """Each item's first number in these, (items,)."""
    coefficients: int
    """Of the other lens."""

    @property
    def batch(self) -> tuple[int, ...]:
        return tuple(self.rows.shape[:-1])

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.arrays["depth"].shape[-2:]
        return height, width


def view_of(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> View:
    """Tensors as in `definitions.depth.points`: depth (..., h, w), rays (..., 3, h, w) or (..., 4),
    pose (..., 3, 4), numbers (..., 4 + n), end (...)."""
    batch = batch_of(options, depth, rays, pose, numbers, end)
    rows = rows_of(batch, rays if options.pinhole else None, pose, numbers, end)
    depth, rays = depth.contiguous(), rays.contiguous()
    arrays = {"depth": depth}
    starts = {"depth_starts": broadcast_index(depth.shape[:-2], batch, depth.stride()[:-2])}
    if not options.pinhole:
        arrays["rays"] = rays
        starts["ray_starts"] = broadcast_index(rays.shape[:-3], batch, rays.stride()[:-3])
    return View(rows, arrays, starts, numbers.shape[-1] - K)


def rows_of(
    batch: tuple[int, ...], own: Tensor | None, pose: Tensor, numbers: Tensor, end: Tensor
) -> Tensor:
    """`DepthNumbers` of a batch, (*batch, ALL): own (..., 4) of a pinhole, pose (..., 3, 4),
    numbers (..., 4 + n), end (...)."""
    rows = torch.zeros((*batch, ALL), dtype=torch.float64, device="cpu")
    count = numbers.shape[-1] - K
    rows[..., : K + count] = numbers
    rows[..., POSE:OWN] = pose.flatten(-2)
    sound = rows.isfinite().all(-1) & (rows[..., :2] != 0).all(-1)
    if own is not None:
        rows[..., OWN:END] = own
        sound &= own.isfinite().all(-1) & (own[..., :2] != 0).all(-1)
    if count == lens_models.TILTED:
        rows[..., TILT : TILT + 9] = tilt(numbers[..., -2:]).flatten(-2)
    rows[..., END], rows[..., SOUND] = end, sound
    return rows


def forward(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> tuple[tuple[Tensor, ...], View]:
    """As `definitions.depth.points`; also what the kernels read."""
    view = view_of(options, depth, rays, pose, numbers, end)
    shape = (*view.batch, *view.size)
    made = {"points": torch.from_numpy(empty((*shape, 2), WIDE))}
    if options.own:
        made["own"] = torch.from_numpy(empty(shape, WIDE))
    if options.inside is not None:
        made["inside"] = torch.empty(shape, dtype=torch.bool, device="cpu")
    _run("depth_points", options, view, made)
    return tuple(made.values()), view


def backward(
    options: Depths,
    view: View,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of `forward`'s tensors from those of points and own depths; none of the end."""
    names = ("grad_points", "grad_own")
    arrays = {name: grad.contiguous() for name, grad in zip(names, grads, strict=False)}
    made = room_for_gradients(options, view, view.size[0])
    _run("depth_points_backward", options, view, arrays | made, wanted)
    return gradients(view, made, tensors)


def room_for_gradients(options: Depths, view: View, parts: int) -> dict[str, Tensor]:
    """Memory for the gradients of depths and rays, and for `parts` sums of each item."""
    shape, (height, width) = view.batch, view.size
    made = {
        "to_depth": torch.empty(
            (*shape, height, width), dtype=view.arrays["depth"].dtype, device="cpu"
        ),
        "sums": torch.empty((*shape, parts, ALL), dtype=torch.float64, device="cpu"),
    }
    if not options.pinhole:
        made["to_rays"] = torch.empty((*shape, 3, height, width), dtype=torch.float64, device="cpu")
    return made


def gradients(
    view: View, made: Mapping[str, Tensor], tensors: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The gradients of `forward`'s tensors, of which the end has none."""
    own, to_pose, to_numbers = gradients_of_rows(made["sums"].numpy().sum(-2), tensors[3])
    to_rays = made["to_rays"].numpy() if "to_rays" in made else own
    found = (made["to_depth"].numpy(), to_rays, to_pose, to_numbers)
    return (*(sum_to(grad, to) for grad, to in zip(found, tensors, strict=False)), tensors[4])


def gradients_of_rows(total: np.ndarray, numbers: Tensor) -> tuple[np.ndarray, ...]:
    """From the gradients of rows (..., ALL) to those of own (..., 4), pose (..., 3, 4) and numbers
    (..., 4 + n)."""
    count = numbers.shape[-1] - K
    to_numbers = total[..., : K + count].copy()
    if count == lens_models.TILTED:
        to_tilt = torch.from_numpy(total[..., TILT : TILT + 9]).unflatten(-1, (3, 3))
        to_numbers[..., -2:] = lens_models.through_tilt(numbers[..., -2:], to_tilt)
    pose = total[..., POSE:OWN]
    return total[..., OWN:END], pose.reshape(*pose.shape[:-1], 3, 4), to_numbers


def block_of(
    task: str,
    options: Depths,
    view: View,
    arrays: Mapping[str, Tensor],
    wanted: Sequence[bool] = (False,) * 4,
) -> np.ndarray:
    """The block of a task; the view and the arrays must outlive the call.

    wanted: the gradients of `forward`'s tensors that are.
    """
    height, width = view.size
    codes = {
        "kind": KINDS.index(options.kind),
        "wide": int(view.arrays["depth"].dtype == torch.float64),
        "coefficients": view.coefficients,
        "fisheye": int(options.model == "fisheye"),
        "pinhole": int(options.pinhole),
        "height": height,
        "width": width,
        "needs_own": int(wanted[1]),
        "needs_pose": int(wanted[2]),
        "needs_other": int(wanted[3]),
    }
    if options.inside is not None:
        interpolation, codes["image_height"], codes["image_width"] = options.inside
        codes["first_tap"], codes["last_tap"] = REACH[interpolation]
        codes["nearest"] = int(interpolation == "nearest")
    given = {**arrays, **view.arrays, **view.starts, "numbers": view.rows}
    codes |= {name: address(array) for name, array in given.items()}
    return DEPTHS.block(task, codes)


def _run(
    task: str,
    options: Depths,
    view: View,
    arrays: Mapping[str, Tensor],
    wanted: Sequence[bool] = (False,) * 4,
) -> None:
    items, (height, width) = prod(view.batch), view.size
    block = block_of(task, options, view, arrays, wanted)
    launch(block, 0, items * height, 2 * items * height * width)
