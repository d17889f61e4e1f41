"""From tensors to the kernels of OpenCV's arithmetics: strides, border values, units of work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from threading import local

import numpy as np
import torch
from torch import Tensor

from warpkit.kernels.cpu.locate import CODE
from warpkit.kernels.cpu.opencv_bytes import bytes_kernel
from warpkit.kernels.cpu.opencv_place import ROW
from warpkit.kernels.cpu.opencv_tile import TALL, Plan
from warpkit.kernels.cpu.threads import run
from warpkit.kernels.layout import batch_of, own_batch
from warpkit.kernels.reference import convert
from warpkit.kernels.rules import Rule

_here = local()


def forward(
    image: Tensor, where: Tensor, outside: Tensor, size: Sequence[int], rule: Rule, fixed: bool
) -> Tensor:
    """The result (*batch, C, h, w), channels side by side where the image's are.

    where: a matrix, float64, or points, float32. fixed: OpenCV 4's way.
    """
    batch = batch_of(image, where)
    image = image.detach()
    channels, height, width = image.shape[-3:]
    packed = channels in (3, 4) and image.stride(-3) == 1 and image.stride(-1) == channels
    if not packed and image.stride(-1) != 1:
        image = image.contiguous()
    out = torch.empty((*batch, *size, channels), dtype=image.dtype).movedim(-1, -3)
    if not packed:
        out = torch.empty((*batch, channels, *size), dtype=image.dtype)
    if out.numel() == 0:
        return out
    shown = _shown(outside, image, batch)
    plane, line, pixel = image.stride()[-3:]
    out_plane, out_line, out_pixel = out.stride()[-3:]
    points = where.shape[-1] == 2
    plan = Plan(
        planes=1 if packed else channels,
        height=height,
        width=width,
        line=line,
        pixel=pixel,
        plane=plane,
        out_height=size[0],
        out_width=size[1],
        out_item=channels * size[0] * size[1],
        out_line=out_line,
        out_pixel=out_pixel,
        out_plane=out_plane,
        where=2 * size[0] * size[1] if points else 3 * where.shape[-2],
        shown=0 if len(shown) == channels else channels,
        border=CODE[rule.border],
    )
    arrays = (
        _memory(image),
        _starts(tuple(image.shape[:-3]), image.stride()[:-3], batch),
        where.detach().contiguous().numpy().reshape(-1),
        _index(own_batch(where), batch),
        shown,
        _memory(out),
        plan,
    )
    kernel = bytes_kernel(0 if points else where.shape[-2], fixed, channels if packed else 1)
    units = prod(batch) * plan.planes * -(-size[0] // TALL)
    run(lambda *span: kernel(*arrays, _scratch(), *span), units, out.numel())
    return out


def _memory(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor from its first to its last, with whatever lies between."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided((1 + sum((n - 1) * s for n, s in pairs),), (1,)).numpy()


@lru_cache(maxsize=256)
def _starts(
    own: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...]
) -> np.ndarray:
    """Where the image of every item of `batch`, counted through, begins."""
    starts = np.zeros(own, np.int64)
    for d, (n, stride) in enumerate(zip(own, strides, strict=True)):
        starts += (np.arange(n) * stride).reshape(n, *(1,) * (len(own) - d - 1))
    return np.ascontiguousarray(np.broadcast_to(starts, batch)).reshape(-1)


@lru_cache(maxsize=256)
def _index(own: tuple[int, ...], batch: tuple[int, ...]) -> np.ndarray:
    """For every item of `batch`, counted through, the item of `own` that broadcasts to it."""
    index = np.arange(prod(own)).reshape(own)
    return np.ascontiguousarray(np.broadcast_to(index, batch)).reshape(-1)


def _shown(outside: Tensor, image: Tensor, batch: Sequence[int]) -> np.ndarray:
    """The border's value for every channel, of one item or of all."""
    outside = convert(outside.detach(), image.dtype)
    shape = outside.shape[:-3] if outside.ndim > 2 and prod(outside.shape[:-3]) > 1 else ()
    items = tuple(batch) if shape else (1,)
    outside = outside.reshape(1, 1, 1) if outside.ndim == 0 else outside
    outside = outside.expand(*items, image.shape[-3], 1, 1)
    return outside.contiguous().numpy().reshape(-1)


def _scratch() -> tuple[np.ndarray, ...]:
    """This thread's memory, one entry a pixel of a row."""
    known = _here.__dict__
    if "arrays" not in known:
        kinds = (np.int32, np.int32, np.float32, np.float32, np.uint64, np.uint64, np.uint32)
        known["arrays"] = tuple(np.empty(ROW, kind) for kind in kinds)
    return known["arrays"]
