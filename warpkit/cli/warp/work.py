"""The work of `warpkit warp` on one image: its matrix, and a warp that handles alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

import warpkit as wk
from warpkit.cli.errors import CommandError
from warpkit.cli.image_kinds import Picture
from warpkit.cli.options import Numbers
from warpkit.cli.sizes import check_size
from warpkit.types import Arithmetic, Border, Interpolation


@dataclass(frozen=True)
class Options:
    """The options of `warpkit warp`, except files."""

    parts: Mapping[str, Numbers]
    """angle, scale, shear, translate and center, as far as they are given."""
    matrix: Numbers | None
    inverse: bool
    corners: Numbers | None
    size: Numbers | None
    interpolation: Interpolation
    antialias: bool
    border: Border
    border_value: Numbers
    arithmetic: Arithmetic

    def check(self) -> None:
        """Reject options that are invalid for every picture."""
        if self.size:
            check_size("--size", *self.size)
        parts_given = {f"--{name}": value for name, value in self.parts.items()}
        if self.matrix is not None:
            clash("--matrix", parts_given)
            if not self.inverse:
                check_invertible(as_matrix(self.matrix))
        if self.corners is not None:
            clash("--corners", {"--matrix": self.matrix, "--inverse": self.inverse, **parts_given})
            if self.size and min(self.size) < 2:
                raise CommandError("--size takes numbers of 2 and more with --corners")
            from_corners(self.corners, self.size)
        if self.antialias and self.arithmetic != "exact":
            raise CommandError(f"--antialias is for --arithmetic exact, got {self.arithmetic}")

    @property
    def moves(self) -> bool:
        """Whether any option can move a pixel."""
        return bool(self.parts.keys() - {"center"} or self.matrix or self.corners or self.size)

    def apply(self, picture: Picture) -> Picture:
        """The picture, warped."""
        height, width = picture.pixels.shape[1:]
        size = (int(self.size[0]), int(self.size[1])) if self.size else None
        if self.corners:
            matrix, size = from_corners(self.corners, self.size)
        elif self.matrix:
            matrix = as_matrix(self.matrix)
        else:
            matrix = from_parts(self.parts, wk.image_center((height, width)))
        warp = partial(
            wk.warp_affine if matrix.shape == (2, 3) else wk.warp_perspective,
            matrix=matrix,
            size=size,
            interpolation=self.interpolation,
            border=self.border,
            inverse=self.inverse,
            antialias=self.antialias,
            arithmetic=self.arithmetic,
        )
        return sample(picture, warp, self)


class Sampling(Protocol):
    """The options of every command that samples."""

    @property
    def interpolation(self) -> str: ...
    @property
    def antialias(self) -> bool: ...
    @property
    def border(self) -> Border: ...
    @property
    def border_value(self) -> Numbers: ...


def sample(picture: Picture, warp: Callable[..., Tensor], options: Sampling) -> Picture:
    """The picture after a warp of images (C, H, W), including alpha if it has one."""
    channels, value = picture.pixels.shape[0], options.border_value
    if len(value) not in (1, channels):
        raise CommandError(
            f"--border-value takes 1 or {channels} numbers for this image, got {len(value)}"
        )
    outside = torch.tensor(value, dtype=torch.float64).expand(channels)
    pixels = warp(picture.pixels, border_value=outside)
    mixes = options.interpolation != "nearest" or options.antialias
    if picture.mode in ("LA", "RGBA") and mixes:
        border_alpha = outside[-1] if "constant" in options.border else torch.tensor(255.0)
        if picture.pixels[-1].min() < 255 or border_alpha < 255:
            mix_visible(warp, picture.pixels, outside, pixels)
    return replace(picture, pixels=pixels)


def mix_visible(
    warp: Callable[..., Tensor], image: Tensor, outside: Tensor, pixels: Tensor
) -> None:
    """Replace blended colours in `pixels` by colours weighted with their alpha.

    Colours are multiplied by alpha, warped in float64, divided by the warped alpha, and rounded
    once. If all neighbours are opaque, or if the result is fully transparent, colours are
    unchanged. `image` and `pixels` are (C, H, W) of 8 bits with alpha last.
    """
    alpha, cover = image[-1:].double(), outside[-1:]
    seen_through = warp(255 - alpha, border_value=255 - cover)[0] != 0
    at = seen_through & (pixels[-1] > 0)
    if not at.any():
        return
    weight = warp(alpha, border_value=cover)[0][at]
    for colour, value, result in zip(image[:-1], outside[:-1], pixels[:-1], strict=True):
        weighed = warp(colour.double() * alpha, border_value=value * cover)[0][at]
        result[at] = (weighed / weight).round().clamp(0, 255).to(result.dtype)


def clash(option: str, others: Mapping[str, object]) -> None:
    """Reject an option together with one that it replaces."""
    for other, value in others.items():
        if value not in (None, False):
            raise CommandError(f"{option} takes the place of {other}: give one of them")


def as_matrix(values: Numbers) -> Tensor:
    """The matrix of 6 or 9 numbers, float64."""
    return torch.tensor(values, dtype=torch.float64).reshape(-1, 3)


def check_invertible(matrix: Tensor) -> None:
    """Reject a matrix without an inverse."""
    try:
        wk.invert(matrix)
    except ValueError:
        raise CommandError("--matrix must be invertible") from None


def from_parts(parts: Mapping[str, Numbers], middle: tuple[float, float]) -> Tensor:
    """The affine matrix (2, 3) of the given options, about `middle` unless a centre is given."""
    angle, scale, shear, translation, center = (
        torch.tensor(parts.get(name, default), dtype=torch.float64)
        for name, default in (
            ("angle", (0.0,)),
            ("scale", (1.0,)),
            ("shear", (0.0,)),
            ("translate", (0.0, 0.0)),
            ("center", middle),
        )
    )
    shear = torch.nn.functional.pad(shear, (0, 2 - len(shear)))
    return wk.affine_matrix(
        angle=angle[0], scale=scale[0], shear=shear, translation=translation, center=center
    )


def from_corners(values: Numbers, wanted: Numbers | None) -> tuple[Tensor, tuple[int, int]]:
    """The matrix (3, 3) that maps four corners to an upright rectangle, and its size (h, w).

    The corners are centres of pixels and become the centres of the corner pixels, so those of a
    whole image leave it unchanged. The first is the top left; the others may come in any order.
    Without a `wanted` size, each side is as long as the longer of its two source sides.
    """
    pixels = list(zip(values[::2], values[1::2], strict=True))
    x, y = (sum(axis) / 4 for axis in zip(*pixels, strict=True))
    clockwise = sorted(pixels, key=lambda point: math.atan2(point[1] - y, point[0] - x))
    start = clockwise.index(pixels[0])
    corners = clockwise[start:] + clockwise[:start]
    for k, here in enumerate(corners):
        before, after = corners[k - 1], corners[(k + 1) % 4]
        turn = (here[0] - before[0]) * (after[1] - here[1])
        turn -= (here[1] - before[1]) * (after[0] - here[0])
        if not turn > 0:
            raise CommandError("--corners must be the corners of a quadrilateral without dents")
    top, right, bottom, left = (math.dist(corners[k], corners[(k + 1) % 4]) for k in range(4))
    if wanted:
        height, width = int(wanted[0]), int(wanted[1])
    else:
        height, width = round(max(left, right)) + 1, round(max(top, bottom)) + 1
        if min(height, width) < 2:
            raise CommandError("--corners must be at least 1 pixel apart")
        check_size("--corners", height, width)
    square = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
    source, target = (torch.tensor(points, dtype=torch.float64) for points in (corners, square))
    return wk.perspective_from_points(source, target), (height, width)
