"""Images under composed maps: one sampling, or one for each kind of map in a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.flow.images import warp_flow
from warpkit.transforms.composed import ComposedMap, is_matrix, is_whole, sees_inside
from warpkit.transforms.shrinking import MOST_SAMPLES, mean_warp, samples_of, shrinks_at
from warpkit.warp import warp_affine, warp_perspective

VALUES_AT_ONCE = 1 << 24
"""64 MB of float32: what one warp for a mean may give."""


class RunSampling(NamedTuple):
    """How a run samples, all but where."""

    interpolation: str
    border: str
    fill: Callable[[Tensor], Any] | None
    """Of an image (..., C, H, W): a number, or C of them; None for 0."""
    antialias: bool
    samples: tuple[int, int] = (1, 1)
    """Along x and y in an output pixel, where not by `warp_affine`'s antialias."""

    def under(self, composed: ComposedMap, source: tuple[int, int]) -> RunSampling:
        """Under one map of an image of `source` (H, W).

        Moved pixels are copied: by nearest. A canvas that shows nothing beside the image has no
        border: a pixel larger than the output's would fade there, as it does not in a Resize.
        """
        mapping, size = composed.mapping, composed.size
        if is_whole(mapping):
            return self._replace(interpolation="nearest", antialias=False)
        options = self
        if sees_inside(mapping, size, source):
            options = options._replace(border="replicate")
        if not self.antialias or self.interpolation == "nearest":
            return options._replace(antialias=False)
        if not is_matrix(mapping):
            return options
        n, m = samples_of(mapping, size, source, self.interpolation)
        few = n * m <= MOST_SAMPLES
        return options._replace(antialias=not few, samples=(n, m) if few else (1, 1))

    def values_of(self, image: Tensor, size: tuple[int, int]) -> int:
        """How many are sampled of an image (..., C, H, W) for `size` (h, w)."""
        return image.shape[:-2].numel() * size[0] * size[1] * self.samples[0] * self.samples[1]


def sample(image: Tensor, composed: ComposedMap, options: RunSampling) -> Tensor:
    """An image (..., C, H, W) under one map: (..., C, h, w)."""
    options = options.under(composed, (image.shape[-2], image.shape[-1]))
    return warped(image, composed.mapping, composed.size, options)


def sample_each(image: Tensor, maps: Sequence[ComposedMap], options: RunSampling) -> Tensor:
    """Images (B, ..., C, H, W), each under its map: (B, ..., C, h, w).

    In one call where all maps are of a kind; otherwise those of each kind, in their places. A mean
    that would need more memory takes some images at a time.
    """
    source = (image.shape[-2], image.shape[-1])
    kinds: dict[RunSampling, list[int]] = {}
    for k, composed in enumerate(maps):
        kinds.setdefault(options.under(composed, source), []).append(k)
    pieces = []
    for kind, items in kinds.items():
        each = len(items)
        if kind.samples != (1, 1):
            each = max(VALUES_AT_ONCE // kind.values_of(image[:1], maps[0].size), 1)
        for first in range(0, len(items), each):
            taken = items[first : first + each]
            mapping = torch.stack([maps[k].mapping for k in taken])
            between = (1,) * (image.ndim - 4)
            mapping = mapping.reshape(len(taken), *between, *mapping.shape[1:])
            chosen = image if len(taken) == len(maps) else image[taken]
            pieces.append(warped(chosen, mapping, maps[0].size, kind))
    if len(kinds) == 1:
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)
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
    flat = bool((mapping[..., 2, :] == mapping.new_tensor([0.0, 0.0, 1.0])).all())

    def warp(image: Tensor, matrix: Tensor, size: tuple[int, int]) -> Tensor:
        """One warp of an image (..., C, H, W) by matrix (..., 3, 3)."""
        there = matrix.to(image.device, non_blocking=True)
        if flat:
            return warp_affine(image, there[..., :2, :], size=size, **keywords)
        return warp_perspective(image, there, size=size, **keywords)

    if options.samples != (1, 1) and options.values_of(image, size) > VALUES_AT_ONCE:
        keywords["antialias"] = True  # some samples at a time
        return warp(image, mapping, size)
    if options.samples == (1, 1):
        return warp(image, mapping, size)
    mean = mean_warp(warp, image, mapping, size, options.samples)
    smaller = None if flat else shrinks_at(mapping, size)
    if smaller is None or bool(smaller.all()):
        return mean
    smaller = smaller[..., None, :, :].to(image.device, non_blocking=True)
    return torch.where(smaller, mean, warp(image, mapping, size))
