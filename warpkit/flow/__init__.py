"""Deformation fields: an offset for every pixel; made, composed and integrated, with gradients.

A flow is (..., h, w, 2), the offset (dx, dy) in pixels of every output pixel p = (x, y): out(p) =
image(p + flow(p)). Between its pixels a flow is interpolated bilinearly, and beyond its edges it
keeps its value at the edge. Fields of other libraries: (B, 2, h, w) needs flow.movedim(-3, -1), and
a grid of F.grid_sample must be converted to pixels: see `warpkit.remap`'s warning.

`images` has the warp, `fields` makes and combines flows, `inverse` inverts them, `splines` makes
them from few parameters, `splatting` moves images along them, `matching` compares features;
`resizing` resizes flows, `occlusion` compares two, `colors` visualises one. `places` computes
positions, `arguments` validates. `warpkit.remap` samples.
"""

from warpkit.core.public import listing
from warpkit.flow.colors import to_image as to_image
from warpkit.flow.fields import compose as compose
from warpkit.flow.fields import from_matrix as from_matrix
from warpkit.flow.fields import from_points as from_points
from warpkit.flow.fields import integrate as integrate
from warpkit.flow.fields import jacobian_determinant as jacobian_determinant
from warpkit.flow.fields import to_points as to_points
from warpkit.flow.inverse import InverseFlow as InverseFlow
from warpkit.flow.inverse import invert as invert
from warpkit.flow.inverse import transform_points as transform_points
from warpkit.flow.matching import correlation as correlation
from warpkit.flow.occlusion import consistency as consistency
from warpkit.flow.resizing import resize as resize
from warpkit.flow.splatting import Splat as Splat
from warpkit.flow.splatting import splat as splat
from warpkit.flow.splines import bspline as bspline
from warpkit.flow.splines import thin_plate_points as thin_plate_points
from warpkit.flow.splines import thin_plate_spline as thin_plate_spline

__all__ = [
    "InverseFlow",
    "Splat",
    "bspline",
    "compose",
    "consistency",
    "correlation",
    "from_matrix",
    "from_points",
    "integrate",
    "invert",
    "jacobian_determinant",
    "resize",
    "splat",
    "thin_plate_points",
    "thin_plate_spline",
    "to_image",
    "to_points",
    "transform_points",
]
__dir__ = listing(__all__)
