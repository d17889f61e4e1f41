"""Paints objects over images in order, and composites layers.

Images are in the type of the computation, and flat, (C, M), for the work: see `canvases`. A
painter gives what a list of pixels gets from its objects: the colour (C, P), premultiplied, and the
coverage (P,), None for opaque. It reads the flat images that it is handed. Nothing is written in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.compositing.canvases import Canvas, Images, flat, parted
from warpkit.engine.compositing.rectangles import Pixels, Rectangles, Rows, levels, pixels_of

Painter = Callable[[Tensor, Pixels], tuple[Tensor, Tensor | None]]


def on_flat(paint: Callable[..., Tensor]) -> Callable[..., Images]:
    """A function of flat pixels as one of a batch or a list of images."""

    @wraps(paint)
    def paint_images(images: Images, *arguments: Any) -> Images:
        return parted(paint(flat(images), *arguments), images)

    return paint_images


@on_flat
def paint_topmost(
    images: Tensor, top: Tensor, boxes: Rectangles, canvas: Canvas, painter: Painter
) -> Tensor:
    """Opaque objects that all read `images`: each pixel samples the one that `topmost` found.

    images (C, M), flat; top (M,), int32.
    """
    place = (top >= 0).nonzero()[:, 0]
    objects = top[place].long()
    begin, _, width = canvas.at(boxes.image[objects])
    within = place - begin
    line = within.div(width, rounding_mode="floor")
    x = within - line * width - boxes.left[objects]
    y = line - boxes.top[objects]
    colour, _ = painter(images, Pixels(objects, x, y, place))
    return images.index_copy(1, place, colour)


@on_flat
def paint_layers(images: Tensor, pixels: Pixels, painter: Painter) -> Tensor:
    """Objects with a coverage that all read `images`: one sampling, then "over" by layers."""
    pixels, sizes, place = by_layer(pixels)
    colour, alpha = painter(images, pixels)
    if alpha is None:
        alpha = torch.ones_like(colour[0])
    return images.index_copy(1, place, over(images[:, place], colour, alpha, sizes))


@on_flat
def paint_levels(
    images: Tensor,
    boxes: Rectangles,
    canvas: Canvas,
    painter: Painter,
    round_: Callable[[Tensor], Tensor],
    rows: Rows | None = None,
) -> Tensor:
    """Each object reads what the earlier ones painted: a pass for each level of overlap.

    `round_` is what writing to an image of the caller's type does to a value. rows: where objects
    do not fill their rectangles.
    """
    level = levels(boxes)
    order = level.argsort(stable=True)
    for objects in order.split(torch.bincount(level).tolist()):
        pixels = pixels_of(boxes, canvas, objects, rows)
        colour, alpha = painter(images, pixels)
        if alpha is not None:
            colour = colour + (1 - alpha) * images[:, pixels.place]
        images = images.index_copy(1, pixels.place, round_(colour))
    return images


def by_layer(pixels: Pixels) -> tuple[Pixels, list[int], Tensor]:
    """The list ordered by layers: first the lowest entry of every place, then the second, ...

    Also the length of each layer, and the places. Places are ordered by their number of layers, so
    that layer k belongs to the first of them: composing needs slices only, and no layer costs more
    than its own pixels.
    """
    place, order = pixels.place.sort(stable=True)
    first = torch.ones_like(place, dtype=torch.bool)
    first[1:] = place[1:] != place[:-1]
    starts = first.nonzero()[:, 0]
    depth = torch.diff(starts, append=starts.new_tensor([len(place)]))
    depth, deepest = depth.sort(descending=True, stable=True)
    starts = starts[deepest]
    ends = torch.bincount(depth).flip(0).cumsum(0).flip(0)  # places of at least k layers, by k
    sizes = ends[1:].tolist()
    entries = [order[starts[:size] + layer] for layer, size in enumerate(sizes)]
    return pixels.take(torch.cat([order[:0], *entries])), sizes, place[starts]


def over(below: Tensor, colour: Tensor, alpha: Tensor, sizes: Sequence[int]) -> Tensor:
    """Premultiplied "over" of layers in the order of `by_layer`, on `below` (C, U); (C, U)."""
    finished = []
    result = below
    sizes = list(sizes)
    for size, paint, cover in zip(sizes, colour.split(sizes, 1), alpha.split(sizes), strict=True):
        finished.append(result[:, size:])
        result = paint + (1 - cover) * result[:, :size]
    return torch.cat([result, *reversed(finished)], dim=1)
