"""Calls the resize kernels with tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic import opencv_ipp_resize, torch_resize
from warpkit.engine.arithmetic import pillow as pillow_arithmetic
from warpkit.engine.backends.cpu import calls
from warpkit.engine.backends.cpu.memory import empty
from warpkit.engine.backends.cpu.resize.opencv_calls import opencv_call
from warpkit.engine.backends.cpu.resize.prepared import (
    IMAGE,
    OUT,
    Given,
    ResizeCall,
    exact_call,
    pillow_call,
    torch_call,
    torch_nearest_call,
)
from warpkit.engine.sampling.layout import is_channels_last
from warpkit.engine.sampling.resize import Edges, ResizeRule

FLOATS = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
"""The types of results that may have gradients."""


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
    size = _plain(size)
    if (call := known_opencv(given(image), size, rule, factors)) is not None:
        return _launch(image, call)
    # some sums depend on OpenCV's order of memory
    rows = image.detach().reshape(-1, *image.shape[-3:])
    rows = rows.contiguous(memory_format=torch.channels_last)
    if (call := known_opencv(given(rows), size, rule, factors)) is not None:
        return _launch(rows, call, (*image.shape[:-2], *size))
    return None


def known_opencv(
    what: Given, size: tuple[int, int], rule: ResizeRule, factors: tuple[float, float] | None
) -> ResizeCall | None:
    """The call for such an image on this machine, cached."""
    return opencv_call(what, size, rule, factors, opencv_ipp_resize.AVX512)


def given(image: Tensor) -> Given:
    """The properties of an image (..., C, H, W) that a call depends on."""
    return Given(tuple(image.shape), image.dtype, is_channels_last(image))


def _plain(size: Sequence[int]) -> tuple[int, int]:
    return int(size[0]), int(size[1])


def _launch(image: Tensor, call: ResizeCall, shape: tuple[int, ...] | None = None) -> Tensor:
    """The result (..., C, h, w), in the memory format of the image (..., C, H, W).

    shape: makes it dense.
    """
    last = is_channels_last(image)
    dense = image.detach() if last else image.detach().contiguous()
    kind = FLOATS.get(image.dtype, np.dtype(f"i{image.dtype.itemsize}"))
    memory = result(call, calls.address(dense), kind)
    # rearranged by numpy: autograd forbids to write to a tensor's view
    memory = memory.transpose(0, 3, 1, 2) if last else memory
    memory = memory if shape is None else np.ascontiguousarray(memory).reshape(shape)
    out = torch.from_numpy(memory)
    return out if image.dtype in FLOATS else out.view(image.dtype)


def result(call: ResizeCall, image: int, dtype: np.dtype) -> np.ndarray:
    """The result in the order of its memory; image: the address of its numbers."""
    memory = empty(call.memory, dtype)
    if call.units:
        numbers = call.numbers.copy()
        numbers[IMAGE], numbers[OUT] = image, memory.ctypes.data
        calls.launch(numbers, 0, call.units, call.values)
    return memory
