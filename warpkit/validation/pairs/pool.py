"""One resize of each kind that gives different numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.programs import pictures
from warpkit.validation.programs.arithmetic import (
    Resampling,
    candidates,
    preference,
    rare_candidates,
    resample,
)
from warpkit.validation.programs.geometry import Geometry

PROBES = (((41, 67), (17, 23)), ((33, 29), (47, 51)), ((53, 31), (24, 44)), ((97, 90), (13, 19)))
"""Shapes (H, W) and their resized sizes: smaller, larger, along both sides and along one."""

SAME = {True: 0.0, "down": 0.0, False: 1e-3}
"""Levels: resizes count as equal if their numbers differ by at most this, by kind of rounding."""


def kinds(*, whole: bool, rare: bool = False) -> tuple[Resampling, ...]:
    """The resizes whose numbers are whole levels, or those that are not."""
    return tuple(how for how in _distinct(rare) if _is_whole(how) == whole or how.moves)


def _is_whole(how: Resampling) -> bool:
    return how.rounded is not False or how.moves


@cache
def _distinct(rare: bool) -> tuple[Resampling, ...]:
    """One of those that give equal numbers on noise, the library's before "exact"."""
    if rare:
        return rare_candidates()
    ranked = sorted(candidates(), key=_rank)
    distinct: list[tuple[Resampling, list[NDArray[np.float64]]]] = []
    for how in ranked:
        results = [_probe(how, shape, size) for shape, size in PROBES]
        room = SAME[how.rounded]
        if not any(
            _alike(results, other, room) for chosen, other in distinct if _one_kind(how, chosen)
        ):
            distinct.append((how, results))
    return tuple(how for how, _ in distinct)


def _rank(how: Resampling) -> tuple[object, ...]:
    """Sorts OpenCV, Pillow, torch; nearest_exact comes last, as it equals Pillow's nearest."""
    return (how.interpolation == "nearest_exact", *preference(how, "array"))


def _one_kind(first: Resampling, second: Resampling) -> bool:
    """Whether both or neither give whole levels."""
    return _is_whole(first) == _is_whole(second)


def _probe(how: Resampling, shape: tuple[int, int], size: tuple[int, int]) -> NDArray[np.float64]:
    noise = torch.from_numpy(pictures.noise(*shape, 5)).movedim(-1, 0).contiguous()
    placement = Geometry("fixed", size).placement(*shape)
    return resample(noise, placement, how).double().numpy()


def _alike(
    first: list[NDArray[np.float64]], second: list[NDArray[np.float64]], room: float
) -> bool:
    return all(np.abs(a - b).max() <= room for a, b in zip(first, second, strict=True))
