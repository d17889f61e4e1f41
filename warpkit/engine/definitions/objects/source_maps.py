"""Maps pixels of an object's rectangle to points of its source."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.engine.definitions.maps import inverse_map, map_xy, matrix_of, seen_from, to_3x3
from warpkit.engine.definitions.objects.canvases import Canvas
from warpkit.engine.definitions.objects.gather import columns
from warpkit.engine.definitions.objects.rectangles import Pixels, Rectangles, rectangles
from warpkit.engine.definitions.rules import TAPS, SamplingRule


def box_inverse(matrices: Tensor, edges: Tensor, space: str) -> Tensor:
    """The source positions of boxes' pixels, (N, 2, 3), relative to their rectangles.

    matrices (N, 2, 3), float64: pixel matrices, source -> destination, or thetas of F.affine_grid.
    edges (N, 4), float64: the boxes, relative to their rectangles' corners.
    """
    x1, y1, x2, y2 = edges.unbind(-1)
    source = inverse_map(matrices) if space == "pixel" else matrices
    is_finite = source.isfinite().all(-1).all(-1)[:, None, None]
    # a map without positions gives the box no gradient: 0, not 0 x NaN
    source = torch.where(is_finite, source, 0.0)
    if space == "pixel":
        return torch.where(is_finite, _shifted(source, x1, y1), torch.nan)
    # theta acts on [-1, 1] over the box: on pixels, about the box's centre, half a side is 1
    (a, b, c), (d, e, f) = (row.unbind(-1) for row in source.unbind(-2))
    width, height = x2 - x1, y2 - y1
    to_source = matrix_of(
        ((a, b * (width / height), c * width / 2), (d * (height / width), e, f * height / 2))
    )
    middle = (x1 + x2 - 1) / 2, (y1 + y2 - 1) / 2
    return torch.where(is_finite, _shifted(to_source, *middle), torch.nan)


def _shifted(to_source: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """An affine map about the origin as the same map about (x, y).

    to_source (N, 2, 3); x and y (N,), pixels.
    """
    (a, b, c), (d, e, f) = (row.unbind(-1) for row in to_source.unbind(-2))
    return matrix_of(((a, b, c + x - a * x - b * y), (d, e, f + y - d * x - e * y)))


def from_corner(to_source: Tensor, painted: Rectangles) -> Tensor:
    """Converts a map of image pixels to one of pixels relative to the rectangles' corners."""
    return seen_from(to_source, painted.left[:, None], painted.top[:, None])


def footprints(
    matrices: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
    image: Tensor,
    canvas: Canvas,
) -> Rectangles:
    """Rectangles with all pixels at which patches of `size` are visible under `matrices`, float64.

    A patch that crosses the horizon of a perspective gets the whole image.
    """
    reach = TAPS[rule.interpolation] / 2
    matrices = to_3x3(matrices.detach())
    ends = [matrices.new_tensor([-reach, n - 1 + reach]) for n in size]
    y, x = torch.meshgrid(*ends, indexing="ij")
    corners = torch.stack((x, y, torch.ones_like(x))).flatten(1)
    u, v, w = (matrices @ corners).unbind(-2)
    x, y = u / w + 0.5, v / w + 0.5
    boxes = torch.stack((x.amin(-1), y.amin(-1), x.amax(-1), y.amax(-1)), dim=-1)
    ends = canvas.limits(image.clamp(0, max(canvas.images - 1, 0))).to(boxes.dtype)
    everywhere = torch.cat((torch.zeros_like(ends), ends), dim=-1)
    one_side = (w > 0).all(-1) | (w < 0).all(-1)
    boxes = torch.where(one_side[:, None], boxes, everywhere)
    return rectangles(boxes, image, canvas, touched=True)


def covered(pixels: Pixels, to_source: Tensor, size: tuple[int, int], rule: SamplingRule) -> Pixels:
    """Those of `pixels` whose source point is near enough to a patch of `size` for the rule to
    reach it."""
    reach = TAPS[rule.interpolation] / 2
    x, y = source(to_source.detach(), pixels)
    inside = (x >= -reach) & (x <= size[1] - 1 + reach) & (y >= -reach) & (y <= size[0] - 1 + reach)
    return pixels.take(inside.nonzero()[:, 0])


def source(to_source: Tensor, pixels: Pixels) -> tuple[Tensor, Tensor]:
    """The source positions of pixels: x and y, each (P,), float64."""
    # a contiguous row of P for each coefficient
    coefficients = columns(to_source.flatten(1).mT, pixels.object).unbind(0)
    rows = [coefficients[i : i + 3] for i in range(0, len(coefficients), 3)]
    return map_xy(rows, pixels.x, pixels.y)
