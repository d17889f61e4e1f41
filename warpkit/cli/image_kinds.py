"""Pillow's image modes: their content, how they are warped, and which formats can store them."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("L", "LA", "RGB", "RGBA", "CMYK", "I;16", "I", "F")
"""Pillow's modes that can be warped; `plain_mode` converts all others to one of these."""

WORDS = {
    "1": "black and white",
    "L": "grey",
    "LA": "grey with alpha",
    "P": "palette",
    "PA": "palette with alpha",
    "I;16": "16-bit grey",
    "I": "32-bit grey",
    "F": "floating-point grey",
}
"""Descriptions of modes; the others are called by their own names."""

ALPHA = {"AVIF", "DDS", "GIF", "ICNS", "ICO", "IM", "JPEG2000"}
ALPHA |= {"PDF", "PNG", "QOI", "SGI", "TGA", "TIFF", "WEBP"}
HOLDERS = {
    "LA": (ALPHA, ".png"),
    "RGBA": (ALPHA, ".png"),
    "CMYK": ({"EPS", "IM", "JPEG", "JPEG2000", "PDF", "TIFF"}, ".tif"),
    "I;16": ({"IM", "JPEG2000", "PNG", "PPM", "TIFF"}, ".png or .tif"),
    "I": ({"IM", "TIFF"}, ".tif"),
    "F": ({"IM", "PPM", "TIFF"}, ".tif"),
}
"""The formats that can store a mode, and suffixes to suggest. Pillow also writes some of these
modes to other formats, but silently drops alpha, or truncates 16 bits to 8."""

WIDER = {"L": ("RGB",), "LA": ("RGBA",), "I;16": ("I",)}
"""Modes that hold all values of another mode, for formats that lack the latter."""

PALETTE_FORMATS = ("BMP", "GIF", "PNG", "TIFF")
QUALITY_FORMATS = ("AVIF", "JPEG", "WEBP")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}
REFUSALS = (KeyError, OSError, OverflowError, RuntimeError, SystemError, ValueError, struct.error)
"""Errors that Pillow raises for a mode or a size that a format cannot store."""


@dataclass(frozen=True)
class Picture:
    """An image file's pixels, and the properties to keep in the result."""

    pixels: Tensor
    """(C, H, W); uint8, uint16, float32, or float64 for the mode I."""
    mode: str
    """The Pillow mode of `pixels`."""
    palette: bool = False
    """The file held a palette; its colours are in `pixels`."""
    profile: bytes | None = None
    """The ICC colour profile."""
    description: str = ""
    """A description of the file's content."""
    frames: int = 1
    """How many images the file held; the first is in `pixels`."""
    dropped: str = ""
    """What Pillow loses on reading: "8-bit " for colours of 16 bits, "32-bit " for 64-bit
    floats."""


def decode(file: Image.Image) -> Picture:
    """The pixels of an open image, rotated according to its EXIF orientation.

    A mode that is not in KINDS is converted to the nearest one in it.
    """
    import torch

    depth, dropped = bits(file)
    sixteen = file.format in ("PNG", "PPM")  # some versions of Pillow read their 16 bits as mode I
    file.load()
    image = file
    ImageOps.exif_transpose(image, in_place=True)  # avoids a copy if upright
    mode = plain_mode(image)
    if mode == "I" and sixteen:
        mode = "I;16"
    stored = mode if mode == "I;16" else image.mode
    depth += WORDS.get(stored, stored)
    if "transparency" in image.info and image.mode != "P":
        depth += " with a transparent colour"
    same = mode == stored
    pixels = np.asarray(image if same else lab_as_rgb(image) or image.convert(mode))
    wanted = {"I;16": np.uint16, "I": np.float64, "F": np.float32}.get(mode, np.uint8)
    pixels = np.atleast_3d(pixels.astype(wanted, copy=False))  # in the machine's byte order
    tensor = torch.from_numpy(np.array(pixels.transpose(2, 0, 1), order="C"))  # Pillow's is locked
    profile = image.info.get("icc_profile") if same else None
    return Picture(tensor, mode, image.mode == "P", profile, depth, frames_of(file), dropped)


def frames_of(file: Image.Image) -> int:
    """The number of images in an open file; those after the first may be broken."""
    if file.format == "PSD":  # the others are the layers of the first
        return 1
    with suppress(Exception):
        return getattr(file, "n_frames", 1)
    return 1


def bits(file: Image.Image) -> tuple[str, str]:
    """The bits per value in the file and in Pillow, as text, if Pillow keeps fewer."""
    for codec, _, _, how in getattr(file, "tile", ()):
        if file.mode == "F" and ";64F" in str(how):
            return "64-bit ", "32-bit "
        deep = ";16" in str(how) or (codec.startswith("ppm") and how[1] > 255)
        if deep and file.mode in ("LA", "RGB", "RGBA", "RGBX", "CMYK"):
            return "16-bit ", "8-bit "
    return "", ""


