"""`warpkit resize`: resizes one image, with alpha, to a given size or scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

import warpkit as wk
from warpkit.cli.errors import CommandError
from warpkit.cli.image_kinds import Picture
from warpkit.cli.options import Numbers
from warpkit.cli.sizes import check_size
from warpkit.cli.warp.work import mix_visible
from warpkit.engine.arithmetic.resize import parse_rule
from warpkit.types import Filter, ResizeArithmetic


@dataclass(frozen=True)
class Options:
    """The options of `warpkit resize`, except files."""

    size: Numbers | None
    scale: Numbers | None
    interpolation: Filter
    """The name of any arithmetic's filter; `check` makes sure that it fits."""
    antialias: bool | None
    arithmetic: ResizeArithmetic

    def check(self) -> None:
        """Reject options that are invalid for every picture."""
        if (self.size is None) == (self.scale is None):
            raise CommandError("takes --size or --scale: give one of them")
        if self.size:
            check_size("--size", *self.size)
        try:
            parse_rule("resize", self.interpolation, self.antialias, self.arithmetic)
        except ValueError as error:
            raise CommandError(str(error).replace("`", "--", 1).replace("`", "", 1)) from None

    def size_of(self, height: int, width: int) -> tuple[int, int]:
        """The result's height and width; by a scale, they are rounded half to even as in OpenCV."""
        if self.size:
            return int(self.size[0]), int(self.size[1])
        assert self.scale is not None
        sides = [round(n * s) for n, s in zip((height, width), self.scale * 2, strict=False)]
        if min(sides) < 1:
            raise CommandError(f"--scale makes {sides[0]} x {sides[1]} of {height} x {width}")
        check_size("--scale", *sides)
        return sides[0], sides[1]

    def apply(self, picture: Picture) -> Picture:
        """The picture, resized."""
        resize = partial(
            wk.resize,
            size=self.size_of(*picture.pixels.shape[-2:]),
            interpolation=self.interpolation,
            antialias=self.antialias,
            arithmetic=self.arithmetic,
        )
        mixes = picture.mode in ("LA", "RGBA") and self.interpolation != "nearest"
        if mixes and self.arithmetic == "pillow":
            pixels = unpremultiply(resize(premultiply(picture.pixels)))
            return replace(picture, pixels=pixels)
        try:
            pixels = resize(picture.pixels)
        except TypeError:  # the library cannot resize this type
            text = f"--arithmetic {self.arithmetic} is not for {picture.description} images"
            raise CommandError(text) from None
        if mixes and self.arithmetic == "exact" and picture.pixels[-1].min() < 255:

            def ignoring(image: Tensor, border_value: object) -> Tensor:
                return resize(image)

            mix_visible(ignoring, picture.pixels, torch.full((len(pixels),), 255.0), pixels)
        return replace(picture, pixels=pixels)


def premultiply(pixels: Tensor) -> Tensor:
    """Colours times alpha, (C, H, W) of 8 bits with alpha last, rounded as in Pillow."""
    alpha = pixels[-1:].int()
    product = pixels[:-1].int() * alpha + 128
    return torch.cat([((product >> 8) + product) >> 8, alpha]).to(torch.uint8)


def unpremultiply(pixels: Tensor) -> Tensor:
    """The inverse, as in Pillow: colours with alpha 0 are lost."""
    alpha = pixels[-1:].int()
    colours = pixels[:-1].int()
    divided = (255 * colours).div(alpha.clamp(min=1), rounding_mode="floor").clamp(max=255)
    is_flat = (alpha == 0) | (alpha == 255)
    return torch.cat([torch.where(is_flat, colours, divided), alpha]).to(torch.uint8)
