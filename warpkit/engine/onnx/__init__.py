"""Resizes of bytes for ONNX: Pillow's, torch's and OpenCV's integers in float32.

`torch.onnx.export` traces these operations for a resize of uint8 images in another library's
arithmetic, and for torch's nearest of floats. They are some 30 nodes without float64. The reference
would read one pixel per tap at a time. `blocks` has the tables, `passes` the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.core import checks
from warpkit.core.tracing import exports_to_onnx
from warpkit.engine.arithmetic import opencv_resize, pillow, torch_resize
from warpkit.engine.arithmetic.resize_tables import TableKey, table
from warpkit.engine.arithmetic.torch_resize import Sides
from warpkit.engine.arithmetic.torch_tables import BITS
from warpkit.engine.definitions.resize import KEPT_TABLES, Edges, ResizeRule
from warpkit.engine.onnx import any_size, opencv
from warpkit.engine.onnx.blocks import EXACT, WHOLE_BYTE, Blocks, blocks_of
from warpkit.engine.onnx.passes import (
    as_images,
    as_planes,
    constant,
    joined,
    moved,
    sums,
    turned,
    two_filters,
)


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why a call cannot be traced this way."""
    if not exports_to_onnx():
        return ["torch.onnx.export does not trace"]
    if image.dtype == torch.uint8 and rule.arithmetic != "exact" and not rule.is_zoom:
        return []
    # F.interpolate would become Resize, which computes other pixels, and has no float64
    nearest = rule.arithmetic == "torchvision" and rule.interpolation.startswith("nearest")
    if nearest and image.is_floating_point():
        return []
    return ["it has other libraries' arithmetic of uint8, and torch's nearest of floats"]


SIZED = "pillow's 'bilinear', 'bicubic' and 'lanczos' without a box"
"""The resizes of bytes that support any height and width."""


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: Sequence[Edges] | None = None,
    factors: tuple[float, float] | None = None,
) -> Tensor:
    """Resizes the image (..., C, H, W), uint8 or floats, to `size` (h, w)."""
    if not all(isinstance(side, int) for side in image.shape[-2:]):
        if rule.arithmetic == "pillow" and rule.interpolation in any_size.FILTERS and box is None:
            return any_size.resize(image, size, rule.interpolation)
        wanted = f"of one height and width in an export, but for {SIZED}: resize to it before"
        checks.fail("resize", "image", wanted, "one of dynamic size")
    if rule.arithmetic == "pillow":
        made = _of_pillow(image, size, rule, box)
        return pillow.resize(image, size, rule, box) if made is None else made
    if rule.arithmetic == "torchvision":
        made = _of_torch(image, size, rule)
        return torch_resize.resize(image, size, rule) if made is None else made
    made = opencv.resize(image, size, rule, factors)
    return opencv_resize.resize(image, size, rule, box, factors) if made is None else made


def _of_pillow(
    image: Tensor, size: Sequence[int], rule: ResizeRule, box: Sequence[Edges] | None
) -> Tensor | None:
    across, down, down_first = pillow.sides(image.shape, size, box)
    planes = as_planes(image)
    if rule.interpolation == "nearest":
        x, y = (table("pillow_nearest", *axis).pixel[:, 0] for axis in (across, down))
        return as_images(moved(planes, x, y), image)
    keys = {dim: pillow.table_of(rule.interpolation, a) for dim, a in ((-1, across), (-2, down))}
    return _passed(image, keys, (-2, -1) if down_first else (-1, -2))


def _of_torch(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Tensor | None:
    across, down = torch_resize.sides(image.shape, size)
    planes = as_planes(image)
    if rule.interpolation.startswith("nearest"):
        kind = torch_resize.shown_kind(image, size, rule)
        x, y = (table(kind, *axis).pixel[:, 0] for axis in (across, down))
        return as_images(moved(planes, x, y), image)
    if rule.interpolation == "area":
        return _torch_area(image, across, down)
    kind, keys = torch_resize.kind_of(rule), {}
    for dim, axis in ((-1, across), (-2, down)):
        keys[dim] = None if axis.length == axis.size else (kind, *axis)
    return _passed(image, keys, (-1, -2))


def _torch_area(image: Tensor, across: Sides, down: Sides) -> Tensor | None:
    """Means of whole pixels: exact sums, divided by rows and by columns, rounded half to even."""
    x, y = _covered(across), _covered(down)
    many = int(x[1].sum(1).max() * y[1].sum(1).max())
    if WHOLE_BYTE * many >= EXACT or across.size == down.size == 1:  # of one pixel one division
        return None
    lines = blocks_of(*x, across.length)
    columns = blocks_of(*y, down.length, largest=WHOLE_BYTE * int(x[1].sum(1).max()))
    if lines is None or columns is None:
        return None
    made = turned(joined(sums(turned(as_planes(image)), lines), across.size))
    made = joined(sums(made, columns), down.size)
    rows, counts = (constant(w.sum(1).astype(np.float32), image) for _, w in (y, x))
    return as_images((made / rows[:, None] / counts).round().to(torch.uint8), image)


def _covered(axis: Sides) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pixels that each output pixel covers, even partly, and 1 where one exists."""
    at = np.arange(axis.size + 1) * axis.length
    first, end = at[:-1] // axis.size, -(-at[1:] // axis.size)
    index = first[:, None] + np.arange(int((end - first).max()))
    return np.minimum(index, axis.length - 1), (index < end[:, None]).astype(np.int64)


def _passed(image: Tensor, keys: dict[int, TableKey | None], order: Sequence[int]) -> Tensor | None:
    """The passes along axes that change, rounded to bytes; None if float32 cannot hold the sums."""
    passes = []
    for dim in order:
        if (key := keys[dim]) is None:
            continue
        blocks = _filter_blocks(*key)
        if blocks is None:
            return None
        passes.append((dim, blocks))
    return as_images(two_filters(as_planes(image), passes), image)


@lru_cache(maxsize=KEPT_TABLES)
def _filter_blocks(*key: Any) -> Blocks | None:
    """The blocks of a table of weights: Pillow's are rounded to integers, torch's are integers."""
    index, weight, inside = table(*key)
    if weight.dtype.kind == "f":
        weight = np.trunc(weight * 2.0**BITS + np.where(weight < 0, -0.5, 0.5)).astype(np.int64)
    return blocks_of(index, np.where(inside, weight, 0), key[1], bits=BITS)
