"""Matrices of programs, (2, 3) and of perspectives (3, 3): what libraries build, and simple ones
near a fit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpkit.opencv import getAffineTransform, getPerspectiveTransform, getRotationMatrix2D

Array = NDArray[Any]
Pair = tuple[int, int]

NEAR = 0.01
NEAR_OF_NEAREST = 0.08
"""Pixels: how far the corners of a picture may move when a matrix is rounded to simple numbers."""


def apply(matrix: Array, points: Array) -> Array:
    """Points (N, 2) under a matrix."""
    if len(matrix) == 3:
        mapped = points @ matrix[:, :2].T + matrix[:, 2]
        return mapped[:, :2] / mapped[:, 2:]
    return points @ matrix[:, :2].T + matrix[:, 2]


def invert(matrix: Array) -> Array:
    """The inverse, of the same shape; a perspective one ends in 1."""
    if len(matrix) == 3:
        inverse = np.linalg.inv(matrix)
        return inverse / inverse[2, 2]
    linear = np.linalg.inv(matrix[:, :2])
    return np.concatenate([linear, -linear @ matrix[:, 2:]], 1)


def centred(shape: Pair, size: Pair, part: float) -> Array:
    """The matrix that shows a picture (h, w), centred and `part` times larger, in a size (h, w).

    As CenterNet's and mmpose's `get_affine_transform`: from three points in float32, the centres,
    one half a width above them, and a third at a right angle."""
    (height, width), (rows, columns) = shape, size
    wide = max(width, height * columns / rows) * part
    ends = []
    for (x, y), length in (((width / 2, height / 2), wide), ((columns / 2, rows / 2), columns)):
        centre = np.array([x, y], np.float32)
        above = centre + np.array([0, length * -0.5], np.float32)
        direct = centre - above
        third = above + np.array([-direct[1], direct[0]], np.float32)
        ends.append(np.stack([centre, above, third]))
    return np.asarray(getAffineTransform(*ends))


class Corners(NamedTuple):
    """Four points of a perspective that follows the picture's size."""

    less: int
    """1 if `parts` are of the width - 1 and the height - 1, else 0."""
    parts: tuple[tuple[float, float], ...]
    """(x, y) in the picture, as parts of its width and height."""
    to: tuple[tuple[float, float], ...]
    """(x, y) in the result, in pixels."""

    def matrix(self, shape: Pair) -> Array:
        """As `getPerspectiveTransform`, (3, 3), of a picture (h, w): source -> result."""
        sides = np.array([shape[1] - self.less, shape[0] - self.less])
        points = (np.array(self.parts) * sides).astype(np.float32)
        return np.asarray(getPerspectiveTransform(points, np.array(self.to, np.float32)))


def as_parts(places: Array, shape: Pair, less: int) -> Array:
    """A perspective (3, 3), result -> source, to parts of a picture's sides instead; ends in 1."""
    sides = np.array([shape[1] - less, shape[0] - less, 1.0])
    parts = places / sides[:, None]
    return parts / parts[2, 2]


def corners_near(parts: Array, size: Pair, less: int, room: float) -> Iterator[Corners]:
    """Four simple points of the picture at the result's corners, or of the result at the picture's,
    within `room` pixels of what `as_parts` gave for a result of `size` (h, w)."""
    whole = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    for digits in (1, 2, 3, 4):
        for rim in map(np.float64, _rims(size)):
            near = np.round(apply(parts, rim), digits)
            back = apply(invert(parts), near)
            if np.isfinite(back).all() and np.abs(back - rim).max() < room:
                yield Corners(less, _pairs(near), _pairs(rim))
        to = np.round(apply(invert(parts), whole), digits - 1)
        if np.isfinite(to).all() and np.abs(to - apply(invert(parts), whole)).max() < room:
            yield Corners(less, _pairs(whole), _pairs(to))


def _pairs(points: Array) -> tuple[tuple[float, float], ...]:
    return tuple((float(x) + 0.0, float(y) + 0.0) for x, y in points)  # no -0


