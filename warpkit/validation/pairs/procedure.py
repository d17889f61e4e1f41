"""`identify_pairs`, step by step: places, rules, numbers, resizes, groups, names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpkit.core import checks
from warpkit.core.progress import progress_bar
from warpkit.core.torch_threads import one_thread
from warpkit.validation.pairs import numbers
from warpkit.validation.pairs.comparing import Comparison
from warpkit.validation.pairs.matching import Matched, match_folders, match_lists
from warpkit.validation.pairs.naming import name_group
from warpkit.validation.pairs.parting import Group, Parting
from warpkit.validation.pairs.placing import Place, place
from warpkit.validation.pairs.reading import Collection, PicturePair, collect
from warpkit.validation.pairs.rules import Arrangement, rules_for
from warpkit.validation.pairs.wording import open_words, turned_words
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.report import Preprocessing

PADDING_ROOM = 2.0
"""Levels: how far a codec moves the median of padding."""


def identify_pairs_by(
    name: str, images: Sequence[Any], results: Sequence[Any], *, progress: bool
) -> Preprocessing:
    """`identify_pairs` for two lists, whose errors it raises."""
    return _identify(name, images, results, match_lists(name, images, results), progress)


def identify_folders(name: str, images: Path, results: Path, *, progress: bool) -> Preprocessing:
    """`identify_pairs` for two folders, matched by name; no common name is an error."""
    image_files, result_files, matched = match_folders(name, images, results)
    return _identify(name, image_files, result_files, matched, progress)


def _identify(
    name: str, images: Sequence[Any], results: Sequence[Any], matched: Matched, progress: bool
) -> Preprocessing:
    with (
        torch.no_grad(),
        one_thread(),
        progress_bar(name, total=2 * len(matched.pairs), visible=progress) as advance,
    ):
        data = collect(name, images, results, matched, advance)
        level = _level(data.pairs)
        places = []
        for pair in data.pairs:
            places.append(place(pair, level))
            advance("placed")
        answer = Preprocessing(layout=data.layout, batched=data.batched, dtype=data.dtype)
        _name(name, answer, data, places)
        answer.left_out = data.left_out
    return answer


def _level(pairs: Sequence[PicturePair]) -> float:
    """The approximate size of one of 255 levels in the results' numbers."""
    low = min(float(pair.result.numbers.min()) for pair in pairs)
    high = max(float(pair.result.numbers.max()) for pair in pairs)
    return max((high - low) / 255, 1e-12)


def _name(name: str, answer: Preprocessing, data: Collection, places: Sequence[Place]) -> None:
    placed = [k for k, at in enumerate(places) if at.found]
    if not placed:
        if any(at.flat for at in places):
            _name_flat(answer, data)
            return
        if not any(at.turned for at in places):
            wanted = "what a resize, a crop or a letterbox makes of the pictures in `images`"
            best = max(at.correlation for at in places)
            checks.fail(name, "results", wanted, f"pictures that correlate by {best:.2f} at most")
        answer.reasons += turned_words(
            [(data.pairs[k].index, places[k]) for k in range(len(places))]
        )
        return
    pairs, at = [data.pairs[k] for k in placed], [places[k] for k in placed]
    odd = [(pair.index, p) for pair, p in zip(data.pairs, places, strict=True) if not p.found]
    answer.reasons += turned_words([(index, p) for index, p in odd if not p.flat])
    rules = rules_for(pairs, at)
    if not rules:
        sizes = [f"{p.shape[0]} x {p.shape[1]} -> {_shape(p)}" for p in pairs[:4]]
        text = f"No rule of sizes that is known gives these: {', '.join(sizes)}"
        answer.reasons.append(f"Not known: {text}; crops may be random, or not centred.")
        return
    placements = [_nearest(k, rules, pairs[k], at[k]) for k in range(len(pairs))]
    measured = numbers.measure(pairs, placements, data.dtype)
    parting, groups = _part(pairs, at, rules, measured)
    name_group(answer, parting.comparison, groups[0])
    answer.reasons += open_words(answer, groups, parting.comparison)
    if len(groups) > 1:
        answer.groups = _indices(groups, pairs, data, places)
        answer.reasons.append(
            f"{len(groups)} programs made these results: this is the one of "
            f"{len(groups[0].pairs)} of {len(pairs)} pairs."
        )


