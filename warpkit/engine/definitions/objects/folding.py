"""Borders of rotated boxes and quads: folds positions along the boxes' own pixels.

A position outside its box is folded along the box's own rows and columns, and the image is sampled
there, including pixels around the box. At angle 0 this equals an upright box's value, except within
half a pixel of the edges, where an upright box folds taps on the image's grid. A box with angle 0
is treated as an upright one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.definitions.objects.canvases import Canvas
from warpkit.engine.definitions.objects.frames import Frames, folded, rows_within
from warpkit.engine.definitions.objects.gather import Points, columns, sample_covered, sample_opaque
from warpkit.engine.definitions.objects.over import ImagePainter
from warpkit.engine.definitions.objects.rectangles import Pixels, Rectangles
from warpkit.engine.definitions.objects.source_maps import source
from warpkit.engine.definitions.objects.sources import LayerOptions, window_painter, with_opacity
from warpkit.engine.definitions.rules import SamplingRule, borders_of


def frame_painter(
    paint: LayerOptions,
    boxes: Rectangles,
    canvas: Canvas,
    mask: Tensor | None,
    frames: Frames,
) -> ImagePainter:
    """As `sources.window_painter`, for rotated boxes and quads."""
    borders = borders_of(paint.rule.border)
    if borders == ("constant", "constant"):
        return window_painter(paint, boxes, canvas, mask, None, rows_within(frames, boxes))
    lattice = window_painter(paint._replace(opacity=None), boxes, canvas, mask, None)

    def painter(images: Tensor, pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        place = source(paint.to_source, pixels)
        samples = _sampled(images, pixels, place, paint, boxes, canvas, mask, frames)
        if frames.turn is not None:
            # for upright ones, the value on the image's grid, which does not depend on the angle:
            # the derivative comes from the folded positions alone
            cos, sin = frames.turn
            upright = columns(((sin == 0) & (cos == 1))[None], pixels.object)[0]
            still = paint._replace(fill=paint.fill.detach())
            cover = None if mask is None else mask.detach()
            place = place[0].detach(), place[1].detach()
            turned = _sampled(images.detach(), pixels, place, still, boxes, canvas, cover, frames)
            samples = tuple(
                None if value is None else _chosen(upright, value, other, turn)
                for value, other, turn in zip(samples, lattice(images, pixels), turned, strict=True)
            )
        return with_opacity(paint, pixels, *samples)  # pyright: ignore[reportArgumentType]

    return painter


def _chosen(
    upright: Tensor, folds: Tensor, lattice: Tensor | None, turned: Tensor | None
) -> Tensor:
    """Values (..., P) of upright objects (P,) on the image's grid, and folded ones for the others.

    turned: the folded values again, with the derivative of the rotation alone.
    """
    assert lattice is not None
    assert turned is not None
    turning = torch.where(upright & turned.isfinite(), turned - turned.detach(), 0.0)
    return torch.where(upright, lattice + turning, folds)


def _sampled(
    images: Tensor,
    pixels: Pixels,
    place: tuple[Tensor, Tensor],
    paint: LayerOptions,
    boxes: Rectangles,
    canvas: Canvas,
    mask: Tensor | None,
    frames: Frames,
) -> tuple[Tensor, Tensor | None]:
    """The colours (C, P) of flat images (C, M) at folded positions, and the coverages (P,).

    place: x and y (P,), in pixels of the rectangles; mask (1, P') as in `sources.window_painter`.
    """
    borders = borders_of(paint.rule.border)
    constant = borders[0] == "constant", borders[1] == "constant"
    objects = pixels.object
    x, y = folded(frames, objects, *place, borders)
    area = boxes.width * boxes.height
    table = (*boxes[:3], boxes.height, boxes.width, area.cumsum(0) - area)
    image, left, top, height, width, first = columns(torch.stack(table), objects).unbind(0)
    first_pixel, *size = canvas.at(image)
    rows = rows_within(frames, boxes, constant) if any(constant) else None

    def index_of(row: Tensor, column: Tensor) -> Tensor:
        """The flat index of row and column of an image, (P,) each."""
        return first_pixel + row * size[1] + column

    def cover(row: Tensor, column: Tensor) -> Tensor:
        """The mask at row and column, (P,) each; beyond the rectangle it is that of its edge."""
        assert mask is not None
        row = torch.minimum((row - top).clamp(min=0), height - 1)
        column = torch.minimum((column - left).clamp(min=0), width - 1)
        return columns(mask, first + row * width + column)[0]

    def held(row: Tensor, column: Tensor) -> Tensor:
        """Whether row and column, (P,) each, are inside the edges along a constant border."""
        assert rows is not None
        row, column = row - top, column - left
        inside = (row >= 0) & (row < height)
        return inside & rows.holds(objects, torch.where(inside, row, 0), column)

    points = Points(x + left, y + top, size)
    rule = SamplingRule(paint.rule.interpolation, "replicate")
    within = None if rows is None else held
    if mask is not None:
        return sample_covered(images, cover, index_of, points, rule, within)
    number = objects if paint.fill.shape[1] > 1 else torch.zeros_like(objects[:1])
    arguments = images, paint.fill, number, index_of, points, rule, within
    return sample_opaque(*arguments), None
