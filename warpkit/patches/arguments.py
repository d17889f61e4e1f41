"""Validates the arguments of patch functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.mistakes import (
    warn_if_16_bit_numbers,
    warn_if_points,
    warn_if_relative_boxes,
    warn_if_rois,
)
from warpkit.core.tracing import is_readable
from warpkit.engine.definitions import fill
from warpkit.engine.definitions.frames import QUAD, TURNED, kind_of_boxes
from warpkit.engine.definitions.labels import as_bits, as_words, from_words, saturated
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.objects import canvases
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.geometry.boxes import check_boxes, read_boxes


@dataclass(frozen=True)
class ImageArgument:
    """The images of a call, as passed and in the type of the computation.

    Not a tuple, whose properties Dynamo could not trace before torch 2.8.
    """

    original: Tensor
    """The images; of a list, the first."""
    pixels: canvases.Images
    """The images in the type of the computation; for labels, their bits."""
    listed: tuple[Tensor, ...] | None = None
    """The images (C, H_i, W_i) of a list, as passed."""

    @property
    def count(self) -> int:
        # len would make torch.export specialise a dynamic batch size
        return self.pixels.shape[0] if isinstance(self.pixels, Tensor) else len(self.pixels)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the computation."""
        return canvases.listed(self.pixels)[0].dtype

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(H, W) of each image of a list; of a batch, one size for all."""
        return [(each.shape[-2], each.shape[-1]) for each in canvases.listed(self.pixels)]

    @property
    def batched(self) -> bool:
        """Whether the images are a batch (B, C, H, W), as passed."""
        return self.original.ndim == 4

    @property
    def channels(self) -> int:
        return self.original.shape[-3]

    def rounded(self, values: Tensor) -> Tensor:
        """Values after the rounding that writing them to the given images would cause."""
        return values if self.of_labels else convert(values, self.original.dtype).to(values.dtype)

    @property
    def of_labels(self) -> bool:
        return self.original.dtype in checks.LABELS

    def converted(self, batch: Tensor) -> Tensor:
        """Values (N, C, h, w) of the computation, in the type of the given images."""
        dtype = self.original.dtype
        return from_words(batch, dtype) if self.of_labels else convert(batch, dtype)

    def painted(
        self, image_of: Tensor, paint: Callable[[canvases.Images, Tensor], canvases.Images]
    ) -> Tensor | list[Tensor]:
        """The result of `paint` for the images with objects, in their original form.

        `paint` gets these images and each object's index among them, image_of (N,). Images of a
        list without objects are returned unchanged.
        """
        exports.refuse(
            "paste_patches, transform_patches",
            "because the number of covered pixels depends on the values of the boxes",
            "warp each patch and its mask to the image's size by warp_affine, and blend: "
            "image + mask * (patch - image)",
        )
        if self.listed is None:
            result = paint(self.pixels, image_of)
            assert isinstance(result, Tensor)
            result = self.converted(result).reshape(self.original.shape)
            return restore_memory_format(result, self.original)
        count = len(self.listed)
        is_known = (image_of >= 0) & (image_of < count)
        numbers = torch.where(is_known, image_of, count).unique()
        chosen = [number for number in numbers.tolist() if number < count]
        results = list(self.listed)
        if chosen:
            at = torch.searchsorted(numbers, image_of)
            images = tuple(self.pixels[number] for number in chosen)
            pictures = paint(images, torch.where(is_known, at, -1))
            for number, result in zip(chosen, pictures, strict=True):
                results[number] = self.converted(result[None]).squeeze(0).contiguous()
        return results


def images(function: str, value: Any, *, computed: bool = True) -> ImageArgument:
    """Images (B, C, H, W), or one (C, H, W), or a list of these, of different sizes.

    computed: whether the pixels are those of the computation; otherwise those of the images.
    """
    if isinstance(value, checks.LISTS):
        return _from_list(function, value, computed)
    image = checks.check_image(function, "images", value, labels=True)
    if image.ndim > 4:
        wanted = "of shape (B, C, H, W) or (C, H, W)"
        checks.fail(function, "images", wanted, checks.shape_of(image))
    batch = image if image.ndim == 4 else image[None]
    return ImageArgument(image, to_computation(batch) if computed else batch)


def to_computation(batch: Tensor) -> Tensor:
    """Images (B, C, H, W) in the type of the computation; labels as their bits."""
    if batch.dtype in checks.LABELS:
        return as_words(as_bits(batch))
    return batch.to(compute_dtype(batch.dtype))


def _from_list(function: str, value: Sequence[Any], computed: bool) -> ImageArgument:
    """A list of images (C, H_i, W_i)."""
    if not value:
        checks.fail(function, "images", "a list of at least one image", "an empty list")
    first = checks.check_image(function, "images[0]", value[0], labels=True)
    like = first.dtype, first.device, first.layout, first.ndim, first.shape[:-2]
    for number, image in enumerate(value):
        # nearly always; a full check takes four times as long, 5 us per image
        if type(image) is Tensor and min(image.shape[-2:], default=0) > 0:
            this = image.dtype, image.device, image.layout, image.ndim, image.shape[:-2]
            if this == like and image.ndim == 3:
                continue
        _check_listed(function, f"images[{number}]", image, first)
    originals = tuple(value)
    items = tuple(to_computation(image[None])[0] for image in originals) if computed else originals
    return ImageArgument(first, items, originals)


def _check_listed(function: str, name: str, image: Any, first: Tensor) -> None:
    """Check that an image of a list is (C, H, W), of the first one's channels, type and device."""
    checks.check_image(function, name, image, labels=True, look=False)
    if image.ndim != 3:
        checks.fail(function, name, "of shape (C, H, W), in a list", checks.shape_of(image))
    if image.shape[0] != first.shape[-3]:
        wanted = f"of {first.shape[-3]} channels, as `images[0]` is"
        checks.fail(function, name, wanted, checks.shape_of(image))
    if image.dtype != first.dtype:
        wanted = f"of {first.dtype}, as `images[0]` is"
        checks.fail(function, name, wanted, image.dtype, TypeError)
    checks.check_device(function, name, image, first.device, "`images[0]`")


