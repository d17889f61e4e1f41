"""torch's own sampler, F.grid_sample: any device; exports to ONNX.

Its grid is normalised to [-1, 1] in the image's type. In float32 it is several times less exact
than the reference (see the tolerance table); therefore `backend="auto"` does not select it.

As for the compiled kernels, tangents come from the reference: before 2.15 torch has no forward mode
here, and 2.15 has none for the gradient. Second derivatives also come from the reference if torch
has none, which is so up to 2.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Thread
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.core.tracing import has_tangents, in_transform, wants_gradient
from warpkit.engine.binding.operator import Operator
from warpkit.engine.binding.vjp import vjp
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.maps import (
    inverse_map,
    no_float64,
    output_points,
    pixels_from_theta,
)
from warpkit.engine.definitions.reference import Fold, by_rows, compute_dtype
from warpkit.engine.definitions.rules import (
    LIMIT,
    MISSING_BORDERS,
    TAPS,
    SamplingRule,
    borders_of,
    is_pair,
)
from warpkit.engine.operators.warp import WARP, Warp

MODES = ("nearest", "bilinear", "bicubic")
PADDING = {
    "constant": "zeros",
    "transparent": "zeros",
    "replicate": "border",
    "reflect": "reflection",  # align_corners=False reflects at the outer edge
    "reflect_101": "reflection",  # align_corners=True reflects at the pixel's centre
}


def unsupported_reasons(image: Tensor, rule: SamplingRule) -> list[str]:
    """The reasons why grid_sample does not support a call."""
    reasons = no_float64(image)
    if not image.is_floating_point():
        reasons.append(f"needs a floating image (a grid has no other), got {image.dtype}")
    if rule.interpolation not in MODES:
        reasons.append(f"has no {rule.interpolation}")
    if is_pair(rule.border):
        reasons.append(f"a grid has one border for both axes, got {borders_of(rule.border)}")
    elif rule.border not in PADDING:
        reasons.append(f"has no border {rule.border!r}")
    if rule.border == "reflect_101" and min(image.shape[-2:]) < 2:
        reasons.append("needs at least 2 pixels a side for reflect_101")
    return reasons


def warp(
    image: Tensor, to_source: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp`."""
    # F.affine_grid would be as fast (0.19 s against 0.21 s for 8 grids of 512x512), but it warns
    # under vmap, takes no matrix (..., 3, 3), and no side of one pixel with align_corners
    return sample(image, output_points(to_source, size), fill, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
) -> Tensor:
    """As `reference.warp_forward`."""
    return warp(image, inverse_map(matrix.double()), size, fill, rule)


