"""Pyramids, borders, rotations and rectangles of whole images, in the native library.

Pictures are arrays (H, W, C). The kernels are in native/pictures/pyramids.cpp, arrangements.cpp and
rectangles.cpp.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from warpkit.engine.cpu import calls
from warpkit.engine.cpu.memory import empty
from warpkit.engine.definitions.rules import CODE

PICTURES = calls.Family("picture")
FIELDS = PICTURES.fields

TYPES = {
    np.dtype(name): code
    for code, name in enumerate(("float32", "float64", "uint8", "int16", "uint16"))
}
"""The supported types, as the library numbers them."""

BAND = 32
"""The rows of a unit."""

CHEAP = 10
"""This many numbers cost as much as one value of a warp, which decides whether threads are used."""

Shape = tuple[int, ...]


def pyramid_down(image: np.ndarray, size: tuple[int, int], border: str) -> np.ndarray:
    """As `PictureBackend.pyramid_down`."""
    image = np.ascontiguousarray(image)
    block = _block("pyramid_down", image.shape, image.dtype, size, border)
    return _made(block.copy(), image, size, image.dtype)


def pyramid_up(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """As `PictureBackend.pyramid_up`."""
    image = np.ascontiguousarray(image)
    block = _block("pyramid_up", image.shape, image.dtype, size, "reflect_101")
    return _made(block.copy(), image, size, image.dtype)


def rectangle(
    image: np.ndarray,
    size: tuple[int, int],
    first: tuple[int, int],
    fractions: np.ndarray,
    floating: bool,
) -> np.ndarray:
    """As `PictureBackend.rectangle`."""
    image = np.ascontiguousarray(image)
    dtype = np.dtype(np.float32) if floating and image.dtype == np.uint8 else image.dtype
    numbers = _block("rectangle", image.shape, image.dtype, size, "replicate").copy()
    numbers[FIELDS["top"]], numbers[FIELDS["left"]] = first
    numbers[FIELDS["fractions"]], numbers[FIELDS["floating"]] = fractions.ctypes.data, floating
    return _made(numbers, image, size, dtype)


def framed(
    image: np.ndarray, sides: tuple[int, int, int, int], border: str, fill: np.ndarray
) -> np.ndarray:
    """As `PictureBackend.framed`."""
    image = np.ascontiguousarray(image)
    top, bottom, left, right = sides
    size = image.shape[0] + top + bottom, image.shape[1] + left + right
    numbers = _block("frame", image.shape, image.dtype, size, border).copy()
    numbers[FIELDS["top"]], numbers[FIELDS["left"]] = top, left
    numbers[FIELDS["fill"]] = fill.ctypes.data
    return _made(numbers, image, size, image.dtype)


def arranged(view: np.ndarray) -> np.ndarray:
    """As `PictureBackend.arranged`."""
    if view.strides[2] != view.itemsize and view.shape[2] > 1:
        return np.ascontiguousarray(view)
    size = view.shape[0], view.shape[1]
    numbers = _block("arrange", view.shape, view.dtype, size, "constant").copy()
    numbers[FIELDS["row_step"]], numbers[FIELDS["column_step"]] = view.strides[:2]
    return _made(numbers, view, size, view.dtype)


@lru_cache(maxsize=calls.KEPT)
def _block(
    task: str, shape: Shape, dtype: np.dtype, size: tuple[int, int], border: str
) -> np.ndarray:
    """The block for pictures of shape (H, W, C), without addresses."""
    height, width, channels = shape
    numbers = {
        "height": height,
        "width": width,
        "channels": channels,
        "out_height": size[0],
        "out_width": size[1],
        "band": BAND,
        "type": TYPES.get(dtype, -1),
        "border": CODE[border],
        "pixel_bytes": channels * dtype.itemsize,
    }
    return PICTURES.block(task, numbers)


IMAGE, OUT = FIELDS["image"], FIELDS["out"]


def _made(
    numbers: np.ndarray, image: np.ndarray, size: tuple[int, int], dtype: np.dtype
) -> np.ndarray:
    """The result (h, w, C) of a block."""
    out = empty((*size, image.shape[2]), dtype)
    numbers[IMAGE], numbers[OUT] = image.ctypes.data, out.ctypes.data
    calls.launch(numbers, 0, -(-size[0] // BAND), out.size // CHEAP)
    return out
