"""Views of the sphere: directions of the pixels of a rotated camera with any lens, and back.

x is right, y down and z forward, in the view and on the sphere.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import as_any_lens, camera
from warpkit.core import checks, exports
from warpkit.core.caller_warnings import warn
from warpkit.core.mistakes import warn_if_16_bit_camera, warn_if_relative_camera
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_eager, is_readable
from warpkit.engine.definitions import finite, lens_models, lens_rays
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.engine.definitions.maps import determinant, matrix_of
from warpkit.engine.operators.lens_inverse import unbend
from warpkit.geometry.arguments import as_matrix, floats

TURNED = 1e-3
"""The largest deviation from the identity of a rotation times its transpose. It is 1e-6 in float32,
and as much as this for a rotation rounded to three digits."""

Rays = tuple[Tensor, Tensor, Tensor]


class View(NamedTuple):
    """A camera at the centre of the sphere."""

    lens: Lens
    """Numbers of the batch's shape (...); a brown lens without coefficients has no distortion."""
    turn: Tensor
    """(..., 3, 3), float64: from the sphere's directions to the view's."""
    valid: Tensor
    """(...), bool: where all its numbers are finite; elsewhere they are replaced."""

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch of its numbers, which broadcast."""
        shapes = (self.lens.fx.shape, self.turn.shape[:-2])
        return tuple(broadcast_shapes(*shapes))

    def item(self, index: tuple[int, ...]) -> View:
        """The view of one item of the batch."""
        first, *others = (t.expand(self.batch)[index] for t in self.lens.tensors())
        fy, cx, cy, *k = others
        turn = self.turn.expand(*self.batch, 3, 3)[index]
        lens = Lens(self.lens.model, first, fy, cx, cy, tuple(k))
        return View(lens, turn, self.valid.expand(self.batch)[index])


def as_view(
    name: str,
    size: tuple[int, int],
    device: torch.device,
    field_of_view: Any,
    camera_matrix: Any,
    rotation: Any,
    distortion: Any,
    model: Any,
) -> View:
    """The view of `size` (h, w), from validated arguments."""
    model = checks.check_name(name, "model", model, COUNTS)
    if (field_of_view is None) == (camera_matrix is None):
        got = "neither" if camera_matrix is None else "both"
        wanted = "given, or `camera_matrix`: exactly one of the two"
        checks.fail(name, "field_of_view", wanted, got)
    if camera_matrix is None:
        matrix = _matrix_of_field(name, size, device, field_of_view, model)
    else:
        matrix = camera(name, camera_matrix, device).double()
    lens = as_any_lens(name, matrix, distortion, model, device)
    if camera_matrix is not None:
        warn_if_relative_camera(name, "camera_matrix", lens.tensors()[:4], size)
    numbers = {"camera_matrix": camera_matrix, "rotation": rotation, "distortion": distortion}
    warn_if_16_bit_camera(name, size, **numbers)
    if rotation is None:
        turn = torch.eye(3, dtype=torch.float64, device=device)
    else:
        turn = as_matrix(name, rotation, "rotation", device, (3,))
        backward = "Its transpose maps the view to the sphere"
        warn_if_no_rotation(name, "`rotation`", turn.detach(), backward)
        turn = turn.double()
    shapes = {"camera_matrix, distortion": lens.fx.shape, "rotation": turn.shape[:-2]}
    checks.broadcast_batch(name, **shapes)
    (lens, valid), (turn, straight) = finite.finite_lens(lens), finite.finite_matrix(turn)
    return View(lens, turn, valid & straight)


def _matrix_of_field(
    name: str, size: tuple[int, int], device: torch.device, field_of_view: Any, model: str
) -> Tensor:
    """The camera (..., 3, 3) whose field of view in degrees spans the view's width (h, w)."""
    degrees = floats(name, "field_of_view", field_of_view, device).double()
    height, width = size
    if model == "fisheye":
        bad, wanted = ~((degrees > 0) & (degrees <= 360)), "above 0 and at most 360 degrees"
    else:
        bad, wanted = ~((degrees > 0) & (degrees < 180)), "above 0 and below 180 degrees"
    wanted += f" for model={model!r}"
    checks.check_values(name, "field_of_view", bad.detach(), wanted, degrees.detach())
    half = degrees * exports.number(math.pi / 360, degrees)
    half = torch.where(bad, 1.0, half)  # for a bad angle that could not be read
    focal = (width / 2) / (half if model == "fisheye" else half.tan())
    focal = torch.where(bad, torch.nan, focal)
    zero, one = torch.zeros_like(focal), torch.ones_like(focal)
    cx, cy = one * ((width - 1) / 2), one * ((height - 1) / 2)
    return matrix_of(((focal, zero, cx), (zero, focal, cy), (zero, zero, one)))


