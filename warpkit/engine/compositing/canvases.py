"""Images that are read and painted on: a batch, or a list of different sizes.

In plain torch their pixels lie side by side, image by image, row by row: flat, (C, M).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Images = Tensor | tuple[Tensor, ...]
"""(B, C, H, W), or (C, H_i, W_i) each; all of one type."""


class Canvas(NamedTuple):
    """The sizes of images."""

    images: int
    """How many."""
    height: int | Tensor
    """Of a list of each image, (B,), int64."""
    width: int | Tensor
    begins: Tensor | None
    """Where each image of a list begins among the flat pixels, (B,), int64; None for a batch."""
    pixels: int
    """Of all images."""

    def at(self, image: Tensor) -> tuple[Tensor, int | Tensor, int | Tensor]:
        """Of images by number, int64: where each begins, its height and its width."""
        if self.begins is None:
            return image * (self.height * self.width), self.height, self.width
        assert isinstance(self.height, Tensor)
        assert isinstance(self.width, Tensor)
        return self.begins[image], self.height[image], self.width[image]

    def limits(self, image: Tensor) -> Tensor:
        """The last pixel's right and lower edge, (N, 2) or (2,), of images by number (N,)."""
        _, height, width = self.at(image)
        if isinstance(height, Tensor) and isinstance(width, Tensor):
            return torch.stack((width, height), dim=-1)
        return image.new_tensor([width, height])


def canvas_of(images: Images) -> Canvas:
    if isinstance(images, Tensor):
        count, _, height, width = images.shape
        return Canvas(count, height, width, None, count * height * width)
    sizes = torch.tensor([image.shape[1:] for image in images], device=images[0].device)
    areas = sizes.prod(1)
    pixels = sum(image.shape[1] * image.shape[2] for image in images)
    return Canvas(len(images), sizes[:, 0], sizes[:, 1], areas.cumsum(0) - areas, pixels)


def flat(images: Images) -> Tensor:
    """Their pixels, (C, M)."""
    if isinstance(images, Tensor):
        return images.movedim(1, 0).flatten(1)
    return torch.cat([image.flatten(1) for image in images], dim=1)


def parted(pixels: Tensor, images: Images) -> Images:
    """Flat pixels (C, M) as images like `images`."""
    if isinstance(images, Tensor):
        count, _, height, width = images.shape
        return pixels.unflatten(1, (count, height, width)).movedim(0, 1)
    sizes = [image.shape[1] * image.shape[2] for image in images]
    parts = pixels.split(sizes, dim=1)
    return tuple(
        part.unflatten(1, tuple(image.shape[1:])) for part, image in zip(parts, images, strict=True)
    )


def listed(images: Images) -> Sequence[Tensor]:
    """The tensors that images are: a batch is one."""
    return (images,) if isinstance(images, Tensor) else images
