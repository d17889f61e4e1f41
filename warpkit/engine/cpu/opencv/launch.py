"""Calls OpenCV's native kernels with tensors: strides, types, border values, units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.arithmetic import opencv as arithmetic
from warpkit.engine.arithmetic import opencv4_sums
from warpkit.engine.arithmetic.opencv4_tables import ONE, STEPS, axis_table, integer_table
from warpkit.engine.arithmetic.opencv5 import CHANNELS, TYPES
from warpkit.engine.cpu import calls
from warpkit.engine.cpu.calls import Family, address, address_of
from warpkit.engine.cpu.inverse import invert
from warpkit.engine.cpu.memory import empty
from warpkit.engine.cpu.warp_calls import TYPES as NUMBERS
from warpkit.engine.definitions.layout import (
    batch_of,
    broadcast_index,
    fill_strides,
    mapping_batch,
    mapping_kind,
    mapping_size,
)
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.rules import CODE, TAPS, SamplingRule
from warpkit.engine.operators.warp import Warp

WARPS = Family("opencv")
FIELDS = WARPS.fields
IMAGE, MAPPING, FILL, START, OUT = (
    FIELDS[name] for name in ("image", "mapping", "fill", "sum_start", "out")
)
SECOND = FIELDS["second"]

TILE_ROWS = 16
"""Rows of a tile: a unit of work is a row of tiles, see native/opencv/opencv_tiles.h."""

PARTS = {"opencv4": 1, "opencv5": 2}
"""As `Parts` in native/opencv/opencv_call.h: how nearest rounds the 1/32 parts of a fixed map."""

SINGLES, DOUBLES, PLANES, PIXELS, PIXELS_AND_PARTS = range(5)
"""As `Points` in native/opencv/opencv_call.h: the memory layout of points."""

Shape = tuple[int, ...]


class OpenCVCall(NamedTuple):
    """The common data of calls with equal shapes, types and options."""

    numbers: np.ndarray
    """The block, with 0 for every address that differs between calls."""
    kept: tuple[np.ndarray, ...]
    """The arrays whose addresses are in the block."""
    batch: Shape
    units: int
    shape: Shape
    """The shape of the result's memory."""
    values: int
    dtype: np.dtype
    channels_last: bool


class PreparedCall(NamedTuple):
    """A call without its image and mapping."""

    call: OpenCVCall
    fill: np.ndarray
    sum_start: np.ndarray


def forward(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    fixed: bool,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
    second: Tensor | None = None,
) -> Tensor:
    """The result (*batch, C, h, w), channels-last if the image is.

    mapping: a matrix, float64, or points: float32, float64 or int16. second: the other part of the
    points, float32 ordinates or the 1/32 parts of int16 pixels. fixed: in fixed point, as in all
    calls of OpenCV 4 and some of OpenCV 5. border_value, fixed_map: as in `opencv.sample`.

    image (*I, C, H, W); mapping (*M, 2 or 3, 3) or (*P, h, w, 2), or (h, w) with a second one (h,
    w) of float32; fill broadcasts to the result, border_value to (*batch, C, 1, 1).
    """
    image, mapping = image.detach(), mapping.detach().contiguous()
    second = None if second is None else second.detach().contiguous()
    made = prepare(image, mapping, fill, size, rule, fixed, border_value, fixed_map, second)
    others = 0 if second is None else address(second)
    memory = run(made, address(image), address(mapping), others)
    # rearranged by numpy: autograd forbids to write to a tensor's view
    return torch.from_numpy(np.moveaxis(memory, -1, -3) if made.call.channels_last else memory)


