"""Defines crops of images, and patches or boxes painted over them, in plain torch operations."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.definitions.maps import map_xy
from warpkit.engine.definitions.objects.canvases import Images, canvas_of, flat, listed
from warpkit.engine.definitions.objects.folding import frame_painter
from warpkit.engine.definitions.objects.frames import Frames
from warpkit.engine.definitions.objects.gather import Points, sample_opaque
from warpkit.engine.definitions.objects.over import paint_layers, paint_topmost
from warpkit.engine.definitions.objects.rectangles import Rectangles, Rows, pixels_of, topmost
from warpkit.engine.definitions.objects.source_maps import covered
from warpkit.engine.definitions.objects.sources import LayerOptions, patch_painter, window_painter
from warpkit.engine.definitions.rules import SamplingRule


class Layers(NamedTuple):
    """Images and the objects painted over them."""

    images: Images
    to_source: Tensor
    """(N, 2 or 3, 3), float64: maps pixels relative to the boxes' corners."""
    patches: Tensor | None = None
    """(N or 1, C, h, w), or None if objects show the images' content in their boxes."""
    mask: Tensor | None = None
    """(N or 1, 1, h, w), or (1, P) for the pixels of all boxes."""
    opacity: Tensor | None = None
    """() or (N,)."""
    fill: Tensor | None = None
    """(C, 1 or N): the value of missing taps in opaque boxes, which have neither mask nor opacity.

    None: missing parts of an object show what is below.
    """


def paint(
    layers: Layers,
    boxes: Rectangles,
    rule: SamplingRule,
    rows: Rows | None,
    frames: Frames | None,
) -> Images:
    """Paints objects over images, later ones over earlier ones; all read the original images.

    rows: the pixels read and painted by objects that show the images and do not fill their
    rectangles; frames: their positions.
    """
    images, to_source, patches, mask, opacity, fill = layers
    canvas, nothing = canvas_of(images), listed(images)[0].new_zeros(1, 1)
    options = LayerOptions(to_source, rule, nothing if fill is None else fill, opacity)
    if patches is not None:
        size = (patches.shape[-2], patches.shape[-1])
        pixels = covered(pixels_of(boxes, canvas), to_source, size, rule)
        return paint_layers(images, pixels, patch_painter(options, patches, mask))
    if frames is None:
        painter = window_painter(options, boxes, canvas, mask, None)
    else:
        painter = frame_painter(options, boxes, canvas, mask, frames)
    if fill is not None:
        return paint_topmost(images, topmost(boxes, canvas, rows), boxes, canvas, painter)
    return paint_layers(images, pixels_of(boxes, canvas, rows=rows), partial(painter, flat(images)))


def crop(
    images: Images,
    places: Tensor,
    fill: Tensor,
    index: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    upright: bool,
) -> Tensor:
    """images[index] sampled at places, (N, C, h, w).

    places (N, 2 or 3, 3), float64, output -> source, or points (N, h, w, 2); fill (1 or N, 1 or C,
    1, 1); index (N,). upright: matrices do not rotate, so that x depends only on the column, and y
    on the row.
    """
    if places.shape[-1] == 2:
        x, y = places.unbind(-1)
        if upright:
            x, y = x[:, :1], y[:, :, :1]
    else:
        row, column = (torch.arange(n, dtype=places.dtype, device=places.device) for n in size)
        if upright:
            (across, _, first_x), (_, down, first_y) = (row.split(1, 1) for row in places.unbind(1))
            x, y = (across * column + first_x)[:, None, :], (down * row + first_y)[:, :, None]
        else:
            rows = [line[..., None, None].unbind(1) for line in places.unbind(1)]
            x, y = map_xy(rows, column, row[:, None])
    fill = fill[..., 0, 0].mT
    canvas = canvas_of(images)
    begin, *window = canvas.at(index.clamp(0, canvas.images - 1)[:, None, None])
    width = window[1]
    number = torch.arange(index.shape[0], device=index.device)[:, None, None]
    values = sample_opaque(
        flat(images),
        fill,
        number if fill.shape[1] > 1 else torch.zeros_like(number[:1]),
        lambda row, column: begin + row * width + column,
        Points(x, y, window),
        rule,
    )
    return values.movedim(1, 0)
