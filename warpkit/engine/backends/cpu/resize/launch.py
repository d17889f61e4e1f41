"""Calls the resize kernels with tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

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
    STARTS,
    STRIDE,
    Given,
    ResizeCall,
    exact_call,
    pillow_call,
    torch_call,
    torch_nearest_call,
)
from warpkit.engine.sampling.layout import broadcast_index, is_channels_last
from warpkit.engine.sampling.resize import KEPT_TABLES, Edges, ResizeRule

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
    return Given(tuple(image.shape), image.dtype, _has_adjacent_channels(image))


def _plain(size: Sequence[int]) -> tuple[int, int]:
    return int(size[0]), int(size[1])


def _launch(image: Tensor, call: ResizeCall, shape: tuple[int, ...] | None = None) -> Tensor:
    """The result (..., C, h, w), in the memory format of the image (..., C, H, W).

    shape: makes it dense.
    """
    last = _has_adjacent_channels(image)
    stored = _in_rows(image.detach(), last)
    starts = None
    if not (is_channels_last(stored) or stored.is_contiguous()):
        starts = _starts(tuple(stored.shape), stored.stride(), last)
    kind = FLOATS.get(image.dtype, np.dtype(f"i{image.dtype.itemsize}"))
    memory = result(call, calls.address(stored), kind, starts, stored.stride(-2))
    # rearranged by numpy: autograd forbids to write to a tensor's view
    memory = np.moveaxis(memory, -1, -3) if last else memory
    if shape is not None or not is_channels_last(image):
        memory = np.ascontiguousarray(memory).reshape(shape or memory.shape)
    out = torch.from_numpy(memory)
    return out if image.dtype in FLOATS else out.view(image.dtype)


def _has_adjacent_channels(image: Tensor) -> bool:
    """Whether kernels read whole pixels of an image (..., C, H, W), and not one channel at a time.

    They do so if memory has the channels of a pixel next to each other, also if it has more of them
    (of RGBA three): then a copy of the pixels as they lie costs less than one in planes.
    """
    channels, _, width = image.shape[-3:]
    if is_channels_last(image):
        return True
    return channels > 1 and width > 1 and image.stride(-3) == 1 and image.stride(-1) >= channels


def _in_rows(image: Tensor, last: bool) -> Tensor:
    """The image, or a copy if the numbers of a row are not adjacent.

    Rows and planes may begin anywhere.
    """
    pixel = image.shape[-3] if last else 1
    if image.stride(-1) == pixel or image.shape[-1] == 1:
        return image
    return image.movedim(-3, -1).contiguous().movedim(-1, -3) if last else image.contiguous()


@lru_cache(maxsize=KEPT_TABLES)
def _starts(shape: tuple[int, ...], strides: tuple[int, ...], last: bool) -> np.ndarray:
    """The start of each plane of an image (..., C, H, W), in numbers."""
    planes = len(shape) - (3 if last else 2)
    return broadcast_index(shape[:planes], shape[:planes], strides[:planes])


def result(
    call: ResizeCall, image: int, dtype: np.dtype, starts: np.ndarray | None = None, stride: int = 0
) -> np.ndarray:
    """The result in the order of its memory; image: the address of its numbers.

    starts, stride: of planes and rows, in numbers; None if the image is dense.
    """
    memory = empty(call.memory, dtype)
    if call.units:
        numbers = call.numbers.copy()
        numbers[IMAGE], numbers[OUT] = image, memory.ctypes.data
        if starts is not None:
            numbers[STARTS], numbers[STRIDE] = starts.ctypes.data, stride
        calls.launch(numbers, 0, call.units, call.values)
    return memory
