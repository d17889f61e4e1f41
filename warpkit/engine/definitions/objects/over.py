"""Paints objects over images in order, and composites layers.

Images have the type of the computation. For a list of pixels, a painter returns the objects'
colours (C, P), premultiplied, and their coverage (P,), None if opaque. One that shows the images
reads them flat, (C, M): see `canvases`. Nothing is written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from warpkit.engine.definitions.objects.canvases import (
    Canvas,
    Images,
    flat,
    joined,
    numbers_at,
    parted,
    separated,
)
from warpkit.engine.definitions.objects.rectangles import (
    Pixels,
    Rectangles,
    Rows,
    levels,
    pixels_of,
)

Painter = Callable[[Pixels], tuple[Tensor, Tensor | None]]
ImagePainter = Callable[[Tensor, Pixels], tuple[Tensor, Tensor | None]]


def on_flat(paint: Callable[..., Tensor]) -> Callable[..., Images]:
    """Makes a function of flat pixels one of a batch or a list of images."""

    @wraps(paint)
    def paint_images(images: Images, *arguments: Any) -> Images:
        return parted(paint(flat(images), *arguments), images)

    return paint_images


@on_flat
def paint_topmost(
    images: Tensor, top: Tensor, boxes: Rectangles, canvas: Canvas, painter: ImagePainter
) -> Tensor:
    """Opaque objects that all read `images`: each pixel samples the object that `topmost` finds.

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


def paint_layers(images: Images, pixels: Pixels, painter: Painter) -> Images:
    """Objects with coverage that see none of the others: one sampling, then "over" by layers."""
    pixels, sizes, place = by_layer(pixels)
    colour, alpha = painter(pixels)
    if alpha is None:
        alpha = torch.ones_like(colour[0])
    numbers, index = joined(images), numbers_at(images, place)
    # by gather, whose gradient is summed in a fixed order, unlike that of an index
    below = numbers.gather(0, index.flatten()).reshape(index.shape)
    result = over(below, colour, alpha, sizes)
    return separated(numbers.index_copy(0, index.flatten(), result.flatten()), images)


@on_flat
def paint_levels(
    images: Tensor,
    boxes: Rectangles,
    canvas: Canvas,
    painter: ImagePainter,
    round_: Callable[[Tensor], Tensor],
    rows: Rows | None = None,
) -> Tensor:
    """Each object reads the result of earlier ones: one pass per level of overlap.

    `round_` rounds as writing to the caller's type does. rows: for objects that do not fill their
    rectangles.
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
    """The list sorted by layers: the lowest entry of every place first, then the second, ...

    It also returns the length of each layer, and the places. Places are sorted by their number of
    layers, so layer k belongs to the first of them: compositing needs only slices, and each layer
    costs only its own pixels.
    """
    place, order = pixels.place.sort(stable=True)
    first = torch.ones_like(place, dtype=torch.bool)
    first[1:] = place[1:] != place[:-1]
    starts = first.nonzero()[:, 0]
    depth = torch.diff(starts, append=starts.new_tensor([len(place)]))
    depth, deepest = depth.sort(descending=True, stable=True)
    starts = starts[deepest]
    ends = torch.bincount(depth).flip(0).cumsum(0).flip(0)  # places with at least k layers, by k
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
