"""Calls the resize kernels with tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic import opencv_ipp_resize, torch_resize
from warpkit.engine.arithmetic import pillow as pillow_arithmetic
from warpkit.engine.cpu import calls
from warpkit.engine.cpu.memory import empty
from warpkit.engine.cpu.resize.opencv_calls import opencv_call
from warpkit.engine.cpu.resize.prepared import (
    CHANNEL,
    IMAGE,
    OUT,
    PIXEL,
    STARTS,
    STRIDE,
    Given,
    ResizeCall,
    exact_call,
    pillow_call,
    torch_call,
    torch_nearest_call,
)
from warpkit.engine.cpu.warp_calls import HALVES
from warpkit.engine.definitions.layout import broadcast_index, is_channels_last
from warpkit.engine.definitions.resize import KEPT_TABLES, Edges, ResizeRule
from warpkit.engine.operators.resize import Resize

FLOATS = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
"""The types of results that may have gradients."""

Known = tuple[ResizeCall, Given]
"""A call, and the properties of the images that it is for."""


def forward(options: Resize, image: Tensor) -> tuple[Tensor, None]:
    """The operator's result."""
    return _launch(image, *_exact(options, image)), None


def _exact(options: Resize, image: Tensor) -> Known:
    size, rule, box, adjoint = options
    what = given(image, moves=rule.interpolation == "nearest")
    return exact_call(what, _plain(size), rule, box, adjoint), what


def pillow(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor:
    """As `pillow.resize` for bytes and float32, and for any type with nearest."""
    return _launch(image, *_pillow(image, size, rule, box))


def _pillow(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Known:
    sides, what = pillow_arithmetic.sides(image.shape, size, box), given(image)
    return pillow_call(what, _plain(size), rule.interpolation, *sides), what


def torch_bytes(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Tensor:
    """As `torch_resize.resize` for bytes, and for any integer type with nearest."""
    return _launch(image, *_torch_bytes(image, size, rule))


def _torch_bytes(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Known:
    size, what = _plain(size), given(image)
    if not rule.interpolation.startswith("nearest"):
        return torch_call(what, size, rule), what
    kind = torch_resize.shown_kind(image, size, rule)
    return torch_nearest_call(what, size, kind), what


def opencv(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    factors: tuple[float, float] | None,
) -> Tensor | None:
    """As `opencv_resize.resize`; None if no kernel sums like OpenCV."""
    known = _opencv(image, size, rule, factors)
    return None if known is None else _launch(image, *known)


def _opencv(
    image: Tensor, size: Sequence[int], rule: ResizeRule, factors: tuple[float, float] | None
) -> Known | None:
    size, what = _plain(size), given(image)
    if (call := known_opencv(what, size, rule, factors)) is not None:
        return call, what
    # some sums depend on OpenCV's order of memory
    what = what._replace(last=True, windows=True)
    call = known_opencv(what, size, rule, factors)
    return None if call is None else (call, what)


def kept(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: tuple[Edges, Edges] | None
) -> Callable[[Tensor], Tensor] | None:
    """The kernel's call, without a gradient, for all images (..., C, H, W) of these strides and
    type; None if it takes more than a kernel. box: in numbers."""
    if rule.arithmetic == "exact":
        known = _exact(Resize(size, rule, box), image)
    elif rule.arithmetic == "pillow":
        if image.dtype not in (torch.uint8, torch.float32) and rule.interpolation != "nearest":
            return None
        known = _pillow(image, size, rule, box)
    elif rule.arithmetic == "torchvision":
        if image.is_floating_point() or rule.interpolation == "area":
            return None
        known = _torch_bytes(image, size, rule)
    else:
        known = None if rule.is_zoom else _opencv(image, size, rule, None)
    if known is None:
        return None
    call, what = known
    return lambda image: _launch(image, call, what)


def known_opencv(
    what: Given, size: tuple[int, int], rule: ResizeRule, factors: tuple[float, float] | None
) -> ResizeCall | None:
    """The call for such an image on this machine, cached."""
    return opencv_call(what, size, rule, factors, opencv_ipp_resize.AVX512)


def given(image: Tensor, *, moves: bool = False) -> Given:
    """The properties of an image (..., C, H, W) that a call depends on.

    moves: the call moves pixels of any type; others compute halves in float32.
    """
    last = _has_adjacent_channels(image)
    halves = image.dtype if image.dtype in HALVES and not moves else None
    pixel, width = image.shape[-3] if last else 1, image.shape[-1]
    windows = halves is not None or (image.stride(-1) != pixel and width > 1)
    dtype = torch.float32 if halves else image.dtype
    return Given(tuple(image.shape), dtype, last, halves, windows)


def _plain(size: Sequence[int]) -> tuple[int, int]:
    return int(size[0]), int(size[1])


def _launch(image: Tensor, call: ResizeCall, what: Given) -> Tensor:
    """The result (..., C, h, w), in the memory format of the image (..., C, H, W)."""
    image, last = image.detach(), what.last
    kind = FLOATS.get(what.dtype, np.dtype(f"i{what.dtype.itemsize}"))
    strides = None
    if not (is_channels_last(image) if last else image.is_contiguous()):
        strides = image.stride()
    memory = result(call, calls.address(image), kind, _view(tuple(image.shape), strides, last))
    # rearranged by numpy: autograd forbids to write to a tensor's view
    memory = np.moveaxis(memory, -1, -3) if last else memory
    if not is_channels_last(image):
        memory = np.ascontiguousarray(memory)
    out = torch.from_numpy(memory)
    out = out if what.dtype in FLOATS else out.view(what.dtype)
    return out if what.halves is None else out.to(image.dtype)


def _has_adjacent_channels(image: Tensor) -> bool:
    """Whether kernels read whole pixels of an image (..., C, H, W), and not one channel at a time.

    They do so if memory has the channels of a pixel next to each other, also if it has more of them
    (of RGBA three): then a copy of the pixels as they lie costs less than one in planes.
    """
    channels, _, width = image.shape[-3:]
    if is_channels_last(image):
        return True
    return channels > 1 and width > 1 and image.stride(-3) == 1 and image.stride(-1) >= channels


class View(NamedTuple):
    """Where the numbers of an image are that is not dense; all distances in numbers."""

    starts: np.ndarray
    """The start of each plane."""
    stride: int
    pixel: int
    channel: int


@lru_cache(maxsize=KEPT_TABLES)
def _view(shape: tuple[int, ...], strides: tuple[int, ...] | None, last: bool) -> View | None:
    """Of an image (..., C, H, W); None if it is dense."""
    if strides is None:
        return None
    planes = len(shape) - (3 if last else 2)
    starts = broadcast_index(shape[:planes], shape[:planes], strides[:planes])
    channel, row, pixel = strides[-3:]
    return View(starts, row, pixel, channel)


def result(call: ResizeCall, image: int, dtype: np.dtype, view: View | None = None) -> np.ndarray:
    """The result in the order of its memory; image: the address of its numbers."""
    memory = empty(call.memory, dtype)
    if call.units:
        numbers = call.numbers.copy()
        numbers[IMAGE], numbers[OUT] = image, memory.ctypes.data
        if view is not None:
            numbers[STARTS], numbers[STRIDE] = view.starts.ctypes.data, view.stride
            numbers[PIXEL], numbers[CHANNEL] = view.pixel, view.channel
        calls.launch(numbers, 0, call.units, call.values)
    return memory
