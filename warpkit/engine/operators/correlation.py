"""Local correlation of two pictures."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import correlation

CORRELATION = Operator(correlation.correlation, {})
"""first (..., C, h, w) and second (..., C, H, W), float32 or float64, and perhaps flow
(..., h, w, 2): (..., offsets, h, w). The options: `Square`."""
