"""From a start, or a search for starts, down the pyramid to a matrix and a verdict."""

from __future__ import annotations

import math
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment import pyramid, search, solver
from warpkit.alignment.equations import Level
from warpkit.alignment.models import model_named
from warpkit.alignment.pyramid import Pyramid
from warpkit.alignment.solver import Refined, of_pairs

COARSE_TOLERANCE = 0.05
"""Corner motion, in pixels of the level, at which a level hands on to the finer one."""

AGREEMENTS = (0.35, 0.5)
"""What the slopes' correlation must be at the finest level, or at the one above it. Over pairs of
unrelated photographs, aligned as well as any model can, it is 0.27 and 0.48 at most; of the same
photograph under noise of a tenth of its range 0.6 and 0.89 at least, where the answer is still good
to a fifth of a pixel."""

MOST_ADJUSTED = 20.0
"""Pictures with hardly a detail must agree to 1 - 1 / 20 of their slopes' variance, and more."""

LEAST_SCORE = 0.2
LEAST_OVERLAP = 0.1
"""Of the smaller image's weight."""

SEARCHED_PIXELS = 576
"""Of the smaller image at the level that is searched, at least, where the images have so many."""

NEAR, FAR = (4, 2, 1), (12, 6, 2)
"""Starts that are refined at the level searched, at the next finer one, and down to the finest but
one, for the retry near the identity and for init="search". The best by quality go on."""

SEARCH_STEPS = 20


class Options(NamedTuple):
    """All of a call that is no tensor."""

    model: str
    loss: str
    levels: int
    steps: int
    tolerance: float


class Found(NamedTuple):
    """What was found of N pairs."""

    to_source: Tensor
    """(N, 3, 3), fixed pixel -> moving pixel."""
    score: Tensor
    """(N,)."""
    converged: Tensor
    """(N,), bool."""
    steps: Tensor
    """(N,), int64, over all levels and starts."""
    quality: Tensor
    """(N,): what starts are compared by."""


def from_starts(pyr: Pyramid, to_source: Tensor, options: Options) -> Found:
    """From to_source (N, 3, 3) down the pyramid."""
    return _descend(pyr, to_source, options, range(len(pyr.levels) - 1, -1, -1))


def from_identity(pyr: Pyramid, options: Options) -> Found:
    """From the identity; pairs that do not converge from there are tried again, from a search."""
    device = pyr.bad.device
    eye = torch.eye(3, dtype=torch.float64, device=device).expand(len(pyr.bad), 3, 3)
    found = from_starts(pyr, eye, options)
    again = (~found.converged & ~pyr.bad).nonzero()[:, 0]
    if len(again) == 0:
        return found
    other = from_search(pyr.take(again), options, far=False)
    before = Found(*(values[again] for values in found))
    taken = (other.converged & ~before.converged) | (other.quality > before.quality)
    steps = before.steps + other.steps
    chosen = Found(*(of_pairs(taken, new, old) for new, old in zip(other, before, strict=True)))
    chosen = chosen._replace(steps=steps)
    pairs = zip(found, chosen, strict=True)
    return Found(*(whole.index_copy(0, again, part) for whole, part in pairs))


def from_search(pyr: Pyramid, options: Options, *, far: bool = True) -> Found:
    """From the best of many starts; far: all turns and scales, or those near the identity."""
    number = _searched_level(pyr)
    level = pyr.levels[number]
    kept = FAR if far else NEAR
    matrices, _ = search.starts(level, search.sweep_for(options.model, far), kept[0])
    device = matrices.device
    to_level = pyramid.to_level(number, device)
    matrices = torch.linalg.inv(to_level) @ matrices @ to_level
    count = len(matrices)
    steps = torch.zeros(count, dtype=torch.long, device=device)
    few = options._replace(steps=min(options.steps, SEARCH_STEPS))
    numbers = [[number], [number - 1], range(number - 2, 0, -1)]
    for stage, levels in enumerate(numbers):
        starts = matrices.shape[1]
        if (min(levels, default=0) < 1 and stage) or starts == 1:
            break
        pair = torch.arange(count, device=device).repeat_interleave(starts)
        found = _descend(pyr.take(pair), matrices.flatten(0, 1), few, levels)
        quality = found.quality.unflatten(0, (count, starts))
        best = quality.topk(min((*kept, 1)[stage + 1], starts), dim=1).indices
        matrices = found.to_source.unflatten(0, (count, starts))
        matrices = matrices.gather(1, best[..., None, None].expand(-1, -1, 3, 3))
        steps += found.steps.unflatten(0, (count, starts)).sum(1)
    last = _descend(pyr, matrices[:, 0], options, range(max(number - 1, 0), -1, -1))
    return last._replace(steps=last.steps + steps)


def _searched_level(pyr: Pyramid) -> int:
    """The coarsest level with enough pixels."""
    for number in range(len(pyr.levels) - 1, 0, -1):
        level = pyr.levels[number]
        if min(prod(level.size), prod(level.moving.shape[-2:])) >= SEARCHED_PIXELS:
            return number
    return 0


def _descend(
    pyr: Pyramid, to_source: Tensor, options: Options, numbers: range | list[int]
) -> Found:
    """From to_source (N, 3, 3) through the levels of these numbers, and the verdict of the last."""
    model = model_named(options.model, to_source.device)
    total = torch.zeros(len(to_source), dtype=torch.long, device=to_source.device)
    agrees = torch.zeros_like(pyr.bad)
    refined, level = None, pyr.levels[0]
    for number in numbers:
        level = pyr.levels[number]
        to_level = pyramid.to_level(number, to_source.device)
        back = torch.linalg.inv(to_level)
        tolerance = options.tolerance if number == 0 else COARSE_TOLERANCE
        here = to_level @ to_source @ back
        refined = solver.refine(level, here, model, options.loss, options.steps, tolerance)
        to_source, total = back @ refined.to_source @ to_level, total + refined.steps
        if number < len(AGREEMENTS):
            agreement = _adjusted(refined, level, len(model.generators))
            agrees = agrees | (agreement > AGREEMENTS[number])
    assert refined is not None  # there is always a level
    share = refined.overlap / _smaller(level).clamp(min=1)
    good = agrees & (share > LEAST_OVERLAP) & (refined.score > LEAST_SCORE) & ~pyr.bad
    quality = (refined.score + refined.agreement) * (2 * share).clamp(0, 1).sqrt()
    return Found(to_source, refined.score, good & refined.still, total, quality)


def _adjusted(refined: Refined, level: Level, count: int) -> Tensor:
    """The slopes' agreement (N,), less what `count` numbers fit by chance.

    As the adjusted coefficient of determination. A field of correlation length l has one free value
    every pi l^2 pixels, and slopes of mean square 2 / l^2.
    """
    slopes = (level.fixed_x.square() + level.fixed_y.square()).mean((1, 2, 3)).double()
    values = refined.overlap * slopes / (2 * math.pi)
    left = torch.maximum(values - count, values / MOST_ADJUSTED)
    share = 1 - refined.agreement.clamp(min=0).square()
    return (1 - share * values / left.clamp(min=1e-9)).clamp(min=0).sqrt()


def _smaller(level: Level) -> Tensor:
    """The weight (N,) of the smaller image of each pair."""
    weights = level.weight.sum((1, 2, 3)), level.moving[:, -1].sum((1, 2))
    return torch.minimum(*weights).double()
