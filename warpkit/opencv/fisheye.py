"""cv2.fisheye: fisheye lenses as OpenCV computes them, with gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warpkit.camera import guards, maps, models
from warpkit.camera.models import Lens
from warpkit.camera.points import directions
from warpkit.core import checks
from warpkit.engine.arithmetic import opencv_lenses
from warpkit.engine.arithmetic.opencv_lenses import FISHEYE_STEPS, NOWHERE
from warpkit.engine.sampling.maps import inverse_map, pixel_points
from warpkit.engine.sampling.reference import with_gradient_of
from warpkit.opencv import cameras, lenses
from warpkit.opencv.layout import as_given, has_tensor, is_followed
from warpkit.opencv.outputs import check_output
from warpkit.opencv.sizes import as_list, as_size, is_empty

NAMES = ("K", "D")


def initUndistortRectifyMap(
    K: Any,
    D: Any,
    R: Any,
    P: Any,
    size: Any,
    m1type: int,
    map1: Any = None,
    map2: Any = None,
) -> tuple[Any, Any]:
    """cv2.fisheye.initUndistortRectifyMap: two maps for `remap`.

    K (3, 3); D None or 4 numbers; R (3, 3), three numbers, or None; P (3, 3) or (3, 4), the
    identity if None; size (W, H); m1type CV_32FC1 or CV_16SC2. Returns two (H, W) float32, or
    (H, W, 2) int16 and (H, W) uint16. Gradients, where an argument is a tensor and the maps are
    floats: all orders, to all.

    >>> import numpy as np
    >>> x, y = initUndistortRectifyMap(np.eye(3), None, None, None, (2, 1), 5)
    >>> x.round(4)
    array([[0.    , 0.7854]], dtype=float32)
    """
    name = "fisheye.initUndistortRectifyMap"
    values = (K, D, R, P)
    device = cameras.common_device(*values)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    kind = cameras.map_kind(name, "m1type", m1type, ("planes", "fixed"))
    points = _map(name, lens, R, P, as_size(name, "size", size), device)
    return cameras.as_maps(points, kind, has_tensor(*values), (map1, map2))


def _map(
    name: str, lens: Lens, R: Any, P: Any, size: tuple[int, int], device: torch.device
) -> Tensor:
    """Where pixels look, (h, w, 2), float64; infinitely far off behind the camera, as in OpenCV."""
    view = cameras.as_turn(name, None, device)
    view = view if P is None else cameras.as_view(name, "P", P, device)
    view = view if R is None else view @ cameras.as_turn(name, R, device, vectors=True)
    points = maps.undistorting(lens, view, size)
    behind = points.detach().isnan()
    if not bool(behind.any()):
        return points
    to_ray, pixels = inverse_map(view.detach()), pixel_points(size, torch.float64, device)
    rays = torch.cat((pixels, torch.ones_like(pixels[..., :1])), dim=-1) @ to_ray.mT
    off = torch.where(rays[..., :2] > 0, -torch.inf, torch.inf)
    return torch.where(behind, off, points)


def undistortImage(
    distorted: Any,
    K: Any,
    D: Any,
    undistorted: Any = None,
    Knew: Any = None,
    new_size: Any = None,
    *,
    arithmetic: str = "auto",
) -> Any:
    """cv2.fisheye.undistortImage: `warpkit.camera.undistort` through OpenCV's map of 1/32 pixels.

    distorted (H, W) or (H, W, C); K (3, 3); D 4 numbers; Knew (3, 3), the identity if None, which
    shows one pixel of the middle: give K; new_size (W, H). Bilinear, with 0 around the image.
    Gradients, where `distorted` is a tensor: to it, K, D and Knew.

    >>> import numpy as np
    >>> camera = np.array([[9.0, 0, 1], [0, 9, 0], [0, 0, 1]])
    >>> undistortImage(np.arange(3, dtype=np.float32)[None] * 8, camera, np.zeros(4), None, camera)
    array([[ 0.,  8., 16.]], dtype=float32)
    """
    name = "fisheye.undistortImage"
    device = cameras.common_device(distorted, K, D, Knew)
    lenses.check_source(name, "distorted", distorted, device)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    new_size = as_list(name, "new_size", new_size)
    size = tuple(distorted.shape[:2]) if is_empty(new_size) else as_size(name, "new_size", new_size)
    points = _map(name, lens, None, Knew, (size[0], size[1]), device)
    return lenses.sample(name, distorted, points, undistorted, arithmetic)


def undistortPoints(
    distorted: Any,
    K: Any,
    D: Any,
    undistorted: Any = None,
    R: Any = None,
    P: Any = None,
    criteria: Any = None,
) -> Any:
    """cv2.fisheye.undistortPoints: ten Newton steps of each point's angle.

    distorted (N, 1, 2), (1, N, 2), (H, W, 2) or (N, 2), pixels; K (3, 3); D 4 numbers; R (3, 3) or
    three numbers; P (3, 3) or (3, 4), without which the result is in directions; criteria (type,
    steps, error of the angle). Returns the shape and type of `distorted`, (-1000000, -1000000)
    where OpenCV finds nothing. Gradients, where an argument is a tensor: those of the exact
    solution, 0 where there is none.

    >>> import numpy as np
    >>> undistortPoints(np.array([[[np.pi / 4, 0.0]]]), np.eye(3), np.zeros(4)).round(6)
    array([[[1., 0.]]])
    """
    name = "fisheye.undistortPoints"
    values = (distorted, K, D, R, P)
    device = cameras.common_device(*values)
    given = cameras.as_places(name, "distorted", distorted, device, 2)
    points = given.double().reshape(-1, 2)
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    steps = cameras.as_criteria(name, criteria, FISHEYE_STEPS)
    shown = torch.stack(models.from_pixels(lens.detach(), *points.detach().unbind(-1)), dim=-1)
    k = torch.stack(lens.detach().k)
    value, found = opencv_lenses.undistort_fisheye(shown, k, steps)
    if is_followed(points, *lens.tensors()):
        x, y, _ = directions(lens.beside(1), points)
        value = with_gradient_of(value, torch.stack((x, y), dim=-1))
    turn = cameras.as_turn(name, R, device, vectors=True)
    view = turn if P is None else cameras.as_view(name, "P", P, device) @ turn
    moved = value if R is None and P is None else lenses.project(view, value)
    moved = torch.where(found[:, None], moved, NOWHERE)
    output = check_output(name, "undistorted", undistorted, distorted)
    return as_given(has_tensor(*values), moved.reshape(given.shape).to(given.dtype), output)


def distortPoints(
    undistorted: Any,
    K: Any,
    D: Any,
    distorted: Any = None,
    alpha: Any = 0,
    *rest: Any,
    Kundistorted: Any = None,
) -> Any:
    """cv2.fisheye.distortPoints: `warpkit.camera.distort_points` of directions, not of pixels.

    undistorted (N, 1, 2), (1, N, 2), (H, W, 2) or (N, 2), directions, or pixels of the camera
    Kundistorted, (3, 3); K (3, 3); D 4 numbers; alpha the skew. cv2's other order of arguments is
    read too: (undistorted, Kundistorted, K, D, distorted, alpha). Returns pixels of the shape and
    type of `undistorted`, under Kundistorted always float64, as cv2 does. Gradients, where an
    argument is a tensor: all orders, to all.

    >>> import numpy as np
    >>> distortPoints(np.array([[[1.0, 0.0]]]), np.eye(3), np.zeros(4)).round(4)
    array([[[0.7854, 0.    ]]])
    """
    name = "fisheye.distortPoints"
    if Kundistorted is None and checks.shape_if_any(D) == (3, 3):
        skews = rest or (0,)
        Kundistorted, K, D, distorted, alpha, rest = K, D, distorted, alpha, skews[0], skews[1:]
        distorted = None if isinstance(distorted, (int, float)) else distorted
    if rest:
        checks.fail(name, "alpha", "the last argument", f"{len(rest)} more", TypeError)
    values = (undistorted, K, D, alpha, Kundistorted)
    device = cameras.common_device(*values)
    given = cameras.as_places(name, "undistorted", undistorted, device, 2)
    points, dtype = given.double(), given.dtype
    lens = cameras.as_lens(name, K, D, device, "fisheye", NAMES)
    skew = cameras.as_array(name, "alpha", alpha, device)
    if skew.ndim:
        checks.fail(name, "alpha", "a number", checks.shape_of(skew))
    if Kundistorted is not None:
        view = cameras.as_array(name, "Kundistorted", Kundistorted, device)
        if tuple(view.shape) != (3, 3):
            checks.fail(name, "Kundistorted", "of shape (3, 3)", checks.shape_of(view))
        real = points.detach().isfinite().all(-1, keepdim=True)
        # cv2 reads the focal lengths and the centre alone, and no skew
        seen = (torch.where(real, points, 0.0) - view[:2, 2]) / view.diagonal()[:2]
        points, dtype = torch.where(real, seen, torch.nan), torch.float64
    shown = _skewed(lens, points, skew)
    output = check_output(name, "distorted", distorted, undistorted)
    return as_given(has_tensor(*values), shown.to(dtype), output)


def _skewed(lens: Lens, points: Tensor, skew: Tensor) -> Tensor:
    """Directions (..., 2) as pixels of a lens of one camera, with its skew; NaN stays so."""
    near = guards.within(*points.detach().unbind(-1))
    x, y = torch.where(near[..., None], points, 0.0).unbind(-1)
    u, v = models.bend(lens, x, y)
    shown = torch.stack(models.to_pixels(lens, u + skew * v, v), dim=-1)
    return torch.where(near[..., None], shown, torch.nan)
