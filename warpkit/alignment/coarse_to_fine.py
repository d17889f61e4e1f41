"""Aligns coarse to fine, from a given start or from a search, and decides on convergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.alignment import pyramid, search, solver
from warpkit.alignment.equations import Level
from warpkit.alignment.models import model_named
from warpkit.alignment.pyramid import Pyramid
from warpkit.alignment.solver import Refined, where_pairs

COARSE_TOLERANCE = 0.05
"""Corner motion, in pixels of the level, below which the next finer level takes over."""

COARSE_STEPS = 25
"""The most steps at each level except the finest. With "ecc", successful pairs took at most 16;
with "robust", 50 steps did not help any of 84 pairs that failed with this number."""

AGREEMENTS = (0.35, 0.5)
"""The minimum correlation of the slopes at the finest level, or at the one above it. For pairs of
unrelated photographs, aligned as well as possible, it is at most 0.27 and 0.48; for the same
photograph with noise of a tenth of its range at least 0.6 and 0.89, with the result still accurate
to a fifth of a pixel."""

HOPELESS = 0.1
"""If the correlation of the slopes is less at the level above the finest, the finest is skipped:
for pairs that succeed it was at least 0.41 there, for unrelated ones nearly always 0. Coarser
levels are no indication: pairs with 0 there have succeeded."""

MOST_ADJUSTED = 20.0
"""Images with hardly any detail must agree to at least 1 - 1 / 20 of their slopes' variance."""

LEAST_SCORE = 0.2
LEAST_OVERLAP = 0.1
"""The least overlap, as a part of the smaller image's weight."""

SEARCHED_PIXELS = 576
"""The least number of pixels of the smaller image at the searched level, unless it has fewer."""

NEAR, FAR = (4, 2, 1), (12, 6, 2)
"""Starting points refined at the searched level, at the next finer one, and down to the finest but
one, for the retry near the identity and for init="search". The best by quality continue."""

SEARCH_STEPS = 20

LEAST_SHARP = 0.5
"""The score above which unsmoothed images may replace smoothed ones. Noise that was interpolated
from noise has 0.998 before a step, and 0.993 if smoothed."""


class Options(NamedTuple):
    """The arguments of a call that are not tensors."""

    model: str
    loss: str
    levels: int
    steps: int
    tolerance: float


class Fits(NamedTuple):
    """The results for N pairs."""

    to_source: Tensor
    """(N, 3, 3), fixed pixel -> moving pixel."""
    score: Tensor
    """(N,)."""
    converged: Tensor
    """(N,), bool."""
    steps: Tensor
    """(N,), int64, over all levels and starts."""
    quality: Tensor
    """(N,): the quality by which starting points are compared."""
    gain: Tensor
    """(N, C), of standardised images."""
    bias: Tensor
    """(N, C), of standardised images."""
    hopeful: Tensor
    """(N,), bool: whether to try the finest level."""
    sharp: Tensor
    """(N,), bool: whether the last steps used unsmoothed images."""

    def take(self, index: Tensor) -> Fits:
        """The pairs of an index (M,)."""
        return Fits(*(values[index] for values in self))

    def put(self, index: Tensor, part: Fits) -> Fits:
        """These results, with the pairs of an index (M,) replaced by those of `part`."""
        pairs = zip(self, part, strict=True)
        return Fits(*(whole.index_copy(0, index, values) for whole, values in pairs))

    def where(self, replaced: Tensor, other: Fits) -> Fits:
        """These results, but those of `other` for the pairs where `replaced` (N,) is true."""
        return Fits(
            *(where_pairs(replaced, new, old) for new, old in zip(other, self, strict=True))
        )


def from_starts(pyr: Pyramid, to_source: Tensor, options: Options) -> Fits:
    """Align from to_source (N, 3, 3), down the whole pyramid."""
    numbers = range(len(pyr.levels) - 1, -1, -1)
    return _refine_to_solution(pyr, _descend(pyr, to_source, options, numbers), options)


