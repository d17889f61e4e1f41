"""Points of a view's depths in another camera."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import depth
from warpkit.engine.operators import native, triton

KERNELS = {"cpu": native("depth"), "cuda": triton("depth"), "triton": triton("depth")}
POINTS = Operator(depth.points, KERNELS)
"""depth (..., h, w), rays (..., 3, h, w) or (..., 4), pose (..., 3, 4), numbers (..., 4 + n) and
end (...) of the other lens: see `definitions.depth.points`."""
