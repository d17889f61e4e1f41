"""Blocks of numbers for painting objects over images in the native library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu import calls
from warpkit.engine.definitions.objects.canvases import canvas_of, listed
from warpkit.engine.definitions.objects.objects import Layers
from warpkit.engine.definitions.objects.rectangles import Rectangles, Rows

OBJECTS = calls.Family("objects")

BAND = 32
"""Rows of an image that are painted together, as in native/objects/band.h."""

Shape = tuple[int, ...]

RECORD = np.dtype(
    {
        "names": [
            *("image", "left", "top", "right", "bottom"),
            *("source", "width", "height", "cover", "first", "rows"),
        ],
        "formats": [np.int64] * 11,
    }
)
"""An object, in the format of native/objects/objects_call.h."""

PAINTED = np.dtype(
    {
        "names": [
            *("height", "width", "first_unit", "pixels", "plane", "line", "step"),
            *("out", "out_step", "grad", "grad_images", "top_object"),
        ],
        "formats": [np.int64] * 12,
    }
)
"""An image in that format, with offsets of its gradients from fields of the block."""


class Painted(NamedTuple):
    """The images of a call: a batch, or a list with its own size for each."""

    table: np.ndarray
    """One `PAINTED` per image."""
    image_of_unit: np.ndarray
    begins: np.ndarray
    """The number of pixels before each image."""
    pixels: int
    """The number of pixels of all images."""
    channels: int


def painted_of(images: Sequence[Tensor]) -> Painted:
    """images: a batch (B, C, H, W), or a list, of any strides."""
    channels = images[0].shape[-3]
    table = np.empty(len(images[0]) if images[0].ndim == 4 else len(images), PAINTED)
    sides = np.array([(*image.shape[-2:], *image.stride()[-3:]) for image in images])
    names = "height", "width", "plane", "line", "step"
    for name, numbers in zip(names, sides.T, strict=True):
        table[name] = numbers
    bands = -(-table["height"] // BAND)
    table["first_unit"] = np.cumsum(bands) - bands
    areas = table["height"] * table["width"]
    ends = np.cumsum(areas)
    image_of_unit = np.repeat(np.arange(len(table)), bands)
    return Painted(table, image_of_unit, ends - areas, int(areas.sum()), channels)


def enter(painted: Painted, name: str, images: Sequence[Tensor]) -> int:
    """Write the offset of each image to a column of the table; returns their common origin."""
    one = images[0]
    if one.ndim == 4:
        painted.table[name] = np.arange(len(one)) * (one.stride(0) * one.element_size())
        return calls.address(one)
    painted.table[name] = list(map(calls.address, images))
    return 0


class Objects(NamedTuple):
    """The objects of a call."""

    table: np.ndarray
    """One `RECORD` per object."""
    order: np.ndarray
    """Their numbers, image by image."""
    starts: np.ndarray
    """The start of each image's objects in `order`, and the end."""
    areas: np.ndarray
    """The pixels of each box."""
    spans: np.ndarray | None
    """(R, 2), int32: the columns first .. end of the rows of objects that do not fill their
    boxes."""


def objects_of(layers: Layers, boxes: Rectangles, rows: Rows | None) -> Objects:
    """The objects, in order, with the last one of each image on top."""
    patches, mask = layers.patches, layers.mask
    table = np.empty(len(boxes.image), RECORD)
    for name in ("image", "left", "top", "right", "bottom"):
        table[name] = getattr(boxes, name).numpy()
    areas = (table["right"] - table["left"]) * (table["bottom"] - table["top"])
    table["first"] = np.cumsum(areas) - areas
    if patches is None:
        table["source"] = 0
        table["width"] = table["right"] - table["left"]
        table["height"] = table["bottom"] - table["top"]
        table["cover"] = table["first"]
    else:
        area, number = patches.shape[-2:].numel(), np.arange(len(table))
        table["source"] = number * (patches.shape[1] * area if len(patches) > 1 else 0)
        table["height"], table["width"] = patches.shape[-2:]
        table["cover"] = number * (area if mask is not None and len(mask) > 1 else 0)
    table["rows"], spans = -1, None
    if rows is not None:
        table["rows"] = rows.begins.numpy()
        left = boxes.left[rows.object]
        spans = torch.stack((left + rows.first, left + rows.end), dim=1).int().numpy()
    order = np.argsort(table["image"], kind="stable")
    starts = np.searchsorted(table["image"][order], np.arange(canvas_of(layers.images).images + 1))
    return Objects(table, order, starts, areas, spans)


@lru_cache(maxsize=64)
def _numbers(
    task: str,
    channels: int,
    dtype: torch.dtype,
    maps: Shape,
    patches: Shape | None,
    fill: Shape | None,
    opacity: Shape | None,
) -> np.ndarray:
    """The block of a task for the shapes of `Layers`."""
    numbers = {
        "opaque": fill is not None,
        "count": maps[0],
        "channels": channels,
        "kind": maps[1],
        "number_bytes": dtype.itemsize,
        "plane": 0 if patches is None else patches[-2] * patches[-1],
        "line": 0 if patches is None else patches[-1],
        "own_fill": fill is not None and fill[1] > 1,
        "own_opacity": bool(opacity),
    }
    return OBJECTS.block(task, numbers)


def launch(
    task: str,
    layers: Layers,
    painted: Painted,
    objects: Objects,
    arrays: Mapping[str, np.ndarray | Tensor | None],
    options: Mapping[str, int],
    units: int,
    values: int,
) -> None:
    """Run all units of a task, which compute `values` numbers.

    arrays: the targets of the block's pointers besides the layers and objects; None for none.
    options: its other fields.
    """
    _, maps, patches, mask, opacity, fill = layers
    numbers = _numbers(
        task,
        painted.channels,
        listed(layers.images)[0].dtype,
        tuple(maps.shape),
        *(None if layer is None else tuple(layer.shape) for layer in (patches, fill, opacity)),
    ).copy()
    given = {
        "painted": painted.table, "image_of_unit": painted.image_of_unit,
        "to_source": maps, "colour": patches, "mask": mask, "opacity": opacity, "fill": fill,
        "objects": objects.table, "order": objects.order, "starts": objects.starts,
        "spans": objects.spans,
        **arrays,
    }  # fmt: skip
    for name, array in given.items():
        numbers[OBJECTS.fields[name]] = 0 if array is None else calls.address(array)
    for name, number in options.items():
        numbers[OBJECTS.fields[name]] = number
    calls.launch(numbers, 0, units, values)
