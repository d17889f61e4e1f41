"""Applies a function of tensors to any kind of image, and returns the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2._utils import _get_fill

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_channels_last, without_warnings
from warpkit.engine.definitions.labels import as_labels, saturated
from warpkit.geometry.arguments import as_result
from warpkit.warp import warp_affine, warp_perspective

PIL_MODES = ("L", "LA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I", "I;16", "F")
"""Modes with numeric channels: no bits and no palettes."""

Rows = tuple[tuple[float, float, float], ...]
"""A matrix, row by row."""

Sampling = Callable[[Tensor, Any], Tensor]
"""A function of an image (..., C, H, W) and an interpolation."""


def has_pixels(value: Any) -> bool:
    """Whether `value` is an image, a video or a mask, with or without a type of torchvision."""
    if isinstance(value, tv_tensors.TVTensor):
        return isinstance(value, (tv_tensors.Image, tv_tensors.Video, tv_tensors.Mask))
    return isinstance(value, (Tensor, PIL.Image.Image))  # a tuple: `|` takes five times as long


def check_planes(name: str, inpt: Any) -> None:
    """A tensor that is an image, a video or a mask must be dense and have rows and columns."""
    if isinstance(inpt, Tensor):
        checks.check_dense(name, "inpt", inpt)
        if inpt.ndim < 2:
            checks.fail(name, "inpt", "of shape (..., H, W)", checks.shape_of(inpt))
        if inpt.is_floating_point() and inpt.dtype not in checks.FLOATS:
            wanted = f"of one of the types {checks.names_of(checks.FLOATS)}, or whole numbers"
            checks.fail(name, "inpt", wanted, inpt.dtype, TypeError)
        if inpt.ndim > 2:
            warn_if_channels_last(name, "inpt", inpt.shape)


def check_sides(name: str, size: Sequence[int]) -> None:
    """Inputs of `size` (H, W) must have a pixel if the size changes."""
    if 0 in size:
        checks.fail(name, "inpt", "of at least one pixel a side", f"size {tuple(size)}")


def through(
    name: str,
    inpt: Any,
    interpolation: str,
    sample: Sampling,
    size: tuple[int, int] | None = None,
    look: bool = True,
) -> Any:
    """Apply `sample` to any kind of image, onto `size` (h, w) or its own; masks with nearest.

    look: whether to check for the wrong layout, which `check_planes` has not done yet.
    """
    if isinstance(inpt, PIL.Image.Image):
        if inpt.mode not in PIL_MODES:
            wanted = f"a PIL image of one of the modes {', '.join(PIL_MODES)}: see convert()"
            checks.fail(name, "inpt", wanted, repr(inpt.mode))
        # as a batch it is channels-last, like Pillow's pixels: 512 x 512 RGB in half the time
        batch = pixels_of(inpt)[None]
        sampled = through(name, batch, interpolation, sample)[0]
        if inpt.mode == "I;16":
            sampled = sampled.view(torch.int16)  # the type by which torchvision knows it
        return v2.functional.to_pil_image(sampled, mode=inpt.mode)
    checks.check_dense(name, "inpt", inpt)
    if inpt.numel() == 0:  # no mask, where there is no object
        if size is None or tuple(size) == tuple(inpt.shape[-2:]):
            return inpt
        check_sides(name, inpt.shape[-2:])
        return retype(inpt.as_subclass(torch.Tensor).new_empty((*inpt.shape[:-2], *size)), inpt)
    is_typed = isinstance(inpt, tv_tensors.TVTensor)
    pixels = inpt.as_subclass(torch.Tensor) if is_typed else inpt
    image = pixels[None] if pixels.ndim == 2 else pixels
    is_mask = isinstance(inpt, tv_tensors.Mask)
    interpolation = "nearest" if is_mask else interpolation
    blended = not interpolation.startswith("nearest") and pixels.dtype in checks.LABELS
    if blended:  # as torchvision does; float64 holds all of them but 64 bits beyond 2^53
        image = image.double()
    checks.check_image(name, "inpt", image, labels=True, look=look)
    sampled = without_warnings(sample)(image, interpolation)
    if blended:
        sampled = as_labels(saturated(sampled, pixels.dtype), pixels.dtype)
    result = sampled[0] if pixels.ndim == 2 else sampled
    return retype(result, inpt)


def pixels_of(picture: PIL.Image.Image) -> Tensor:
    """A PIL image's pixels (C, H, W); torchvision has them on torch's default device."""
    array = np.array(picture)
    return torch.from_numpy(array if array.ndim == 3 else array[..., None]).permute(2, 0, 1)


def retype(result: Tensor, like: Any, **changes: Any) -> Any:
    """A result of any shape in the type of the input, a tensor or one of torchvision's."""
    if not isinstance(like, tv_tensors.TVTensor):
        return result
    return tv_tensors.wrap(result, like=like, **changes)  # pyright: ignore


def fill_of(name: str, transform: Any, inpt: Any) -> Callable[[Tensor], Any]:
    """The fill for an input's type, of an image (..., C, H, W): a number, or C of them."""
    fill = _get_fill(transform._fill, type(inpt))

    def of(image: Tensor) -> Any:
        channels = image.shape[-3]
        if isinstance(fill, list) and len(fill) not in (1, channels):
            wanted = f"a number, or {channels}, for the channels of a {type(inpt).__name__} of "
            wanted += f"shape {checks.shape_of(inpt if isinstance(inpt, Tensor) else image)}"
            wanted += " (a dictionary holds one for each type)"
            checks.fail(name, "fill", wanted, fill)
        return 0.0 if fill is None else fill

    return of


def warp(
    transform: Any,
    inpt: Any,
    rows_of: Callable[[tuple[int, int]], Rows],
    size: tuple[int, int] | None = None,
) -> Any:
    """Warp any kind of image by the matrix for its size, onto `size` (H, W), or its own.

    Two rows map source -> destination, three destination -> source.
    """
    name = type(transform).__name__
    fill = fill_of(name, transform, inpt)

    def sample(image: Tensor, interpolation: str) -> Tensor:
        rows = rows_of((image.shape[-2], image.shape[-1]))
        matrix = torch.tensor(rows, dtype=torch.float64, device=image.device)
        options: dict[str, Any] = {
            "interpolation": interpolation,
            "border": transform.border,
            "border_value": fill(image),
            "size": size,
        }
        if len(rows) == 2:
            return warp_affine(image, matrix, **options)
        return warp_perspective(image, matrix, inverse=True, **options)

    return through(name, inpt, transform.interpolation, sample, size)


def matrix_of(rows: Rows) -> Tensor:
    """The matrix (3, 3), float64, of two rows that map source -> destination."""
    return as_result(
        torch.tensor((*rows, (0.0, 0.0, 1.0)), dtype=torch.float64, device="cpu"), torch.float64
    )
