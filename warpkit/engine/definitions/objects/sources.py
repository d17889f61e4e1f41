"""The colour and coverage of a list of pixels from their objects.

For each pixel of the list, this finds its object and the source point under the object's map, and
calls the sampler once. `over` describes painters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.bounds import at_least_zero, clamped
from warpkit.engine.definitions.objects.canvases import Canvas
from warpkit.engine.definitions.objects.frames import Frames, own_places
from warpkit.engine.definitions.objects.gather import (
    Lines,
    Lookup,
    Points,
    columns,
    sample_covered,
    sample_lines,
    sample_opaque,
)
from warpkit.engine.definitions.objects.over import ImagePainter, Painter
from warpkit.engine.definitions.objects.rectangles import Pixels, Rectangles, Rows, pixels_of
from warpkit.engine.definitions.objects.source_maps import source
from warpkit.engine.definitions.rules import SamplingRule, borders_of


class LayerOptions(NamedTuple):
    """How objects are painted, in the type of the computation."""

    to_source: Tensor
    """(N, 2 or 3, 3), float64: maps pixels of the object's rectangle to its source."""
    rule: SamplingRule
    fill: Tensor
    """The value of a missing tap: (C or 1, N or 1). It is not used if there is coverage."""
    opacity: Tensor | None
    """() or (N,); None for 1."""


