"""Letterboxing: fits a whole image into a frame, and returns the matrix of boxes and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.sharding import DimLabels, Layout, Shapes, shardable
from warpkit.engine.definitions.fill import border_value as filled
from warpkit.engine.definitions.labels import as_signed, from_signed
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.resizing import resize_by
from warpkit.types import Filter, NumbersLike, Place, ResizeArithmetic, RoundingRule


class Letterbox(NamedTuple):
    """What `letterbox` returns: the image in its frame, and the matrix of its position."""

    image: Tensor
    """(..., C, h, w)."""
    matrix: Tensor
    """(2, 3): image pixel -> result pixel."""


ROUNDINGS: dict[RoundingRule, Callable[[float], int]] = {
    "even": round,
    "down": int,
    "half_up": lambda side: int(side + 0.5),
}
PLACES: tuple[Place, ...] = ("center", "start")


def _rule(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """The image may be sharded along its batch; the matrix is the same for all."""
    labels: dict[str, DimLabels] = {name: (None,) * len(shape) for name, shape in shapes.items()}
    batch = tuple(range(3 - len(shapes["image"]), 0))
    labels["image"] = (*batch, None, None, None)
    return Layout(labels, (batch, ()))


@shardable(_rule, "image", "border_value")
def letterbox(
    image: Tensor,
    size: Sequence[int],
    *,
    border_value: NumbersLike = 0.0,
    enlarge: bool = True,
    place: Place = "center",
    rounding: RoundingRule = "even",
    interpolation: Filter = "bilinear",
    antialias: bool | None = None,
    arithmetic: ResizeArithmetic = "exact",
) -> Letterbox:
    """Fit the whole image into a frame, keep its aspect ratio, and fill the rest.

    The image is resized by r = min(h / H, w / W), and its sides are rounded; the matrix has the
    actual scale of each axis.

    Args:
        image: (..., C, H, W), of a type that `resize` takes with the interpolation.
        size: (h, w) of the frame.
        border_value: fills the rest: a number, C of them, or a tensor (C,) or (..., C).
        enlarge: False never enlarges an image.
        place: "center", with the odd pixel of an odd padding after the image, or "start", top left.
        rounding: of the resized sides: "even" (half to even: ultralytics), "down" (YOLOX,
            EfficientDet) or "half_up" (MMDetection).
        interpolation, antialias, arithmetic: as in `resize`.

    Returns:
        Letterbox(image, matrix): the frame (..., C, h, w), channels-last if the image is, and the
        matrix (2, 3), image pixel -> result pixel, in torch's default type.
        `transform_points(matrix, points)` maps points into the frame, invert(matrix) back; map a
        box's edges e as the points e - 0.5, and add 0.5.

    Gradients: all orders, to the image and the border's value.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got; also for an image
            so long that a resized side has no pixel.

    ultralytics' LetterBox(size)(image=array): letterbox(image, size, border_value=114,
    arithmetic="opencv5").

    >>> result = letterbox(torch.ones(1, 2, 4), (4, 4), border_value=9.0)
    >>> result.image
    tensor([[[9., 9., 9., 9.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [9., 9., 9., 9.]]])
    >>> result.matrix
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
    name = "letterbox"
    image = checks.check_image(name, "image", image, labels=True)
    frame = checks.check_size(name, "size", size)
    enlarge = checks.check_bool(name, "enlarge", enlarge)
    place = checks.check_name(name, "place", place, PLACES)
    rounding = checks.check_name(name, "rounding", rounding, tuple(ROUNDINGS))
    sides = fit_sides(name, image.shape[-2:], frame, enlarge, ROUNDINGS[rounding])
    resized = resize_by(
        name, image, sides, interpolation, antialias, None, arithmetic, "auto", None
    )
    rests = [whole - side for whole, side in zip(frame, sides, strict=True)]
    top, left = (rest // 2 if place == "center" else 0 for rest in rests)
    shape = (*image.shape[:-2], *frame)
    rule = SamplingRule("bilinear", "constant")
    border = filled(name, image, shape, rule, border_value)
    framed = _frame(resized, border, (left, rests[1] - left, top, rests[0] - top))
    scales = [side / original for side, original in zip(sides, image.shape[-2:], strict=True)]
    # edges go from 0 to `left`; centres lie half a pixel after them
    rows = [
        [scales[1], 0.0, (scales[1] - 1) / 2 + left],
        [0.0, scales[0], (scales[0] - 1) / 2 + top],
    ]
    matrix = torch.tensor(rows, dtype=torch.get_default_dtype(), device=image.device)
    return Letterbox(restore_memory_format(framed, image), matrix)


def fit_sides(
    name: str,
    sides: Sequence[int],
    frame: tuple[int, int],
    enlarge: bool,
    rounded: Callable[[float], int],
) -> tuple[int, int]:
    """(h, w) of an image of these `sides` (H, W) in a frame."""
    ratio = min(whole / side for whole, side in zip(frame, sides, strict=True))
    ratio = ratio if enlarge else min(ratio, 1.0)
    height, width = (rounded(side * ratio) for side in sides)
    if not (height and width):
        wanted = f"of sides that keep at least one pixel in a frame of {frame}"
        got = f"size {tuple(sides)}, which becomes {(height, width)}"
        checks.fail(name, "image", wanted, got)
    return height, width


def _frame(image: Tensor, border: Tensor, rests: tuple[int, int, int, int]) -> Tensor:
    """image (..., C, h, w) with rests left, right, above and below; border (..., C or 1, 1, 1)."""
    if not any(rests):
        return image
    left, right, top, bottom = rests
    height, width = image.shape[-2:]
    bits = as_signed(image)
    framed = F.pad(exports.widen(bits), rests)
    value = border if image.dtype in checks.LABELS else as_signed(convert(border, image.dtype))
    rows, columns = (
        torch.arange(start + side + end, device=image.device)
        for start, side, end in ((top, height, bottom), (left, width, right))
    )
    rows, columns = (
        (places >= start) & (places < start + side)
        for places, start, side in ((rows, top, height), (columns, left, width))
    )
    framed = torch.where(rows[:, None] & columns, framed, exports.widen(value))
    return from_signed(framed.to(bits.dtype), image.dtype)
