"""The steps of an alignment at one level, by the native library: `solver.refine`.

A unit is a pair from start to end, so nothing is copied when other pairs converge. Its warps and
sums are the kernels of `launch` and `moments`, to the last bit. The remaining computations are a
few dozen numbers, which are rounded differently than in torch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls, launch, moments
from warpkit.engine.backends.cpu.threads import INLINE
from warpkit.engine.backends.cpu.warp_calls import WarpCall
from warpkit.engine.sampling.rules import SamplingRule

DESCENT = calls.Family("descent")
FIELDS = DESCENT.fields

MANY = 8
"""From this many pairs on, threads share the pairs; below, they share the pixels of large
images."""

ROWS = 14
"""Numbers of a result before gain and bias: see native/descent.cpp."""


class Pictures(NamedTuple):
    """The pictures of a level, dense and of one type: see `alignment.equations.Level`."""

    moving: Tensor
    """(N, C + 1, H, W)."""
    fixed: Tensor
    """(N, C, h, w)."""
    fixed_x: Tensor
    """(N, C, h, w)."""
    fixed_y: Tensor
    """(N, C, h, w)."""
    weight: Tensor
    """(N, 1, h, w)."""


class Tables(NamedTuple):
    """The tables of a model: see `alignment.models.Model`."""

    generators: Tensor
    """(K, 3, 3)."""
    degree: int
    quadratic: Tensor
    """(3 D, K K)."""
    linear: Tensor
    """(2 D, K)."""
    is_projective: bool


def supports(moving: Tensor, fixed: Tensor) -> bool:
    """Whether kernels are worthwhile for pairs (N, C, H, W), judged by their shapes alone."""
    if not fixed.numel():
        return False
    return len(fixed) >= MANY or max(moving[0].numel(), fixed[0].numel()) < INLINE


def descend(
    pictures: Pictures,
    to_source: Tensor,
    tables: Tables,
    limits: tuple[float, ...],
    steps: int,
    by_values: bool,
) -> tuple[Tensor, ...]:
    """Refine from to_source (N, 3, 3), float64; limits: `Limits` of native/descent.cpp.

    Returns the fields of `Refined` of alignment/solver.py, in their order: the engine cannot import
    the class.
    """
    pictures = Pictures(*(picture.contiguous() for picture in pictures))
    moving, fixed = pictures.moving, pictures.fixed
    count, channels, height, width = fixed.shape
    kept = [tensor.contiguous() for tensor in (tables.generators, tables.quadratic, tables.linear)]
    matrices, numbers = to_source.contiguous(), np.array(limits)
    # the calls keep the arrays whose addresses are in the blocks
    warps = [
        _warp_call(image, matrices, tables.is_projective, (height, width))
        for image in (moving, moving[:, :channels])
    ]
    warp, warp_values = (call.numbers.copy() for call in warps)
    for block, call in zip((warp, warp_values), warps, strict=True):
        block[calls.FIRST], block[calls.END] = 0, call.units
    first, second = (
        _sums(task, fixed, channels + 1, powers)
        for task, powers in (("first_sums", 1), ("second_sums", tables.degree + 1))
    )
    result = np.empty((count, ROWS + 2 * channels))
    sizes = {
        "channels": channels,
        "moving_height": moving.shape[2],
        "moving_width": moving.shape[3],
        "height": height,
        "width": width,
        "parameters": len(kept[0]),
        "result_size": result.shape[1],
        "steps": steps,
        "by_values": by_values,
        "doubles": fixed.dtype == torch.float64,
        "warp": warp.ctypes.data,
        "warp_values": warp_values.ctypes.data,
        "first_sums": first.ctypes.data,
        "second_sums": second.ctypes.data,
        "limits": numbers.ctypes.data,
        "to_source": calls.address(matrices),
        "out": result.ctypes.data,
    }
    block = DESCENT.block("descent", sizes)
    for name, picture in pictures._asdict().items():
        block[FIELDS[name]] = calls.address(picture)
    for name, table in zip(("generators", "quadratic", "linear"), kept, strict=True):
        block[FIELDS[name]] = calls.address(table)
    calls.launch(block, 0, count, steps * fixed.numel())
    found = torch.from_numpy(result)
    gain, bias = found[:, ROWS:].unflatten(1, (2, channels)).unbind(1)
    score, agreement, overlap, still, made = found[:, 9:ROWS].unbind(1)
    matrix = found[:, :9].reshape(count, 3, 3)
    return matrix, score, agreement, overlap, gain, bias, still != 0, made.long()


def _warp_call(
    moving: Tensor, to_source: Tensor, projective: bool, size: tuple[int, int]
) -> WarpCall:
    """The call of one pair's warp.

    moving (N, C + 1, H, W), or its values alone; to_source (N, 3, 3).
    """
    fill = torch.zeros((), dtype=moving.dtype, device="cpu")
    matrix = to_source[:1] if projective else to_source[:1, :2]
    rule = SamplingRule("bilinear", "constant")
    return launch.prepared(moving[:1], matrix, fill, size, rule)


def _sums(task: str, fixed: Tensor, seen: int, powers: int) -> np.ndarray:
    """The block of one pair's sums."""
    shape = (1, *fixed.shape[1:])
    return moments.block_of(task, shape, seen, powers, fixed.dtype == torch.float64)[0].copy()