def prepare(
    image: Tensor,
    mapping: Tensor,
    fill: Tensor,
    size: Sequence[int],
    rule: SamplingRule,
    fixed: bool,
    border_value: Tensor | None = None,
    fixed_map: bool = False,
    second: Tensor | None = None,
) -> PreparedCall:
    """Prepares calls for all images and mappings of these types, shapes and strides: see `forward`.

    Shapes as in that function.
    """
    fill_memory = convert(fill.detach(), image.dtype)
    sum_start = fill_memory
    if border_value is not None and border_value is not fill:
        sum_start = convert(border_value.detach(), image.dtype)
    points = _points(mapping.dtype, None if second is None else second.dtype)
    call = _call(
        tuple(image.shape),
        tuple(image.stride()),
        image.dtype,
        (*mapping.shape, 2) if points == PLANES else tuple(mapping.shape),
        points,
        tuple(fill_memory.shape),
        tuple(sum_start.shape),
        tuple(size),
        rule,
        fixed,
        fixed_map,
        opencv4_sums.OPENCV_VECTOR_FLOATS,
    )
    return PreparedCall(call, _numbers(fill_memory, call.batch), _numbers(sum_start, call.batch))


def run(made: PreparedCall, image: int, mapping: int, second: int = 0) -> np.ndarray:
    """The result's memory, for arrays of the prepared layout at these addresses."""
    call = made.call
    memory = empty(call.shape, call.dtype)
    if call.values == 0:
        return memory
    numbers = call.numbers.copy()
    numbers[IMAGE], numbers[MAPPING], numbers[SECOND] = image, mapping, second
    numbers[FILL], numbers[START] = address_of(made.fill), address_of(made.sum_start)
    numbers[OUT] = address_of(memory)
    calls.launch(numbers, 0, call.units, call.values)
    return memory


