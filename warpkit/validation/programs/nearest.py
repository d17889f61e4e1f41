"""How far a twin is from a program, and the nearest resize if none fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warpkit.validation.programs.arithmetic import Resampling


class Difference(NamedTuple):
    """How far a twin is from the program on one picture."""

    share: float
    largest: float
    differing: int


UNLIKE = Difference(1.0, np.inf, 1 << 60)
"""The result has another shape, or the twin raises an error."""


@dataclass(frozen=True)
class Nearest:
    """The nearest resize, if none fits."""

    resampling: Resampling | None
    difference: Difference


def nearest_words(how: Resampling | None, difference: Difference) -> str:
    """A sentence about the nearest resize."""
    if not np.isfinite(difference.largest):
        return "No resize that is known gives these numbers."
    name = "the picture as it is" if how is None else str(how)
    text = f"No resize that is known gives these numbers. The nearest is {name}: "
    text += f"{100 * difference.share:.2g} % of the values differ"
    return f"{text}, by up to {difference.largest:.3g} levels."
