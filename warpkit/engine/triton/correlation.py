"""Local correlation and its first gradients: see `correlation_kernels`."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions.correlation import Square, offsets_of
from warpkit.engine.definitions.layout import sum_to
from warpkit.engine.definitions.rules import CODE, MISSING_BORDERS, borders_of
from warpkit.engine.triton.correlation_kernels import (
    correlation_gather_kernel,
    correlation_gradient_kernel,
    correlation_kernel,
    correlation_scatter_kernel,
)
from warpkit.engine.triton.fixed_point import by_entry, largest, sums_for
from warpkit.engine.triton.work import in_cycle, launch

PIXELS = 128
"""Pixels of a program."""

CHANNELS = 16
"""Channels of a program of the gradients: of all three, 48 sums a thread."""

SCATTERED = 8
"""The same of the scatter: of 16, it takes 249 registers."""


class Call(NamedTuple):
    """What the kernels read."""

    batch: tuple[int, ...]
    first: Tensor
    second: Tensor
    flow: Tensor
    """The first picture, if there is none."""
    options: dict[str, Any]
    """The arguments of all kernels."""

    @property
    def items(self) -> int:
        """The number of results."""
        return prod(self.batch)


def call_of(options: Square, first: Tensor, second: Tensor, flow: Tensor | None = None) -> Call:
    """Tensors as in `definitions.correlation.correlation`, float32."""
    shapes = [t.shape[:-3] for t in (first, second, flow) if t is not None]
    batch = tuple(broadcast_shapes(*shapes))
    channels, height, width = first.shape[-3:]
    first, first_div, first_mod = in_cycle(first, batch, 3)
    second, second_div, second_mod = in_cycle(second, batch, 3)
    blends, flow_div, flow_mod = flow is not None, 1, 1
    if flow is not None:
        flow = flow if flow.dtype in (torch.float32, torch.float64) else flow.float()
        flow, flow_div, flow_mod = in_cycle(flow, batch, 3)
    border_y, border_x = borders_of(options.border)
    given = {
        "channels": channels, "height": height, "width": width, "from_height": second.shape[-2],
        "from_width": second.shape[-1], "rows": options.radius[0], "columns": options.radius[1],
        "step": int(options.step), "tiles": triton.cdiv(height * width, PIXELS),
        "first_div": first_div, "first_mod": first_mod, "second_div": second_div,
        "second_mod": second_mod, "flow_div": flow_div, "flow_mod": flow_mod,
        "BORDER_Y": CODE[border_y], "BORDER_X": CODE[border_x], "BLENDS": blends, "PIXELS": PIXELS,
    }  # fmt: skip
    return Call(batch, first, second, first if flow is None else flow, given)


def forward(
    options: Square, first: Tensor, second: Tensor, flow: Tensor | None = None
) -> tuple[Tensor, None]:
    """As `definitions.correlation.correlation`, of float32 pictures."""
    call = call_of(options, first, second, flow)
    out = first.new_empty((*call.batch, len(offsets_of(options)), *first.shape[-2:]))
    programs = call.items * call.options["tiles"] * (2 * options.radius[0] + 1)
    if programs:
        arrays = call.first, call.second, call.flow, out
        launch(correlation_kernel, programs, *arrays, **call.options)
    return out, None


def backward(
    options: Square,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of first (..., C, h, w), second (..., C, H, W) and flow (..., h, w, 2)."""
    first, second, *rest = tensors
    to_first, to_second, to_flow = (*wanted, False)[:3]
    if to_second:  # every entry of a repeated picture has a gradient of its own
        second = second.contiguous()
    call = call_of(options, first, second, *rest)
    channels = call.options["channels"]
    blocks = triton.cdiv(channels, CHANNELS)
    grad = grads[0].contiguous() / channels
    results: list[Tensor | None] = [None] * len(tensors)
    if to_first or to_flow:
        made = first.new_empty((*call.batch, *first.shape[-3:]) if to_first else (0,))
        shape = (*call.batch, blocks, 2, *first.shape[-2:]) if to_flow else (0,)
        slopes = first.new_empty(shape)
        programs = call.items * call.options["tiles"] * blocks
        if programs:
            launch(
                correlation_gradient_kernel, programs, grad, call.first, call.second, call.flow,
                made, slopes, **call.options, blocks=blocks, NEEDS_FIRST=to_first,
                NEEDS_FLOW=to_flow, CHANNELS=CHANNELS,
            )  # fmt: skip
        if to_first:
            results[0] = made.sum_to_size(first.shape)
        if to_flow:
            total = slopes.sum(-4, dtype=torch.float64).movedim(-3, -1)
            results[2] = sum_to(total, rest[0])
    if to_second:
        found = _to_second(call, grad).reshape(call.second.shape)
        results[1] = found.sum_to_size(second.shape)
    return tuple(results)


def _to_second(call: Call, grad: Tensor) -> Tensor:
    """The gradient (entries, C, H, W) of the second picture; grad over the number of channels."""
    options = dict(call.options)
    size = (options["from_height"], options["from_width"])
    border = (options["BORDER_Y"], options["BORDER_X"])
    missing = all(code in [CODE[name] for name in MISSING_BORDERS] for code in border)
    if missing and not options["BLENDS"]:
        tiles = triton.cdiv(size[0] * size[1], PIXELS)
        blocks = triton.cdiv(options["channels"], CHANNELS)
        out = grad.new_empty((call.items, options["channels"], *size))
        if call.items * blocks:
            names = ("channels", "rows", "columns", "step", "first_div", "first_mod", "PIXELS")
            launch(
                correlation_gather_kernel, call.items * tiles * blocks, grad, call.first, out,
                height=size[0], width=size[1], from_height=options["height"],
                from_width=options["width"], tiles=tiles, blocks=blocks, CHANNELS=CHANNELS,
                **{name: options[name] for name in names},
            )  # fmt: skip
        return by_entry(out, (options["second_div"], options["second_mod"]))
    # an item's sums: of each offset at most the largest gradient, at every pixel
    most = largest(grad).reshape(call.items, -1).sum(-1) * (options["height"] * options["width"])
    at = torch.arange(call.items, device=grad.device)
    at = at // options["first_div"] % options["first_mod"]
    firsts = largest(call.first).reshape(-1, options["channels"])[at]
    turns = options["second_div"], options["second_mod"]
    sums = sums_for(most[:, None] * firsts, turns, size)
    blocks = triton.cdiv(options["channels"], SCATTERED)
    programs = call.items * options["tiles"] * blocks
    if programs:
        launch(
            correlation_scatter_kernel, programs, grad, call.first, call.flow, sums.scale,
            sums.units, sums.spoiled, **options, blocks=blocks, CHANNELS=SCATTERED,
        )  # fmt: skip
    return sums.total()