def patch_painter(
    paint: LayerOptions, patches: Tensor, mask: Tensor | None, flow: Tensor | None = None
) -> Painter:
    """Paint patches (N or 1, C, h, w), with masks (N or 1, 1, h, w), or all of each patch.

    flow (N or 1, k, l, 2): first bends the patches, see `bent`. If one patch serves all objects, it
    is read directly, never copied.
    """
    height, width = patches.shape[-2:]
    flat, step = _flat(patches)
    cover, cover_step = (flat, 0) if mask is None else _flat(mask)

    def painter(pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        offset, cover_start = step * pixels.object, cover_step * pixels.object

        def index_of(row: Tensor, column: Tensor) -> Tensor:
            """The flat index of row and column in a window, (P,) each."""
            return offset + row * width + column

        def covered(row: Tensor, column: Tensor) -> Tensor:
            """The mask at row and column, (P,) each."""
            return columns(cover, cover_start + row * width + column)[0]

        x, y = source(paint.to_source, pixels)
        share = None
        if flow is not None:
            x, y, share = bent(x, y, flow, pixels.object, paint.rule)
        points = Points(x, y, (height, width))
        lookup = None if mask is None else covered
        values, alpha = sample_covered(flat, lookup, index_of, points, paint.rule)
        if share is not None:
            values, alpha = values * share.to(values.dtype), alpha * share.to(alpha.dtype)
        return with_opacity(paint, pixels, values, alpha)

    return painter


def bent(
    x: Tensor, y: Tensor, flow: Tensor, objects: Tensor, rule: SamplingRule
) -> tuple[Tensor, Tensor, Tensor]:
    """The positions in the original patches of points in bent patches, and their weights.

    x and y (P,), float64, pixels of the flows' frames; flow (N or 1, h, w, 2), pixels; objects
    (P,), int64, the flow of each. A bent patch is an image of h x w pixels. Beyond its edges it
    fades within a pixel like any patch, so the point is held at the edge and its weight reduced.
    """
    height, width = flow.shape[-3:-1]
    held_x, held_y = clamped(x, 0, width - 1), clamped(y, 0, height - 1)
    offsets = flow.movedim(-1, -3).double()
    move = _sample_each(offsets, objects, held_x, held_y, SamplingRule("bilinear", "replicate"))
    if rule.interpolation == "nearest":
        share = (x.round() == held_x.round()) & (y.round() == held_y.round())
    else:
        share = (1 - (x - held_x).abs()).clamp(min=0) * (1 - (y - held_y).abs()).clamp(min=0)
    return held_x + move[0], held_y + move[1], share


def window_painter(
    paint: LayerOptions,
    boxes: Rectangles,
    canvas: Canvas,
    mask: Tensor | None,
    edges: Tensor | None,
    rows: Rows | None = None,
) -> ImagePainter:
    """Paint the images' content in the objects' own rectangles.

    mask: (1, P), for all pixels of all rectangles in the order of `pixels_of`. edges: (N, 4), the
    boxes relative to their rectangle's corner. Pixels on an edge count by the share that the box
    covers: when painted, and when read along an axis whose border is constant. rows: the objects'
    own pixels, if they do not fill their rectangles; the others are missing.
    """
    area = boxes.width * boxes.height
    begin, _, width = canvas.at(boxes.image)
    step = width + torch.zeros_like(begin)
    offset = begin + boxes.top * step + boxes.left
    table = torch.stack((offset, step, boxes.height, boxes.width, area.cumsum(0) - area))
    faded = tuple(border == "constant" for border in borders_of(paint.rule.border))
    soft = edges is not None and any(faded)

    def painter(images: Tensor, pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        corner, line, height, width, first = columns(table, pixels.object).unbind(0)
        points = Points(*source(paint.to_source, pixels), (height, width))
        share = read = None
        if edges is not None:
            share = _share(edges.to(images.dtype), pixels.object)
            if soft:
                read = _share(edges.to(images.dtype), pixels.object, faded)

        def index_of(row: Tensor, column: Tensor) -> Tensor:
            """The flat index of row and column in a window, (P,) each."""
            return corner + row * line + column

        def masked(row: Tensor, column: Tensor) -> Tensor:
            """The mask at row and column, (P,) each."""
            assert mask is not None
            value = columns(mask, first + row * width + column)[0]
            return value if read is None else value * read(row, column)

        def held(row: Tensor, column: Tensor) -> Tensor:
            """Whether row and column, (P,) each, belong to the object."""
            assert rows is not None
            return rows.holds(pixels.object, row, column)

        within = None if rows is None else held
        fill_number = pixels.object if paint.fill.shape[1] > 1 else torch.zeros_like(corner[:1])
        alpha = None
        if mask is not None:
            values, alpha = sample_covered(images, masked, index_of, points, paint.rule, within)
        elif read is not None:
            values, inside = sample_covered(images, read, index_of, points, paint.rule)
            values = values + (1 - inside) * columns(paint.fill, fill_number)
        else:
            arguments = images, paint.fill, fill_number, index_of, points, paint.rule, within
            values = sample_opaque(*arguments)
        if share is not None:
            painted = share(pixels.y, pixels.x)
            values, alpha = values * painted, painted if alpha is None else alpha * painted
        return with_opacity(paint, pixels, values, alpha)

    return painter


def stretched_mask(
    mask: Tensor,
    boxes: Rectangles,
    edges: Tensor | Frames,
    canvas: Canvas,
    rule: SamplingRule,
) -> Tensor:
    """Masks (N or 1, 1, h, w), each stretched over its box: the values at the boxes' pixels.

    edges: as in `window_painter`, or the frames. Returns (1, P) in the order of `pixels_of`. A mask
    with the box's own size is used unchanged.
    """
    height, width = mask.shape[-2:]
    rule = SamplingRule("nearest" if rule.interpolation == "nearest" else "bilinear", "replicate")
    if isinstance(edges, Frames):
        pixels = pixels_of(boxes, canvas)
        x, y = own_places(edges, pixels.object, pixels.x.double(), pixels.y.double())
        long, high = columns(torch.stack((edges.width, edges.height)), pixels.object).unbind(0)
        x, y = (x + 0.5) * (width / long) - 0.5, (y + 0.5) * (height / high) - 0.5
        return _sample_each(mask, pixels.object, x, y, rule)
    flat, step = _flat(mask)
    (objects, y), (_, x) = (
        _along(counts, length, edges[:, k], edges[:, k + 2])
        for counts, length, k in ((boxes.height, height, 1), (boxes.width, width, 0))
    )
    runs = boxes.width[objects]
    first = boxes.width.cumsum(0)[objects] - runs
    lines = Lines(step * objects, width, y, x, (height, width), first, runs)
    return sample_lines(flat, lines, rule)


def _along(counts: Tensor, length: int, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The rectangles of lines, concatenated, and the position of each line in its mask.

    counts, low and high (N,): the number of each rectangle's lines along an axis, and the edges
    between which a mask of `length` lines is stretched.
    """
    objects = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    first, last = columns(torch.stack((low, high)), objects).unbind(0)
    number = torch.arange(len(objects), device=counts.device) - (counts.cumsum(0) - counts)[objects]
    return objects, (number + 0.5 - first) * (length / (last - first)) - 0.5


def _sample_each(
    patches: Tensor, objects: Tensor, x: Tensor, y: Tensor, rule: SamplingRule
) -> Tensor:
    """The values (C, P) of patches (N or 1, C, h, w) at points, with a border that needs no fill.

    x and y (P,), float64, pixels of the patches; objects (P,), int64, the patch of each.
    """
    height, width = patches.shape[-2:]
    flat, step = _flat(patches)
    offset = step * objects
    return sample_opaque(
        flat,
        flat.new_zeros(len(flat), 1),
        torch.zeros_like(objects[:1]),
        lambda row, column: offset + row * width + column,
        Points(x, y, (height, width)),
        rule,
    )


def cropped_mask(mask: Tensor, boxes: Rectangles, canvas: Canvas) -> Tensor:
    """Masks (N or 1, 1, H, W) of whole images: the values at the boxes' pixels.

    Returns (1, P) in the order of `pixels_of`, with the masks' type.
    """
    flat, step = _flat(mask)
    pixels = pixels_of(boxes, canvas)
    objects = torch.arange(len(boxes.image), device=flat.device)
    to_mask = step * objects - canvas.at(boxes.image)[0]  # from the index in the images
    return columns(flat, pixels.place + to_mask[pixels.object])


def _flat(patches: Tensor) -> tuple[Tensor, int]:
    """(N, C, h, w) as (C, N h w), and the step between patches: 0 if one serves all objects."""
    count, channels, height, width = patches.shape
    step = height * width if count > 1 else 0
    return patches.movedim(0, 1).reshape(channels, -1), step


def _share(edges: Tensor, objects: Tensor, along: Sequence[bool] = (True, True)) -> Lookup:
    """The share of a pixel, by row and column, that is inside its object's box.

    edges (N, 4); objects (P,), int64. along: whether rows and whether columns count.
    """
    x1, y1, x2, y2 = columns(edges.mT, objects).unbind(0)

    def overlap(index: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The share of pixel index (P,) that is between low and high (P,).

        For an edge between two pixels the slope is the one for moving inwards, because the pixels
        outside are not painted.
        """
        end = torch.where(high <= index + 1, high, index + 1)
        return at_least_zero(end - torch.where(low >= index, low, index))

    if all(along):
        return lambda row, column: overlap(column, x1, x2) * overlap(row, y1, y2)
    if along[0]:
        return lambda row, column: overlap(row, y1, y2)
    return lambda row, column: overlap(column, x1, x2)


def with_opacity(
    paint: LayerOptions, pixels: Pixels, values: Tensor, alpha: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """values (C, P) and alpha (P,), or None, multiplied by the objects' opacity."""
    if paint.opacity is None:
        return values, alpha
    opacity = paint.opacity
    if opacity.ndim:
        opacity = columns(opacity[None], pixels.object)[0]
    return values * opacity, opacity.expand_as(values[0]) if alpha is None else alpha * opacity