def nearby(matrix: Array, shape: Pair, room: float) -> Iterator[Array]:
    """Matrices of simple numbers near a fitted one, the simplest first, then itself.

    Rounded entries of the matrix or of its inverse, fractions, and rotations about a point as in
    `getRotationMatrix2D`, in float64 and as float32."""
    height, width = shape
    corners = np.array([(0, 0), (width, 0), (0, height), (width, height)], float)
    wanted = apply(matrix, corners)
    tried: set[bytes] = set()
    for candidate in _simple(matrix):
        single = candidate.astype(np.float32).astype(np.float64)
        for one in (candidate, single):
            near = np.abs(apply(one, corners) - wanted).max() < room
            if near and (one + 0.0).tobytes() not in tried:
                tried.add((one + 0.0).tobytes())
                yield one + 0.0  # no -0
    yield matrix


def nearby_perspectives(matrix: Array, size: Pair, room: float) -> Iterator[Array]:
    """As `nearby` for a perspective matrix and the size (h, w) of its result: rounded entries of it
    or its inverse, and `getPerspectiveTransform` of four simple points to the result's corners."""
    places, rims = invert(matrix), tuple(_rims(size))
    wanted = apply(places, rims[0])
    for candidate in _simple_perspectives(matrix, places, rims):
        apart = np.abs(apply(invert(candidate), rims[0]) - wanted).max()
        if apart < room:
            yield candidate + 0.0  # no -0
    yield matrix


def _rims(size: Pair) -> Iterator[Array]:
    """The corners of a result, (4, 2) float32, to its last pixels or one further."""
    for less in (0, 1):
        right, low = size[1] - less, size[0] - less
        yield np.array([(0, 0), (right, 0), (right, low), (0, low)], np.float32)


def _simple_perspectives(matrix: Array, places: Array, rims: tuple[Array, ...]) -> Iterator[Array]:
    for to in (1.0, 0.5, 0.25, 0.1, 0.01):
        for rim in rims:
            corners = (np.round(apply(places, rim) / to) * to).astype(np.float32)
            yield np.asarray(getPerspectiveTransform(corners, rim))
            yield invert(np.asarray(getPerspectiveTransform(rim, corners)))
    digits = np.array([[0, 0, -1], [0, 0, -1], [3, 3, 0]])
    for more in range(1, 7):
        yield _to_digits(matrix, digits + more)
        yield invert(_to_digits(places, digits + more))


def _to_digits(matrix: Array, digits: Array) -> Array:
    """The entries of a matrix, each rounded to its number of decimals."""
    pairs = zip(matrix.ravel(), np.maximum(digits, 0).ravel(), strict=True)
    return np.array([round(float(v), int(n)) for v, n in pairs]).reshape(matrix.shape)


def _simple(matrix: Array) -> Iterator[Array]:
    inverse = invert(matrix)
    for digits in range(1, 7):
        yield _round(matrix, digits)
        yield invert(_round(inverse, digits))
    for most in (32, 256, 1024):
        yield _fractions(matrix, most)
        yield invert(_fractions(inverse, most))
    angle = float(np.degrees(np.arctan2(matrix[0, 1], matrix[0, 0])))
    scale = float(np.hypot(matrix[0, 1], matrix[0, 0]))
    for digits in (0, 1, 2, 3):
        turned, scaled = round(angle, digits), round(scale, max(1, digits))
        turn = np.asarray(getRotationMatrix2D((0.0, 0.0), turned, scaled))
        fixed = np.eye(2) - turn[:, :2]
        if abs(np.linalg.det(fixed)) > 1e-6:
            at = np.linalg.solve(fixed, matrix[:, 2])
            for to in (0.5, 0.25, 0.1, 0.01):
                x, y = (float(round(float(v) / to) * to) for v in at)
                yield np.asarray(getRotationMatrix2D((x, y), turned, scaled))


def _round(matrix: Array, digits: int) -> Array:
    """Linear entries rounded to `digits` decimals, offsets to one less, at least to none."""
    rounded = np.round(matrix, digits)
    rounded[:, 2] = np.round(matrix[:, 2], max(0, digits - 1))
    return rounded


def _fractions(matrix: Array, most: int) -> Array:
    numbers = [float(Fraction(float(v)).limit_denominator(most)) for v in matrix.ravel()]
    return np.array(numbers).reshape(matrix.shape)
