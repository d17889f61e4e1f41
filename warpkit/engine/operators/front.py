"""Which pixel is in front where several land on one."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import front
from warpkit.engine.operators import native, triton

KERNELS = {"cpu": native("front"), "cuda": triton("front"), "triton": triton("front")}
FRONT = Operator(front.shown, KERNELS, front.moved)
"""image (..., C, H, W), of a float or signed type, flow (..., H, W, 2) and depth (..., H, W),
float32 or float64: (..., C, h, w), and where a pixel is shown (..., h, w); a gradient to the image
alone. The option: (h, w)."""
