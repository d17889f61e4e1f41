"""The image of another camera at the points of a view's depths."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import depth_warp
from warpkit.engine.operators import native

SHOWN = Operator(depth_warp.shown, {"cpu": native("depth_warp")})
"""image (..., C, H, W) and its fill, float32 or float64, and the tensors of `depth.POINTS`, whose
batch is the result's: see `definitions.depth_warp.shown`."""
