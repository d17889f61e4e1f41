"""The steps of an alignment at one level, by the native library: `solver.refine`.

A unit is a pair from start to end, so nothing is copied when other pairs converge. For each matrix
it makes two passes over its images, which round differently than torch's operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls, moments
from warpkit.engine.cpu.threads import INLINE

DESCENT = calls.Family("descent")
FIELDS = DESCENT.fields

MANY = 8
"""From this many pairs on, threads share the pairs; below, they share the pixels of large
images."""

LEAST_SIDE = 4
"""The kernel's blocks have this many pixels a side."""

ROWS = 15
"""Numbers of a result before gain and bias: see native/align/descent.cpp."""


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
    """(N, 1, h, w); also one plane, expanded."""


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
    if not fixed.numel() or min(fixed.shape[-2:]) < LEAST_SIDE:
        return False
    return len(fixed) >= MANY or max(moving[0].numel(), fixed[0].numel()) < INLINE


def descend(
    pictures: Pictures,
    to_source: Tensor,
    tables: Tables,
    limits: tuple[float, ...],
    steps: int,
    by_values: bool,
    least: Tensor | None,
) -> tuple[Tensor, ...]:
    """Refine from to_source (N, 3, 3), float64; limits: `Limits` of descent.cpp; least: `least`
    (N,) of `refine`.

    Returns the fields of `Refined` of alignment/solver.py, in their order: the engine cannot import
    the class.
    """
    same = pictures.weight.stride(0) == 0
    if same:
        pictures = pictures._replace(weight=pictures.weight[:1])
    pictures = Pictures(*(picture.contiguous() for picture in pictures))
    moving, fixed = pictures.moving, pictures.fixed
    count, channels, height, width = fixed.shape
    kept = [tensor.contiguous() for tensor in (tables.generators, tables.quadratic, tables.linear)]
    matrices, numbers = to_source.contiguous(), np.array(limits)
    shape, doubles = (1, *fixed.shape[1:]), fixed.dtype == torch.float64
    second = moments.block_of("second_sums", shape, channels, tables.degree + 1, doubles)[0]
    scores = None if least is None else least.contiguous()
    result = np.empty((count, ROWS + 2 * channels))
    sizes = {
        "channels": channels,
        "moving_height": moving.shape[2],
        "moving_width": moving.shape[3],
        "height": height,
        "width": width,
        "weight_size": 0 if same else height * width,
        "parameters": len(kept[0]),
        "result_size": result.shape[1],
        "steps": steps,
        "by_values": by_values,
        "projective": tables.is_projective,
        "doubles": doubles,
        "least_scores": 0 if scores is None else calls.address(scores),
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
    score, agreement, overlap, still, made, slope = found[:, 9:ROWS].unbind(1)
    matrix = found[:, :9].reshape(count, 3, 3)
    return matrix, score, agreement, overlap, gain, bias, slope, still != 0, made.long()
