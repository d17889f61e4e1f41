"""Local correlation in the native library: native/correlation*.cpp."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.cpu import calls
from warpkit.engine.cpu.channels import copies, dense, entries, in_order
from warpkit.engine.cpu.gradient_sums import sum_to
from warpkit.engine.cpu.launch import room
from warpkit.engine.definitions.correlation import Square, offsets_of
from warpkit.engine.definitions.rules import CODE, borders_of

CORRELATIONS = calls.Family("correlation")

BAND = 384 << 10
"""The bytes of a band's sums: with the rows beside them they stay in a cache of 1 MiB."""


def forward(
    options: Square, first: Tensor, second: Tensor, flow: Tensor | None = None
) -> tuple[Tensor, None]:
    """As `definitions.correlation.correlation`, of float32 pictures."""
    codes, arrays, batch = _inputs(options, first, second, flow, copied=flow is not None)
    out = room((*batch, len(offsets_of(options)), *first.shape[-2:]), torch.float32, False)
    _run("correlation", codes, {**arrays, "out": out}, codes["items"] * codes["height"])
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
    flow = rest[0] if rest else None
    to_first, to_second, to_flow = (*wanted, False)[:3]
    codes, arrays, batch = _inputs(options, first, second, flow, whole=to_second)
    arrays["grad"] = grads[0].contiguous()
    made: dict[str, Tensor] = {}
    if to_first:
        made["to_first"] = room((*batch, *first.shape[-3:]), torch.float32, False)
    if to_flow:
        shape = (*batch, *first.shape[-2:], 2)
        made["to_flow"] = torch.empty(shape, dtype=torch.float64, device="cpu")
    if made:
        units = codes["items"] * codes["height"]
        _run("correlation_to_first", codes, {**arrays, **made}, units)
    results = [sum_to(made["to_first"].numpy(), first) if to_first else None, None]
    if to_second:
        entry = arrays["pictures"]
        sums = room(entry.shape, torch.float32, False)
        line = 4 * codes["padded"] * codes["second_width"]
        height = codes["second_height"]
        codes["band"] = min(height, max(2 * options.radius[0] + 2, BAND // line))
        units = prod(entry.shape[:-3]) * -(-height // codes["band"])
        _run("correlation_to_second", codes, {**arrays, "to_second": sums}, units)
        results[1] = sum_to(sums.numpy(), second)
    if flow is not None:
        results.append(sum_to(made["to_flow"].numpy(), flow) if to_flow else None)
    return tuple(results)


def _inputs(
    options: Square,
    first: Tensor,
    second: Tensor,
    flow: Tensor | None,
    *,
    copied: bool = True,
    whole: bool = False,
) -> tuple[dict[str, int], dict[str, Any], tuple[int, ...]]:
    """The numbers of a block, what it points to, and the batch; first (..., C, h, w), second
    (..., C, H, W), flow (..., h, w, 2). A result without a flow is computed from planes, not from
    copies. whole: as in `dense`, of second."""
    shapes = [t.shape[:-3] for t in (first, second, flow) if t is not None]
    batch = tuple(broadcast_shapes(*shapes))
    one, two = dense(first), dense(second, whole=whole)
    channels, height, width = first.shape[-3:]
    order = in_order(channels)
    arrays: dict[str, Any] = {"first": one, "pictures": two, "order": order}
    arrays |= {"second": copies(two, order) if copied else two, "first_of": entries(one, batch)}
    arrays["second_of"] = entries(two, batch)
    if flow is not None:
        flow = flow if flow.dtype in (torch.float32, torch.float64) else flow.float()
        arrays["flow"] = dense(flow)
        arrays["flow_of"] = entries(arrays["flow"], batch)
    border_y, border_x = borders_of(options.border)
    codes = {
        "items": prod(batch),
        "channels": channels,
        "padded": len(order),
        "height": height,
        "width": width,
        "second_height": second.shape[-2],
        "second_width": second.shape[-1],
        "rows": options.radius[0],
        "columns": options.radius[1],
        "step": int(options.step),
        "border_y": CODE[border_y],
        "border_x": CODE[border_x],
        "wide_flow": int(flow is not None and flow.dtype == torch.float64),
    }
    return codes, arrays, batch


def _run(task: str, codes: dict[str, int], arrays: dict[str, Any], units: int) -> None:
    given = {k: calls.address(v) for k, v in arrays.items() if k in CORRELATIONS.fields}
    work = codes["items"] * codes["height"] * codes["width"] * codes["padded"]
    work *= (2 * codes["rows"] + 1) * (2 * codes["columns"] + 1) // 8 + 1
    calls.launch(CORRELATIONS.block(task, codes | given), 0, units, work)
