"""How far two results differ, in levels, and how far a model's outputs move with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]

APART = 1e-3
"""Levels: larger differences count; for floats the limit is 0.0015."""


class Counts(NamedTuple):
    """The number of differing values, of compared ones, and their distances in levels."""

    differing: int = 0
    compared: int = 0
    largest: float = 0.0
    """Infinite if the shapes differ, or a number does not compare."""
    total: float = 0.0
    """The sum of all distances."""

    @property
    def mean(self) -> float:
        """The mean distance of all values."""
        return self.total / max(1, self.compared)

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            self.differing + other.differing,
            self.compared + other.compared,
            max(self.largest, other.largest),
            self.total + other.total,
        )


def difference(one: Array, other: Array, level: Array, *, floats: bool = False) -> Counts:
    """Compare numbers (C, h, w); `level` (C,) or (1,) is the size of a level in their unit.

    A number that does not compare (NaN, or infinity against infinity) differs."""
    if one.shape != other.shape:
        size = max(one.size, other.size)
        return Counts(size, size, np.inf, np.inf)
    with np.errstate(invalid="ignore"):
        apart = np.abs(one - other) / level[:, None, None]
    equal = apart <= (1.5 * APART if floats else APART)
    worst = float(apart.max(initial=0.0))
    largest = np.inf if np.isnan(worst) else worst
    total = float(apart.sum()) if np.isfinite(largest) else np.inf
    return Counts(int((~equal).sum()), apart.size, largest, total)


def level_of_range(*results: Array) -> Array:
    """A level (1,) of numbers with an unknown gain: 1 / 255 of their range, or of the largest."""
    numbers = np.concatenate([result[np.isfinite(result)].ravel() for result in results])
    if not numbers.size:
        return np.ones(1)
    widest = float(np.ptp(numbers)) or float(np.abs(numbers).max()) or 1.0
    return np.array([widest / 255])


class Drift(NamedTuple):
    """How far a model's outputs move: mean and largest difference, and how often the top class
    changes."""

    mean: float
    largest: float
    changed: float


def drift(model: Callable[[torch.Tensor], Any], one: Array, other: Array) -> Drift | None:
    """How far a model's outputs for two inputs (C, h, w) differ; None if it rejects one."""
    outputs = []
    for numbers in (one, other):
        try:
            with torch.no_grad():
                output = model(torch.from_numpy(numbers.astype(np.float32))[None])
        except (RuntimeError, ValueError):
            return None
        outputs.append(torch.as_tensor(output, device="cpu").double().flatten(1))
    if outputs[0].shape != outputs[1].shape:
        return None
    apart = (outputs[0] - outputs[1]).abs()
    changed = (outputs[0].argmax(1) != outputs[1].argmax(1)).double().mean()
    return Drift(float(apart.mean()), float(apart.max()), float(changed))


def mean_drift(drifts: Sequence[Drift | None]) -> Drift | None:
    """The mean over several pictures; None if it is missing for one of them."""
    present = [d for d in drifts if d is not None]
    if not present or len(present) != len(drifts):
        return None
    mean = sum(d.mean for d in present) / len(present)
    changed = sum(d.changed for d in present) / len(present)
    return Drift(mean, max(d.largest for d in present), changed)
