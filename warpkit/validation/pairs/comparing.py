"""Compares candidates with pairs: how many values differ, and by how much in low frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.pairs.numbers import Numbers, fitted_line
from warpkit.validation.pairs.reading import PicturePair
from warpkit.validation.pairs.rules import Arrangement
from warpkit.validation.programs.arithmetic import Resampling
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import Values

Levels = NDArray[np.float64]

LUMA = (0.299, 0.587, 0.114)

LOW = 5
"""Codecs preserve the coefficients (u, v) of 8 x 8 blocks with u + v up to this number."""

WHOLE_LEVELS = 0.5
"""Levels: the largest effect of rounding after gain and offset were changed."""


class Mark(NamedTuple):
    """How well a candidate fits one pair."""

    differing: int
    compared: int
    largest: float
    distance: float
    """The mean |difference| in levels of the luma's low frequencies."""

    @property
    def share(self) -> float:
        return self.differing / max(1, self.compared)


_KEEP = Geometry("keep")  # required by Twin; placements are passed separately

UNLIKE = Mark(1, 1, 255.0, 255.0)
"""The mark for results of another shape, and for filters that do not support a size."""


class Candidate(NamedTuple):
    """A program, as far as pairs determine it."""

    rule: Arrangement
    how: Resampling | None
    values: Values


@dataclass
class Comparison:
    """All pairs that are used, and the marks computed so far."""

    pairs: Sequence[PicturePair]
    numbers: Numbers
    padding: Sequence[tuple[float, ...]]
    """The level of the padding of each pair, one number for each channel."""
    _marks: dict[object, Mark] = field(default_factory=dict)

    def mark(self, k: int, candidate: Candidate) -> Mark:
        """The mark of a candidate on pair k."""
        rule, how, values = candidate
        return self.mark_at(k, rule.placements[k], how, values)

    def mark_at(self, k: int, placement: Placement, how: Resampling | None, values: Values) -> Mark:
        """The same, for a given placement of pair k."""
        key = (k, placement, how, values)
        if key not in self._marks:
            levels = self.render(k, placement, how, values)
            self._marks[key] = UNLIKE if levels is None else self._compared(k, levels, values)
        return self._marks[key]

    def quick_share(
        self, k: int, placement: Placement, how: Resampling | None, values: Values
    ) -> float:
        """The share of one channel's values that differ; 0 if this costs as much as a full
        comparison."""
        pair = self.pairs[k]
        if values.is_gray or pair.result.tables is not None or len(values.gain) == 1:
            return 0.0
        channel = 2 if values.channels == "reversed" else 0
        single = Values("kept", values.gain[:1], values.offset[:1])
        image = torch.from_numpy(pair.picture[..., channel : channel + 1]).movedim(-1, 0)
        levels = self._render(image, placement, how, single, self.padding[k][:1])
        if levels is None or levels.shape[-2:] != pair.result.numbers.shape[-2:]:
            return 1.0
        target = self._levels(pair.result.numbers[:1], levels, single)
        return float((np.abs(levels - target) > self.numbers.tolerance).mean())

    def render(
        self, k: int, placement: Placement, how: Resampling | None, values: Values
    ) -> Levels | None:
        """A candidate's levels (C, h, w) for pair k, through its JPEG tables; None if it has
        none."""
        pair = self.pairs[k]
        image = torch.from_numpy(pair.picture).movedim(-1, 0)
        levels = self._render(image, placement, how, values, self.padding[k])
        if levels is None or levels.shape[-2:] != pair.result.numbers.shape[-2:]:
            return None
        levels = np.broadcast_to(levels, pair.result.numbers.shape)
        tables = pair.result.tables
        if tables is not None:
            levels = np.broadcast_to(tables.written(levels), levels.shape)
        return levels

    def _render(
        self,
        image: torch.Tensor,
        placement: Placement,
        how: Resampling | None,
        values: Values,
        padding: tuple[float, ...],
    ) -> Levels | None:
        twin = Twin(_KEEP, how, values, padding)
        try:
            return twin.levels_at(image, placement).numpy()
        except (ValueError, TypeError, RuntimeError):  # the filter does not support this size
            return None

    def _levels(self, numbers: Levels, levels: Levels, values: Values) -> Levels:
        """The result in levels; gain and offset are fitted to the candidate if nothing was
        rounded."""
        if self.numbers.fitted:
            lines = [
                fitted_line(x.ravel(), y.ravel()) for x, y in zip(levels, numbers, strict=True)
            ]
            gain, offset = (np.array([line[k] for line in lines]) for k in (0, 1))
        else:
            gain, offset = np.asarray(values.gain), np.asarray(values.offset)
        return (numbers - offset[:, None, None]) / gain[:, None, None]

    def _compared(self, k: int, levels: Levels, values: Values) -> Mark:
        target = self._levels(self.pairs[k].result.numbers, levels, values)
        apart = np.abs(levels - target)
        differing = int((apart > self.numbers.tolerance).sum())
        if self.numbers.changed:
            differing = int((apart > WHOLE_LEVELS).sum())
        return Mark(
            differing, apart.size, float(apart.max(initial=0)), low_apart(levels - target, values)
        )


def low_apart(difference: Levels, values: Values) -> float:
    """The mean |coefficient| of the luma's low frequencies, of a difference (C, h, w)."""
    if len(difference) == 3 and not values.is_gray:
        weights = LUMA[::-1] if values.channels == "reversed" else LUMA
        luma = np.tensordot(np.asarray(weights), difference, 1)
    else:
        luma = difference[0]
    rows, columns = luma.shape[0] // 8, luma.shape[1] // 8
    if not rows or not columns:
        return float(np.abs(luma).mean())
    basis, low = _cosines()
    blocks = luma[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8)
    coefficients = np.einsum("ui,aibj,vj->abuv", basis, blocks, basis, optimize=True)
    return float(np.abs(coefficients[..., low]).mean())


@lru_cache(maxsize=1)
def _cosines() -> tuple[Levels, NDArray[np.bool_]]:
    """The orthonormal cosines (8, 8), and a mask of the products with low frequencies."""
    frequency, place = np.arange(8)[:, None], np.arange(8)[None]
    basis = np.sqrt(2 / 8) * np.cos(np.pi * frequency * (2 * place + 1) / 16)
    basis[0] /= np.sqrt(2)
    return basis, np.add.outer(np.arange(8), np.arange(8)) <= LOW