def from_identity(pyr: Pyramid, options: Options) -> Fits:
    """Align from the identity; pairs that do not converge are tried again from a search."""
    device = pyr.bad.device
    eye = torch.eye(3, dtype=torch.float64, device=device).expand(len(pyr.bad), 3, 3)
    fit = from_starts(pyr, eye, options)
    again = (~fit.converged & ~pyr.bad).nonzero()[:, 0]
    if len(again) == 0:
        return fit
    other, before = from_search(pyr.take(again), options, far=False), fit.take(again)
    better = (other.converged & ~before.converged) | (other.quality > before.quality)
    chosen = before.where(better, other)
    return fit.put(again, chosen._replace(steps=before.steps + other.steps))


def from_search(pyr: Pyramid, options: Options, *, far: bool = True) -> Fits:
    """Align from the best of many starting points; far: all rotations and scales, or small ones."""
    number = _search_level(pyr)
    level = pyr.levels[number]
    counts = FAR if far else NEAR
    matrices, _ = search.starts(level, search.sweep_for(options.model, far), counts[0])
    device = matrices.device
    to_level, back = pyramid.to_level(number, device)
    matrices = back @ matrices @ to_level
    few = options._replace(steps=min(options.steps, SEARCH_STEPS))
    best, steps = None, 0
    for stage, levels in enumerate(([number], [number - 1], range(number - 2, 0, -1))):
        count, starts = matrices.shape[:2]
        if (min(levels, default=0) < 1 and stage) or starts == 1:
            break
        pair = torch.arange(count, device=device).repeat_interleave(starts)
        all_starts = matrices.flatten(0, 1)
        fits = _descend(pyr, all_starts, few, levels, begun=stage > 0, pairs=pair)
        quality = fits.quality.unflatten(0, (count, starts))
        chosen = quality.topk(min((*counts, 1)[stage + 1], starts), dim=1).indices
        steps = steps + fits.steps.unflatten(0, (count, starts)).sum(1)
        places = chosen + starts * torch.arange(count, device=device)[:, None]
        matrices, best = fits.to_source[places], fits.take(places[:, 0])
    if best is None:
        last = _descend(pyr, matrices[:, 0], options, range(max(number - 1, 0), -1, -1))
        return _refine_to_solution(pyr, last, options)
    best = best._replace(steps=steps)
    index = best.hopeful.nonzero()[:, 0]
    if len(index):
        numbers = range(max(number - 1, 0), -1, -1)
        begin = best.to_source[index]
        some = _descend(pyr, begin, options, numbers, begun=True, pairs=index)
        best = best.put(index, some._replace(steps=some.steps + best.steps[index]))
    return _refine_to_solution(pyr, best, options)


def _search_level(pyr: Pyramid) -> int:
    """The coarsest level with enough pixels."""
    for number in range(len(pyr.levels) - 1, 0, -1):
        level = pyr.levels[number]
        if min(prod(level.size), prod(level.moving.shape[-2:])) >= SEARCHED_PIXELS:
            return number
    return 0


def _descend(
    pyr: Pyramid,
    to_source: Tensor,
    options: Options,
    numbers: Sequence[int],
    *,
    begun: bool = False,
    pairs: Tensor | None = None,
) -> Fits:
    """Refine to_source (N, 3, 3) at the levels of these numbers; judge the results of the last one.

    Hopeless pairs end at the level above the finest, unless it is the first level of all. begun:
    coarser levels came before these. pairs (N,): those of the pyramid, all by default.
    """
    model = model_named(options.model, to_source.device)
    index = torch.arange(len(to_source), device=to_source.device)
    agrees = torch.zeros(len(index), dtype=torch.bool, device=index.device)
    step_counts, result = torch.zeros_like(index), None
    for place, number in enumerate(numbers):
        level = pyr.levels[number] if pairs is None else pyr.levels[number].take(pairs)
        to_level, back = pyramid.to_level(number, to_source.device)
        tolerance = options.tolerance if number == 0 else COARSE_TOLERANCE
        start = to_level @ to_source @ back
        steps = min(options.steps, COARSE_STEPS) if number else options.steps
        refined = solver.refine(level, start, model, options.loss, steps, tolerance)
        to_source, step_counts = back @ refined.to_source @ to_level, step_counts + refined.steps
        hopeful = torch.ones_like(agrees)
        if number < len(AGREEMENTS):
            agreement = _adjust(refined, len(model.generators))
            agrees = agrees | (agreement > AGREEMENTS[number])
            if number == 1 and (begun or place):
                hopeful = agreement > HOPELESS
        if place < len(numbers) - 1 and bool(hopeful.all()):
            continue
        ended = refined._replace(to_source=to_source, steps=step_counts)
        bad = pyr.bad if pairs is None else pyr.bad[pairs]
        fits = _judge(bad, ended, level, agrees)._replace(hopeful=hopeful)
        result = fits if result is None else result.put(index, fits)
        some = hopeful.nonzero()[:, 0]
        if len(some) == 0:
            break
        pairs = some if pairs is None else pairs[some]
        index, step_counts, agrees, to_source = (
            t[some] for t in (index, step_counts, agrees, to_source)
        )
    assert result is not None  # there is always a level
    return result