def sample(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """As `reference.sample`."""
    if has_tangents():
        return reference.sample(image, points, fill, rule)
    if _is_followed(image, points, fill) and not has_second_order():
        mapping = points.detach() if rule.interpolation == "nearest" else points
        options = Warp(points.shape[-3:-1], rule)
        return GRID_SAMPLE(options, image, mapping, fill, device="torch")
    return _sample(image, points, fill, rule)


def _is_followed(*tensors: Tensor) -> bool:
    """Whether a gradient may be needed; exporters and compilers use torch's own function."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # pyright: ignore
        return False
    return in_transform() or wants_gradient(*tensors)


@cache
def has_second_order() -> bool:
    """Whether torch can differentiate the gradient of its F.grid_sample."""
    found = []

    def ask() -> None:
        grid = torch.zeros(1, 1, 1, 2, requires_grad=True, device="cpu")
        value = F.grid_sample(torch.ones(1, 1, 2, 2, device="cpu"), grid, align_corners=False)
        try:
            (first,) = torch.autograd.grad(value.sum(), grid, create_graph=True)
            torch.autograd.grad(first.sum(), grid)
        except RuntimeError:
            return
        found.append(True)

    # transforms, modes and devices belong to the caller's thread
    thread = Thread(target=ask)
    thread.start()
    thread.join()
    return bool(found)


def _forward(options: Warp, image: Tensor, points: Tensor, fill: Tensor) -> tuple[Tensor, None]:
    """Tensors as of `reference.sample`."""
    return _sample(image, points, fill, options.rule), None


def _backward(
    options: Warp,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The wanted gradients, from torch's function.

    grads (*batch, C, h, w); tensors as in `reference.sample`.
    """
    return vjp(lambda *inputs: _forward(options, *inputs)[0], tensors, grads, wanted)


GRID_SAMPLE = Operator(
    WARP.formula,
    {"torch": lambda: SimpleNamespace(forward=_forward, backward=_backward)},
    signature=WARP.signature,
)
"""`WARP` by torch's function, for points."""


def _sample(image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
    """Tensors as of `reference.sample`."""
    points = points.double()
    near = (points.detach().abs() < LIMIT).all(-1)  # false for NaN
    if rule.interpolation == "nearest":
        # detached, so autograd reports a missing gradient as the reference does; rounded, because
        # ties do not survive the normalised grid (0.5 of 3 pixels became 1)
        points = points.detach().round()
    to_pixels = pixels_from_theta(image.shape[-2:], rule.border == "reflect_101", points)
    grid = (points - to_pixels[:2, 2]) / to_pixels[:2, :2].diagonal()
    lost = _lost(points.detach(), image.shape[-2:], rule.interpolation)
    return _sample_grid(image, grid, near, lost, fill, rule)


def _lost(points: Tensor, size: Sequence[int], interpolation: str) -> tuple[Tensor, Tensor]:
    """Whether a tap is outside the image, and whether all are."""
    taps = TAPS[interpolation]
    first = (points if taps == 1 else points.floor()) - (taps - 1) // 2
    sides = torch.tensor((size[1], size[0]), dtype=points.dtype, device=points.device)
    some = (first < 0) | (first + taps > sides)
    return some.any(-1), ((first + taps <= 0) | (first >= sides)).any(-1)


def _sample_grid(
    image: Tensor,
    grid: Tensor,
    near: Tensor,
    lost: tuple[Tensor, Tensor],
    fill: Tensor,
    rule: SamplingRule,
) -> Tensor:
    """image (*I, C, H, W); grid (*P, h, w, 2), in [-1, 1]; near (*P, h, w): whether the point is
    sampled at all; lost: two of (*P, h, w), see `_lost`; fill broadcasts to the result.
    """
    corners = rule.border == "reflect_101"
    fill = by_rows(fill, grid)
    to_pixels = pixels_from_theta(image.shape[-2:], corners, grid)
    per_unit = to_pixels[:2, :2].diagonal()
    grid = torch.where(near[..., None], grid, 0.0)
    if "reflect" in rule.border:
        # both reflections have period 4 here; far away torch's own loses all digits
        grid = (grid + 1).remainder(4) - 1
    else:
        # for every border, 9 pixels outside is equivalent to farther, and no index can overflow
        far = 1 + 9 / per_unit
        grid = torch.minimum(torch.maximum(grid, -far), far)
    pixels = image.to(compute_dtype(image.dtype))
    grid = grid.to(pixels.dtype)
    result = _call(pixels, grid, rule.interpolation, PADDING[rule.border], corners)
    if rule.border in MISSING_BORDERS:
        ones = torch.ones_like(pixels[..., :1, :, :])
        cover = _call(ones, grid, rule.interpolation, "zeros", corners)
        # elsewhere nothing may leak in: (1 - cover) is a rounding error, and NaN times 0 is NaN
        missing, alone = (place[..., None, :, :] for place in lost)
        # a border of NaN is constant, too: it must not affect the gradient to the point
        cover = torch.where(alone, 0.0, cover)
        result = result + torch.where(missing, (1 - cover) * fill, 0.0)
    return torch.where(near[..., None, :, :], result, fill).to(image.dtype)


def _call(image: Tensor, grid: Tensor, interpolation: str, padding: str, corners: bool) -> Tensor:
    """F.grid_sample for any broadcasting batch; an image's grids are joined to a tall one.

    image (*I, C, H, W); grid (*P, h, w, 2), in [-1, 1].
    """
    fold = Fold(image.shape[:-3], grid.shape[:-3])
    stacked = fold.points(grid, grid.shape[-3:])
    images = image.reshape(fold.images, *image.shape[-3:])
    if fold.shared == 0:  # grid_sample rejects this
        values = images[..., :1, :1].expand(-1, -1, 0, grid.shape[-2])
    else:
        options = {"mode": interpolation, "padding_mode": padding, "align_corners": corners}
        values = F.grid_sample(images, stacked, **options)
    return fold.values(values, grid.shape[-3])
