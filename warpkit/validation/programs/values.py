"""Maps levels to numbers: channels, gain and offset, and the sums that convert to gray."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.validation.programs import pictures
from warpkit.validation.programs.precision import DIGITS, ULPS, line, type_of, ulp
from warpkit.validation.programs.program import NotKnownError, Program

Array = NDArray[np.float64]
Triple = tuple[float, float, float]
Colour = tuple[int, int, int]

FINE = 1e-3
"""Levels: numbers whose last bits are coarser than this are compared in their own type."""

GRAYS = range(4, 252, 8)
"""Levels of flat pictures that tell gain and offset of coarse numbers, which two cannot."""

CUT = 1.02
"""Levels: how far numbers may be too low because they were truncated to 8 bits."""

LIBRARY_WEIGHTS: dict[str, Triple] = {
    "pillow": (0.299, 0.587, 0.114),
    "opencv": (0.299, 0.587, 0.114),
    "torchvision": (0.2989, 0.587, 0.114),
}
KNOWN_WEIGHTS: tuple[Triple, ...] = (
    (0.299, 0.587, 0.114),
    (0.2989, 0.587, 0.114),
    (0.2125, 0.7154, 0.0721),
    (0.2126, 0.7152, 0.0722),
    (1 / 3, 1 / 3, 1 / 3),
)
"""Most libraries and torchvision use BT.601; scikit-image and others BT.709; some the mean."""

COLOURS = 24
"""The number of flat colours that distinguish gray sums: rounded sums differ on about one in
ten."""


@dataclass(frozen=True)
class Values:
    """How levels become numbers: result = gain * level + offset, for each channel."""

    channels: str
    gain: tuple[float, ...]
    offset: tuple[float, ...]
    weights: Triple | None = None
    sum: str | None = None
    """Which sum makes gray: that of a library of `LIBRARY_WEIGHTS`, or "floats"."""
    gray_first: bool = True
    """The conversion to gray comes before the resize."""

    @property
    def is_gray(self) -> bool:
        """Whether three channels become one."""
        return self.weights is not None

    def single(self) -> Values:
        """The values of the first channel alone."""
        return Values("kept", self.gain[:1], self.offset[:1])

    def reorder(self, levels: Tensor) -> Tensor:
        """(..., 3, H, W) in the order in which channels are returned, or that gray sums expect."""
        return levels.flip(-3) if self.channels in ("reversed", "gray reversed") else levels

    def gray(self, levels: Tensor) -> Tensor:
        """Ordered (3, h, w) -> (1, h, w): uint8 by the library's integer sum, floats by weights."""
        if levels.dtype != torch.uint8 or self.sum == "floats":
            return self.gray_floats(levels.float())
        assert self.sum is not None
        return _gray_integers(levels, self.sum)

    def gray_floats(self, levels: Tensor) -> Tensor:
        """Ordered floats (..., 3, h, w) -> (..., 1, h, w)."""
        weights = levels.new_tensor(self.weights)[:, None, None]
        return (levels * weights).sum(-3, keepdim=True)

    def as_numbers(self, levels: Tensor) -> Tensor:
        """Levels (..., C or 1, h, w) -> the program's numbers (..., C, h, w)."""
        gain, offset = (levels.new_tensor(v)[:, None, None] for v in (self.gain, self.offset))
        return levels * gain + offset

    def as_levels(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The program's numbers (C, h, w) as levels, in the same array: large ones cost most."""
        if len(numbers) != len(self.gain):
            raise NotKnownError("The number of channels depends on the picture.")
        if any(self.offset):
            numbers -= np.reshape(self.offset, (-1, 1, 1))
        if set(self.gain) != {1.0}:
            numbers /= np.reshape(self.gain, (-1, 1, 1))
        return numbers


def _gray_integers(levels: Tensor, library: str) -> Tensor:
    """uint8 (3, h, w) -> (1, h, w), by the library's own sum."""
    red, green, blue = levels
    if library == "torchvision":  # with other calls, 3 of 510,000 values differ after truncation
        total = red.mul(0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114)
        return total.to(torch.uint8)[None]
    red, green, blue = red.int(), green.int(), blue.int()
    if library == "pillow":
        total = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    else:
        total = (9798 * red + 19235 * green + 3735 * blue + (1 << 14)) >> 15
    return total.to(torch.uint8)[None]


@dataclass(frozen=True)
class Measured:
    """The values measured on flat pictures."""

    variants: tuple[Values, ...]
    """One; for gray, one for each sum that fits, before and after the resize."""
    tolerance: float
    """Levels: the largest distance of equal values."""
    cutting: bool
    """Some flat pictures come out a level too low."""
    dtype: str = "float32"
    """The type that the numbers really have."""

    @property
    def is_coarse(self) -> bool:
        """Whether a few last bits are more than the distance of equal levels."""
        return self.tolerance > FINE


def measure(program: Program) -> Measured:
    """Measure on flat pictures: black, white, red, green, blue and two grays."""
    shots = _shots(program, FLAT)
    views = {name: _colour_of(program, colour) for name, colour in FLAT.items()}
    rows, columns = _shown(shots)
    row, column = (rows.min() + rows.max()) // 2, (columns.min() + columns.max()) // 2
    at = {name: shot[:, row, column] for name, shot in shots.items()}
    measured = dict(at)
    around = (slice(None), *_middle(rows, columns))
    span = np.abs(at["white"] - at["black"])
    wide = views["white"][0] - views["black"][0]
    spread = max(
        float((np.ptp(shots[name][around], axis=(1, 2)) / span).max() * wide)
        for name in ("black", "white")
    )
    if program.dtype == "uint8":
        at["white"] = np.where(
            np.abs(at["white"] - at["black"] - (wide - 1)) < 0.5, at["black"] + wide, at["white"]
        )
    elif 0.5 < spread < CUT:
        at["white"] = _farthest(shots["white"][around], at["black"])
    gain = (at["white"] - at["black"]) / wide
    offset = at["black"] - gain * views["black"][0]
    dtype, tolerance = _precision(program, at, gain)
    cutting = 0.5 < spread < CUT
    if spread > max(1e-2, tolerance) and not cutting:
        text = "A flat picture is not flat in what it returns"
        raise NotKnownError(f"{text} (by {spread:.3g} levels).")
    three = ("red", "green", "blue")
    levels = np.stack([(at[name] - offset) / gain for name in three], 1)
    colours = np.array([views[name] for name in three], float).T
    matrix = levels @ np.linalg.pinv(colours)
    room = CUT / 255 if cutting or program.dtype == "uint8" else 2e-3
    for channels, order in (("kept", 1), ("reversed", -1)):
        near = len(gain) == 3 and np.abs(levels - colours[::order]).max() / 255
        if len(gain) == 3 and near < max(room, tolerance / 100):
            grays = {name: (views[name][0], at[name]) for name in ("middle", "fifth")}
            closest = max(tolerance, CUT + tolerance if cutting else 1e-3)
            bent = _bent(grays, gain, offset, closest)
            lower = gain * wide / (wide - 1)
            if bent is not None and _bent(grays, lower, offset, CUT + tolerance) is None:
                gain, bent, cutting = lower, None, True  # white is truncated to 254, too
            if bent is not None:
                raise NotKnownError(f"{bent}: numbers are not gain * level + offset.")
            if tolerance > FINE and not cutting:
                gain, offset = _line_of_grays(program, at, (row, column), dtype)
            return Measured((_values(channels, gain, offset),), tolerance, cutting, dtype)
    variants = _gray(program, measured, matrix, (row, column), tolerance)
    return Measured(variants, tolerance, cutting, dtype)


def measure_roughly(program: Program) -> Measured:
    """Black as level 0 and white as 255, to see where pictures are; channels mean nothing."""
    shots = _shots(program, ("black", "white"))
    rows, columns = _shown(shots)
    row, column = (rows.min() + rows.max()) // 2, (columns.min() + columns.max()) // 2
    at = {name: shot[:, row, column] for name, shot in shots.items()}
    gain = (at["white"] - at["black"]) / 255
    dtype, tolerance = _precision(program, at, gain)
    return Measured((_values("kept", gain, at["black"]),), tolerance, False, dtype)


def _shots(program: Program, names: Iterable[str]) -> dict[str, Array]:
    """The program's numbers for flat pictures."""
    shots = {name: program(pictures.flat(*program.shape, FLAT[name])) for name in names}
    if not all(np.isfinite(shot).all() for shot in shots.values()):
        text = "Flat pictures give numbers that are not finite"
        raise NotKnownError(f"{text}: it divides by something of the picture.")
    if any(shot.shape != shots["black"].shape for shot in shots.values()):
        raise NotKnownError("The shape of what it returns depends on the colours.")
    return shots


def _colour_of(program: Program, colour: Sequence[int]) -> Colour:
    """A colour as the resize sees it; a file keeps flat pictures flat."""
    red, green, blue = program.after_file(pictures.flat(8, 8, colour))[0, 0].tolist()
    return red, green, blue


def _shown(shots: dict[str, Array]) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """The rows and columns of the result's pixels that depend on the picture."""
    rise = np.abs(shots["white"] - shots["black"])
    if not (rise > 0).any():
        raise NotKnownError("What it returns does not depend on the brightness of a flat picture.")
    inside = (rise > 0.5 * rise.max((1, 2), keepdims=True)).all(0)
    if not inside.any():
        raise NotKnownError("A channel does not depend on the picture.")
    rows, columns = np.where(inside)
    return rows, columns


def _precision(program: Program, at: dict[str, Array], gain: Array) -> tuple[str, float]:
    """The type that numbers really have, and the largest distance of equal ones, in levels."""
    dtype = type_of(
        program.dtype, np.stack([numbers.astype(np.float64) for numbers in at.values()])
    )
    if dtype not in DIGITS:
        return dtype, 2e-4
    scale = np.maximum(np.abs(at["white"]), np.abs(at["black"]))
    return dtype, 2e-4 + float((ULPS * ulp(scale, dtype) / np.abs(gain)).max())


def _line_of_grays(
    program: Program, at: dict[str, Array], place: tuple[int, int], dtype: str
) -> tuple[Array, Array]:
    """Gain and offset from many flat grays, as each coarse number has a rounding error."""
    levels = [float(_colour_of(program, FLAT[name])[0]) for name in ("black", "white")]
    numbers = [at["black"], at["white"]]
    for level in GRAYS:
        shot = program(pictures.flat(*program.shape, (level,) * 3))
        numbers.append(shot[:, place[0], place[1]])
        levels.append(float(_colour_of(program, (level,) * 3)[0]))
    return line(np.array(levels), np.stack(numbers), dtype, zero=not at["black"].any())


FLAT = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "middle": (128, 128, 128),
    "fifth": (51, 51, 51),
}