def warn_if_no_rotation(name: str, argument: str, turn: Tensor, otherwise: str) -> None:
    """Warn about a matrix (..., 3, 3) that is not a rotation, as may happen in training.

    argument: what has it; otherwise: what happens with it then.
    """
    if not (is_readable(turn) and is_eager(turn)):
        return
    slack, turn = max(TURNED, 8 * torch.finfo(turn.dtype).eps), turn.double()
    identity = torch.eye(3, dtype=torch.float64, device=turn.device)
    off = (turn @ turn.mT - identity).abs().amax((-1, -2))
    if bool(((off > slack) | (determinant(turn) < 0)).any()):
        text = f"{name}: {argument} is not a rotation: its rows are not orthonormal, or it "
        warn(text + f"mirrors. {otherwise}")


def is_plain(view: View) -> bool:
    """Whether a matrix maps the view's pixels to directions."""
    return view.lens.model == "brown" and not view.lens.k


def to_rays(view: View) -> Tensor:
    """The matrix (..., 3, 3) from a plain view's pixels (x, y, 1) to directions on the sphere."""
    lens = view.lens
    one, zero = torch.ones_like(lens.fx), torch.zeros_like(lens.fx)
    rows = (
        (1 / lens.fx, zero, -lens.cx / lens.fx),
        (zero, 1 / lens.fy, -lens.cy / lens.fy),
        (zero, zero, one),
    )
    # not @: on some processors matmul rounds a batch differently from its items
    matrix = (view.turn.mT[..., None] * matrix_of(rows)[..., None, :, :]).sum(-2)
    return torch.where(view.valid[..., None, None], matrix, torch.nan)


def rays(view: View, x: Tensor, y: Tensor) -> Rays:
    """The directions on the sphere of pixels x and y (..., h, w) of a view.

    NaN where the lens shows nothing.
    """
    shape = broadcast_shapes(x.shape, y.shape)
    flat_x, flat_y = (value.expand(shape).flatten(-2) for value in (x, y))
    a, b, c, converged = directions(view.lens, flat_x, flat_y)
    converged = converged & view.valid[..., None]
    m = view.turn[..., None, :, :]
    turned = (m[..., 0, k] * a + m[..., 1, k] * b + m[..., 2, k] * c for k in range(3))
    a, b, c = (
        torch.where(converged, value, torch.nan).unflatten(-1, shape[-2:]) for value in turned
    )
    return a, b, c


def directions(lens: Lens, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The directions (a, b, c) of pixels x and y (..., N) of a finite lens, and which exist.

    Of unit length for a fisheye, else with c = 1.
    """
    lens = lens.beside(1)
    u, v = lens_models.from_pixels(lens, x, y)
    if lens.model == "fisheye":
        return lens_rays.rays_of_fisheye(lens, u, v)
    if lens.k:
        a, b, converged = unbend(lens, *lens_models.untilt(lens, u, v))
        return a, b, torch.ones_like(a), converged
    return u, v, torch.ones_like(u), torch.ones_like(u, dtype=torch.bool)


def pixels(view: View, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The pixels (..., h, w, 2) of directions on the sphere, (h, w) each, in a view.

    NaN where the view does not show them.
    """
    m, lens = view.turn[..., None, None, :, :], view.lens.beside(2)
    a, b, c = (m[..., k, 0] * x + m[..., k, 1] * y + m[..., k, 2] * z for k in range(3))
    points, visible = lens_rays.shown(lens, a, b, c, lens_rays.end_of(lens))
    return torch.where((visible & view.valid[..., None, None])[..., None], points, torch.nan)
