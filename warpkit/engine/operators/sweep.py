"""Pictures compared at the depths of a view."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import sweep

SWEEP = Operator(sweep.cost, {})
"""sources (..., V, C, H, W), float32 or float64, depths (..., D, h or 1, w or 1), rays
(..., 3, h, w) or (..., 4), poses (..., V, 3, 4), numbers (..., V, 4 + n) and ends (..., V) of the
sources' lenses, and perhaps the view (..., C, h, w): see `definitions.sweep.cost`."""
