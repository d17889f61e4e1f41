"""Searches the known rules and resizes for those that give all of a program's values.

`Search.first` tries all resizes on one picture, `Search.settle` keeps those that fit another
picture, and `Search.refine` uses pictures that distinguish the remaining ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.programs import coarse, pictures
from warpkit.validation.programs.arithmetic import (
    Resampling,
    candidates,
    opencv_names,
    rare_candidates,
)
from warpkit.validation.programs.geometry import Geometry, Placement, most_telling
from warpkit.validation.programs.nearest import UNLIKE, Difference, Nearest, nearest_words
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.program import NotKnownError, Program, RefusedError
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import Measured, Values

Array = NDArray[np.float64]
Pair = tuple[Resampling | None, Values]

EXACT_ROOM = 1e-3
"""Levels: the largest distance of equal 8-bit values, from float32 gains and offsets."""

FLOAT_ROOM = 1.5e-3
"""The same for floats: results of Pillow, torch and "exact" agree to within this."""

VALUES = 200_000
"""The number of values to compare before ties count as ties; the proof compares the same number."""

FEW = 8
"""The first trial takes every eighth picture that may tell rules apart: placing all takes long."""

PROMISING = 0.02
"""If more of one channel's values differ, the other two channels are not compared."""

SEARCHED = 3
"""The placements that are tried with all resizes: the nearest on a smooth picture, and the nearest
with another step before the resize."""


