"""Crops of images, and objects painted over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions.objects import objects
from warpkit.engine.definitions.objects.canvases import Images, listed, together
from warpkit.engine.definitions.objects.frames import Frames
from warpkit.engine.definitions.objects.objects import Layers
from warpkit.engine.definitions.objects.rectangles import Rectangles, Rows
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators import native


class Crop(NamedTuple):
    """The options of a crop, as in `objects.crop`."""

    image_of: Tensor
    size: tuple[int, int]
    rule: SamplingRule
    upright: bool


class Paint(NamedTuple):
    """The options of painted objects, as in `objects.paint`."""

    layers: tuple[str, ...]
    """The layers that are not None, without the images."""
    boxes: Rectangles
    rule: SamplingRule
    rows: Rows | None
    frames: Frames | None
    batched: bool
    """Whether images are a batch as passed, whose memory format the result has."""

    def named(self, tensors: Sequence[Tensor]) -> Layers:
        """The operator's tensors."""
        count = len(self.layers)
        return Layers(together(tensors[count:]), **dict(zip(self.layers, tensors, strict=False)))


def crop(images: Images, places: Tensor, fill: Tensor, options: Crop) -> Tensor:
    """As `objects.crop`."""
    return CROP(options, places, fill, *listed(images))


def planned_crop(
    images: Tensor, fill: Tensor, places: Tensor, size: tuple[int, int], rule: SamplingRule
) -> Any:
    """The kernels of crops like this one, of a batch; None without them.

    images (B, C, H, W); fill broadcasts to the result (N, C, h, w); places (N, 2 or 3, 3).
    """
    kernels = CROP.kernels["cpu"]()
    return None if kernels is None else kernels.Planned(images, fill, places, size, rule)


def paint(
    layers: Layers,
    boxes: Rectangles,
    rule: SamplingRule,
    rows: Rows | None = None,
    frames: Frames | None = None,
    *,
    batched: bool = True,
) -> Images:
    """As `objects.paint`; batched: see `Paint`."""
    if rule != SamplingRule("bilinear", "constant"):  # the only one that kernels have
        return objects.paint(layers, boxes, rule, rows, frames)
    images, *others = layers
    named = zip(Layers._fields[1:], others, strict=True)
    present = {name: layer for name, layer in named if layer is not None}
    options = Paint(tuple(present), boxes, rule, rows, frames, batched)
    return PAINT(options, *present.values(), *listed(images))


def _crop(options: Crop, places: Tensor, fill: Tensor, *images: Tensor) -> Tensor:
    """As `objects.crop`."""
    return objects.crop(together(images), places, fill, *options)


def _paint(options: Paint, *tensors: Tensor) -> Images:
    return objects.paint(options.named(tensors), *options[1:-1])


CROP = Operator(_crop, {"cpu": native("objects.crop")})
"""places, fill and images, a batch or each of a list: (N, C, h, w)."""

PAINT = Operator(_paint, {"cpu": native("objects.painter")})
"""The layers that `Paint` names, and images, a batch or each of a list: images like these."""
