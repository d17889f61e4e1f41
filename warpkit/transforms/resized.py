"""Resize and RandomResizedCrop, by `warpkit.resize`, or by Pillow for PIL images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2._utils import query_size

from warpkit.choices import SPLINE_FILTERS
from warpkit.core import checks
from warpkit.engine.arithmetic.resize import RESIZE_ARITHMETICS, filters_of, parse_rule
from warpkit.resizing import resize
from warpkit.transforms.arguments import (
    AnyFilter,
    check_lengths,
    check_ranges,
    mode_name,
    plain_lengths,
)
from warpkit.transforms.base import Geometric
from warpkit.transforms.images import check_planes, check_sides, has_pixels, through
from warpkit.types import Filter, ResizeArithmetic

PLAIN_FILTERS = ("nearest", "lanczos4", *SPLINE_FILTERS)
"""Filters without antialias."""


class Resize(Geometric, v2.Resize):
    """torchvision.transforms.v2.Resize, by `warpkit.resize`.

    Args:
        size: (h, w); or one number for the shorter side; None: by `max_size` alone.
        interpolation: as in `resize`, or torchvision's InterpolationMode, or Pillow's number; masks
            use nearest. "nearest" samples pixel centres, as "nearest-exact" does (ties go to the
            even pixel).
        max_size: the maximum of the longer side.
        antialias: False for two or four pixels along each axis, whatever the scale; unlike in
            torchvision, this also applies to PIL images.
        arithmetic: as in `resize`. "pillow" gives torchvision's own pixels for PIL images of any
            mode, and Pillow's pixels for tensors; "torchvision" gives torchvision's own pixels for
            tensors. Tensor masks use "exact", except with "torchvision".

    >>> Resize((1, 2))(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
    tensor([[[2.4286, 5.5714]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: AnyFilter = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
        *,
        arithmetic: ResizeArithmetic = "exact",
    ) -> None:
        name = filter_name("Resize", interpolation, antialias, arithmetic)
        size, max_size = plain_lengths(size), plain_lengths(max_size)
        super().__init__(size, max_size=max_size, antialias=antialias)
        if self.size is not None:
            check_lengths("Resize", self.size)
        self.interpolation: Filter = name
        self.arithmetic: ResizeArithmetic = arithmetic

    def output_size(self, params: dict[str, Any], size: Sequence[int]) -> tuple[int, int]:
        """(H, W) of what images of `size` (H, W) become."""
        height, width = size
        check_sides("Resize", size)
        nothing = torch.empty(
            0, height, width, device="cpu"
        )  # no channel: all of its size and no work
        of_size = v2.functional.resize(nothing, self.size, max_size=self.max_size)
        sides = (of_size.shape[-2], of_size.shape[-1])
        if 0 in sides:
            wanted = f"of sides that keep a pixel under size={self.size}, max_size={self.max_size}"
            checks.fail("Resize", "inpt", wanted, f"size {(height, width)}, which becomes {sides}")
        return sides

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        return onto(self.output_size(params, size), (0.0, 0.0, size[1], size[0]))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        check_planes("Resize", inpt)
        new = self.output_size(params, v2.functional.get_size(inpt))
        return resize_image(self, inpt, new)


class RandomResizedCrop(Geometric, v2.RandomResizedCrop):
    """torchvision.transforms.v2.RandomResizedCrop, by `warpkit.resize`.

    Args:
        size: (h, w), or one number for a square.
        scale: (low, high) of the crop's share of the area.
        ratio: (low, high) of its width by its height.
        interpolation, antialias, arithmetic: as in `Resize`. Nothing outside the crop is read.

    >>> RandomResizedCrop(2, scale=(1, 1), ratio=(1, 1))(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: AnyFilter = "bilinear",
        antialias: bool | None = True,
        *,
        arithmetic: ResizeArithmetic = "exact",
    ) -> None:
        name = filter_name("RandomResizedCrop", interpolation, antialias, arithmetic)
        size = check_lengths("RandomResizedCrop", size)
        super().__init__(size, scale, ratio, antialias=antialias)
        check_ranges("RandomResizedCrop", scale=self.scale, ratio=self.ratio)
        self.interpolation: Filter = name
        self.arithmetic: ResizeArithmetic = arithmetic

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """torchvision's draw of a crop of the inputs."""
        check_sides("RandomResizedCrop", query_size(flat_inputs))
        return super().make_params(flat_inputs)

    def output_size(self, params: dict[str, Any], size: Sequence[int]) -> tuple[int, int]:
        """(H, W) of what images of `size` (H, W) become."""
        height, width = self.size  # pyright: ignore
        return height, width

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        left, top = params["left"], params["top"]
        box = (left, top, left + params["width"], top + params["height"])
        return onto(self.output_size(params, size), box)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        check_planes("RandomResizedCrop", inpt)
        crop = v2.functional.crop(inpt, **params)
        return resize_image(self, crop, self.output_size(params, (0, 0)))


def filter_name(function: str, interpolation: Any, antialias: Any, arithmetic: Any) -> Filter:
    """Check warpkit's name of a filter for the arithmetic, and antialias."""
    if antialias is not None:
        checks.check_bool(function, "antialias", antialias)
    checks.check_name(function, "arithmetic", arithmetic, RESIZE_ARITHMETICS)
    name = mode_name(function, interpolation, filters_of(arithmetic))
    parse_rule(function, name, antialias_of(name, antialias, arithmetic), arithmetic)
    return name


def antialias_of(interpolation: str, antialias: bool | None, arithmetic: str) -> bool | None:
    """The antialias for `resize`: True, the default, means if the arithmetic has it."""
    if arithmetic == "torchvision":  # whose None is False
        return bool(antialias) if interpolation in ("bilinear", "bicubic", "lanczos") else None
    if arithmetic != "exact":
        return False if antialias is False else None
    return None if interpolation in PLAIN_FILTERS else bool(antialias)


def resize_image(transform: Resize | RandomResizedCrop, inpt: Any, size: tuple[int, int]) -> Any:
    """Any kind of image at another size (H, W)."""
    name, arithmetic = transform.interpolation, transform.arithmetic
    if arithmetic == "pillow" and isinstance(inpt, PIL.Image.Image):
        # as in torchvision: Pillow handles alpha and palettes
        same = (inpt.height, inpt.width) == size
        height, width = size
        wanted = (width, height), PIL.Image.Resampling[name.upper()]
        return inpt if same else inpt.resize(*wanted)
    if isinstance(inpt, tv_tensors.Mask) and arithmetic != "torchvision":
        arithmetic = "exact"  # labels of every type

    def sample(image: Tensor, interpolation: Filter) -> Tensor:
        smooth = antialias_of(interpolation, transform.antialias, arithmetic)
        return resize(
            image, size, interpolation=interpolation, antialias=smooth, arithmetic=arithmetic
        )

    return through(type(transform).__name__, inpt, name, sample, size, False)


def onto(size: Sequence[int], box: Sequence[float]) -> Tensor:
    """A box (x1, y1, x2, y2), between edges, onto an image of `size` (H, W): (3, 3)."""
    x1, y1, x2, y2 = box
    a, d = size[1] / (x2 - x1), size[0] / (y2 - y1)
    rows = [
        [a, 0.0, a * (0.5 - x1) - 0.5],
        [0.0, d, d * (0.5 - y1) - 0.5],
        [0.0, 0.0, 1.0],
    ]
    return torch.tensor(rows, dtype=torch.float64, device="cpu")
