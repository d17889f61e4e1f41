"""Pixels in front: a z-buffer by two passes of atomic minima of integers, in any order the same.

Depths become integers of the same order. The first pass finds the smallest of each target, the
second the first pixel that has it, and a third moves the pixels. Nothing is added up.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import ROUND
from warpkit.engine.triton.work import in_cycle, launch

PIXELS = 512
"""Pixels of a program."""

HOLE = tl.constexpr(2**31 - 1)
"""The number of no pixel."""

FARTHEST = 2**63 - 1
"""Behind every depth."""

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Pixels are moved as integers of their size."""


@triton.jit
def landing(flows, depths, pixel, live, width, to_height, to_width):
    """Where pixels land, which of them do, and their depths as integers of the same order."""
    x = tl.load(flows + 2 * pixel, mask=live, other=0.0).to(tl.float64) + pixel % width
    y = tl.load(flows + 2 * pixel + 1, mask=live, other=0.0).to(tl.float64) + pixel // width
    x, y = (x + ROUND) - ROUND, (y + ROUND) - ROUND  # far out they are wrong, and outside
    depth = tl.load(depths + pixel, mask=live, other=float("nan")).to(tl.float64)
    lands = live & (x >= 0) & (x < to_width) & (y >= 0) & (y < to_height) & (depth == depth)
    at = tl.where(lands, y, 0.0).to(tl.int64) * to_width + tl.where(lands, x, 0.0).to(tl.int64)
    bits = (depth + 0.0).to(tl.int64, bitcast=True)  # -0.0 becomes 0.0
    return at, lands, tl.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)


@kernel
def front_kernel(
    flows, depths, nearest, found, width, area, to_height, to_width, tiles,
    flow_div, flow_mod, depth_div, depth_mod, FIRST: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """FIRST: the smallest depth of each target (items, h w); then the first pixel that has it."""
    program = tl.program_id(0)
    tile, item = program % tiles, (program // tiles).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    flows += (item // flow_div % flow_mod) * (2 * area)
    depths += (item // depth_div % depth_mod) * area
    at, lands, depth = landing(flows, depths, pixel, pixel < area, width, to_height, to_width)
    place = item * (to_height * to_width) + at
    if FIRST:
        tl.atomic_min(nearest + place, depth, mask=lands)
    else:
        mine = lands & (tl.load(nearest + place, mask=lands, other=0) == depth)
        tl.atomic_min(found + place, pixel, mask=mine)


@kernel
def moved_kernel(
    images, found, out, filled, channels, area, to_area, tiles, image_div, image_mod,
    BACKWARD: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """The pixels in front (items, C, h w), 0 in holes, and where one is.

    BACKWARD: `out`, zeros (items, C, H W), gets the gradient of the image, which is in `images`.
    """
    program = tl.program_id(0)
    tile, item = program % tiles, (program // tiles).to(tl.int64)
    target = tile * PIXELS + tl.arange(0, PIXELS)
    live = target < to_area
    pixel = tl.load(found + item * to_area + target, mask=live, other=HOLE)
    there = live & (pixel != HOLE)
    if BACKWARD:
        for c in range(channels):
            value = tl.load(images + (item * channels + c) * to_area + target, mask=there, other=0)
            tl.store(out + (item * channels + c) * area + pixel, value, mask=there)
    else:
        images += (item // image_div % image_mod) * channels * area
        for c in range(channels):
            value = tl.load(images + c * area + pixel, mask=there, other=0)
            tl.store(out + (item * channels + c) * to_area + target, value, mask=live)
        tl.store(filled + item * to_area + target, there, mask=live)


def forward(
    size: tuple[int, int], image: Tensor, flow: Tensor, depth: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """As `definitions.front.shown`; also the numbers of the pixels, -1 in holes."""
    batch = tuple(broadcast_shapes(image.shape[:-3], flow.shape[:-3], depth.shape[:-2]))
    items, (height, width), to_area = prod(batch), depth.shape[-2:], prod(size)
    found = torch.full((*batch, *size), HOLE.value, dtype=torch.int32, device=image.device)
    nearest = torch.full((*batch, *size), FARTHEST, dtype=torch.int64, device=image.device)
    out = image.new_empty((*batch, image.shape[-3], *size))
    filled = torch.empty((*batch, *size), dtype=torch.bool, device=image.device)
    flow, flow_div, flow_mod = in_cycle(flow, batch, 3)
    depth, depth_div, depth_mod = in_cycle(depth, batch, 2)
    image, image_div, image_mod = in_cycle(image, batch, 3)
    tiles = triton.cdiv(height * width, PIXELS)
    for first in (True, False):
        if items * tiles and to_area:
            launch(
                front_kernel, items * tiles, flow, depth, nearest, found,
                width=width, area=height * width, to_height=size[0], to_width=size[1], tiles=tiles,
                flow_div=flow_div, flow_mod=flow_mod, depth_div=depth_div, depth_mod=depth_mod,
                FIRST=first, PIXELS=PIXELS,
            )  # fmt: skip
    turns = {"image_div": image_div, "image_mod": image_mod}
    _move(image, found, out, filled, height * width, **turns, BACKWARD=False)
    return (out, filled), torch.where(filled, found, -1)


def backward(
    size: tuple[int, int],
    found: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:
    """The gradient of the image (..., C, H, W)."""
    image, flow, depth = tensors
    grad, shape = grads[0].contiguous(), image.shape[-3:]
    out = grad.new_zeros((*found.shape[:-2], *shape))
    found = torch.where(found < 0, HOLE.value, found)
    turns = {"image_div": 1, "image_mod": 1}
    _move(grad, found, out, found, shape[1] * shape[2], **turns, BACKWARD=True)
    return out.sum_to_size(image.shape), flow, depth


def _move(
    image: Tensor, found: Tensor, out: Tensor, filled: Tensor, area: int, **options: int
) -> None:
    """Launches `moved_kernel`; found (..., h, w), image and out with channels and planes."""
    to_area = prod(found.shape[-2:])
    tiles = triton.cdiv(to_area, PIXELS)
    programs = prod(found.shape[:-2]) * tiles
    if programs:
        bits = BITS[image.element_size()]
        launch(
            moved_kernel, programs, image.view(bits), found, out.view(bits), filled,
            channels=image.shape[-3], area=area, to_area=to_area, tiles=tiles, PIXELS=PIXELS,
            **options,
        )  # fmt: skip
