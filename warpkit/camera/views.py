"""Views of the sphere: directions of the pixels of a rotated camera with any lens, and back.

x is right, y down and z forward, in the view and on the sphere. A fisheye's equations are solved
for the angle from its axis, which may exceed 90 degrees, not for its tangent, the ideal pixel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.camera.arguments import as_lens, camera
from warpkit.core import checks
from warpkit.core.caller_warnings import warn
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.slips import look_at_camera
from warpkit.core.tracing import is_eager, is_readable, wants_gradient
from warpkit.engine.definitions import finite, lens_inverse, lens_models
from warpkit.engine.definitions.lens_models import COUNTS, Lens
from warpkit.engine.operators.lens_inverse import unbend
from warpkit.engine.sampling.maps import determinant, matrix_of
from warpkit.engine.sampling.reference import with_gradient_of
from warpkit.geometry.arguments import as_matrix, floats

TURNED = 1e-3
"""The largest deviation from the identity of a rotation times its transpose. It is 1e-6 in float32,
and as much as this for a rotation rounded to three digits."""

SMALL = 1e-2
"""Below this squared angle, the series of sine and cosine to its eighth power are exact."""

STEPS = 30
"""The most Newton steps, from the largest angle that a lens can show; 3 to 6 are typical."""

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
    if distortion is None and model == "brown":
        (fx, _, cx), (_, fy, cy) = (row.unbind(-1) for row in matrix[..., :2, :].unbind(-2))
        lens = Lens(model, fx, fy, cx, cy, ())
    else:
        k = torch.zeros(4, dtype=torch.float64, device=device) if distortion is None else distortion
        lens = as_lens(name, matrix, k, model, device)
    if camera_matrix is not None:
        look_at_camera(name, "camera_matrix", lens.tensors()[:4], size)
    if rotation is None:
        turn = torch.eye(3, dtype=torch.float64, device=device)
    else:
        turn = as_matrix(name, rotation, "rotation", device, (3,))
        _look_at_rotation(name, turn.detach())
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
    half = degrees * (math.pi / 360)
    half = torch.where(bad, 1.0, half)  # for a bad angle that could not be read
    focal = (width / 2) / (half if model == "fisheye" else half.tan())
    focal = torch.where(bad, torch.nan, focal)
    zero, one = torch.zeros_like(focal), torch.ones_like(focal)
    cx, cy = one * ((width - 1) / 2), one * ((height - 1) / 2)
    return matrix_of(((focal, zero, cx), (zero, focal, cy), (zero, zero, one)))


def _look_at_rotation(name: str, turn: Tensor) -> None:
    """Warn about a matrix (..., 3, 3) that is not a rotation, as may happen in training."""
    if not (is_readable(turn) and is_eager(turn)):
        return
    slack, turn = max(TURNED, 8 * torch.finfo(turn.dtype).eps), turn.double()
    identity = torch.eye(3, dtype=torch.float64, device=turn.device)
    off = (turn @ turn.mT - identity).abs().amax((-1, -2))
    if bool(((off > slack) | (determinant(turn) < 0)).any()):
        text = f"{name}: `rotation` is not a rotation: its rows are not orthonormal, or it "
        warn(text + "mirrors. Its transpose maps the view to the sphere")


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
    found = (view.turn.mT[..., None] * matrix_of(rows)[..., None, :, :]).sum(-2)
    return torch.where(view.valid[..., None, None], found, torch.nan)


def rays(view: View, x: Tensor, y: Tensor) -> Rays:
    """The directions on the sphere of pixels x and y (..., h, w) of a view.

    NaN where the lens shows nothing.
    """
    shape = broadcast_shapes(x.shape, y.shape)
    flat_x, flat_y = (value.expand(shape).flatten(-2) for value in (x, y))
    lens = view.lens.beside(1)
    u, v = lens_models.from_pixels(lens, flat_x, flat_y)
    if is_plain(view):
        a, b, c, found = u, v, torch.ones_like(u), torch.ones_like(u, dtype=torch.bool)
    elif lens.model == "fisheye":
        a, b, c, found = _rays_of_fisheye(lens, u, v)
    else:
        a, b, found = unbend(lens, *lens_models.untilt(lens, u, v))
        c = torch.ones_like(a)
    found = found & view.valid[..., None]
    m = view.turn[..., None, :, :]
    turned = (m[..., 0, k] * a + m[..., 1, k] * b + m[..., 2, k] * c for k in range(3))
    a, b, c = (torch.where(found, value, torch.nan).unflatten(-1, shape[-2:]) for value in turned)
    return a, b, c


def pixels(view: View, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The pixels (..., h, w, 2) of directions on the sphere, (h, w) each, in a view.

    NaN where the view does not show them.
    """
    m, lens = view.turn[..., None, None, :, :], view.lens.beside(2)
    a, b, c = (m[..., k, 0] * x + m[..., k, 1] * y + m[..., k, 2] * z for k in range(3))
    if lens.model == "fisheye":
        u, v, found = _shown_by_fisheye(lens, a, b, c)
    else:
        found = (c.detach() > 0) & finite.within(a.detach() / c.detach(), b.detach() / c.detach())
        c = torch.where(found, c, 1.0)
        u, v = (torch.where(found, value / c, 0.0) for value in (a, b))
        if lens.k:
            found = found & _before_fold(lens, u.detach(), v.detach())
            u, v = (torch.where(found, value, 0.0) for value in (u, v))
            u, v = lens_models.distort(lens, u, v)
    points = torch.stack(torch.broadcast_tensors(*lens_models.to_pixels(lens, u, v)), dim=-1)
    return torch.where((found & view.valid[..., None, None])[..., None], points, torch.nan)


