"""Maps and matrices in the native library, on arrays, with the bits of the arithmetics.

The results have no gradients. native/points/maps_call.h describes the numbers of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from warpkit.engine.cpu.calls import KEPT, Family, address_of, launch
from warpkit.engine.cpu.memory import empty

MAPS = Family("maps")
FIELDS = MAPS.fields
NUMBERS, FIRST, SECOND = (FIELDS[name] for name in ("numbers", "first", "second"))
OUT, OUT_SECOND = FIELDS["out"], FIELDS["out_second"]

KINDS = ("planes", "pairs", "fixed", "whole", "steps")
"""Kinds of maps, in the library's numbering: planes or pairs of float32, int16 pixels with or
without 1/32 parts, and pairs of float32 with the values of the latter two."""

FLOAT, PIXEL, PART = np.dtype(np.float32), np.dtype(np.int16), np.dtype(np.uint16)

Maps = tuple[np.ndarray, np.ndarray | None]
Numbers = Sequence[float]

NO_MATRIX = (0.0,) * 9
MOST_COEFFICIENTS = 14


class PlainLens(NamedTuple):
    """A camera and its lens as Python numbers."""

    model: str
    camera: tuple[float, float, float, float]
    """fx, fy, cx, cy."""
    k: tuple[float, ...]
    tilt: Numbers = NO_MATRIX
    """The matrix of a tilted sensor, which acts on directions, row by row."""
    untilt: Numbers = NO_MATRIX


@lru_cache(maxsize=KEPT)
def _block(task: str, *numbers: tuple[str, int]) -> np.ndarray:
    return MAPS.block(task, dict(numbers))


def lens_map(lens: PlainLens, to_ray: Numbers, size: tuple[int, int], kind: str) -> Maps:
    """The source positions of pixels (h, w) of an undistorted image, as a kind of map; to_ray
    (9,)."""
    block = lens_block(lens.model, len(lens.k), size, kind)
    return filled(block, _lens_numbers(lens, to_ray), size, kind)


def lens_block(model: str, coefficients: int, size: tuple[int, int], kind: str) -> np.ndarray:
    """The block of `lens_map` for lenses of a model and so many coefficients."""
    sides = ("height", size[0]), ("width", size[1]), ("to", KINDS.index(kind))
    fisheye = int(model == "fisheye")
    return _block("lens_map", *sides, ("coefficients", coefficients), ("fisheye", fisheye))


def polar_map(
    center: np.ndarray, cosines: np.ndarray, sines: np.ndarray, rings: np.ndarray
) -> np.ndarray:
    """The source positions of pixels of a polar picture: (h, w, 2), float32.

    center (2,), the rows' cosines and sines (h,) and the columns' distances (w,), float64.
    """
    size = len(cosines), len(rings)
    sides = ("height", size[0]), ("width", size[1]), ("to", KINDS.index("pairs"))
    turns = np.stack((cosines, sines), axis=-1).reshape(-1)
    return filled(
        _block("polar_map", *sides), np.concatenate((center, turns, rings)), size, "pairs"
    )[0]


def map_from_polar(
    size: tuple[int, int], rows: int, center: np.ndarray, distance: float, angle: float
) -> np.ndarray:
    """The positions in a polar picture of pixels (h, w) around a point: (h, w, 2), float32.

    Of so many rows, and one more on top; distance and angle: of one of its pixels; center (2,).
    """
    sides = ("height", size[0]), ("width", size[1]), ("to", KINDS.index("pairs"))
    numbers = np.array((*center.tolist(), distance, angle))
    return filled(_block("polar_map", *sides, ("count", rows)), numbers, size, "pairs")[0]


def converted_map(first: np.ndarray, second: np.ndarray | None, kind: str) -> Maps:
    """Converts maps to another kind: two (h, w) or one (h, w, 2) float32, or int16 with its
    parts."""
    block = conversion_block(first, second is not None, kind)
    return filled(block, np.empty(0), first.shape[:2], kind, first, second)


def conversion_block(first: np.ndarray, has_second: bool, kind: str) -> np.ndarray:
    """The block of `converted_map` for such maps."""
    if first.dtype == PIXEL:
        before = "fixed" if has_second else "whole"
    else:
        before = "planes" if has_second else "pairs"
    sides = ("height", first.shape[0]), ("width", first.shape[1])
    codes = ("from", KINDS.index(before)), ("to", KINDS.index(kind))
    return _block("converted_map", *sides, *codes)


def perspective_matrices(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, bool]:
    """cv2.getPerspectiveTransform of (N, 4, 2), float32: (N, 3, 3), and whether all are valid.

    For the others, `opencv_null_space` finds the matrix.
    """
    return _matrices("perspective_matrices", src, dst, (3, 3))


def affine_matrices(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, bool]:
    """cv2.getAffineTransform of (N, 3, 2), float32: (N, 2, 3), and whether all exist."""
    return _matrices("affine_matrices", src, dst, (2, 3))


def _matrices(
    task: str, src: np.ndarray, dst: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, bool]:
    block = _block(task).copy()
    found, good = np.empty((len(src), *shape)), np.empty(len(src), np.int64)
    block[FIRST], block[SECOND] = address_of(src), address_of(dst)
    block[OUT], block[OUT_SECOND] = address_of(found), address_of(good)
    launch(block, 0, len(src), found.size)
    return found, all(good.tolist())


def _lens_numbers(lens: PlainLens, matrix: Numbers) -> np.ndarray:
    """`LensNumbers` of native/points/maps_call.h."""
    none = (0.0,) * (MOST_COEFFICIENTS - len(lens.k))
    return np.array((*lens.camera, *lens.k, *none, *lens.tilt, *lens.untilt, *matrix, 0.0))


def filled(
    block: np.ndarray,
    numbers: np.ndarray,
    size: tuple[int, ...],
    kind: str,
    before: np.ndarray | None = None,
    parts: np.ndarray | None = None,
) -> Maps:
    """Allocates a map and calls the library to fill it, one unit per row.

    before and parts: a map that is converted, (h, w, 2) or (h, w), and its other part.
    """
    fixed = kind in ("fixed", "whole")
    first = empty(size if kind == "planes" else (*size, 2), PIXEL if fixed else FLOAT)
    second = None
    if kind in ("planes", "fixed"):
        second = empty(size, PART if fixed else FLOAT)
    block = block.copy()
    block[NUMBERS], block[OUT] = address_of(numbers), address_of(first)
    block[OUT_SECOND] = 0 if second is None else address_of(second)
    if before is not None:
        before = np.ascontiguousarray(before)
        parts = before if parts is None else np.ascontiguousarray(parts)
        block[FIRST], block[SECOND] = address_of(before), address_of(parts)
    launch(block, 0, size[0], 2 * size[0] * size[1])
    return first, second