def check_whole(
    function: str, data: ImageArgument, mask: object, opacity: object, edge: object = "hard"
) -> None:
    """Raise an error if labels would be blended: they are painted completely or not at all."""
    dtype = data.original.dtype
    whole = mask is None or (isinstance(mask, Tensor) and mask.dtype == torch.bool)
    checks.check_labels(function, "mask", mask, dtype, "None or of booleans", whole)
    one = isinstance(opacity, int | float) and opacity == 1
    checks.check_labels(function, "opacity", opacity, dtype, "1", one)
    checks.check_labels(function, "edge", edge, dtype, "'hard'", edge == "hard")


def _empty(value: Any, *item: int) -> Any:
    """An empty list means no objects of shape `item`; anything else is returned unchanged."""
    kind = np.float64 if item else np.int64
    return np.zeros((0, *item), kind) if isinstance(value, checks.LISTS) and not value else value


def boxes(
    function: str, value: Any, index: Any, data: ImageArgument
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Boxes of any kind, (N, 4), (N, 5) or (N, 4, 2), and the index (N,) of each one's image.

    Also which of them are valid, (N,), or None if the values could be checked: then all are.
    """
    value = _empty(read_boxes(value), 4)
    value = checks.as_float(function, "boxes", value, data.original.device)
    kind = kind_of_boxes(value.shape)
    if kind is None or value.ndim != (3 if kind == QUAD else 2):
        wanted = "of shape (N, 4), (N, 5) or (N, 4, 2)"
        checks.fail(function, "boxes", wanted, checks.shape_of(value))
    checks.check_device(function, "boxes", value, data.original.device)
    bad = _bad_boxes(function, value, min(data.sizes, key=min))
    warn_if_16_bit_numbers(function, "boxes", value, data.sizes)
    index = image_index(function, index, value.shape[0], data)
    if kind == TURNED:
        warn_if_rois(function, value, index)
    if is_readable(value) and is_readable(index):
        return value, index, None
    return value, index, ~bad & (index >= 0) & (index < data.count)


def checked_numbers(function: str, value: Tensor, index: Tensor | None, batch: Tensor) -> Tensor:
    """As `boxes` of arguments whose types and shapes are checked; returns the index.

    value (N, 4), (N, 5) or (N, 4, 2); index (N,); batch (B, C, H, W).
    """
    _bad_boxes(function, value, batch.shape[-2:])
    if index is None:
        index = torch.zeros(value.shape[0], dtype=torch.int64, device=batch.device)
    else:
        index = _within(function, index, batch.shape[0])
    if kind_of_boxes(value.shape) == TURNED:
        warn_if_rois(function, value, index)
    return index


def _bad_boxes(function: str, value: Tensor, size: Sequence[int]) -> Tensor:
    """Which boxes are invalid, (N,); size: the smallest image's."""
    bad = check_boxes(function, value)
    warn_if_relative_boxes(function, value[:, :4].flatten(1), size)
    return bad


def _within(function: str, index: Tensor, count: int) -> Tensor:
    """The index (N,) of images, int64, all below `count`."""
    index = index.long()
    wanted = f"in [0, {count}), the number of images"
    checks.check_values(function, "image_index", (index < 0) | (index >= count), wanted, index)
    return index


def image_index(function: str, value: Any, count: int, data: ImageArgument) -> Tensor:
    """The image of each object, (N,) int64; None if there is one image."""
    batch, device = data.count, data.original.device
    if value is None:
        if batch != 1:
            wanted = f"given for {batch} images"
            checks.fail(function, "image_index", wanted, None)
        return torch.zeros(count, dtype=torch.int64, device=device)
    value = checks.as_exact(function, "image_index", _empty(value), device)
    wanted = "a tensor of integers of shape (N,), or None for one image"
    if not isinstance(value, Tensor):
        checks.fail(function, "image_index", wanted, f"{value!r:.60}", TypeError)
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        checks.fail(function, "image_index", wanted, value.dtype, TypeError)
    if value.shape != (count,):
        wanted = f"of shape ({count},), one for each object"
        checks.fail(function, "image_index", wanted, checks.shape_of(value))
    checks.check_dense(function, "image_index", value)
    checks.check_device(function, "image_index", value, device)
    return _within(function, value, batch)


def matrices(
    function: str,
    value: Any,
    data: ImageArgument,
    shapes: Sequence[tuple[int, int]],
    count: int | None = None,
    flat: bool = False,
) -> Tensor:
    """Matrices (N, rows, 3); with `flat`, (N, 6) is accepted, too, and becomes (N, 2, 3)."""
    value = _empty(value, *shapes[0])
    value = checks.as_float(function, "matrices", value, data.original.device)
    checks.check_device(function, "matrices", value, data.original.device)
    n = "N" if count is None else count
    wanted = " or ".join([f"({n}, {a}, {b})" for a, b in shapes] + [f"({n}, 6)"] * flat)
    result = value.unflatten(1, (2, 3)) if flat and value.shape[1:] == (6,) else value
    if result.ndim != 3 or result.shape[1:] not in shapes or count not in (None, len(result)):
        checks.fail(function, "matrices", f"of shape {wanted}", checks.shape_of(value))
    if not flat:  # those are in a box's own pixels
        warn_if_16_bit_numbers(function, "matrices", value, data.sizes)
    return result


def per_object(
    function: str,
    argument: str,
    value: Any,
    count: int,
    item: tuple[int | str, ...],
    data: ImageArgument,
) -> Tensor:
    """A value (N, *item), or `item` for all objects, as (N or 1, *item) of its own type."""
    one = "(" + ", ".join(map(str, item)) + ")"
    wanted = f"of shape {one.replace('(', f'({count}, ')}, or {one} for all objects"
    if not isinstance(value, Tensor):
        checks.fail(function, argument, f"a tensor {wanted}", type(value).__name__, TypeError)
    if value.is_complex():
        checks.fail(function, argument, "real numbers", value.dtype, TypeError)
    if value.is_floating_point() and value.dtype not in checks.FLOATS:
        wanted = f"of one of the types {checks.names_of(checks.FLOATS)}"
        checks.fail(function, argument, wanted, value.dtype, TypeError)
    checks.check_dense(function, argument, value)
    shape = tuple(value.shape[-3:])
    fits = value.ndim in (3, 4) and min(shape) > 0
    fits = fits and all(want in (got, "h", "w") for got, want in zip(shape, item, strict=True))
    if not fits or (value.ndim == 4 and len(value) != count):
        checks.fail(function, argument, wanted, checks.shape_of(value))
    checks.check_device(function, argument, value, data.original.device)
    return value if value.ndim == 4 else value[None]


def patches(function: str, value: Any, count: int, data: ImageArgument) -> Tensor:
    """Patches (N or 1, C, h, w) in the type of the computation, in the range of the images."""
    value = per_object(function, "patches", value, count, (data.channels, "h", "w"), data)
    kind, own_dtype = data.original.dtype, value.dtype
    if own_dtype.is_floating_point != kind.is_floating_point and own_dtype != torch.bool:
        wanted = "floats" if kind.is_floating_point else "integers"
        wanted += f", as the images of {kind} are (1.0 in floats is 255 in bytes: convert one)"
        checks.fail(function, "patches", wanted, own_dtype, TypeError)
    return as_words(saturated(value, kind)) if data.of_labels else value.to(data.dtype)


def mask(function: str, value: Any, space: str | None, count: int, data: ImageArgument) -> Tensor:
    """A mask (N or 1, 1, h, w), as large as the images if it covers them.

    It is converted to the type of the computation, except for bytes: a box may need few of them.
    """
    if space == "image" and data.listed is not None:
        wanted = "'box' for a list of images: a mask cannot cover images of different sizes"
        checks.fail(function, "mask_space", wanted, repr(space))
    item = (1, *data.sizes[0]) if space == "image" else (1, "h", "w")
    value = per_object(function, "mask", value, count, item, data)
    if space is None and tuple(value.shape[-2:]) in data.sizes:
        wanted = "'image' (a mask over the whole image) or 'box' (one stretched over each box) "
        wanted += f"for a mask of the images' size, {tuple(value.shape[-2:])}"
        checks.fail(function, "mask_space", wanted, None)
    return value if value.dtype in (torch.bool, torch.uint8) else value.to(data.dtype)


def flows(function: str, value: Any, count: int, data: ImageArgument) -> Tensor:
    """Flows (N or 1, h, w, 2) of patches, float64."""
    device = data.original.device
    flow = checks.as_float(function, "flow", value, device, torch.float64)
    checks.check_device(function, "flow", flow, device)
    fits = flow.ndim in (3, 4) and flow.shape[-1] == 2 and 0 not in flow.shape[-3:]
    if not fits or (flow.ndim == 4 and len(flow) != count):
        got: object = checks.shape_of(flow)
        if flow.ndim in (3, 4) and flow.shape[-3] == 2:
            got = f"{got}: (..., 2, h, w) is flow.movedim(-3, -1)"
        wanted = f"of shape ({count}, h, w, 2), or (h, w, 2) for all objects"
        checks.fail(function, "flow", wanted, got)
    warn_if_points(function, flow)
    return (flow if flow.ndim == 4 else flow[None]).double()


def opacity(function: str, value: Any, count: int, data: ImageArgument) -> Tensor | None:
    """Opacity () or (N,), in the type of the computation; None for 1, which needs no blending."""
    if isinstance(value, (int, float)) and value == 1:
        return None
    value = checks.as_float(function, "opacity", value, data.original.device, torch.float64)
    if value.ndim and value.shape != (count,):
        wanted = f"a number or of shape ({count},)"
        checks.fail(function, "opacity", wanted, checks.shape_of(value))
    checks.check_device(function, "opacity", value, data.original.device)
    return value.to(data.dtype)


def border_value(function: str, value: Any, count: int, data: ImageArgument) -> Tensor:
    """The border value (C or 1, N or 1), in the type of the computation."""
    shape, rule = (count, data.channels, 1, 1), SamplingRule("bilinear", "constant")
    value = fill.border_value(function, data.original, shape, rule, value)
    if data.of_labels:
        value = as_words(
            value.reshape(-1, *(value.shape[-3:] or (1, 1, 1))).expand(-1, data.channels, 1, 1)
        )
    return value[..., 0, 0].reshape(-1, value.shape[-3]).mT if value.ndim else value[None, None]


def canvas(name: str, value: Any) -> ImageArgument:
    """Images to paint on."""
    data = images(name, value)
    if data.original.is_meta:
        wanted = "on a device that holds values: the number of painted pixels depends on them"
        checks.fail(name, "images", wanted, "meta")
    return data
