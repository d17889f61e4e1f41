"""Maps levels to results: channel order, gain, offset, rounding.

This works before any arithmetic is known. Floats on a lattice are whole levels, and the lattice's
spacing is the gain. The offset may be wrong by a number of whole levels, which a candidate settles
later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.pairs.reading import PicturePair
from warpkit.validation.programs.arithmetic import Resampling
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.precision import ROUNDOFF
from warpkit.validation.programs.search import EXACT_ROOM, FLOAT_ROOM
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import (
    KNOWN_WEIGHTS,
    LIBRARY_WEIGHTS,
    Triple,
    Values,
)

Levels = NDArray[np.float64]

SMOOTH = Resampling("bilinear", True, "exact", rounded=False)
"""The resize with which levels are compared before the program's own is known."""

PLAIN = Values("kept", (1.0,) * 3, (0.0,) * 3)

BLOCK = 8
"""Pixels: the mean of a block of this size hardly depends on the filter or on a codec."""

CHANGED_GAIN, CHANGED_MEAN = 0.12, 8.0
"""How far another filter or a codec may move 8-bit results from the picture's own levels."""

LATTICE = 0.02
"""How far floats may be from whole levels, relative to the spacing."""

SUMS_APART = 0.03
"""The tolerance for the weights of a gray sum, which are measured on shrunk pictures."""

SAMPLED = 8
"""The number of pairs on which gain and offset are measured."""


@dataclass(frozen=True)
class Numbers:
    """How results depend on levels: result = gain * level + offset."""

    variants: tuple[Values, ...]
    """One for each observed order of channels; for gray, one for each sum that is near."""
    whole: bool
    """Levels are whole numbers: the program rounds to 8 bits after the resize."""
    tolerance: float
    """Levels: the largest distance of values that count as equal."""
    fitted: bool = False
    """Gain and offset are fitted for each candidate."""
    changed: bool = False
    """8-bit levels differ from the picture's: the program changed contrast or brightness."""

    @property
    def gain(self) -> Levels:
        return np.asarray(self.variants[0].gain)

    @property
    def offset(self) -> Levels:
        return np.asarray(self.variants[0].offset)


def measure(pairs: Sequence[PicturePair], placements: Sequence[Placement], dtype: str) -> Numbers:
    """Measures `Numbers`; placements: one for each pair, as far as it is known."""
    samples = [_sample(p, at) for p, at in list(zip(pairs, placements, strict=True))[:SAMPLED]]
    coloured = [pair.coloured for pair in pairs[: len(samples)]]
    channels = len(samples[0][1])
    orders = _orders(samples, coloured)
    gray = _gray_sums(samples, coloured) if _is_gray(samples, coloured) else []
    first = "gray" if gray else orders[0]
    expected = np.concatenate(
        [_blocks(_reference(x, first, gray, channels)) for x, _ in samples], 1
    )
    measured = np.concatenate([_blocks(y) for _, y in samples], 1)
    values = np.concatenate([y.reshape(channels, -1) for _, y in samples], 1)
    gain, offset = np.ones(channels), np.zeros(channels)
    whole, fitted, changed = True, False, False
    if dtype == "uint8":
        scale, base, brighter = _middle_line(
            samples, [_reference(x, first, gray, channels) for x, _ in samples]
        )
        changed = abs(scale - 1) > CHANGED_GAIN or abs(brighter) > CHANGED_MEAN
        if changed:
            gain[:], offset[:] = scale, base
    else:
        lattices = [_lattice(row, _roundoff(dtype, row)) for row in values]
        lines = [_line(x, y) for x, y in zip(expected, measured, strict=True)]
        whole = all(lattice is not None for lattice in lattices)
        for c, (line, lattice) in enumerate(zip(lines, lattices, strict=True)):
            if whole and lattice is not None:
                gain[c], base = lattice
                shift = round(float(np.median(expected[c] - (measured[c] - base) / gain[c])))
                offset[c] = base - shift * gain[c]
            else:
                gain[c], offset[c] = line
        fitted = not whole
    gain = np.where(np.abs(gain) < 1e-12, 1.0, gain)
    top = max(1e-9, float(np.abs(values).max()))
    room = EXACT_ROOM if whole else FLOAT_ROOM
    room += (
        3 * ROUNDOFF.get(dtype, 1e-7 if dtype == "float32" else 1e-12) * top / np.abs(gain).min()
    )
    numbers = tuple(map(float, gain)), tuple(map(float, offset))
    variants = [Values(order, *numbers) for order in orders]
    if gray:
        variants = [replace(values, gain=numbers[0], offset=numbers[1]) for values in gray]
    return Numbers(tuple(variants), whole, float(room), fitted, changed)