class Planned:
    """The kernel of warps like one that was planned: OpenCV's values, the gradient of "exact"."""

    def __init__(self, options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> None:
        """Tensors as of `WARP`."""
        floats = arithmetic.takes_float_path(image, options.rule)
        self.call = prepare(image, mapping, fill, options.size, options.rule, not floats)

    def forward(self, options: Warp, *tensors: Tensor) -> tuple[Tensor, Any]:
        """The values; also the map that the gradient's kernel reads, as of `WARP`."""
        image, mapping, _ = tensors
        if options.forward:
            at = invert(mapping, singular_to_zero=True)
        else:
            at = arithmetic.added_to_pixels(mapping) if options.relative else mapping.detach()
            at = at.contiguous()
        memory = run(self.call, address(image), address(at))
        if self.call.call.channels_last:
            memory = np.moveaxis(memory, -1, -3)
        kept = None
        if image.requires_grad or mapping.requires_grad:
            kept = (invert(mapping) if options.forward else mapping.detach()), None
        return torch.from_numpy(memory), kept


@lru_cache(maxsize=calls.KEPT)
def _call(
    image: Shape,
    strides: Shape,
    dtype: torch.dtype,
    mapping: Shape,
    points: int,
    fill: Shape,
    sum_start: Shape,
    size: Shape,
    rule: SamplingRule,
    fixed: bool,
    fixed_map: bool,
    lanes: int,
) -> OpenCVCall:
    """The call for tensors of these shapes, see `forward`.

    strides: the image's; lanes: `opencv4_sums.OPENCV_VECTOR_FLOATS`.
    """
    batch = batch_of(image, mapping)
    (channels, height, width), (plane, line, pixel) = image[-3:], strides[-3:]
    channels_last = plane == 1 and pixel == channels
    out_pixel, out_plane = (channels, 1) if channels_last else (1, prod(size))
    shape = (*batch, *size, channels) if channels_last else (*batch, channels, *size)
    taps, kind = TAPS[rule.interpolation], mapping_kind(mapping)
    image_of = broadcast_index(image[:-3], batch, strides[:-3])
    mapping_of = broadcast_index(mapping_batch(mapping), batch)
    weights, corrections = _tables(rule.interpolation) if fixed and taps > 2 else _NO_TABLES
    fill_item, fill_channel, fill_row, fill_column = fill_strides(fill)
    start_item, start_channel, *_ = fill_strides(sum_start)
    numbers = {
        "image_of": address_of(image_of),
        "mapping_of": address_of(mapping_of),
        "channels": channels,
        "height": height,
        "width": width,
        "line": line,
        "pixel": pixel,
        "plane": plane,
        "out_height": size[0],
        "out_width": size[1],
        "out_line": size[1] * out_pixel,
        "out_pixel": out_pixel,
        "out_plane": out_plane,
        "border": CODE[rule.border],
        "kind": kind,
        "type": NUMBERS.get(dtype, -1),
        "taps": taps,
        "number_bytes": dtype.itemsize,
        "mapping_size": mapping_size(mapping),
        "points": points,
        "fill_item": fill_item,
        "fill_channel": fill_channel,
        "fill_row": fill_row,
        "fill_column": fill_column,
        "start_item": start_item,
        "start_channel": start_channel,
        "fixed": fixed,
        "vector": _is_vector_code(rule, dtype, channels, fixed),
        "lanes": lanes,
        "parts": PARTS[rule.arithmetic] if fixed_map and fixed else 0,
        "weights": address_of(weights),
        "corrections": address_of(corrections),
    }
    return OpenCVCall(
        WARPS.block("opencv_nearest" if taps == 1 else "opencv", numbers),
        (image_of, mapping_of, weights, corrections),
        batch,
        prod(batch) * -(-size[0] // TILE_ROWS),
        shape,
        prod(shape),
        np.dtype(str(dtype).removeprefix("torch.")),
        channels_last,
    )


def _points(first: torch.dtype, second: torch.dtype | None) -> int:
    """The layout of points of these types, see `forward`."""
    if first == torch.int16:
        return PIXELS if second is None else PIXELS_AND_PARTS
    if second is not None:
        return PLANES
    return DOUBLES if first == torch.float64 else SINGLES


def _is_vector_code(rule: SamplingRule, dtype: torch.dtype, channels: int, fixed: bool) -> bool:
    """Whether OpenCV sums such images in its vector code, in another order."""
    if not fixed:
        return dtype in TYPES and channels in CHANNELS
    vector = rule.arithmetic == "opencv4" and channels == 1 and dtype in opencv4_sums.VECTOR_TYPES
    return vector and (rule.interpolation != "lanczos4" or dtype != torch.float32)


def _numbers(fill: Tensor, batch: Shape) -> np.ndarray:
    """The fill's numbers in memory, per item if they differ between items.

    fill (*F, C or 1, h or 1, w or 1), or fewer dimensions.
    """
    if prod(fill.shape[:-3]) > 1:
        fill = fill.expand(*batch, *fill.shape[-3:])
    return np.array(fill.contiguous().numpy(force=True)).reshape(-1)


_NO_TABLES = np.empty(0, np.float32), np.empty(0, np.int32)


@lru_cache
def _tables(interpolation: str) -> tuple[np.ndarray, np.ndarray]:
    """The weights of taps along an axis for every step, and the corrections of the kernel's
    integers.

    OpenCV rounds the products of two axes' weights to units of 1 / ONE, and corrects one of the
    four central ones so that all sum to ONE. The number is 4 * the correction + which of the four.
    """
    cpu = torch.device("cpu")
    weights, k = axis_table(interpolation, cpu).numpy(), TAPS[interpolation]
    rounded = np.rint((weights[:, None, :, None] * weights[None, :, None, :]) * np.float32(ONE))
    table = integer_table(interpolation, cpu).numpy().reshape(STEPS, STEPS, k, k)
    lacking = table - rounded.clip(max=ONE - 1).astype(np.int32)
    middle = lacking[:, :, k // 2 : k // 2 + 2, k // 2 : k // 2 + 2].reshape(STEPS**2, 4)
    which = np.abs(middle).argmax(1)
    corrections = 4 * middle[np.arange(STEPS**2), which] + which
    return np.ascontiguousarray(weights), corrections.astype(np.int32)