def plain_mode(image: Image.Image) -> str:
    """The mode in which to warp an image: its own, or the nearest one without loss."""
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


def lab_as_rgb(image: Image.Image) -> Image.Image | None:
    """A LAB image as RGB, which Pillow's convert() lacks; None for other modes."""
    if image.mode != "LAB":
        return None
    try:
        from PIL import ImageCms

        lab, rgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    except ImportError:
        raise ValueError("LAB needs a Pillow with LittleCMS") from None
    return ImageCms.profileToProfile(image, lab, rgb, outputMode="RGB")


def encode(picture: Picture, kind: str, quality: int | None = None) -> tuple[bytes, str]:
    """The bytes of a file in the format `kind`, and a description of its content.

    They are made in memory, because a file is replaced, and a pipe written, only when the image is
    complete; and some formats seek, which a pipe cannot.

    Raises ValueError if the format cannot store the picture.
    """
    image, exact = as_image(picture), True
    if kind == "GIF" or (picture.palette and kind in PALETTE_FORMATS):
        image, exact = with_palette(kind, image)
    image = that_holds(kind, image)
    options = dict(SAVE_OPTIONS.get(kind, {}))
    if picture.profile and (image.mode != "RGB" or picture.mode == "RGB"):  # no CMYK profile
        options["icc_profile"] = picture.profile
    if quality is not None and kind in QUALITY_FORMATS:
        options = {**options, "quality": quality, **({"lossless": False} if kind == "WEBP" else {})}
    data, mode = save(image, kind, options)
    words = picture.dropped + WORDS.get(mode, mode)
    return data, words if exact else "palette of the 256 nearest colours"


def as_image(picture: Picture) -> Image.Image:
    """Pillow's image of the pixels."""
    pixels = picture.pixels.permute(1, 2, 0).contiguous()
    if picture.mode == "I":
        pixels = pixels.round().clamp(-(2**31), 2**31 - 1).int()
    values = pixels.numpy()
    if picture.mode == "CMYK":
        return Image.frombytes("CMYK", (values.shape[1], values.shape[0]), values.tobytes())
    return Image.fromarray(values[..., 0] if values.shape[2] == 1 else values)


def that_holds(kind: str, image: Image.Image) -> Image.Image:
    """The image in a mode that the format `kind` can store."""
    formats, endings = HOLDERS.get(image.mode, ((kind,), ""))
    if kind in formats:
        return image
    if image.mode == "CMYK":
        return image.convert("RGB")
    words = WORDS.get(image.mode, image.mode)
    if image.mode == "I":
        values = np.asarray(image)
        if values.min() >= 0 and values.max() < 2**16:
            return that_holds(kind, Image.fromarray(values.astype(np.uint16)))
        words += " beyond 0 to 65535"
    raise ValueError(f"{kind} does not hold {words} (try {endings})")


def save(image: Image.Image, kind: str, options: dict[str, Any]) -> tuple[bytes, str]:
    """The bytes of a file, and its mode: the image's, or a wider one."""
    refused: Exception = ValueError()
    for mode in (image.mode, *WIDER.get(image.mode, ())):
        file = io.BytesIO()
        try:
            (image if mode == image.mode else image.convert(mode)).save(
                file, format=kind, **options
            )
            return file.getvalue(), mode
        except REFUSALS as error:
            refused = refused if refused.args else error
    raise ValueError(reason(refused)) from None


def with_palette(kind: str, image: Image.Image) -> tuple[Image.Image, bool]:
    """The image with a palette, and whether it is exact, which it is for up to 256 colours.

    Pillow stores a palette's alpha only in PNG. For GIF, RGBA stays RGBA, and Pillow chooses the
    colours and a transparent one. For TIFF and BMP, no palette is made.
    """
    if image.mode == "LA" and kind in ("GIF", "PNG"):
        image = image.convert("RGBA")
    if image.mode == "RGBA" and kind == "GIF":
        return image, False
    if image.mode != "RGB" and (image.mode, kind) != ("RGBA", "PNG"):
        return image, True
    pixels = np.asarray(image)
    colours, index = np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0, return_inverse=True)
    if len(colours) > 256:
        return image.quantize(256), False
    indexed = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8)).convert("P")
    indexed.putpalette(colours.tobytes(), image.mode)
    return indexed, True


def reason(error: BaseException) -> str:
    """One line: the system's own message if there is one, without the repeated path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
