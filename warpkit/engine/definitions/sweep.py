"""Plane sweeps: pictures sampled where they show a view's depths, and compared with the view's.

One plane is computed at a time, and again for the gradient, so that nothing of the size of all
planes with all channels is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.definitions import depth, reference
from warpkit.engine.definitions.again import again
from warpkit.engine.definitions.depth import WHOLE, Depths
from warpkit.engine.definitions.rules import SamplingRule

MEASURES = ("correlation", "difference", "absolute", "squared", "variance")


class Sweep(NamedTuple):
    """The options of a sweep."""

    kind: str
    """What the depths are, of `depth.KINDS`."""
    model: str
    """The sources'."""
    pinhole: bool
    """Whether rays are a camera's numbers instead of a field."""
    size: tuple[int, int]
    """(h, w) of the view that asks."""
    measure: str
    """Of `MEASURES`."""
    groups: int
    border: str | None
    """As a `SamplingRule` has it; None: only views that see a point take part."""


def batch_of(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
) -> tuple[tuple[int, ...], int]:
    """The batch of a cost and the number of its views; tensors as in `cost`."""
    core = 1 if options.pinhole else 3
    shapes = [sources.shape[:-4], depths.shape[:-3], rays.shape[: rays.ndim - core]]
    shapes += [poses.shape[:-3], numbers.shape[:-2], ends.shape[:-1]]
    batch = broadcast_shapes(*shapes, () if view is None else view.shape[:-3])
    views = max(sources.shape[-4], poses.shape[-3], numbers.shape[-2], ends.shape[-1])
    return tuple(batch), views


def cost(
    options: Sweep,
    sources: Tensor,
    depths: Tensor,
    rays: Tensor,
    poses: Tensor,
    numbers: Tensor,
    ends: Tensor,
    view: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The cost (..., groups, D, h, w), and how many views see each point (..., D, h, w), int32.

    sources (..., V, C, H, W) and view (..., C, h, w), float32 or float64 alike; depths
    (..., D, h, w) or (..., D, 1, 1); rays as in `depth.points`; poses (..., V, 3, 4), numbers
    (..., V, 4 + n) and ends (..., V) as there. 1 in the place of V is for all views.
    """
    batch, views = batch_of(options, sources, depths, rays, poses, numbers, ends, view)
    height, width = sources.shape[-2:]
    mine = rays.unsqueeze(-2 if options.pinhole else -4)  # for all views
    places_of = Depths(options.kind, options.model, options.pinhole, False, None)
    rule = SamplingRule("bilinear", options.border or "constant")

    def plane(
        sources: Tensor, depths: Tensor, mine: Tensor, poses: Tensor, numbers: Tensor, *rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The cost (..., groups, h, w) of depths (..., h or 1, w or 1), and who sees it."""
        own = depths.expand(*depths.shape[:-2], *options.size)[..., None, :, :]
        points = depth.points(places_of, own, mine, poses, numbers, ends)[0]
        x, y = points.detach().unbind(-1)
        visible = (
            (x >= -WHOLE) & (x <= width - 1 + WHOLE) & (y >= -WHOLE) & (y <= height - 1 + WHOLE)
        )
        shape = (*visible.shape[:-3], views, *options.size)
        points, visible = points.expand(*shape, 2), visible.expand(shape)
        if options.border is None:
            part = visible[..., None, :, :]
            samples = inside(sources, torch.where(visible[..., None], points, torch.nan))
        else:
            part = torch.ones_like(visible)[..., None, :, :]
            samples = reference.sample(sources, points, sources.new_zeros(()), rule)
        some = part.any(-4)
        # a view that is compared with nothing spoils nothing
        own = torch.where(some, rest[0], 0.0)[..., None, :, :, :] if rest else None
        costs = compared(options.measure, own, samples, part)
        costs = torch.where(some, costs, 0.0).unflatten(-3, (options.groups, -1)).mean(-3)
        return costs, visible.sum(-3, dtype=torch.int32)

    rest = () if view is None else (view,)
    some = depths if depths.shape[-3] else depths.new_full((1, 1, 1), torch.nan)
    planes = [again(plane, sources, d, mine, poses, numbers, *rest) for d in some.unbind(-3)]
    costs, visible = (torch.stack(of_all, -3) for of_all in zip(*planes, strict=True))
    count = depths.shape[-3]
    costs = costs[..., :count, :, :].expand(*batch, options.groups, count, *options.size)
    return costs, visible[..., :count, :, :].expand(*batch, count, *options.size)


def inside(pictures: Tensor, points: Tensor) -> Tensor:
    """Bilinear samples (..., C, h, w) of pictures (..., C, H, W) at points inside; 0 at NaN.

    The last column and row belong to the last cell: no slope there falls to 0.
    """
    height, width = pictures.shape[-2:]
    there = ~points.detach().isnan().any(-1)
    x, y = torch.where(there[..., None], points, 0.0).unbind(-1)
    left = x.detach().floor().clamp(0, max(width - 2, 0))
    top = y.detach().floor().clamp(0, max(height - 2, 0))
    right, bottom = (left + 1).clamp(max=width - 1), (top + 1).clamp(max=height - 1)
    read, total = reference.reader(pictures, there.shape), pictures.new_zeros(())
    for row, along_y in ((top, 1 - (y - top)), (bottom, y - top)):
        for column, along_x in ((left, 1 - (x - left)), (right, x - left)):
            weight = (along_y * along_x).to(pictures.dtype)[..., None, :, :]
            total = total + weight * read((row * width + column).long())
    return torch.where(there[..., None, :, :], total, 0.0)


def compared(measure: str, view: Tensor | None, samples: Tensor, part: Tensor) -> Tensor:
    """A measure (..., C, h, w) of a view (..., 1, C, h, w) and samples (..., V, C, h, w).

    part (..., V, 1, h, w): which samples take part.
    """
    if measure == "variance":
        return _variance(view, samples, part)
    assert view is not None  # other measures need one
    own = torch.where(part, view, 0.0)  # not 0 times it: it may be infinite
    each = own * samples if measure == "correlation" else own - samples
    if measure == "absolute":
        each = each.abs()  # of slope 0 at 0
    if measure == "squared":
        each = each * each
    return torch.where(part, each, 0.0).sum(-4) / part.sum(-4).clamp(min=1)


def _variance(view: Tensor | None, samples: Tensor, part: Tensor) -> Tensor:
    """The biased variance (..., C, h, w) of the view, if there is one, and samples, about their
    mean: the mean square less the squared mean would lose all digits of features far from 0."""
    count = (part.sum(-4, keepdim=True) + (view is not None)).clamp(min=1)
    own = 0.0 if view is None else view
    mean = (torch.where(part, samples, 0.0).sum(-4, keepdim=True) + own) / count
    total = torch.where(part, (samples - mean) ** 2, 0.0).sum(-4, keepdim=True)
    total = total if view is None else total + (view - mean) ** 2
    return (total / count)[..., 0, :, :, :]
