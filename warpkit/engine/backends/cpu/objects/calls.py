"""Blocks of the native library for objects over images, and the objects as it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls
from warpkit.engine.compositing.layers import Layers
from warpkit.engine.compositing.rectangles import Rectangles, Rows

OBJECTS = calls.Family("objects")

BAND = 32
"""Rows of an image that are painted at once, as native/run_of_pixels.h has it."""

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
"""An object as native/objects_call.h has it."""


class Objects(NamedTuple):
    """The objects of a call."""

    table: np.ndarray
    """A `RECORD` each."""
    order: np.ndarray
    """Their numbers, image by image."""
    starts: np.ndarray
    """Where each image's begin among these, and the end."""
    areas: np.ndarray
    """The pixels of each box."""
    spans: np.ndarray | None
    """(R, 2), int32: the columns first .. end of the rows of objects that do not fill theirs."""


def objects_of(layers: Layers, boxes: Rectangles, rows: Rows | None) -> Objects:
    """The objects, the last one of each image on top."""
    images, patches, mask = layers.images, layers.patches, layers.mask
    table = np.empty(len(boxes.image), RECORD)
    for name in ("image", "left", "top", "right", "bottom"):
        table[name] = getattr(boxes, name).numpy()
    areas = (table["right"] - table["left"]) * (table["bottom"] - table["top"])
    table["first"] = np.cumsum(areas) - areas
    if patches is None:
        _, channels, height, width = images.shape
        line = table["image"] * (channels * height) + table["top"]
        table["source"] = line * width + table["left"]
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
    starts = np.searchsorted(table["image"][order], np.arange(len(images) + 1))
    return Objects(table, order, starts, areas, spans)


@lru_cache(maxsize=64)
def _numbers(
    task: str,
    images: Shape,
    dtype: torch.dtype,
    maps: Shape,
    source: Shape,
    fill: Shape | None,
    opacity: Shape | None,
) -> np.ndarray:
    """The block of a task by the shapes of `Layers`; source: the size of what objects show."""
    _, channels, height, width = images
    numbers = {
        "opaque": fill is not None,
        "count": maps[0],
        "channels": channels,
        "height": height,
        "width": width,
        "kind": maps[1],
        "number_bytes": dtype.itemsize,
        "plane": source[0] * source[1],
        "line": source[1],
        "own_fill": fill is not None and fill[1] > 1,
        "own_opacity": bool(opacity),
    }
    return OBJECTS.block(task, numbers)


def launch(
    task: str,
    layers: Layers,
    objects: Objects,
    arrays: Mapping[str, np.ndarray | Tensor | None],
    options: Mapping[str, int],
    units: int,
    values: int,
) -> None:
    """Do all units of a task, which make so many values.

    arrays: what the block's fields point to besides the layers and objects; None for nothing.
    options: its other fields.
    """
    images, maps, patches, mask, opacity, fill = layers
    numbers = _numbers(
        task,
        tuple(images.shape),
        images.dtype,
        tuple(maps.shape),
        tuple((images if patches is None else patches).shape[-2:]),
        None if fill is None else tuple(fill.shape),
        None if opacity is None else tuple(opacity.shape),
    ).copy()
    given = {
        "images": images, "to_source": maps, "colour": images if patches is None else patches,
        "mask": mask, "opacity": opacity, "fill": fill,
        "objects": objects.table, "order": objects.order, "starts": objects.starts,
        "spans": objects.spans,
        **arrays,
    }  # fmt: skip
    for name, array in given.items():
        numbers[OBJECTS.fields[name]] = 0 if array is None else calls.address(array)
    for name, number in options.items():
        numbers[OBJECTS.fields[name]] = number
    calls.launch(numbers, 0, units, values)
