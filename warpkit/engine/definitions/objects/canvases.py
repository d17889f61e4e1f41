"""Images that are read and painted: a batch, or a list of different sizes.

In plain torch their pixels are concatenated image by image, row by row: flat, (C, M).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Images = Tensor | tuple[Tensor, ...]
"""(B, C, H, W), or a tuple of (C, H_i, W_i); all of one type."""


class Canvas(NamedTuple):
    """The sizes of images."""

    images: int
    """The number of images."""
    height: int | Tensor
    """One number; for a list, each image's height, (B,), int64."""
    width: int | Tensor
    begins: Tensor | None
    """The first flat pixel of each image of a list, (B,), int64; None for a batch."""
    pixels: int
    """The number of pixels of all images."""

    def at(self, image: Tensor) -> tuple[Tensor, int | Tensor, int | Tensor]:
        """The start, the height and the width of images, by their index, int64."""
        if self.begins is None:
            return image * (self.height * self.width), self.height, self.width
        assert isinstance(self.height, Tensor)
        assert isinstance(self.width, Tensor)
        return self.begins[image], self.height[image], self.width[image]

    def limits(self, image: Tensor) -> Tensor:
        """The right and lower limits of the last pixel, (N, 2) or (2,), of images by index (N,)."""
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
    """The pixels of images, (C, M)."""
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


def joined(images: Images) -> Tensor:
    """The numbers of images in a row: a batch's in its own order, which moves none of them."""
    return (images if isinstance(images, Tensor) else flat(images)).reshape(-1)


def numbers_at(images: Images, place: Tensor) -> Tensor:
    """The indices (C, P) in `joined` of pixels at places (P,), int64, of the flat pixels."""
    channels = listed(images)[0].shape[-3]
    if isinstance(images, Tensor):
        step = images.shape[-2] * images.shape[-1]
        place = place + place.div(step, rounding_mode="floor") * ((channels - 1) * step)
    else:
        step = sum(image.shape[1] * image.shape[2] for image in images)
    return place + step * torch.arange(channels, device=place.device)[:, None]


def separated(numbers: Tensor, images: Images) -> Images:
    """Images like `images` of their numbers in a row."""
    if isinstance(images, Tensor):
        return numbers.reshape(images.shape)
    return parted(numbers.unflatten(0, (images[0].shape[0], -1)), images)


def listed(images: Images) -> Sequence[Tensor]:
    """The tensors of images; a batch is a single tensor."""
    return (images,) if isinstance(images, Tensor) else images


def together(images: Sequence[Tensor]) -> Images:
    """The reverse of `listed`: the only batch, or a list."""
    return images[0] if images[0].ndim == 4 else tuple(images)