class Search:
    """The rules and resizes that have fitted all pictures so far."""

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
        """(H, W) of the pictures that all remaining ones fit."""
        self.trouble: list[tuple[int, int]] = []
        """(H, W) of the pictures that nothing fits."""
        self.aside: list[tuple[int, int]] = []
        """Looks that were left out to find a rule; the proof tests them."""
        self.compared = 0
        self.nearest: Nearest | None = None

    def levels(self, picture: Picture) -> Array:
        """The program's result in levels (C, h, w)."""
        values = self.measured.variants[0]
        numbers = self.program(picture)
        if len(numbers) != len(values.gain):
            raise NotKnownError("The number of channels depends on the picture.")
        return values.as_levels(numbers)

    def sample(self, picture: Picture) -> tuple[Picture, Array]:
        """A picture as the resize sees it, after a file, and the program's levels for it."""
        return self.program.after_file(picture), self.levels(picture)

    def room(self, how: Resampling | None) -> float:
        """The largest distance of equal levels."""
        floats = how is not None and how.rounded is False and not how.moves
        return max(self.tolerance, FLOAT_ROOM if floats else EXACT_ROOM)

    def twin(self, geometry: Geometry, pair: Pair) -> Twin:
        """The twin of a rule and a resize."""
        return Twin(geometry, *pair, self.padding[: len(pair[1].gain)], self.program.jpeg)

    def geometry_of(self, pair: Pair) -> Geometry:
        """The first rule that is left and that the resize's library can follow, if there is one."""
        fits = [geometry for geometry in self.geometries if can_follow(pair, geometry)]
        return (fits or self.geometries)[0]

    def difference(
        self, picture: Picture, levels: Array, placement: Placement, pair: Pair
    ) -> Difference:
        """Compare a rule and a resize with the program's levels (C, h, w) for a picture.

        picture: as the resize sees it."""
        twin = self.twin(self.all_geometries[0], pair)
        image = torch.from_numpy(picture).movedim(-1, 0)
        try:
            expected = twin.levels_at(image, placement).numpy()
        except (ValueError, TypeError, RuntimeError):  # the filter does not support this size
            return UNLIKE
        return self.compare(expected, levels, pair)

    def compare(self, expected: Array, levels: Array, pair: Pair) -> Difference:
        """Compare a twin's levels (C or 1, h, w) with the program's (C, h, w), for its gray sum."""
        if expected.shape[-2:] != levels.shape[-2:]:
            return UNLIKE
        if self.measured.is_coarse:
            return Difference(*coarse.difference(self.measured, expected, levels, pair[1]))
        levels = self._by_variant(levels, pair[1])
        apart = np.subtract(expected, levels)
        np.abs(apart, out=apart)
        within = int(np.count_nonzero(apart <= self.room(pair[0])))
        differing = apart.size - within  # NaN counts as differing
        return Difference(differing / apart.size, float(apart.max(initial=0)), differing)

    def _sharpen(self, picture: Picture, levels: Array, placement: Placement) -> None:
        """Take gain and offset of coarse numbers from a whole picture; flat ones tell less."""
        if not self.measured.is_coarse or self.pairs[0][1].is_gray:
            return
        twin, image = self.twin(self.all_geometries[0], self.pairs[0]), torch.from_numpy(picture)
        expected = twin.levels_at(image.movedim(-1, 0), placement).numpy()
        values = coarse.refit(self.measured, expected, levels, self.pairs[0][1])
        self.pairs = [(how, values) for how, _ in self.pairs]

    def _by_variant(self, levels: Array, values: Values) -> Array:
        """Converts levels from the gain of the first gray sum to that of `values`."""
        first = self.measured.variants[0]
        if not values.is_gray or (values.gain, values.offset) == (first.gain, first.offset):
            return levels
        numbers = levels * np.reshape(first.gain, (-1, 1, 1)) + np.reshape(first.offset, (-1, 1, 1))
        return (numbers - np.reshape(values.offset, (-1, 1, 1))) / np.reshape(
            values.gain, (-1, 1, 1)
        )

    def first(self, height: int, width: int) -> None:
        """Try all resizes on one picture: a square if possible, for which no side is rounded.

        Raises NotKnownError if none fits."""
        picture, levels = self.sample(pictures.noise(height, width, 11))
        placements: dict[Placement, Geometry] = {}
        for geometry in self.geometries:
            placements.setdefault(geometry.placement(height, width), geometry)
        keep = all(placed.size == (height, width) and not placed.cut for placed in placements)
        pools = [[None]] if keep else self._pools(levels)
        ranked = (
            list(placements)
            if len(placements) == 1
            else self._ranked(height, width, list(placements))
        )
        trials: list[tuple[Difference, Placement, Pair]] = []
        for pool in pools:
            for placement in ranked:
                trials += self._try(picture, levels, placement, pool)
                if any(difference.differing == 0 for difference, *_ in trials):
                    break
            fits = [found_ for found_ in trials if found_[0].differing == 0]
            if fits and not any(self._has_rare_neighbour(pair[0]) for _, _, pair in fits):
                break
        fits = [found_ for found_ in trials if found_[0].differing == 0]
        if not fits:
            difference, _, pair = min(trials, key=lambda f: (f[0].share, f[0].largest))
            self.nearest = Nearest(pair[0], difference)
            raise NotKnownError(nearest_words(pair[0], difference))
        placement = fits[0][1]
        self.geometries = [g for g in self.geometries if g.placement(height, width) == placement]
        self.pairs = [pair for _, placed, pair in fits if placed == placement]
        self._sharpen(picture, levels, placement)
        self.shapes.append((height, width))
        self.compared += levels.size

    def _has_rare_neighbour(self, how: Resampling | None) -> bool:
        """Whether a rare resize may be equal on the first picture but not on later ones."""
        if how is None:
            return False
        if how.rounded is not True and how.interpolation in ("bilinear", "bicubic"):
            return True  # TensorFlow's are near; scikit-image's equal if shrinking
        if how.arithmetic.startswith("opencv"):  # equal if no side is rounded
            return self.geometries[0].rule in ("shortest", "longest", "factor")
        return False

    def _pools(self, levels: Array) -> list[list[Resampling | None]]:
        """The usual resizes, then the rare ones, if they fit the program's rounding."""
        whole = None
        if self.tolerance < 0.2 and not self.measured.variants[0].is_gray:
            around = np.reshape(self.padding[: len(levels)], (-1, 1, 1))
            inner = levels[np.isfinite(levels) & (np.abs(levels - around) > self.tolerance)]
            off = np.abs(inner - np.round(inner)).max(initial=0.0)
            whole = bool(off < max(self.tolerance, 2e-3))
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
        """Try all resizes of a pool with one placement, on one channel first."""
        trials = []
        one = self._one_channel(picture, levels)
        for how in pool:
            for values in self.measured.variants:
                if values.is_gray and how is not None and not makes_gray(how, values):
                    continue
                pair = (how, values)
                if one is not None:
                    quick = self.difference(one[0], one[1], placement, (how, values.single()))
                    if quick.share > PROMISING:
                        trials.append((quick, placement, pair))
                        continue
                trials.append((self.difference(picture, levels, placement, pair), placement, pair))
        return trials

    def _one_channel(self, picture: Picture, levels: Array) -> tuple[Picture, Array] | None:
        """The channel that comes first in the result; None for gray."""
        values = self.measured.variants[0]
        if values.is_gray:
            return None
        channel = 2 if values.channels == "reversed" else 0
        return picture[..., channel : channel + 1].copy(), levels[:1]

    def _ranked(self, height: int, width: int, placements: list[Placement]) -> list[Placement]:
        """The nearest placements on a smooth picture, for the usual filters."""
        picture, levels = self.sample(pictures.smooth(height, width, 5))
        values = self.measured.variants[0]
        one = self._one_channel(picture, levels)
        if one is not None:
            (picture, levels), values = one, values.single()
        marks = []
        for placement in placements:
            for how in _quick():
                twin = self.twin(self.all_geometries[0], (how, values))
                try:
                    expected = twin.levels_at(torch.from_numpy(picture).movedim(-1, 0), placement)
                except (ValueError, TypeError, RuntimeError):
                    continue
                if expected.shape[-2:] == levels.shape[-2:]:
                    marks.append((float(np.abs(expected.numpy() - levels).mean()), placement))
        marks.sort(key=lambda mark: mark[0])
        ordered = list(dict.fromkeys(placement for _, placement in marks))
        kinds = {placement.kind: placement for placement in reversed(ordered)}
        return list(dict.fromkeys([*ordered[:SEARCHED], *kinds.values()]))

    def settle(self, height: int, width: int) -> bool | None:
        """Keep what fits another picture; False if nothing does, None if it is rejected."""
        picture = pictures.noise(height, width, 100 + len(self.shapes) + len(self.trouble))
        try:
            picture, levels = self.sample(picture)
        except RefusedError:
            return None
        fitting = self.fitting(picture, levels, self.geometries, self.pairs)
        if not fitting:
            self.trouble.append((height, width))
            return False
        placements = {placement for placement, _ in fitting}
        self.geometries = [g for g in self.geometries if g.placement(height, width) in placements]
        self.pairs = [p for p in self.pairs if any(pair == p for _, pair in fitting)]
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
        placements = dict.fromkeys(geometry.placement(*shape) for geometry in geometries)
        return [
            (placement, pair)
            for placement in placements
            if placement.window == levels.shape[-2:]
            for pair in pairs
            if self.difference(picture, levels, placement, pair).differing == 0
        ]

    def refine(self, near: tuple[int, int]) -> None:
        """Try pictures that distinguish rules, then other scales, until enough are compared.

        near: (h, w) of pictures that are neither much larger nor much smaller than the result."""
        probes = pictures.probes(max(24, *near))
        if self.geometries[0].rule == "area" and self.geometries[0].size[0]:
            probes = probes + pictures.probes(int(self.geometries[0].size[0] ** 0.5))
        for probe_shapes in (probes[::FEW], probes):  # a few tell most rules apart as well as all
            bounds = {(len(self.geometries), -h * w, (h, w)) for h, w in probe_shapes}
            for _ in range(14):
                count, _, shape = most_telling(bounds, self.geometries)
                if count <= 1:
                    break
                bounds.remove((count, -shape[0] * shape[1], shape))
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
                break  # more values would only settle ties; the proof compares the same number
            height, width = shapes[k % len(shapes)]
            self.settle(height + k // 4 * 2, width + k // 4 * 3)

    def drop_unfit(self, evidence: Sequence[tuple[Picture, Array]]) -> bool:
        """Keep the resizes that also fit these pictures; if none does, keep all: False."""
        left = self.pairs
        for picture, levels in evidence:
            placement = self.geometries[0].placement(picture.shape[0], picture.shape[1])
            left = [
                pair
                for pair in left
                if self.difference(picture, levels, placement, pair).differing == 0
            ]
        self.pairs = left or self.pairs
        return bool(left)

    def reconsider(self, failed: Sequence[tuple[int, int]], pair: Pair) -> bool:
        """Take another rule that fits the failed pictures; False if there is none."""
        samples: list[tuple[Picture, Array, dict[Placement, bool]]] = []
        for shape in (*self.shapes[:4], *failed[:3]):
            picture = pictures.noise(*shape, 3)
            with suppress(RefusedError):
                samples.append((*self.sample(picture), {}))
        for geometry in self.all_geometries:
            if geometry == self.geometries[0] or not can_follow(pair, geometry):
                continue
            if all(self._agrees(geometry, pair, *one) for one in samples):
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
        results: dict[Placement, bool],
    ) -> bool:
        """Whether a rule gives all values of a picture; `results` has placements of before."""
        placement = geometry.placement(picture.shape[0], picture.shape[1])
        if placement.window != levels.shape[-2:]:
            return False
        if placement not in results:
            difference = self.difference(picture, levels, placement, pair)
            results[placement] = difference.differing == 0
        return results[placement]


def makes_gray(how: Resampling, values: Values) -> bool:
    """Whether a resize and a gray sum can be combined: weights need floats, integers 8 bits."""
    floats = how.rounded is False and not how.moves
    if values.gray_first:
        return floats == (values.sum == "floats") or how.moves
    return values.sum == "floats" or not floats


def _quick() -> list[Resampling]:
    """One resize of each kind, to rank placements."""
    opencv, _ = opencv_names()
    return [
        Resampling("bilinear", True, "pillow"),
        Resampling("bilinear", False, opencv),
        Resampling("nearest", False, opencv),
        Resampling("bilinear", False, "torch", "corners", rounded=True),
    ]


def can_follow(pair: Pair, geometry: Geometry) -> bool:
    """Whether the resize's library has a box, or the rule needs none."""
    has_box = pair[0] is None or pair[0].arithmetic in ("exact", "pillow")
    return has_box or geometry.before is None or geometry.before[0] != "box"
