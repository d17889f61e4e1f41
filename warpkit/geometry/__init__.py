"""Matrices and points: every function batched, and differentiable in every tensor argument.

Conventions, here and everywhere in warpkit:

- Pixel coordinates are (x, y), x right, y down; the centre of the top-left pixel is (0, 0).
- A matrix (..., 2, 3) or (..., 3, 3) maps source pixels to destination pixels.
- Angles are degrees, counter-clockwise positive on the screen.
- Boxes are (x1, y1, x2, y2) in edge coordinates: pixel i covers [i, i + 1).
- Sizes are (H, W).

Numbers, sequences and arrays are accepted as well as tensors. Results are computed in float64 and
returned in the arguments' common type (torch's default type for Python numbers). All functions are
differentiable any number of times.

`matrices` makes and combines matrices, `from_points` computes them from pairs of points by the
formulas of `engine.definitions`, `boxes` has boxes, `theta` converts another form, `grid` has pixel
coordinates; `arguments` validates. Nothing here handles images.
"""

from warpkit.geometry.boxes import box_to_matrix as box_to_matrix
from warpkit.geometry.boxes import transform_boxes as transform_boxes
from warpkit.geometry.from_points import affine_from_points as affine_from_points
from warpkit.geometry.from_points import perspective_from_points as perspective_from_points
from warpkit.geometry.from_points import similarity_from_points as similarity_from_points
from warpkit.geometry.grid import pixel_grid as pixel_grid
from warpkit.geometry.matrices import affine_matrix as affine_matrix
from warpkit.geometry.matrices import compose as compose
from warpkit.geometry.matrices import image_center as image_center
from warpkit.geometry.matrices import invert as invert
from warpkit.geometry.matrices import resize_matrix as resize_matrix
from warpkit.geometry.matrices import rotation_matrix as rotation_matrix
from warpkit.geometry.matrices import transform_points as transform_points
from warpkit.geometry.theta import from_theta as from_theta
from warpkit.geometry.theta import to_theta as to_theta
