"""Points of a view's depths in another camera."""

from __future__ import annotations

from warpkit.engine.binding.operator import Operator
from warpkit.engine.definitions import depth

POINTS = Operator(depth.points, {})
"""depth (..., h, w), rays (..., h, w, 3) or (..., 4), pose (..., 3, 4), numbers (..., 4 + n) and
end (...) of the other lens: see `definitions.depth.points`."""
