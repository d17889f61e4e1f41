"""The random draws for the views of one step, and the steps from a view to the objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.photometric import DRAWS, Photometric, check_photometric
from warpkit.attacks.pipeline import check_pipeline, through
from warpkit.core import checks
from warpkit.core.numbers import check_count
from warpkit.gradients import quantize as to_8_bits


@dataclass(frozen=True)
class Draws:
    """The draws of n views of each of B images, all made before the first chunk."""

    matrices: Tensor
    """(n, rows, 3), or (n, N, rows, 3) for N boxes."""
    colours: Tensor | None = None
    """(n, B, 4 or 5): `Photometric.sample` of each view."""
    patch_colours: Tensor | None = None
    """(n, N, 4 or 5): for the patch on each box in each view."""
    camera: Tensor | None = None
    """(n, B, rows, 3): moves each view of each image, and what is pasted on it."""

    def __len__(self) -> int:
        return len(self.matrices)

    def split(self, name: str, chunk: int | None) -> list[Draws]:
        """Chunks of at most `chunk` views of each image."""
        if chunk is None:
            return [self]
        size = check_count(name, "chunk", chunk)
        return [self._slice(slice(at, at + size)) for at in range(0, len(self), size)]

    def _slice(self, rows: slice) -> Draws:
        others = (self.colours, self.patch_colours, self.camera)
        return Draws(self.matrices[rows], *(c if c is None else c[rows] for c in others))


@dataclass(frozen=True)
class Capture:
    """Turns warped views into the objective's input: colours, 8 bits, the pipeline."""

    name: str
    photometric: Photometric | None
    pipeline: Callable[[Tensor], Any] | None
    quantize: bool

    def draw(self, n: int, count: int, generator: torch.Generator | None) -> Tensor | None:
        """Colours (n, count, 4 or 5) for n views of each of `count` images or boxes."""
        if self.photometric is None:
            return None
        return self.photometric.sample(n * count, generator=generator).unflatten(0, (n, count))

    def colour(self, views: Tensor, colours: Tensor | None) -> Tensor:
        """Views (B * n, C, H, W), image by image, under colours (n, B, 4 or 5)."""
        if self.photometric is None or colours is None:
            return views
        return self.photometric.apply(views, colours.movedim(0, 1).flatten(0, 1))

    def on_boxes(self, patches: Tensor, colours: Tensor) -> Tensor:
        """Patches (N * n, C, h, w) under colours (n, N, 4 or 5): no file, which is a view's."""
        assert self.photometric is not None
        light = replace(self.photometric, jpeg=None)
        return light.apply(patches, colours[..., :DRAWS].movedim(0, 1).flatten(0, 1))

    def rounded(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W) or a patch (C, h, w), rounded to 8-bit levels if requested."""
        return to_8_bits(images) if self.quantize else images

    def show(self, views: Tensor, colours: Tensor | None) -> Any:
        """The objective's input from views (B * n, C, H, W); colours (n, B, 4 or 5)."""
        if colours is not None:
            views = self.colour(views, colours)
            views = self.rounded(views)
        return views if self.pipeline is None else through(self.name, self.pipeline, views)

    def show_each(self, views: Sequence[Tensor], colours: Tensor | None) -> Any:
        """The objective's input from views (n, C, H_i, W_i) of each of B images.

        A list of B * n images (C, H_i, W_i). A pipeline's results are one batch if their shapes
        are equal. colours (n, B, 4 or 5).
        """
        photographs = [
            self.show(part, None if colours is None else colours[:, i : i + 1])
            for i, part in enumerate(views)
        ]
        if self.pipeline is None:
            return [view for part in photographs for view in part]
        return _join(photographs)


def _join(parts: list[Any]) -> Any:
    """Results of a pipeline (n, ...) for each image as one batch, or a list of single images.

    Of tuples a tuple, of dicts a dict.
    """
    first = parts[0]
    if isinstance(first, dict):
        return {key: _join([part[key] for part in parts]) for key in first}
    if isinstance(first, tuple):
        return tuple(_join(list(column)) for column in zip(*parts, strict=True))
    if len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    return [view for part in parts for view in part]


def make_capture(name: str, photometric: object, pipeline: object, quantize: object) -> Capture:
    """Make a `Capture` from validated arguments."""
    checks.check_bool(name, "quantize", quantize)
    light, program = check_photometric(name, photometric), check_pipeline(name, pipeline)
    return Capture(name, light, program, quantize is True)
