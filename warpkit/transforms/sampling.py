"""Samples images under composed maps: once, or once per kind of map in a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.flow.images import warp_flow
from warpkit.transforms.composed import ComposedMap, is_matrix, is_whole, sees_inside
from warpkit.types import Border
from warpkit.warp import warp_affine, warp_perspective


class RunSampling(NamedTuple):
    """How a run samples, except the positions."""

    interpolation: str
    border: Border
    fill: Callable[[Tensor], Any] | None
    """Of an image (..., C, H, W): a number, or C of them; None for 0."""
    antialias: bool

    def under(self, composed: ComposedMap, source: tuple[int, int]) -> RunSampling:
        """Under one map of an image of `source` (H, W).

        Pixels moved by whole steps are copied, by nearest. A canvas that shows nothing outside the
        image has no border: otherwise enlarged pixels would fade at the edge, unlike in a Resize.
        """
        mapping, size = composed.mapping, composed.size
        if is_whole(mapping):
            return self._replace(interpolation="nearest", antialias=False)
        options = self
        if sees_inside(mapping, size, source):
            options = options._replace(border="replicate")
        return options._replace(antialias=self.antialias and self.interpolation != "nearest")


def sample(image: Tensor, composed: ComposedMap, options: RunSampling) -> Tensor:
    """An image (..., C, H, W) under one map: (..., C, h, w)."""
    options = options.under(composed, (image.shape[-2], image.shape[-1]))
    return warped(image, composed.mapping, composed.size, options)


def sample_each(image: Tensor, maps: Sequence[ComposedMap], options: RunSampling) -> Tensor:
    """Images (B, ..., C, H, W), each under its map: (B, ..., C, h, w).

    In one call if all maps are of one kind; otherwise one call per kind.
    """
    source = (image.shape[-2], image.shape[-1])
    kinds: dict[RunSampling, list[int]] = {}
    for k, composed in enumerate(maps):
        kinds.setdefault(options.under(composed, source), []).append(k)
    pieces = []
    for kind, items in kinds.items():
        mapping = torch.stack([maps[k].mapping for k in items])
        between = (1,) * (image.ndim - 4)
        mapping = mapping.reshape(len(items), *between, *mapping.shape[1:])
        chosen = image if len(items) == len(maps) else image[items]
        pieces.append(warped(chosen, mapping, maps[0].size, kind))
    if len(kinds) == 1:
        return pieces[0]
    order = [k for items in kinds.values() for k in items]
    return torch.cat(pieces)[sorted(range(len(order)), key=order.__getitem__)]


def warped(image: Tensor, mapping: Tensor, size: tuple[int, int], options: RunSampling) -> Tensor:
    """An image (..., C, H, W) under mappings (..., 3, 3) or (..., h, w, 2), onto `size` (h, w)."""
    keywords: dict[str, Any] = {
        "interpolation": options.interpolation,
        "border": options.border,
        "border_value": 0.0 if options.fill is None else options.fill(image),
        "antialias": options.antialias,
    }
    if not is_matrix(mapping):
        return warp_flow(image, mapping.to(image.device, non_blocking=True), **keywords)
    matrix = mapping.to(image.device, non_blocking=True)
    if bool((mapping[..., 2, :] == mapping.new_tensor([0.0, 0.0, 1.0])).all()):
        return warp_affine(image, matrix[..., :2, :], size=size, **keywords)
    return warp_perspective(image, matrix, size=size, **keywords)
