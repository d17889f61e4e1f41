"""Borders of rotated boxes and quads: folds positions by the boxes' own pixels.

A place outside its box is folded along the box's own rows and columns, and read from the image
there, whatever of it lies around. At angle 0 that is the upright box's value but for half a pixel
at the edges, where the image's lattice folds taps; a box of angle 0 has the upright one's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.compositing.canvases import Canvas
from warpkit.engine.compositing.frames import Frames, folded, rows_within
from warpkit.engine.compositing.gather import Points, columns, sample_covered, sample_opaque
from warpkit.engine.compositing.over import Painter
from warpkit.engine.compositing.rectangles import Pixels, Rectangles
from warpkit.engine.compositing.source_maps import source
from warpkit.engine.compositing.sources import LayerOptions, window_painter, with_opacity
from warpkit.engine.sampling.rules import SamplingRule, borders_of


def frame_painter(
    paint: LayerOptions,
    boxes: Rectangles,
    canvas: Canvas,
    mask: Tensor | None,
    frames: Frames,
) -> Painter:
    """As `sources.window_painter`, of turned boxes and quads."""
    borders = borders_of(paint.rule.border)
    if borders == ("constant", "constant"):
        return window_painter(paint, boxes, canvas, mask, None, rows_within(frames, boxes))
    lattice = window_painter(paint._replace(opacity=None), boxes, canvas, mask, None)

    def painter(images: Tensor, pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        place = source(paint.to_source, pixels)
        found = _sampled(images, pixels, place, paint, boxes, canvas, mask, frames)
        if frames.turn is not None:
            # of the upright ones, the lattice's value, which knows nothing of a turn: its
            # derivative is that of the folded places alone
            cos, sin = frames.turn
            upright = columns(((sin == 0) & (cos == 1))[None], pixels.object)[0]
            still = paint._replace(fill=paint.fill.detach())
            cover = None if mask is None else mask.detach()
            place = place[0].detach(), place[1].detach()
            turned = _sampled(images.detach(), pixels, place, still, boxes, canvas, cover, frames)
            found = tuple(
                None if value is None else _chosen(upright, value, other, turn)
                for value, other, turn in zip(found, lattice(images, pixels), turned, strict=True)
            )
        return with_opacity(paint, pixels, *found)  # pyright: ignore[reportArgumentType]

    return painter


def _chosen(
    upright: Tensor, folds: Tensor, lattice: Tensor | None, turned: Tensor | None
) -> Tensor:
    """Values (..., P) of upright objects (P,) by the lattice, and of the others their own.

    turned: their own again, with the derivative of the turn alone.
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
    """The colours (C, P) of flat images (C, M) at folded places, and the coverages (P,).

    place: x and y (P,), pixels of the rectangles; mask (1, P') as of `sources.window_painter`.
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
        """Where row and column of an image, (P,) each, lie in the flat pixels."""
        return first_pixel + row * size[1] + column

    def cover(row: Tensor, column: Tensor) -> Tensor:
        """The mask at row and column, (P,) each; beyond the rectangle that of its edge."""
        assert mask is not None
        row = torch.minimum((row - top).clamp(min=0), height - 1)
        column = torch.minimum((column - left).clamp(min=0), width - 1)
        return columns(mask, first + row * width + column)[0]

    def held(row: Tensor, column: Tensor) -> Tensor:
        """Whether row and column, (P,) each, lie within the edges along a constant border."""
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
    given = images, paint.fill, number, index_of, points, rule, within
    return sample_opaque(*given), None
