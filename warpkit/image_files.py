"""Image files as tensors, and back, in the kind they came in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EACCES, EISDIR
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

KINDS = ("L", "LA", "RGB", "RGBA", "CMYK", "I;16", "F")
"""Pillow's modes that are warped as they are; `plain_mode` brings every other one here."""

PALETTE_FORMATS = ("BMP", "GIF", "PNG", "TIFF")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}


class ImageFileError(Exception):
    """A file that cannot be read or written as an image; the text is one line and names it."""


@dataclass(frozen=True)
class Picture:
    """An image file's pixels, and what is needed to write others like it."""

    pixels: Tensor
    """(C, H, W); uint8, uint16 or float32."""
    mode: str
    """The mode of Pillow in which `pixels` are held."""
    palette: bool = False
    """The file held a palette; its colours are in `pixels`."""
    profile: bytes | None = None
    """The ICC colour profile."""


def read_image(path: Path) -> Picture:
    """Read the first image of a file, upright as its EXIF orientation says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, about size and metadata
            with Image.open(path) as file:
                check_depth(file)
                file.load()
                image = ImageOps.exif_transpose(file)
                mode = plain_mode(image)
                pixels = np.array(image if mode == image.mode else image.convert(mode))
    except UnidentifiedImageError:
        raise ImageFileError(f"{path}: not an image that Pillow can read") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ImageFileError(f"{path}: {reason(error)}") from None
    if pixels.dtype not in (np.uint8, np.uint16, np.float32):
        pixels = pixels.astype(np.uint16 if mode == "I;16" else np.uint8)  # byte order
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    tensor = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    profile = image.info.get("icc_profile") if mode == image.mode else None
    return Picture(tensor, mode, image.mode == "P", profile)


def check_depth(file: Image.Image) -> None:
    """Pillow keeps 8 of the 16 bits of colours without a word; it keeps all of a grey image's."""
    if file.mode not in ("LA", "RGB", "RGBA", "CMYK"):
        return
    for codec, _, _, how in getattr(file, "tile", ()):
        if ";16" in str(how) or (codec.startswith("ppm") and how[1] > 255):
            raise ValueError("16 bits a channel, of which Pillow reads 8 (grey may have 16)")


def plain_mode(image: Image.Image) -> str:
    """The mode to warp an image in: its own, or the nearest one that loses nothing."""
    if "transparency" in image.info or image.mode in ("PA", "La", "RGBa"):
        return "LA" if image.mode in ("1", "L", "La") else "RGBA"
    if image.mode in KINDS:
        return image.mode
    if image.mode.startswith("I;16"):
        return "I;16"
    if image.mode in ("P", "RGBX", "YCbCr", "LAB", "HSV"):
        return "RGB"
    if image.mode == "1":
        return "L"
    raise ValueError(f"the image mode {image.mode!r} is not supported")


def format_of(path: Path) -> str:
    """The format that a file name's ending stands for."""
    name = Image.registered_extensions().get(path.suffix.lower())
    if name is None or name not in Image.SAVE:
        ending = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise ImageFileError(f"{path}: {ending}, which names no image format to write (try .png)")
    return name


def check_figure(path: Path) -> None:
    """Say before the work that a figure, which is a PNG, cannot be written."""
    if format_of(path) != "PNG":
        raise ImageFileError(f"{path}: the figure is a PNG: its name must end in .png")
    check_target(path)


def write_image(path: Path, picture: Picture) -> None:
    """Write an image under its final name only when it is complete."""
    kind = format_of(path)
    pixels = picture.pixels.permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if picture.mode == "CMYK":
        image = Image.frombytes("CMYK", image.size, pixels.tobytes())
    if picture.palette and kind in PALETTE_FORMATS:
        image = with_palette(image)
    options = dict(SAVE_OPTIONS.get(kind, {}))
    if picture.profile:
        options["icc_profile"] = picture.profile
    with replacing(path) as file:
        image.save(file, format=kind, **options)


def check_target(path: Path | None) -> None:
    """Say before the work, not after it, that a file cannot be written."""
    if path is None:
        return
    try:
        if special(path):
            return
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        parent = path.resolve().parent
        os.stat(os.path.join(parent, ""))  # a folder, or the reason why not
        own = os.access in os.supports_effective_ids
        if not os.access(parent, os.W_OK | os.X_OK, effective_ids=own):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise ImageFileError(f"{path}: {reason(error)}") from None


def special(path: Path) -> bool:
    """Whether it is a device or a pipe, such as /dev/stdout, that no file can take the name of."""
    return path.exists() and not (path.is_file() or path.is_dir())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` to write to, which takes its name when it is complete.

    A device or a pipe is written to as it is.
    """
    target = path.resolve()  # a link stays a link
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if special(path):
            with path.open("wb") as file:
                yield file
            return
        try:
            with partial.open("xb") as file:
                yield file
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise ImageFileError(f"{path}: {reason(error)}") from None


def with_palette(image: Image.Image) -> Image.Image:
    """The image with a palette: exact up to 256 colours, else by Pillow's choice of 256."""
    pixels = np.asarray(image)
    colours, index = np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0, return_inverse=True)
    if len(colours) > 256:
        return image.quantize(256)
    indexed = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8)).convert("P")
    indexed.putpalette(colours.tobytes(), image.mode)
    return indexed


def reason(error: BaseException) -> str:
    """One line: the system's own words where it has any, without the path it repeats."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
