"""The pictures that two programs are compared on: a user's, or some made here."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch

from warpkit.core import checks
from warpkit.core.environment import import_optional
from warpkit.validation.programs import pictures as made
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.pictures import Picture

PARTING = 2
"""The number of pictures that are added for sides, and for places, that two rules round apart."""


class NamedPicture(NamedTuple):
    """A picture (H, W, 3) and its name in reports."""

    picture: Picture
    name: str


def as_pictures(name: str, images: Any) -> list[NamedPicture]:
    """A user's images as pictures (H, W, 3) uint8; None: three built-in test pictures."""
    if images is None:
        shapes = ((480, 640), (500, 375), (333, 333))
        kinds = (made.smooth, made.noise, made.smooth)
        result = [kind(*shape, k + 1) for k, (kind, shape) in enumerate(zip(kinds, shapes))]  # noqa: B905
        return [_with_name(picture, "built-in") for picture in result]
    sources: list[Any] = [images] if _is_one(images) else list(images)
    if not sources:
        checks.fail(name, "images", "at least one image", "none")
    result = []
    for k, image in enumerate(sources):
        picture = _picture(name, f"images[{k}]", image)
        label = str(image) if isinstance(image, (str, PathLike)) else f"image {k + 1}"
        result.append(_with_name(picture, label))
    return result


def _is_one(images: Any) -> bool:
    if isinstance(images, (np.ndarray, torch.Tensor)):
        return images.ndim == 3
    return isinstance(images, (str, PathLike)) or not hasattr(images, "__len__")


def parting_pictures(
    first: Geometry, second: Geometry, others: Sequence[NamedPicture]
) -> list[NamedPicture]:
    """Pictures that two rules give other sizes, or put elsewhere, where no known one does."""
    shapes = [(one.picture.shape[0], one.picture.shape[1]) for one in others]
    pictures = []
    for part in ("size", "corner"):
        if any(_parts(first, second, shape, part) for shape in shapes):
            continue
        sides = [first.placement(*shape).size for shape in shapes]
        probes = made.probes(max(24, *map(max, sides)))
        apart = [shape for shape in probes if _parts(first, second, shape, part)]
        pictures += [made.smooth(*shape, 4 + k) for k, shape in enumerate(apart[:PARTING])]
    return [_with_name(picture, "built-in, where sides are rounded apart") for picture in pictures]


def _parts(first: Geometry, second: Geometry, shape: tuple[int, int], part: str) -> bool:
    """Whether two rules place a picture otherwise; places only count where sizes agree."""
    one, other = (geometry.placement(*shape) for geometry in (first, second))
    if part == "size":
        return one.size != other.size or one.window != other.window
    return one.size == other.size and one.corner != other.corner


def _with_name(picture: Picture, label: str) -> NamedPicture:
    return NamedPicture(picture, f"{label} ({picture.shape[0]} x {picture.shape[1]})")


def _picture(name: str, argument: str, image: Any) -> Picture:
    wanted = "a PIL image, a file, an array (H, W, 3) uint8, or a tensor (3, H, W), "
    wanted += "uint8 or in [0, 1]"
    if isinstance(image, (str, PathLike)):
        image = _read(name, argument, image)
    elif isinstance(image, torch.Tensor):
        if image.ndim != 3 or len(image) != 3:
            checks.fail(name, argument, wanted, checks.shape_of(image))
        levels = image.detach().cpu()
        if levels.is_floating_point():
            levels = (levels.float().clamp(0, 1) * 255).round().to(torch.uint8)
        image = levels.movedim(0, -1).numpy()
    elif hasattr(image, "convert"):
        image = np.array(image.convert("RGB"))  # a copy, which torch may overwrite
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3:
        got = getattr(image, "shape", type(image).__name__)
        checks.fail(name, argument, wanted, f"{got}", TypeError)
    if image.shape[-1] != 3:
        checks.fail(name, argument, wanted, f"shape {image.shape}")
    return np.ascontiguousarray(image)


def _read(name: str, argument: str, path: Any) -> Picture:
    """A file in its EXIF orientation, as RGB."""
    pillow = import_optional("PIL.Image", name, "reading files")
    from PIL import ImageOps

    try:
        with pillow.open(path) as file:
            return np.array(ImageOps.exif_transpose(file).convert("RGB"))
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else "not an image"
        checks.fail(name, argument, "an image file that exists", f"{path} ({reason})")
