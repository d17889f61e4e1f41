"""Distorts and undistorts images and points, with gradients to everything.

A camera is a matrix (..., 3, 3), (fx, 0, cx; 0, fy, cy; 0, 0, 1) in pixels, and its lens a vector
of coefficients in OpenCV's order: of model "brown" 4, 5, 8, 12 or 14 of k1 k2 p1 p2 k3 k4 k5 k6 s1
s2 s3 s4 tx ty (radial, tangential, rational, thin prism, and the sensor's tilt in radians), of
model "fisheye" the 4 of Kannala and Brandt. For a single lens they may be (1, n) or (n, 1), as cv2
returns them. An ideal pixel is one of a camera without distortion.

Cameras, coefficients, points and images broadcast over their batches; everything is computed in
float64. `engine.definitions` has the formulas and their inverse, `points`, `maps` and `images` the
public functions, `optimal` the matrix that shows a whole image; `arguments` validates.
`warpkit.remap` samples.

The whole sphere is an equirectangular image (..., C, H, W), see `engine.definitions.sphere`.
`spheres` renders a camera at its centre, `views` has the camera's directions, `rotations` makes its
rotation, and `cubes` has the six faces.

`poses` relates two cameras, `depth` warps the image of one to the other's view, and `sweeps`
compares several at many depths.
"""

from warpkit.camera.cubes import from_cube as from_cube
from warpkit.camera.cubes import to_cube as to_cube
from warpkit.camera.depth import DepthPoints as DepthPoints
from warpkit.camera.depth import DepthWarp as DepthWarp
from warpkit.camera.depth import depth_points as depth_points
from warpkit.camera.depth import warp_depth as warp_depth
from warpkit.camera.images import distort as distort
from warpkit.camera.images import undistort as undistort
from warpkit.camera.maps import distort_map as distort_map
from warpkit.camera.maps import undistort_map as undistort_map
from warpkit.camera.optimal import optimal_camera_matrix as optimal_camera_matrix
from warpkit.camera.points import distort_points as distort_points
from warpkit.camera.points import undistort_points as undistort_points
from warpkit.camera.poses import pose as pose
from warpkit.camera.rotations import rotation as rotation
from warpkit.camera.spheres import from_sphere as from_sphere
from warpkit.camera.spheres import to_sphere as to_sphere
from warpkit.camera.sweeps import Sweep as Sweep
from warpkit.camera.sweeps import plane_sweep as plane_sweep
from warpkit.core.public import listing

__all__ = [
    "DepthPoints",
    "DepthWarp",
    "Sweep",
    "depth_points",
    "distort",
    "distort_map",
    "distort_points",
    "from_cube",
    "from_sphere",
    "optimal_camera_matrix",
    "plane_sweep",
    "pose",
    "rotation",
    "to_cube",
    "to_sphere",
    "undistort",
    "undistort_map",
    "undistort_points",
    "warp_depth",
]
__dir__ = listing(__all__)
