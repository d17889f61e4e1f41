"""Damped Gauss-Newton steps at one level, for many pairs at once, each until it converges."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.alignment.equations import SHARP_STEP, Equations, Level, equations
from warpkit.alignment.models import Model, corner_motion, half_side, step_matrix
from warpkit.alignment.sums import SINGULAR
from warpkit.engine.backends import select_descent

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-7, 1e2
"""The part of the Hessian's diagonal that is added to it: at first; the least, after successful
steps; and the most, after which a pair stops."""

SMALL = 0.1
"""A step that moves no corner by more pixels is accepted whatever its cost. Near the optimum, costs
differ by less than the change of the overlap causes."""

LONGEST = 0.15
"""The longest motion of a corner in one step, as a part of the longest side."""

LEAST_OVERLAP = 0.5
"""A step that leaves less overlap is rejected: the cost is a mean, low even over a tiny overlap."""


class Refined(NamedTuple):
    """The end state of N pairs on a level."""

    to_source: Tensor
    """(N, 3, 3), fixed pixel -> moving pixel of the level."""
    score: Tensor
    """(N,)."""
    agreement: Tensor
    """(N,)."""
    overlap: Tensor
    """(N,), in pixels of the level."""
    gain: Tensor
    """(N, C), of standardised images."""
    bias: Tensor
    """(N, C), of standardised images."""
    slope: Tensor
    """(N,): the mean square of the fixed image's slopes, over pixels and channels."""
    still: Tensor
    """(N,), bool: the last step moved no corner by the tolerance or more."""
    steps: Tensor
    """(N,), int64."""

    def take(self, index: Tensor) -> Refined:
        """The pairs of an index (M,)."""
        return Refined(*(tensor[index] for tensor in self))


class _State(NamedTuple):
    """The pairs still iterating: the last accepted matrix, its equations, and the trial."""

    to_source: Tensor
    """(M, 3, 3)."""
    terms: Equations
    trial: Tensor
    """(M, 3, 3)."""
    motion: Tensor
    """(M,): how far the trial's step moves the corners."""
    damping: Tensor
    """(M,)."""
    pair: Tensor
    """(M,): the index of the pair in the level."""

    def take(self, index: Tensor) -> _State:
        """The pairs of an index (K,)."""
        terms = Equations(*(tensor[index] for tensor in self.terms))
        rest = [tensor[index] for tensor in (*self[:1], *self[2:])]
        return _State(rest[0], terms, *rest[1:])


def refine(
    level: Level,
    to_source: Tensor,
    model: Model,
    loss: str,
    steps: int,
    tolerance: float,
    stage: str = "search",
    least: Tensor | None = None,
) -> Refined:
    """At most `steps` steps from to_source (N, 3, 3) until corners move less than `tolerance`.

    least (N,): pairs whose score is not above it at the start make no steps.
    """
    if loss != "robust":
        fast = select_descent(level.moving, level.fixed, to_source)
        if fast is not None:
            sharp = SHARP_STEP if stage == "sharp" else 0.0
            limits = (steps, tolerance, sharp)
            return _by_kernels(fast, level, to_source, model, loss, limits, least)
    count = len(to_source)
    step_counts = torch.zeros(count, dtype=torch.long, device=to_source.device)
    still = torch.zeros(count, dtype=torch.bool, device=to_source.device)
    here = level
    first = equations(here, to_source, model, loss, stage)
    full = torch.full_like(first.cost, torch.inf)
    pair = torch.arange(count, device=to_source.device)
    state = _State(to_source, first, to_source, full, 0 * first.cost + FIRST_DAMPING, pair)
    result = [to_source.clone(), *(v.clone() for v in first[3:])]
    if least is not None:
        index = (first.score > least).nonzero()[:, 0]
        here, state = here.take(index), state.take(index)
    for _ in range(steps if len(state.pair) else 0):
        state = _trial(state, model, level.size)
        sums = equations(here, state.trial, model, loss, stage)
        step_counts[state.pair] += 1
        better = (sums.cost <= state.terms.cost) | (state.motion < SMALL)
        accepted = better & (sums.overlap >= LEAST_OVERLAP * state.terms.overlap)
        accepted &= sums.rhs.isfinite().all(-1) & state.motion.isfinite()
        state = _judge(state, sums, accepted)
        ended = accepted & (state.motion < tolerance)
        now = (state.to_source, *state.terms[3:])
        for whole, part in zip(result, now, strict=True):
            whole[state.pair] = part
        still[state.pair] = ended
        moving = ~(ended | (state.damping > MOST_DAMPING))
        if not bool(moving.all()):
            index = moving.nonzero()[:, 0]
            if len(index) == 0:
                break
            here, state = here.take(index), state.take(index)
    matrix, score, agreement, overlap, gain, bias = result
    slope = (level.fixed_x.square() + level.fixed_y.square()).mean((1, 2, 3)).double()
    return Refined(matrix, score, agreement, overlap, gain, bias, slope, still, step_counts)


def _by_kernels(
    fast: Any,
    level: Level,
    to_source: Tensor,
    model: Model,
    loss: str,
    limits: tuple[int, float, float],
    least: Tensor | None,
) -> Refined:
    """`refine` for plain images, with weights that do not depend on the residuals.

    to_source (N, 3, 3), least (N,). limits: steps, tolerance, and half the step of the differences
    that give exact slopes, or 0.
    """
    steps, tolerance, sharp = limits
    tables = fast.Tables(
        model.generators, model.degree, model.quadratic, model.linear, model.is_projective
    )
    numbers = (tolerance, SMALL, LONGEST * max(level.size), LEAST_OVERLAP)
    numbers += (FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING, SINGULAR, half_side(level.size), sharp)
    pictures = fast.Pictures(*level)
    fields = fast.descend(pictures, to_source, tables, numbers, steps, loss == "ssd", least)
    return Refined(*fields)


def _trial(state: _State, model: Model, size: tuple[int, int]) -> _State:
    """The next matrix to try, and how far it moves the corners."""
    diagonal = state.terms.hessian.diagonal(dim1=-2, dim2=-1)
    floor = 1e-9 * diagonal.amax(-1, keepdim=True) + torch.finfo(torch.float64).tiny
    damped = state.terms.hessian + torch.diag_embed(state.damping[:, None] * diagonal + floor)
    numbers, failed = torch.linalg.solve_ex(damped, state.terms.rhs)
    useless = (failed != 0) | ~numbers.isfinite().all(-1)
    numbers = torch.where(useless[:, None], 0.0, numbers)
    step = step_matrix(model, numbers, size)
    motion = corner_motion(step, size)
    longest = LONGEST * max(size)
    if bool((motion > longest).any()):
        share = torch.where(motion > longest, longest / motion, 1.0)
        step = step_matrix(model, numbers * share[:, None], size)
        motion = corner_motion(step, size)
    motion = torch.where(useless, torch.inf, motion)
    return state._replace(trial=state.to_source @ step, motion=motion)


def _judge(state: _State, sums: Equations, accepted: Tensor) -> _State:
    """The state after a trial; accepted (M,), bool."""
    pairs = zip(sums, state.terms, strict=True)
    lower, higher = (state.damping / 10).clamp(min=LEAST_DAMPING), state.damping * 10
    return state._replace(
        to_source=where_pairs(accepted, state.trial, state.to_source),
        terms=Equations(*(where_pairs(accepted, new, old) for new, old in pairs)),
        damping=where_pairs(accepted, lower, higher),
    )


def where_pairs(chosen: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """`new` where `chosen` (M,) is true, otherwise `old`; both (M, ...)."""
    return torch.where(chosen.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