def _middle(rows: NDArray[np.int_], columns: NDArray[np.int_]) -> tuple[slice, slice]:
    """The content without its edges, which blur if a program pads before it resizes."""
    edges = []
    for places in (rows, columns):
        low, high = int(places.min()), int(places.max()) + 1
        edge = (high - low) // 4
        edges.append(slice(low + edge, high - edge))
    return edges[0], edges[1]


def _farthest(numbers: Array, black: Array) -> Array:
    """The number farthest from black in each channel of (C, h, w)."""
    flat = numbers.reshape(len(numbers), -1)
    pick = np.abs(flat - black[:, None]).argmax(1)
    return flat[np.arange(len(flat)), pick]


def _values(channels: str, gain: Array, offset: Array, **gray: object) -> Values:
    return Values(channels, tuple(map(float, gain)), tuple(map(float, offset)), **gray)  # type: ignore[arg-type]


def _bent(
    grays: dict[str, tuple[int, Array]], gain: Array, offset: Array, room: float
) -> str | None:
    """A sentence about a gray that is off the line between black and white; None if all are on
    it."""
    for level, numbers in grays.values():
        got = (numbers - offset) / gain
        if np.abs(got - level).max() > room:
            worst = got[np.abs(got - level).argmax()]
            return f"Level {level} comes out as level {worst:.3f}"
    return None