def _judge(bad: Tensor, refined: Refined, level: Level, agrees: Tensor) -> Fits:
    """Decide on the results of a level; bad and agrees (N,), bool: images, slopes."""
    share = refined.overlap / _smaller_weight(level).clamp(min=1)
    good = agrees & (share > LEAST_OVERLAP) & (refined.score > LEAST_SCORE) & ~bad
    quality = (refined.score + refined.agreement) * (2 * share).clamp(0, 1).sqrt()
    return Fits(
        refined.to_source,
        refined.score,
        good & refined.still,
        refined.steps,
        quality,
        refined.gain,
        refined.bias,
        torch.ones_like(good),
        torch.zeros_like(good),
    )


def _refine_to_solution(pyr: Pyramid, fits: Fits, options: Options) -> Fits:
    """Refine the results of the finest level to the solution that defines the gradient.

    First with robust weights until these converge. Then without smoothing, if the unsmoothed images
    agree better than the smoothed ones: then one image was interpolated from the other, and the
    true matrix leaves no residual.
    """
    model = model_named(options.model, pyr.bad.device)
    limits = (model, options.loss, options.steps, options.tolerance)
    if options.loss == "robust":
        index = fits.converged.nonzero()[:, 0]
        if len(index):
            level, before = pyr.levels[0].take(index), fits.take(index)
            refined = solver.refine(level, before.to_source, *limits, "settled")
            after = _judge(pyr.bad[index], refined, level, before.converged)
            fits = fits.put(index, after._replace(steps=before.steps + after.steps))
    index = (fits.hopeful & ~pyr.bad).nonzero()[:, 0]
    if len(index) == 0:
        return fits
    every = len(index) == len(pyr.bad)
    level, before = pyr.sharp(index), fits if every else fits.take(index)
    least = before.score.clamp(min=LEAST_SHARP)
    refined = solver.refine(level, before.to_source, *limits, "sharp", least)
    agrees = _adjust(refined, len(model.generators)) > AGREEMENTS[0]
    after = _judge(pyr.bad if every else pyr.bad[index], refined, level, agrees)
    better = after.converged & (after.score > before.score)
    after = after._replace(sharp=torch.ones_like(better), steps=before.steps + after.steps)
    ended = before.where(better, after)
    return ended if every else fits.put(index, ended)


def _adjust(refined: Refined, count: int) -> Tensor:
    """The slopes' agreement (N,), minus what `count` parameters fit by chance.

    Like the adjusted coefficient of determination. A field of correlation length l has one free
    value every pi l^2 pixels, and slopes of mean square 2 / l^2.
    """
    values = refined.overlap * refined.slope / (2 * math.pi)
    left = torch.maximum(values - count, values / MOST_ADJUSTED)
    share = 1 - refined.agreement.clamp(min=0).square()
    return (1 - share * values / left.clamp(min=1e-9)).clamp(min=0).sqrt()


def _smaller_weight(level: Level) -> Tensor:
    """The weight (N,) of the smaller image of each pair."""
    weights = level.weight.sum((1, 2, 3)), level.moving[:, -1].sum((1, 2))
    return torch.minimum(*weights).double()
