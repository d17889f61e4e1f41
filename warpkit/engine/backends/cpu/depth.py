"""Points of a view's depths in the native library: native/depth_points.cpp."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.backends.cpu.calls import Family, address, launch
from warpkit.engine.backends.cpu.lens_fields import NUMBERS, TILT, TILTED, K, through_tilt, tilt
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.definitions.depth import KINDS, REACH, Depths
from warpkit.engine.sampling.layout import broadcast_index

DEPTHS = Family("depth")

POSE, OWN, END, SOUND = NUMBERS, NUMBERS + 12, NUMBERS + 16, NUMBERS + 17
"""The first positions of a pose and of the view's camera, behind the other lens's numbers; the
lens's end, and whether all are finite."""

ALL = NUMBERS + 18
WIDE = np.dtype(np.float64)


def forward(
    options: Depths, depth: Tensor, rays: Tensor, pose: Tensor, numbers: Tensor, end: Tensor
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """As `definitions.depth.points`; also the rows, depths and rays that the kernels read."""
    core = 1 if options.pinhole else 3
    shapes = (depth.shape[:-2], rays.shape[: rays.ndim - core], pose.shape[:-2])
    batch = tuple(broadcast_shapes(*shapes, numbers.shape[:-1], end.shape))
    rows = torch.zeros((*batch, ALL), dtype=torch.float64, device="cpu")
    count = numbers.shape[-1] - K
    rows[..., : K + count] = numbers
    rows[..., POSE:OWN] = pose.flatten(-2)
    if options.pinhole:
        rows[..., OWN:END] = rays
    sound = rows.isfinite().all(-1) & (rows[..., :2] != 0).all(-1)
    if options.pinhole:
        sound &= (rows[..., OWN : OWN + 2] != 0).all(-1)
    if count == TILTED:
        rows[..., TILT : TILT + 9] = tilt(numbers[..., -2:]).flatten(-2)
    rows[..., END], rows[..., SOUND] = end, sound
    depth, rays = depth.contiguous(), rays.contiguous()
    size = depth.shape[-2:]
    made = {"points": torch.from_numpy(empty((*batch, *size, 2), WIDE))}
    if options.own:
        made["own"] = torch.from_numpy(empty((*batch, *size), WIDE))
    if options.inside is not None:
        made["inside"] = torch.empty((*batch, *size), dtype=torch.bool, device="cpu")
    _run("depth_points", options, count, rows, depth, rays, made)
    return tuple(made.values()), (rows, depth, rays)


def backward(
    options: Depths,
    kept: tuple[Tensor, ...],
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradients of `forward`'s tensors from those of points and own depths; none of the end."""
    rows, depth, rays = kept
    count, batch, size = tensors[3].shape[-1] - K, rows.shape[:-1], depth.shape[-2:]
    names = ("grad_points", "grad_own")
    arrays = {name: grad.contiguous() for name, grad in zip(names, grads, strict=False)}
    to_depth = torch.empty((*batch, *size), dtype=depth.dtype, device="cpu")
    sums = torch.empty((*batch, size[0], ALL), dtype=torch.float64, device="cpu")
    arrays |= {"to_depth": to_depth, "sums": sums}
    if not options.pinhole:
        arrays["to_rays"] = torch.empty((*batch, 3, *size), dtype=torch.float64, device="cpu")
    _run("depth_points_backward", options, count, rows, depth, rays, arrays)
    # numpy's order of sums, which does not depend on the number of threads
    total = torch.from_numpy(sums.numpy().sum(-2))
    to_numbers = total[..., : K + count].clone()
    if count == TILTED:
        to_tilt = total[..., TILT : TILT + 9].unflatten(-1, (3, 3))
        to_numbers[..., -2:] = through_tilt(tensors[3][..., -2:], to_tilt)
    to_rays = total[..., OWN:END] if options.pinhole else arrays["to_rays"]
    to_pose = total[..., POSE:OWN].unflatten(-1, (3, 4))
    found = (to_depth, to_rays, to_pose, to_numbers)
    pairs = zip(found, tensors[:4], strict=True)
    return (*(grad.sum_to_size(value.shape) for grad, value in pairs), tensors[4])


def _run(
    task: str,
    options: Depths,
    count: int,
    rows: Tensor,
    depth: Tensor,
    rays: Tensor,
    arrays: dict[str, Tensor],
) -> None:
    """A task for rows (..., ALL), depth (..., h, w) and rays, see `forward`."""
    (height, width), batch = depth.shape[-2:], tuple(rows.shape[:-1])
    codes = {
        "kind": KINDS.index(options.kind),
        "wide": int(depth.dtype == torch.float64),
        "coefficients": count,
        "fisheye": int(options.model == "fisheye"),
        "pinhole": int(options.pinhole),
        "height": height,
        "width": width,
    }
    if options.inside is not None:
        interpolation, codes["image_height"], codes["image_width"] = options.inside
        codes["first_tap"], codes["last_tap"] = REACH[interpolation]
        codes["nearest"] = int(interpolation == "nearest")
    arrays = arrays | {"numbers": rows, "depth": depth}
    starts = {"depth_starts": broadcast_index(depth.shape[:-2], batch, depth.stride()[:-2])}
    if not options.pinhole:
        arrays["rays"] = rays
        starts["ray_starts"] = broadcast_index(rays.shape[:-3], batch, rays.stride()[:-3])
    codes |= {name: address(array) for name, array in (arrays | starts).items()}
    items = prod(batch)
    launch(DEPTHS.block(task, codes), 0, items * height, 2 * items * height * width)
