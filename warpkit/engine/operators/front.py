"""Which pixel is in front where several land on one."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import front
from warpkit.engine.operators import native

FRONT = Operator(front.front, {"cpu": native("front")})
"""flow (..., H, W, 2), depth (..., H, W), float32 or float64: (..., h, w), int64, no gradient."""