def _before_fold(lens: Lens, x: Tensor, y: Tensor) -> Tensor:
    """Whether a brown lens shows directions x and y (...) on the branch of its centre."""
    end, _ = lens_models.fold(lens.detach())
    good = x * x + y * y < end
    for part in (1.0, 0.75, 0.5, 0.25):  # the non-radial part may fold earlier
        ux, uy, vx, vy = lens_models.slopes(lens.detach(), x * part, y * part)
        good = good & (ux * vy - uy * vx > 0)
    return good


# -- fisheyes: p is the squared angle from the axis, q the squared distorted radius,
# p b(p)^2 with b = 1 + k1 p + k2 p^2 + ..., so that no square root occurs, and all is smooth at 0


def _bend(lens: Lens, p: Tensor) -> tuple[Tensor, Tensor]:
    """b(p), and its derivative."""
    k1, k2, k3, k4 = lens.k
    b = 1 + (((k4 * p + k3) * p + k2) * p + k1) * p
    return b, ((4 * k4 * p + 3 * k3) * p + 2 * k2) * p + k1


def _last_angle(lens: Lens) -> Tensor:
    """The squared angle up to which a fisheye shows each direction once: its fold, or 180 degrees.

    At 180 degrees all points of the circle are the same direction, straight back.
    """
    k = [(2 * i + 3) * value for i, value in enumerate(lens.k)]
    fold = lens_models.first_root([torch.ones_like(k[0]), *k])
    return fold.clamp(max=math.pi**2)


def _rays_of_fisheye(lens: Lens, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The directions of a fisheye at distorted u and v (..., N), and where they exist.

    Gradients up to the third order, by the implicit function theorem: see `lens_inverse`.
    """
    near = finite.within(u.detach(), v.detach())
    u, v = (torch.where(near, value, 0.0) for value in (u, v))
    q = u * u + v * v
    with torch.no_grad():
        p, found = _solve(lens.detach(), q.detach())
    found = found & near
    if not is_eager(q, *lens.k) or wants_gradient(q, *lens.k):
        q = torch.where(found, q, 0.0)
        smooth = torch.where(found, p, 0.0)
        for _ in range(lens_inverse.NEWTON_STEPS):
            b, slope = _bend(lens, smooth)
            smooth = smooth - (smooth * b * b - q) / (b * (b + 2 * smooth * slope))
        p = with_gradient_of(torch.where(found, p, 0.0), smooth)
    p = torch.where(found, p, 0.0)
    small = p < SMALL
    low, angle = torch.where(small, p, 0.0), torch.where(small, 1.0, p).sqrt()
    cosine = torch.where(small, _series(low, 0), angle.cos())
    ratio = torch.where(small, _series(low, 1), angle.sin() / angle) / _bend(lens, p)[0]
    return u * ratio, v * ratio, cosine, found


def _series(p: Tensor, first: int) -> Tensor:
    """The cosine of the root of p, or with first = 1 its sine over the root, for p < SMALL."""
    total = torch.zeros_like(p)
    for n in reversed(range(9)):
        total = total * p + (-1) ** n / math.factorial(2 * n + first)
    return total


def _solve(lens: Lens, q: Tensor) -> tuple[Tensor, Tensor]:
    """The squared angles of squared radii q (..., N), and where they exist."""
    end = _last_angle(lens).expand(broadcast_shapes(q.shape, lens.k[0].shape))
    b, _ = _bend(lens, end)
    reached = end.sqrt() * b
    radius = q.sqrt()
    found = radius <= reached * (1 + 1e-12)
    low, high = torch.zeros_like(end), end.sqrt()
    angle = torch.minimum(radius.expand(end.shape), high)
    readable = is_readable(q) and is_eager(q)
    for _ in range(STEPS):
        b, slope = _bend(lens, angle * angle)
        error = angle * b - radius
        low, high = torch.where(error < 0, angle, low), torch.where(error < 0, high, angle)
        step = angle - error / (b + 2 * angle * angle * slope)
        inside = (step >= low) & (step <= high)
        step = torch.where(inside, step, (low + high) / 2)
        done = (step - angle).abs() <= 1e-15 * (1 + angle)
        angle = step
        if readable and bool((done | ~found).all()):
            break
    return angle * angle, found


def _shown_by_fisheye(lens: Lens, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distorted directions (...) of a fisheye, without focal length; and which of them it shows."""
    square, ahead = x * x + y * y, z.detach() > 0
    none = (square.detach() == 0) & ~ahead  # straight back, or no direction
    small = ahead & (square.detach() < SMALL * z.detach().square())
    depth = torch.where(small, z, 1.0)
    near = torch.where(small, square, 0.0) / (depth * depth)  # the tangent, squared
    series = torch.zeros_like(near)
    for i in reversed(range(9)):
        series = series * near + (-1) ** i / (2 * i + 1)
    far = torch.where(small | none, 1.0, square).sqrt()
    angle = torch.atan2(far, torch.where(small, 1.0, z))
    ratio = torch.where(small, series / depth, angle / far)
    p = torch.where(small, square * ratio * ratio, angle * angle)
    found = ~none & (p.detach() < _last_angle(lens.detach()))
    ratio = torch.where(found, ratio, 0.0) * _bend(lens, p)[0]
    return x * ratio, y * ratio, found