def unchanged(numbers: Numbers) -> Numbers:
    """The numbers of a program that leaves 8-bit levels unchanged."""
    variants = []
    for values in numbers.variants:
        ones = (1.0,) * len(values.gain)
        variants.append(replace(values, gain=ones, offset=(0.0,) * len(ones)))
    return replace(numbers, variants=tuple(variants), tolerance=EXACT_ROOM, changed=False)


def shift_by(numbers: Numbers, shift: Levels) -> Numbers:
    """The numbers with an offset that is larger by whole levels."""
    variants = []
    for values in numbers.variants:
        offsets = np.asarray(values.offset) - shift * np.asarray(values.gain)
        variants.append(replace(values, offset=tuple(map(float, offsets))))
    return replace(numbers, variants=tuple(variants))


def _sample(pair: PicturePair, placement: Placement) -> tuple[Levels, Levels]:
    """The picture (3, h, w), resized by a smooth filter, and the result (C, h, w)."""
    twin = Twin(Geometry("keep"), SMOOTH, PLAIN, (0.0,) * 3)
    image = torch.from_numpy(pair.picture).movedim(-1, 0)
    top, left, bottom, right = placement.content()
    levels = twin.levels_at(image, placement).numpy()
    part = (slice(None), slice(top, bottom), slice(left, right))
    return levels[part], pair.result.numbers[part]


def _roundoff(dtype: str, row: Levels) -> float:
    return ROUNDOFF.get(dtype, 1e-7) * float(np.abs(row).max())


def _orders(samples: Sequence[tuple[Levels, Levels]], coloured: Sequence[bool]) -> list[str]:
    """The orders of channels in the coloured pairs; the usual one if all are gray."""
    votes: dict[str, int] = {}
    for (x, y), has_colour in zip(samples, coloured, strict=True):
        if len(y) != 3 or not has_colour:
            continue
        rests = {
            order: sum(_rest(a.ravel(), b.ravel()) for a, b in zip(x[::turn], y, strict=True))
            for order, turn in (("kept", 1), ("reversed", -1))
        }
        order = min(rests, key=lambda name: rests[name])
        votes[order] = votes.get(order, 0) + 1
    return sorted(votes, key=lambda name: -votes[name]) or ["kept"]


def _is_gray(samples: Sequence[tuple[Levels, Levels]], coloured: Sequence[bool]) -> bool:
    """Whether results have one channel, or three that depend linearly on each other."""
    if len(samples[0][1]) == 1:
        return True
    some = [y for (_, y), has in zip(samples, coloured, strict=True) if has]
    if not some:
        return False
    flat = np.concatenate([y.reshape(3, -1) for y in some], 1)
    spread = flat.std(1).max()
    return all(_rest(flat[0], row) <= 1e-3 * spread for row in flat[1:])


def _gray_sums(samples: Sequence[tuple[Levels, Levels]], coloured: Sequence[bool]) -> list[Values]:
    """The sums near the measured weights; if all pictures are gray, any sum is right."""
    some = [s for s, has in zip(samples, coloured, strict=True) if has]
    if not some:
        return [Values("gray", (1.0,), (0.0,), LIBRARY_WEIGHTS["pillow"], "pillow")]
    x = np.concatenate([_blocks(x) for x, _ in some], 1)
    y = np.concatenate([_blocks(y[:1]) for _, y in some], 1)[0]
    columns = np.stack([*x, np.ones(x.shape[1])], 1)
    slopes = np.linalg.lstsq(columns, y, rcond=None)[0][:3]
    mean = slopes / slopes.sum() if abs(slopes.sum()) > 1e-9 else np.full(3, 1 / 3)
    candidates = []
    sums = [*LIBRARY_WEIGHTS.items(), *(("floats", weights) for weights in KNOWN_WEIGHTS)]
    nearest = min(_apart(mean, w, turn) for _, w in sums for turn in (1, -1))
    for first in (True, False):
        for name, weights in dict.fromkeys(sums):
            for channels, turn in (("gray", 1), ("gray reversed", -1)):
                if _apart(mean, weights, turn) <= nearest + SUMS_APART:
                    candidates.append(Values(channels, (1.0,), (0.0,), weights, name, first))
    return candidates


