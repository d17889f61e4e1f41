"""Patches whose pixels are means over the image pixels that they are pasted on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine import backends
from warpkit.engine.definitions import antialias
from warpkit.engine.definitions.antialias import MOST_AFFINE, MOST_PERSPECTIVE, SLACK, footprint
from warpkit.engine.definitions.maps import seen_from
from warpkit.engine.definitions.objects.gather import columns
from warpkit.engine.definitions.objects.over import Painter
from warpkit.engine.definitions.objects.rectangles import Pixels, Rectangles
from warpkit.engine.definitions.objects.sources import LayerOptions, with_opacity


def minifies(to_source: Tensor) -> bool:
    """Whether a pixel of any object may be larger than a patch's; to_source (N, 2 or 3, 3).

    Perspectives are examined pixel by pixel, later.
    """
    if to_source.shape[-2] == 3:
        return True
    return not is_eager(to_source) or bool((footprint(to_source, (1, 1)).largest > 1 + SLACK).any())


def mean_painter(
    name: str,
    options: LayerOptions,
    patches: Tensor,
    mask: Tensor | None,
    boxes: Rectangles,
    samples: bool | int,
) -> Painter:
    """A `patch_painter` that averages over each pixel's square, as `antialias.warp` does.

    patches (N or 1, C, h, w); mask (N or 1, 1, h, w). Each patch is warped to the size of its
    rectangle, together with those of similar sizes, by the backend that is fast at warps.
    """
    cover = patches.new_ones(1, 1, *patches.shape[-2:]) if mask is None else mask
    layers = patches if mask is None else patches * mask
    count = max(len(layers), len(cover))
    layers = torch.cat([part.expand(count, -1, -1, -1) for part in (layers, cover)], 1)
    backend = backends.select_backend(name, "auto", layers, options.rule)
    nothing = layers.new_zeros(())

    def plain(image: Tensor, to_source: Tensor, fill: Tensor, size: tuple[int, int]) -> Tensor:
        """A `PlainWarp`: image (..., C, H, W), to_source (..., 2 or 3, 3), fill ()."""
        return backend.warp(image, to_source, size, fill, options.rule)

    sides = torch.stack((boxes.height, boxes.width), dim=-1)
    begins, steps = torch.zeros_like(boxes.left), boxes.width
    pieces: list[Tensor] = [layers.new_zeros(layers.shape[1], 0)]
    total = 0
    # sides of one power of two: at most four times the pixels
    kinds = torch.frexp(sides.double()).exponent
    for kind in kinds[(sides > 0).all(-1)].unique(dim=0):
        objects = (kinds == kind).all(-1).nonzero()[:, 0]
        height, width = sides[objects].amax(0).tolist()
        chosen = layers[objects] if len(layers) > 1 else layers
        arguments = (chosen, options.to_source[objects], (height, width), nothing)
        picture = antialias.warp(name, plain, *arguments, options.rule, samples)
        numbers = torch.arange(len(objects), device=objects.device)
        begins = begins.index_copy(0, objects, total + numbers * (height * width))
        steps = steps.index_fill(0, objects, width)
        pieces.append(picture.movedim(1, 0).flatten(1))
        total += len(objects) * height * width
    values = torch.cat(pieces, 1)

    def painter(pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        at = begins[pixels.object] + pixels.y * steps[pixels.object] + pixels.x
        picture = columns(values, at)
        return with_opacity(options, pixels, picture[:-1], picture[-1])

    return painter


def repeated_painter(plain: Painter, options: LayerOptions, samples: bool | int) -> Painter:
    """The mean of a painter that takes positions between pixels: as many as `antialias.warp` has.

    For bent patches, which no warp makes.
    """
    density = antialias.least_density(options.rule.interpolation)
    affine = options.to_source.shape[-2] == 2
    most = MOST_AFFINE if affine else MOST_PERSPECTIVE

    def counts_of(pixels: Pixels) -> Tensor:
        """The samples along x and y of each pixel, (P, 2)."""
        maps = options.to_source.detach()[pixels.object]
        maps = seen_from(maps, pixels.x.double()[:, None], pixels.y.double()[:, None])
        foot = footprint(maps, (1, 1))
        lengths = torch.cat((foot.x, foot.y), -1)[:, 0]
        counts = (lengths * density).floor().clamp(max=most - 1) + 1
        if samples is not True:
            counts = torch.full_like(counts, float(samples))
        return torch.where(foot.largest[:, 0] > 1 + SLACK, counts, 1.0).long()

    def painter(pixels: Pixels) -> tuple[Tensor, Tensor | None]:
        counts = counts_of(pixels)
        order: list[Tensor] = []
        layers: list[Any] = []
        for kind in counts.unique(dim=0):
            chosen = (counts == kind).all(-1).nonzero()[:, 0]
            order.append(chosen)
            layers.append(_mean(plain, pixels.take(chosen), *kind.tolist()))
        if not layers:
            return plain(pixels)
        back = torch.cat(order).argsort()
        colours, alphas = zip(*layers, strict=True)
        return torch.cat(colours, 1)[:, back], torch.cat(alphas)[back]

    return painter


def _mean(plain: Painter, pixels: Pixels, across: int, down: int) -> tuple[Tensor, Tensor]:
    """The mean of a painter over a grid of across x down positions in each pixel."""
    ones = torch.arange(across, device=pixels.x.device, dtype=torch.float64)
    beside = (ones + 0.5) / across - 0.5
    many = Pixels(*(part.repeat_interleave(across) for part in pixels))
    x = (pixels.x[:, None] + beside).flatten()
    total: Any = 0.0
    cover: Any = 0.0
    for number in range(down):
        y = many.y + ((number + 0.5) / down - 0.5)
        colour, alpha = plain(many._replace(x=x, y=y))
        assert alpha is not None
        total = total + colour.unflatten(1, (-1, across)).sum(-1)
        cover = cover + alpha.unflatten(0, (-1, across)).sum(-1)
    return total / (across * down), cover / (across * down)
