"""The borders and fills of transforms, to decide which can share one sampling."""

from __future__ import annotations

from typing import Any, NamedTuple

import PIL.Image
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms.v2._utils import _get_fill

from warpkit.engine.definitions.rule_names import ALIASES
from warpkit.transforms.crops import CROPS, MODES
from warpkit.types import Border, BorderName

KINDS = (Tensor, PIL.Image.Image, tv_tensors.Image, tv_tensors.Video, tv_tensors.Mask)
"""Types with pixels, which have a fill."""


class ShownBorder(NamedTuple):
    """A border by OpenCV's name, and what fills it."""

    name: Border
    """Or two, (along y, along x)."""
    fills: tuple[Any, ...]
    """For each of KINDS: a number or numbers; () of a border that has none."""

    def is_zero(self, kind: type) -> bool:
        """Whether it shows 0 outside an input of `kind`."""
        if self.name != "constant":
            return False
        fits = [
            fill for base, fill in zip(KINDS, self.fills, strict=True) if issubclass(kind, base)
        ]
        fill = fits[-1]  # the closest kind: all of torchvision's are tensors
        return not any(fill) if isinstance(fill, tuple) else fill == 0.0

    def __str__(self) -> str:
        if not self.fills:
            return f"border={self.name!r}"
        one = len(set(self.fills)) == 1
        fill = (
            self.fills[0]
            if one
            else {k.__name__: f for k, f in zip(KINDS, self.fills, strict=True)}
        )
        return f"border={self.name!r}, fill={fill}"


def border_of(transform: Any) -> ShownBorder:
    """The border of a transform that has one."""
    border: Border = (
        MODES[transform.padding_mode] if isinstance(transform, CROPS) else transform.border
    )
    borders = (border,) if isinstance(border, str) else border
    names: list[BorderName] = [ALIASES.get(one, one) for one in borders]
    name: Border = tuple(names) if len(set(names)) > 1 else names[0]
    if "constant" not in names:
        return ShownBorder(name, ())
    return ShownBorder(name, tuple(_one_form(_get_fill(transform._fill, kind)) for kind in KINDS))


def _one_form(fill: Any) -> Any:
    """None is 0, and a number alone is a number."""
    if fill is None:
        return 0.0
    numbers = fill if isinstance(fill, list) else [fill]
    return float(numbers[0]) if len(numbers) == 1 else tuple(map(float, numbers))