def _part(
    pairs: Sequence[PicturePair],
    places: Sequence[Place],
    rules: Sequence[Arrangement],
    measured: numbers.Numbers,
) -> tuple[Parting, list[Group]]:
    """The groups; levels that seem changed are first compared as if they were not."""
    if measured.changed:
        parting, groups = _part(pairs, places, rules, numbers.unchanged(measured))
        if groups[0].exact:
            return parting, groups
    padding = _common_padding(
        [_padding(pair, at, measured) for pair, at in zip(pairs, places, strict=True)],
        [at.best is not None and at.best.padded for at in places],
    )
    parting = Parting(Comparison(pairs, measured, padding), rules)
    return parting, parting.groups()


def _shape(pair: PicturePair) -> str:
    return " x ".join(map(str, pair.result.numbers.shape[-2:]))


def _name_flat(answer: Preprocessing, data: Collection) -> None:
    """Pictures of one colour determine only the size."""
    answer.reasons.append("Not known: the pictures are flat, which tells nothing but the size.")
    windows = {pair.result.numbers.shape[-2:] for pair in data.pairs}
    if len(windows) == 1:
        answer.canvas = windows.pop()
        if len({pair.shape for pair in data.pairs}) > 1:
            answer.rule, answer.size = "fixed", answer.canvas


def _nearest(k: int, rules: Sequence[Arrangement], pair: PicturePair, at: Place) -> Placement:
    """The most likely placement of a pair; the whole picture if no rule agrees."""
    window = pair.result.numbers.shape[-2:]
    look = at.best
    assert look is not None
    placements = [rule.placements[k] for rule in rules if rule.placements[k].window == window]
    if not placements:
        return Geometry("fixed", (window[0], window[1])).placement(*pair.shape)

    def apart(placement: Placement) -> float:
        ends = zip(placement.content(), look.content, strict=True)
        sizes = zip(placement.size, look.sides, strict=True)
        return sum(abs(a - b) for a, b in (*ends, *sizes))

    return min(placements, key=apart)


def _padding(pair: PicturePair, at: Place, measured: numbers.Numbers) -> tuple[float, ...]:
    """The levels around a picture; 0 if there is no padding."""
    look = at.best
    channels = len(pair.result.numbers)
    if look is None or not look.padded:
        return (0.0,) * channels
    top, left, bottom, right = look.content
    around = np.ones(look.window, bool)
    around[top:bottom, left:right] = False
    medians = np.median(pair.result.numbers[:, around], 1)
    levels = (medians - measured.offset) / measured.gain
    whole = np.round(levels)
    return tuple(map(float, np.where(np.abs(levels - whole) < 1e-2, whole, levels)))


def _common_padding(
    levels: Sequence[tuple[float, ...]], padded: Sequence[bool]
) -> list[tuple[float, ...]]:
    """One level for all pairs, and for all channels, if only a codec makes them differ.

    Pairs without visible padding get the level of most others."""
    present = np.array([level for level, has in zip(levels, padded, strict=True) if has])
    if not len(present):
        return list(levels)
    middle = np.median(present, 0)
    near = np.abs(present - middle).max(1) <= PADDING_ROOM
    if np.ptp(present[near], axis=0).any():
        middle = np.round(middle)
        if np.ptp(middle) <= PADDING_ROOM:
            middle[:] = np.median(middle)
    usual = tuple(map(float, middle))
    return [
        level if has and np.abs(np.subtract(level, usual)).max() > PADDING_ROOM else usual
        for level, has in zip(levels, padded, strict=True)
    ]


def _indices(
    groups: Sequence[Group],
    pairs: Sequence[PicturePair],
    data: Collection,
    places: Sequence[Place],
) -> list[list[int]]:
    """The caller's indices, one list per program; flat pictures are added to the largest group."""
    indices = [[pairs[k].index for k in group.pairs] for group in groups]
    flat = [p.index for p, at in zip(data.pairs, places, strict=True) if at.flat]
    indices[0] = sorted(indices[0] + flat)
    return indices
