"""Measures where an image ends up in the result: position by flat images, scale by ramps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.programs import pictures
from warpkit.validation.programs.program import NotKnownError, Program, RefusedError
from warpkit.validation.programs.values import Values

Array = NDArray[np.float64]
Line = tuple[float, float]
"""Slope and offset: result pixel i samples the picture at slope * i + offset."""


@dataclass(frozen=True)
class Look:
    """A picture's shape, and what was observed in its result."""

    height: int
    width: int
    window: tuple[int, int]
    """(h, w) of the result."""
    content: tuple[int, int, int, int]
    """(top, left, bottom, right) of the picture in the result."""
    soft: bool
    """The picture's edges blend with the padding: it was padded before the resize."""
    padding: tuple[float, ...] | None
    """The levels around the picture."""
    along_y: Line | None
    along_x: Line | None

    @property
    def padded(self) -> bool:
        """Whether there is padding around the picture."""
        top, left, bottom, right = self.content
        return (top, left) != (0, 0) or (bottom, right) != self.window

    @property
    def sides(self) -> tuple[float, float]:
        """(h, w) that the whole picture would have in the result without a crop."""
        assert self.along_y is not None
        assert self.along_x is not None
        return self.height / self.along_y[0], self.width / self.along_x[0]


def look(program: Program, values: Values, shape: tuple[int, int], tolerance: float) -> Look:
    """Call the program with black, white, and a ramp along each axis."""
    black, white = (
        values.as_levels(program(pictures.flat(*shape, (level,) * 3))) for level in (0, 255)
    )
    if black.shape != white.shape:
        raise NotKnownError("The shape of what it returns depends on the colours.")
    np.subtract(white, black, out=white)
    rise = np.abs(white, out=white).max(0) / 255
    inside = rise > 0.5
    if not inside.any():
        raise NotKnownError("The picture is not in what it returns.")
    rows, columns = np.where(inside.any(1))[0], np.where(inside.any(0))[0]
    content = (int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)
    top, left, bottom, right = content
    if not inside[top:bottom, left:right].all():
        raise NotKnownError("The picture's place in what it returns is no rectangle.")
    room = max(0.02, 2 * tolerance / 255)
    soft = bool((np.minimum(np.abs(rise), np.abs(rise - 1)) > room).any())
    padding = None
    around = rise <= max(1e-4, tolerance / 255)
    if not inside.all():
        padding = _padding(black, around, tolerance, soft)
    lines = []
    for axis in (0, 1):
        try:
            lines.append(_line(program, values, shape, content, axis))
        except _NoRampError:
            lines.append(None)
    return Look(*shape, inside.shape, content, soft, padding, lines[0], lines[1])


def try_look(
    program: Program, values: Values, shape: tuple[int, int], tolerance: float
) -> Look | None:
    """The same as `look`; None if the program rejects the picture."""
    try:
        return look(program, values, shape, tolerance)
    except RefusedError:
        return None


def glance(program: Program, shape: tuple[int, int]) -> Look | None:
    """A look by one call where the size is kept, for large pictures; None where it is not."""
    try:
        result = program.numbers(pictures.flat(*shape, (255, 255, 255)))
    except RefusedError:
        return None
    if result.shape[-2:] != shape:
        return None
    return Look(*shape, shape, (0, 0, *shape), False, None, (1.0, 0.0), (1.0, 0.0))


def _padding(
    black: Array, around: NDArray[np.bool_], tolerance: float, soft: bool
) -> tuple[float, ...]:
    """The level of the padding in each channel."""
    if not around.any():
        raise NotKnownError("What stands around the picture is not one colour.")
    levels = black[:, around]
    level = np.median(levels, axis=1)
    if not soft and np.abs(levels - level[:, None]).max() > max(1e-2, tolerance):
        raise NotKnownError("What stands around the picture is not one colour.")
    whole = np.round(level)
    return tuple(np.where(np.abs(level - whole) < max(tolerance, 1e-3), whole, level).tolist())


class _NoRampError(Exception):
    """There are too few pixels to measure a slope."""


def _line(
    program: Program,
    values: Values,
    shape: tuple[int, int],
    content: tuple[int, int, int, int],
    axis: int,
) -> Line:
    """The positions of the result's pixels along an axis; a crop may need a steeper ramp."""
    length = shape[axis]
    low, high = 0.0, length - 1.0
    line = (1.0, 0.0)
    for _ in range(3):
        numbers = program.numbers(pictures.ramp(shape, axis, low, high))
        top, left, bottom, right = content
        if numbers.shape[1] < bottom or numbers.shape[2] < right:
            raise NotKnownError("The shape of what it returns depends on the colours.")
        y, x = (top + bottom) // 2, (left + right) // 2
        one = numbers[:, top:bottom, x : x + 1] if axis == 0 else numbers[:, y : y + 1, left:right]
        levels = values.as_levels(one.astype(np.float64)).mean(0).ravel()
        line = _fit(levels, low, high)
        begin, end = content[axis], content[axis + 2]
        line = line[0], line[1] - line[0] * begin
        room = 2 * abs(line[0]) + 2
        first, last = line[0] * begin + line[1] - room, line[0] * (end - 1) + line[1] + room
        if last - first > 0.7 * (high - low):
            break
        low, high = max(0.0, first), min(length - 1.0, last)
    return line


def _fit(levels: Array, low: float, high: float) -> Line:
    """Slope and offset from a ramp's levels, starting at the first pixel that shows the picture."""
    places = np.arange(len(levels))
    good = (levels > 8) & (levels < 247)
    if good.sum() < 4:
        raise _NoRampError
    edge = max(1, len(levels) // 12)
    if good.sum() > 12:  # enlarging or blurring bends the ends of a ramp
        good &= (places >= edge) & (places < len(levels) - edge)
    if good.sum() < 4:
        raise _NoRampError
    at = low + levels / 255 * (high - low)
    slope, offset = np.polyfit(places[good], at[good], 1)
    if slope * len(levels) < 0.02 * (high - low + 1):
        raise NotKnownError("The picture is mirrored or turned.")
    return float(slope), float(offset)
