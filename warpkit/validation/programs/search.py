"""Searches the known rules and resizes for a program's numbers: every value of every image.

`Search.first` tries all resizes on one picture, `Search.settle` keeps those that fit one more, and
`Search.refine` asks for pictures on which those that are left disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.programs import pictures
from warpkit.validation.programs.arithmetic import (
    Resampling,
    candidates,
    opencv_names,
    rare_candidates,
)
from warpkit.validation.programs.asking import NotKnownError, Program, RefusedError
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import Measured, Values

Array = NDArray[np.float64]
Pair = tuple[Resampling | None, Values]

EXACT_ROOM = 1e-3
"""Levels: what 8 bits may lie apart, by the float32 of gain and offset."""

FLOAT_ROOM = 1.5e-3
"""The same of floats: Pillow's, torch's and the exact ones agree that far."""

VALUES = 200_000
"""Values compared before ties count as ties, and again by the proof."""

PROMISING = 0.02
"""Of one channel's values that differ: what is not worth the other two."""

SEARCHED = 3
"""Placements that are tried with all resizes, the nearest on a smooth picture first."""


class Difference(NamedTuple):
    """How far a twin is from the program on one picture."""

    share: float
    largest: float
    differing: int


UNLIKE = Difference(1.0, np.inf, 1 << 60)
"""Another shape, or an error."""


@dataclass(frozen=True)
class Nearest:
    """The resize that is nearest where none fits."""

    resampling: Resampling | None
    difference: Difference


