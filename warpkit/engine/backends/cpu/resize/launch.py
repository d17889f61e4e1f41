"""Calls the resize kernels with tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic import opencv_ipp_resize, torch_resize
from warpkit.engine.arithmetic import pillow as pillow_arithmetic
from warpkit.engine.arithmetic.resize_tables import TableKey
from warpkit.engine.backends.cpu import calls
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.resize.axes import table_axis
from warpkit.engine.backends.cpu.resize.opencv_calls import opencv_call
from warpkit.engine.backends.cpu.resize.prepared import (
    IMAGE,
    OUT,
    Given,
    ResizeCall,
    exact_call,
    pillow_call,
    table_call,
    torch_call,
    torch_nearest_call,
)
from warpkit.engine.sampling.layout import is_channels_last
from warpkit.engine.sampling.resize import AxisTaps, Edges, ResizeRule


def exact(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None,
    *,
    adjoint: bool = False,
) -> Tensor:
    """As the reference's `resize`; adjoint: its gradient, from (..., h, w) to `size` (H, W)."""
    edges = None if box is None else (box[0], box[1])
    return _launch(image, exact_call(given(image), _plain(size), rule, edges, adjoint))


def pillow(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    """As `pillow.resize` for bytes and float32, and for any type with nearest."""
    sides = pillow_arithmetic.sides(image.shape, size, box)
    return _launch(image, pillow_call(given(image), _plain(size), rule.interpolation, *sides))


def torch_bytes(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Tensor:
    """As `torch_resize.resize` for bytes, and for any integer type with nearest."""
    size = _plain(size)
    if not rule.interpolation.startswith("nearest"):
        return _launch(image, torch_call(given(image), size, rule))
    kind = torch_resize.shown_kind(image, size, rule)
    return _launch(image, torch_nearest_call(given(image), size, kind))


def opencv(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    factors: tuple[float, float] | None,
) -> Tensor | None:
    """As `opencv_resize.resize`; None if no kernel sums like OpenCV."""
    call = known_opencv(given(image), _plain(size), rule, factors)
    return None if call is None else _launch(image, call)


def known_opencv(
    what: Given, size: tuple[int, int], rule: ResizeRule, factors: tuple[float, float] | None
) -> ResizeCall | None:
    """The call for such an image on this machine, cached."""
    return opencv_call(what, size, rule, factors, opencv_ipp_resize.AVX512)


def by_tables(
    image: Tensor,
    tables: Sequence[TableKey | None],
    kind: np.dtype,
    size: Sequence[int],
    *,
    adjoint: bool,
) -> Tensor:
    """Resizes (..., C, H, W) by tables along x and y (None: unchanged), summed in the given type.

    adjoint: the gradient of this, to `size` (H, W).
    """
    across, down = tables
    return _launch(image, table_call(given(image), (across, down), _plain(size), kind, adjoint))


def taps_by_tables(
    tables: Sequence[TableKey | None], size: Sequence[int], kind: np.dtype, adjoint: bool
) -> list[AxisTaps]:
    """The taps of `by_tables` along x and y, for the reference's plain passes."""
    found = []
    for key, side in zip(tables, size[::-1], strict=True):
        axis = table_axis(key, side, kind, adjoint)
        place = axis.begin[:, None] + np.arange(max(axis.taps, 1))
        inside = torch.from_numpy(place < axis.end[:, None])
        place = place.clip(0, len(axis.pixel) - 1)
        pixel = torch.from_numpy(axis.pixel[place].astype(np.int64))
        found.append(AxisTaps(pixel, torch.from_numpy(axis.weight[place]), inside))
    return found


def given(image: Tensor) -> Given:
    """The properties of an image (..., C, H, W) that a call depends on."""
    return Given(tuple(image.shape), image.dtype, is_channels_last(image))


def _plain(size: Sequence[int]) -> tuple[int, int]:
    return int(size[0]), int(size[1])


def _launch(image: Tensor, call: ResizeCall) -> Tensor:
    """The result (..., C, h, w), in the memory format of the image (..., C, H, W)."""
    last = is_channels_last(image)
    dense = image.detach() if last else image.detach().contiguous()
    memory = result(call, calls.address(dense), np.dtype(f"i{image.dtype.itemsize}"))
    out = torch.from_numpy(memory).view(image.dtype)
    return out.permute(0, 3, 1, 2) if last else out


def result(call: ResizeCall, image: int, dtype: np.dtype) -> np.ndarray:
    """The result in the order of its memory; image: the address of its numbers."""
    memory = empty(call.memory, dtype)
    if call.units:
        numbers = call.numbers.copy()
        numbers[IMAGE], numbers[OUT] = image, memory.ctypes.data
        calls.launch(numbers, 0, call.units, call.values)
    return memory
