"""The images of a pipeline's call: a batch, a list of any sizes, or a list for each prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.attacks.pictures import Picture, check_pictures, photograph
from warpkit.attacks.processors.calls import Call
from warpkit.core import checks


class Album(NamedTuple):
    """Images (C, H_i, W_i) in their order, and how many of them each prompt has."""

    images: tuple[Tensor, ...]
    prompts: tuple[int, ...] | None
    """None if the list is flat."""
    batch: Tensor | None = None
    """The images (N, C, H, W), if they came so."""

    def groups(self) -> list[Group]:
        """Batches of images of one size, whose prompts have as many images."""
        if self.batch is not None:
            return [Group(tuple(range(len(self.batch))), self.batch, 1)]
        places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        neighbours = Call(tuple((0, 0) for _ in self.images), self.prompts, self.device).neighbours
        for at, (image, count) in enumerate(zip(self.images, neighbours, strict=True)):
            places[(*image.shape, count)].append(at)
        return [
            Group(tuple(at), torch.stack([self.images[k] for k in at]), key[-1])
            for key, at in places.items()
        ]

    @property
    def device(self) -> torch.device:
        return self.images[0].device

    def nested(self, parts: Sequence[Any]) -> list[Any]:
        """One entry for each image, in the form of the list."""
        if self.prompts is None:
            return list(parts)
        return Call((), self.prompts, self.device).by_prompt(list(parts))


class Group(NamedTuple):
    """Images (N, C, H, W) of one size, and their places in the list."""

    at: tuple[int, ...]
    images: Tensor
    neighbours: int
    """How many images the prompt of each has."""

    def photographed(self, name: str) -> Picture:
        checks.check_held(name, "images", self.images)
        return photograph(name, self.images, warns=True)


def check_album(name: str, images: object, has_prompts: bool) -> Album:
    """A batch (N, C, H, W), a list of (C, H_i, W_i), or a list of such lists, as an `Album`."""
    if not isinstance(images, checks.LISTS):
        batch = check_pictures(name, images)
        if batch.ndim != 4 or len(batch) == 0:
            wanted = "of shape (N, C, H, W) with at least one image, or a list of (C, H, W)"
            checks.fail(name, "images", wanted, checks.shape_of(batch))
        return Album(tuple(batch.unbind()), None, batch)
    _check_length(name, "images", images)
    if not any(isinstance(part, checks.LISTS) for part in images):
        return Album(_check_list(name, "images", images), None)
    if not has_prompts:
        wanted = "a flat list of images: nothing here tells the images of a prompt apart"
        checks.fail(name, "images", wanted, "a list of lists")
    flat: list[Tensor] = []
    for k, part in enumerate(images):
        argument = f"images[{k}]"
        if not isinstance(part, checks.LISTS):
            wanted = "a list of images, as the other items are"
            checks.fail(name, argument, wanted, checks.kind_of(part))
        _check_length(name, argument, part)
        flat += _check_list(name, argument, part)
    same = _check_same(name, "images", flat)
    return Album(same, tuple(len(part) for part in images))


def _check_length(name: str, argument: str, images: Sequence[Any]) -> None:
    if len(images) == 0:
        checks.fail(name, argument, "a list of at least one image", "an empty list")


def _check_list(name: str, argument: str, images: Sequence[Any]) -> tuple[Tensor, ...]:
    """Every item must be an image (C, H, W)."""
    checked = []
    for k, image in enumerate(images):
        picture = check_pictures(f"{name}: {argument}[{k}]", image)
        if picture.ndim != 3:
            wanted = "an image (C, H, W)"
            checks.fail(name, f"{argument}[{k}]", wanted, f"shape {checks.shape_of(picture)}")
        checked.append(picture)
    return _check_same(name, argument, checked)


def _check_same(name: str, argument: str, images: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """All images have one type, one number of channels and one device."""
    first = images[0]
    for k, image in enumerate(images):
        checks.check_device(name, f"{argument}[{k}]", image, first.device, f"{argument}[0]")
        if image.dtype != first.dtype:
            wanted = f"of the first image's type, {first.dtype}"
            checks.fail(name, f"{argument}[{k}]", wanted, image.dtype, TypeError)
        if image.shape[0] != first.shape[0]:
            wanted = f"of the first image's {first.shape[0]} channels"
            checks.fail(name, f"{argument}[{k}]", wanted, f"{image.shape[0]} channels")
    return tuple(images)