class Search:
    """The rules and resizes that have fitted everything so far."""

    def __init__(
        self,
        program: Program,
        measured: Measured,
        geometries: Sequence[Geometry],
        padding: tuple[float, ...],
    ) -> None:
        self.program, self.measured, self.padding = program, measured, padding
        self.tolerance = measured.tolerance
        self.all_geometries = list(geometries)
        self.geometries = list(geometries)
        self.pairs: list[Pair] = []
        self.shapes: list[tuple[int, int]] = []
        """Of the pictures that everything left has fitted."""
        self.trouble: list[tuple[int, int]] = []
        """Of those that nothing fits."""
        self.aside: list[tuple[int, int]] = []
        """Of those that were left aside to find a rule: the proof asks them."""
        self.compared = 0
        self.nearest: Nearest | None = None

    def levels(self, picture: Picture) -> Array:
        """The program's result in levels (C, h, w)."""
        values = self.measured.variants[0]
        numbers = self.program(picture)
        gain, offset = (np.asarray(v)[:, None, None] for v in (values.gain, values.offset))
        if len(numbers) != len(gain):
            raise NotKnownError("The number of channels depends on the picture.")
        return (numbers - offset) / gain

    def room(self, how: Resampling | None) -> float:
        """How far equal levels may lie apart."""
        floats = how is not None and how.rounded is False and not how.moves
        return max(self.tolerance, FLOAT_ROOM if floats else EXACT_ROOM)

    def twin(self, geometry: Geometry, pair: Pair) -> Twin:
        """A hypothesis as a program."""
        return Twin(geometry, *pair, self.padding[: len(pair[1].gain)])

    def difference(
        self, picture: Picture, levels: Array, placement: Placement, pair: Pair
    ) -> Difference:
        """A hypothesis against the program's levels (C, h, w) of a picture."""
        twin = self.twin(self.all_geometries[0], pair)
        image = torch.from_numpy(picture).movedim(-1, 0)
        try:
            made = twin.levels_at(image, placement).numpy()
        except (ValueError, TypeError, RuntimeError):  # a filter that has no such size
            return UNLIKE
        return self.compare(made, levels, pair)

    def compare(self, made: Array, levels: Array, pair: Pair) -> Difference:
        """Levels of a twin (C or 1, h, w) against the program's (C, h, w), of its own variant."""
        if made.shape[-2:] != levels.shape[-2:]:
            return UNLIKE
        levels = self._by_variant(levels, pair[1])
        apart = np.abs(made - levels)
        differing = int((~(apart <= self.room(pair[0]))).sum())  # NaN differs
        return Difference(differing / apart.size, float(apart.max(initial=0)), differing)

    def _by_variant(self, levels: Array, values: Values) -> Array:
        """Levels by the gain of one gray sum in place of the first's."""
        first = self.measured.variants[0]
        if not values.is_gray or (values.gain, values.offset) == (first.gain, first.offset):
            return levels
        numbers = levels * np.reshape(first.gain, (-1, 1, 1)) + np.reshape(first.offset, (-1, 1, 1))
        return (numbers - np.reshape(values.offset, (-1, 1, 1))) / np.reshape(
            values.gain, (-1, 1, 1)
        )

    def first(self, side: int) -> None:
        """All resizes on a square picture, where no other side is rounded.

        Raises NotKnownError where none fits."""
        picture = pictures.noise(side, side, 11)
        levels = self.levels(picture)
        placements: dict[Placement, Geometry] = {}
        for geometry in self.geometries:
            placements.setdefault(geometry.placed(side, side), geometry)
        keep = all(placed.size == (side, side) and not placed.cut for placed in placements)
        pools = [[None]] if keep else self._pools(levels)
        ranked = list(placements) if len(placements) == 1 else self._ranked(side, list(placements))
        found: list[tuple[Difference, Placement, Pair]] = []
        for pool in pools:
            for placement in ranked:
                found += self._try(picture, levels, placement, pool)
                if any(difference.differing == 0 for difference, *_ in found):
                    break
            fits = [found_ for found_ in found if found_[0].differing == 0]
            if fits and not any(self._has_rare_neighbour(pair[0]) for _, _, pair in fits):
                break
        fits = [found_ for found_ in found if found_[0].differing == 0]
        if not fits:
            difference, _, pair = min(found, key=lambda f: (f[0].share, f[0].largest))
            self.nearest = Nearest(pair[0], difference)
            raise NotKnownError(_said_nearest(pair[0], difference))
        placement = fits[0][1]
        self.geometries = [g for g in self.geometries if g.placed(side, side) == placement]
        self.pairs = [pair for _, placed, pair in fits if placed == placement]
        self.shapes.append((side, side))
        self.compared += levels.size

    def _has_rare_neighbour(self, how: Resampling | None) -> bool:
        """Whether a rare resize may give the same on the first picture, and not later."""
        if how is None:
            return False
        if how.rounded is not True and how.interpolation in ("bilinear", "bicubic"):
            return True  # TensorFlow's are near, scikit-image's the same where a picture shrinks
        if how.arithmetic.startswith("opencv"):  # by the factor: the same where no side is rounded
            return self.geometries[0].rule in ("shortest", "longest", "factor")
        return False

    def _pools(self, levels: Array) -> list[list[Resampling | None]]:
        """The usual resizes, then the rare ones; by whether the program's numbers are whole."""
        whole = None
        if self.tolerance < 0.2 and not self.measured.variants[0].is_gray:
            whole = bool(np.abs(levels - np.round(levels)).max() < max(self.tolerance, 2e-3))
        return [
            [how for how in pool if whole in (None, how.rounded is not False) or how.moves]
            for pool in (candidates(), rare_candidates())
        ]

    def _try(
        self,
        picture: Picture,
        levels: Array,
        placement: Placement,
        pool: Sequence[Resampling | None],
    ) -> list[tuple[Difference, Placement, Pair]]:
        """All resizes of a pool at one placement; one channel first."""
        found = []
        one = self._one_channel(picture, levels)
        for how in pool:
            for values in self.measured.variants:
                if values.is_gray and how is not None and not makes_gray(how, values):
                    continue
                pair = (how, values)
                if one is not None:
                    quick = self.difference(one[0], one[1], placement, (how, _single(values)))
                    if quick.share > PROMISING:
                        found.append((quick, placement, pair))
                        continue
                found.append((self.difference(picture, levels, placement, pair), placement, pair))
        return found

    def _one_channel(self, picture: Picture, levels: Array) -> tuple[Picture, Array] | None:
        """The channel that comes first in the result; None of gray."""
        values = self.measured.variants[0]
        if values.is_gray:
            return None
        channel = 2 if values.channels == "reversed" else 0
        return picture[..., channel : channel + 1].copy(), levels[:1]

    def _ranked(self, side: int, placements: list[Placement]) -> list[Placement]:
        """The placements that are nearest on a smooth picture, by the usual filters."""
        picture = pictures.smooth(side, side, 5)
        levels = self.levels(picture)
        values = self.measured.variants[0]
        one = self._one_channel(picture, levels)
        if one is not None:
            (picture, levels), values = one, _single(values)
        marks = []
        for placement in placements:
            for how in _quick():
                twin = self.twin(self.all_geometries[0], (how, values))
                try:
                    made = twin.levels_at(torch.from_numpy(picture).movedim(-1, 0), placement)
                except (ValueError, TypeError, RuntimeError):
                    continue
                if made.shape[-2:] == levels.shape[-2:]:
                    marks.append((float(np.abs(made.numpy() - levels).mean()), placement))
        marks.sort(key=lambda mark: mark[0])
        return list(dict.fromkeys(placement for _, placement in marks))[:SEARCHED]

    def settle(self, height: int, width: int) -> bool | None:
        """Keep what fits one more picture. False: nothing does; None: the program refuses it."""
        picture = pictures.noise(height, width, 100 + len(self.shapes) + len(self.trouble))
        try:
            levels = self.levels(picture)
        except RefusedError:
            return None
        kept = self.fitting(picture, levels, self.geometries, self.pairs)
        if not kept:
            self.trouble.append((height, width))
            return False
        placements = {placement for placement, _ in kept}
        self.geometries = [g for g in self.geometries if g.placed(height, width) in placements]
        self.pairs = [p for p in self.pairs if any(pair == p for _, pair in kept)]
        self.shapes.append((height, width))
        self.compared += levels.size
        return True

    def fitting(
        self,
        picture: Picture,
        levels: Array,
        geometries: Sequence[Geometry],
        pairs: Sequence[Pair],
    ) -> list[tuple[Placement, Pair]]:
        """The placements and resizes that give all values of a picture (C, h, w)."""
        shape = (picture.shape[0], picture.shape[1])
        placements = dict.fromkeys(geometry.placed(*shape) for geometry in geometries)
        return [
            (placement, pair)
            for placement in placements
            if placement.window == levels.shape[-2:]
            for pair in pairs
            if self.difference(picture, levels, placement, pair).differing == 0
        ]

    def refine(self, near: tuple[int, int]) -> None:
        """Ask where rules disagree, then at other scales, until enough values were compared.

        near: (h, w) about which pictures are neither much larger nor much smaller."""
        probes = pictures.probes(max(24, *near))
        tried: set[tuple[int, int]] = set()
        for _ in range(14):
            worth = [
                (len({g.placed(*shape) for g in self.geometries}), -shape[0] * shape[1], shape)
                for shape in probes
                if shape not in tried
            ]
            count, _, shape = max(worth)
            if count <= 1:
                break
            tried.add(shape)
            self.settle(*shape)
        h, w = (max(8, side) for side in near)
        shapes = [
            (int(h * 1.21) + 3, int(w * 1.93) + 2),
            (int(h * 2.6) + 1, int(w * 2.2) + 4),
            (int(h * 1.7) + 1, int(w * 0.8) + 3),
            (max(9, int(h * 0.61)), max(9, int(w * 0.77))),
        ]
        for k in range(14):
            if k >= len(shapes) and (self.compared >= VALUES or len(self.pairs) == 1):
                break  # more values settle ties alone; the proof compares as many again
            height, width = shapes[k % len(shapes)]
            self.settle(height + k // 4 * 2, width + k // 4 * 3)

    def drop_unfit(self, evidence: Sequence[tuple[Picture, Array]]) -> bool:
        """Keep the resizes that fit these pictures too; False, and all of them, where none does."""
        left = self.pairs
        for picture, levels in evidence:
            placement = self.geometries[0].placed(picture.shape[0], picture.shape[1])
            left = [
                pair
                for pair in left
                if self.difference(picture, levels, placement, pair).differing == 0
            ]
        self.pairs = left or self.pairs
        return bool(left)

    def reconsider(self, failed: Sequence[tuple[int, int]], pair: Pair) -> bool:
        """Take another rule, by what the one in hand did not fit; False where there is none."""
        seen: list[tuple[Picture, Array, dict[Placement, bool]]] = []
        for shape in (*self.shapes[:4], *failed[:3]):
            picture = pictures.noise(*shape, 3)
            with suppress(RefusedError):
                seen.append((picture, self.levels(picture), {}))
        for geometry in self.all_geometries:
            if geometry == self.geometries[0]:
                continue
            if all(self._agrees(geometry, pair, *one) for one in seen):
                self.geometries = [geometry]
                self.trouble = []
                return True
        return False

    def _agrees(
        self,
        geometry: Geometry,
        pair: Pair,
        picture: Picture,
        levels: Array,
        known: dict[Placement, bool],
    ) -> bool:
        """Whether a rule gives all values of a picture; `known` has the placements tried before."""
        placement = geometry.placed(picture.shape[0], picture.shape[1])
        if placement.window != levels.shape[-2:]:
            return False
        if placement not in known:
            difference = self.difference(picture, levels, placement, pair)
            known[placement] = difference.differing == 0
        return known[placement]


def makes_gray(how: Resampling, values: Values) -> bool:
    """Whether a resize and a gray sum go together: floats by weights, 8 bits by integers first."""
    floats = how.rounded is False and not how.moves
    if values.gray_first:
        return floats == (values.sum == "floats") or how.moves
    return values.sum == "floats" or not floats


def _single(values: Values) -> Values:
    """Of one channel alone."""
    return Values("kept", values.gain[:1], values.offset[:1])


def _quick() -> list[Resampling]:
    """One resize of each kind, to rank placements by."""
    opencv, _ = opencv_names()
    return [
        Resampling("bilinear", True, "pillow"),
        Resampling("bilinear", False, opencv),
        Resampling("nearest", False, opencv),
        Resampling("bilinear", False, "torch", "corners", rounded=True),
    ]


def _said_nearest(how: Resampling | None, difference: Difference) -> str:
    if not np.isfinite(difference.largest):
        return "No resize that is known gives these numbers."
    name = "the picture as it is" if how is None else str(how)
    text = f"No resize that is known gives these numbers: the nearest, {name}, differs in "
    return (
        f"{text}{100 * difference.share:.2g} % of them, by up to {difference.largest:.3g} levels."
    )