def _gray(
    program: Program, at: dict[str, Array], matrix: Array, place: tuple[int, int], tolerance: float
) -> tuple[Values, ...]:
    """The sums that fit many flat colours."""
    if np.ptp(matrix, axis=0).max() > 0.02:
        text = "Channels are mixed by no sum that is known"
        raise NotKnownError(f"{text}: {matrix.round(3).tolist()}.")
    generator = np.random.default_rng(24)
    colours = [_colour_of(program, FLAT[name]) for name in FLAT]
    numbers = [at[name] for name in FLAT]
    for colour in generator.integers(0, 256, (COLOURS, 3)).tolist():
        numbers.append(program(pictures.flat(*program.shape, colour))[:, place[0], place[1]])
        colours.append(_colour_of(program, colour))
    got, inputs = np.stack(numbers), torch.tensor(colours, dtype=torch.uint8, device="cpu")
    mean = matrix.mean(0)
    fits: list[tuple[float, Values]] = []
    for sum_, weights in [*LIBRARY_WEIGHTS.items(), *(("floats", w) for w in KNOWN_WEIGHTS)]:
        for channels in ("gray", "gray reversed"):
            turned = weights if channels == "gray" else weights[::-1]
            if np.abs(mean - turned).max() > 9e-3:
                continue
            trial = Values(channels, (1.0,), (0.0,), weights, sum_)
            levels = trial.gray(trial.reorder(inputs.T[:, None, :].contiguous()))[0, 0].numpy()
            gain = (got[1] - got[0]) / (float(levels[1]) - float(levels[0]))
            offset = got[0] - gain * float(levels[0])
            off = np.abs((got - offset) / gain - levels[:, None]).max()
            fits.append((float(off), _values(channels, gain, offset, weights=weights, sum=sum_)))
    nearest = min((off for off, _ in fits), default=np.inf)
    if nearest > max(0.02, 2 * tolerance):
        got_by = (
            f"the nearest is up to {nearest:.2f} levels off"
            if fits
            else f"{mean.round(4).tolist()}"
        )
        raise NotKnownError(f"It is gray, by no sum that is known ({got_by}).")
    good = [values for off, values in fits if off <= max(3 * nearest, tolerance, 1e-3)]
    return tuple(
        Values(v.channels, v.gain, v.offset, v.weights, v.sum, first)
        for first in (True, False)
        for v in good
    )