def _apart(mean: Levels, weights: Triple, turn: int) -> float:
    return float(np.abs(mean - np.asarray(weights)[::turn]).max())


def _reference(x: Levels, order: str, gray: Sequence[Values], channels: int) -> Levels:
    """(C, h, w) in the result's order of channels."""
    if gray:
        values = gray[0]
        levels = values.gray_floats(values.reorder(torch.from_numpy(x.copy())))
        return np.broadcast_to(levels.numpy(), (channels, *x.shape[1:]))
    return x[::-1] if order == "reversed" else x


def _blocks(levels: Levels) -> Levels:
    """(C, h, w) -> the means of blocks (C, n)."""
    channels, height, width = levels.shape
    side = BLOCK if min(height, width) >= 3 * BLOCK else BLOCK // 2
    rows, columns = height // side, width // side
    if not rows or not columns:
        return levels.reshape(channels, -1)
    cut = levels[:, : rows * side, : columns * side]
    return cut.reshape(channels, rows, side, columns, side).mean((2, 4)).reshape(channels, -1)


def _line(x: Levels, y: Levels) -> tuple[float, float]:
    """Slope and offset of a least-squares line."""
    spread = x - x.mean()
    norm = float((spread * spread).sum())
    slope = float((spread * (y - y.mean())).sum()) / norm if norm > 1e-9 else 1.0
    return slope, float(y.mean() - slope * x.mean())


def _middle_line(
    samples: Sequence[tuple[Levels, Levels]], expected: Sequence[Levels]
) -> tuple[float, float, float]:
    """The pairs' median contrast, the matching offset, and the median increase in brightness.

    Standard deviations give the slope, because least squares would flatten it for wrong
    placements."""
    grays = [
        (_blocks(x).mean(0), _blocks(y).mean(0))
        for x, (_, y) in zip(expected, samples, strict=True)
    ]
    slope = float(np.median([y.std() / max(x.std(), 1e-6) for x, y in grays]))
    offset = float(np.median([y.mean() - slope * x.mean() for x, y in grays]))
    return slope, offset, float(np.median([y.mean() - x.mean() for x, y in grays]))


def _rest(x: Levels, y: Levels) -> float:
    """The mean residual of a fitted line, in the units of y."""
    slope, offset = _line(x, y)
    return float(np.abs(slope * x + offset - y).mean())


def fitted_line(x: Levels, y: Levels) -> tuple[float, float]:
    """Gain and offset of results y over levels x; if the levels are flat, gain 1."""
    slope, offset = _line(x, y)
    return (slope, offset) if abs(slope) > 1e-12 else (1.0, offset)


def _lattice(row: Levels, roundoff: float) -> tuple[float, float] | None:
    """Spacing and base of numbers that are whole levels; None for other numbers."""
    unique = np.unique(row)
    if roundoff > 0:  # for float16: merge numbers that rounding has separated
        keep = np.concatenate([[True], np.diff(unique) > 4 * roundoff])
        unique = unique[keep]
    if not 8 <= len(unique) <= 256:
        return None
    steps = np.diff(unique)
    spacing = float(np.median(steps[steps < 1.5 * steps.min()]))
    base = float(unique[0])
    for _ in range(3):
        places = np.round((unique - base) / spacing)
        columns = np.stack([places, np.ones_like(places)], 1)
        spacing, base = map(float, np.linalg.lstsq(columns, unique, rcond=None)[0])
    places = np.round((unique - base) / spacing)
    room = LATTICE * spacing + 3 * roundoff
    if places.max() - places.min() > 255 or np.abs(unique - base - places * spacing).max() > room:
        return None
    return spacing, base
