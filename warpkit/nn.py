"""Warps as layers: `Warp`, and the spatial transformer (Jaderberg et al., 2015)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from warpkit.core import checks, tracing
from warpkit.core.caller_warnings import warn
from warpkit.core.mistakes import without_warnings
from warpkit.core.public import listing
from warpkit.engine.backends import named_backend
from warpkit.engine.definitions.maps import (
    inverse_of_theta,
    map_points,
    output_points,
    pixel_points,
)
from warpkit.engine.definitions.rule_names import parse_rule
from warpkit.flow.splines import thin_plate_spline
from warpkit.types import BackendName, Border, Interpolation, Transformer, WarpKeywords
from warpkit.warp import remap, warp_affine, warp_perspective
from warpkit.warp_options import check_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["SpatialTransformer", "Warp"]
__dir__ = listing(__all__)

NUMBERS = {"affine": 6, "similarity": 4, "perspective": 8, "thin_plate": 2}
"""The head's outputs for each transform; for a thin plate, for each point of its lattice."""

LOOK_EVERY = 100
"""Forward passes between two checks of the sample positions on an accelerator: a check waits for
its queue."""

AUTOCAST = tuple(filter(torch.amp.is_autocast_available, ("cpu", "cuda", "xpu", "mps", "hpu")))
"""The devices that have it, checked beforehand: Dynamo before torch 2.8 cannot trace the check."""


class Warp(nn.Module):
    """`warp_affine` or `warp_perspective` as a layer, by the matrix's shape.

    Takes image (..., C, H, W) and matrix (..., 2, 3) or (..., 3, 3); the options are the warps',
    and are checked at once.

    >>> Warp(size=(1, 2))(torch.ones(1, 2, 2), torch.eye(2, 3))
    tensor([[[1., 1.]]])
    """

    def __init__(self, **options: Unpack[WarpKeywords]) -> None:
        super().__init__()
        _check_options("Warp", **options)
        size = options.get("size")
        if size is not None:  # as the state of a layer holds it
            options["size"] = checks.check_size("Warp", "size", size)
        self.options = options

    def forward(self, image: Tensor, matrix: Tensor) -> Tensor:
        """The warped image (..., C, h, w)."""
        perspective = isinstance(matrix, Tensor) and matrix.shape[-2:] == (3, 3)
        return (warp_perspective if perspective else warp_affine)(image, matrix, **self.options)

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


OPTIONS = {p.name: p.default for p in signature(warp_affine).parameters.values()}
"""The arguments of a warp with their defaults."""


def _check_options(name: str, **options: Any) -> None:
    """Check options of a warp that do not depend on the image."""
    names = [option for option in OPTIONS if option not in ("image", "matrix")]
    for option in options:
        if option not in names:
            wanted = "options of the warps: " + ", ".join(names)
            checks.fail(name, "options", wanted, repr(option), TypeError)
    chosen = {**OPTIONS, **options}
    names = (chosen["interpolation"], chosen["border"], chosen["arithmetic"])
    rule = parse_rule(name, *names, splines=True)
    named_backend(name, chosen["backend"])
    if chosen["size"] is not None:
        checks.check_size(name, "size", chosen["size"])
    check_options(name, rule, chosen["inverse"], chosen["antialias"], chosen["image_gradient"])
    if rule.border == "transparent" and chosen["background"] is None:
        wanted = "a border other than 'transparent', which needs a background"
        checks.fail(name, "border", wanted, repr(chosen["border"]))


def zero_linear(features: int | None, numbers: int) -> nn.Module:
    """A linear layer that starts at zero."""
    if features is None:
        with warnings.catch_warnings():  # lazy modules warn that they are new; they are from 2021
            warnings.simplefilter("ignore", UserWarning)
            return ZeroLinear(numbers)
    layer = nn.Linear(features, numbers)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class ZeroLinear(nn.LazyLinear):
    """A linear layer that infers its input's size at the first call, and starts at zero."""

    def reset_parameters(self) -> None:
        """Set zeros, once the parameters have a shape."""
        for parameter in (self.weight, self.bias):
            if parameter is not None and not is_lazy(parameter):
                nn.init.zeros_(parameter)


class SpatialTransformer(nn.Module):
    """Warp each image by a matrix that a network computes from it.

    Args:
        localization: any module from images (B, C, H, W) to features (B, F).
        size: (h, w) of the result.
        transform: "affine"; "similarity" (rotation, scale and shift in the image's pixels);
            "perspective"; or "thin_plate": a smooth deformation by the points of a lattice.
        features: F, if known; None infers it at the first call, before which the head's parameters
            have no shape.
        interpolation, border, backend: as in `warp_affine`; "grid_sample" exports the smallest
            ONNX graph.
        lattice: (rows, columns) of a thin plate's points, which run from edge to edge.

    The layer adds the head that computes the matrix from the features. The head starts at zero: at
    the identity in normalised coordinates, so that another `size` resizes the whole image.
    `theta(images)` is the matrix as `F.affine_grid` takes it (a thin plate has none);
    `points(images)` are the source positions of the pixels.

    Warns during training if most of a batch samples mostly outside the image: its result is then
    border, and its gradient vanishes. Gradients: all orders.

    >>> look = SpatialTransformer(torch.nn.Flatten(), (2, 2), features=16)
    >>> look(torch.arange(16.0).reshape(1, 1, 4, 4)).detach()
    tensor([[[[ 2.5000,  4.5000],
              [10.5000, 12.5000]]]])
    """

    def __init__(
        self,
        localization: nn.Module,
        size: Sequence[int],
        *,
        transform: Transformer = "affine",
        features: int | None = None,
        interpolation: Interpolation = "bilinear",
        border: Border = "constant",
        backend: BackendName = "auto",
        lattice: Sequence[int] = (4, 4),
    ) -> None:
        super().__init__()
        name = "SpatialTransformer"
        if not isinstance(localization, nn.Module):
            got = checks.kind_of(localization)
            checks.fail(name, "localization", "a torch.nn.Module", got, TypeError)
        self.size = checks.check_size(name, "size", size)
        self.transform = checks.check_name(name, "transform", transform, NUMBERS)
        whole = isinstance(features, Integral) and not isinstance(features, bool)
        if features is not None and not (whole and features >= 1):
            checks.fail(name, "features", "None or an integer of at least 1", repr(features))
        if features is not None and features >= checks.MAX_SIDE:
            checks.fail(name, "features", "an integer below 2^31", f"{features!r:.60}")
        features = None if features is None else int(features)
        self.features = features
        self.localization = localization
        self.lattice = checks.check_size(name, "lattice", lattice, "(rows, columns)")
        if min(self.lattice) < 2:
            checks.fail(name, "lattice", "at least 2 x 2 points", self.lattice)
        points = self.lattice[0] * self.lattice[1] if transform == "thin_plate" else 1
        self.head = zero_linear(features, points * NUMBERS[transform])
        self.options: dict[str, Any] = {
            "interpolation": interpolation,
            "border": border,
            "backend": backend,
        }
        _check_options(name, **self.options)
        self.calls = 0

    def theta(self, images: Tensor) -> Tensor:
        """The matrices of the images (B, C, H, W), destination -> source in [-1, 1].

        (B, 2, 3), or (B, 3, 3) for a perspective. A thin plate has none.
        """
        if self.transform == "thin_plate":
            wanted = "one with a matrix; `points` returns a thin plate's field"
            checks.fail("SpatialTransformer.theta", "transform", wanted, "'thin_plate'")
        numbers = self._numbers(images)
        if self.transform == "similarity":
            return similarity(numbers, images.shape[-2] / images.shape[-1])
        options: dict[str, Any] = {"dtype": numbers.dtype, "device": numbers.device}
        if self.transform == "affine":
            return torch.eye(2, 3, **options) + numbers.unflatten(1, (2, 3))
        full = nn.functional.pad(numbers, (0, 1)).unflatten(1, (3, 3))
        return torch.eye(3, **options) + full

    def points(self, images: Tensor) -> Tensor:
        """The source positions (B, h, w, 2) of the result's pixels in images (B, C, H, W)."""
        if self.transform != "thin_plate":
            return output_points(self._to_source(self.theta(images), images), self.size)
        return thin_plate(self._numbers(images), self.lattice, images.shape[-2:], self.size)

    def _to_source(self, theta: Tensor, images: Tensor) -> Tensor:
        """The matrices (B, 2 or 3, 3) of pixels, destination -> source; images (B, C, H, W)."""
        return inverse_of_theta(theta.double(), images.shape[-2:], self.size, False)

    def _numbers(self, images: Tensor) -> Tensor:
        """The head's numbers for images (B, C, H, W): (B, N)."""
        features = self.localization(images)
        batch, count = images.shape[0], self.features  # len() would fix the batch of an export
        same = features.ndim == 2 and features.shape[0] == batch
        if not same or count not in (None, features.shape[1]):
            shape = f"({batch}, {count or 'F'})"
            wanted = f"a module that returns {shape} for images {tuple(images.shape)}"
            got = checks.shape_of(features)
            checks.fail("SpatialTransformer", "localization", wanted, got)
        return self._head(features)

    def _head(self, features: Tensor) -> Tensor:
        """The head's outputs in float32 at least, without intermediate rounding.

        bfloat16 has 8 bits: it rounds a shift by half an image of 224 pixels by half a pixel.
        """
        device = features.device.type
        if device in AUTOCAST and torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                numbers = self.head(features.to(next(self.head.parameters()).dtype))
        else:
            numbers = self.head(features)
        return numbers.to(torch.promote_types(numbers.dtype, torch.float32))

    def forward(self, images: Tensor) -> Tensor:
        """The images (B, C, H, W), warped by their matrices, (B, C, h, w)."""
        checks.check_image("SpatialTransformer", "images", images)
        if images.ndim != 4:
            got = checks.shape_of(images)
            checks.fail("SpatialTransformer", "images", "of shape (B, C, H, W)", got)
        if self.transform == "thin_plate":
            points = self.points(images)
            if self.training:
                self._warn_if_no_pixels(points.detach(), images.shape[-2:])
            return without_warnings(remap)(images, points, **self.options)
        theta = self.theta(images)
        if self.training:
            self._look(theta.detach())
        to_source = self._to_source(theta, images)
        warp = warp_perspective if self.transform == "perspective" else warp_affine
        warp = without_warnings(warp)
        return warp(images, to_source, size=self.size, inverse=True, **self.options)

    def _look(self, theta: Tensor) -> None:
        """Warn if most of a batch samples mostly outside; checked on a coarse grid of samples."""
        # a graph that depends on the count would change at each call
        if theta.is_meta or not tracing.is_eager(theta) or not self.looks(theta.device.type):
            return
        line = torch.linspace(-0.875, 0.875, 8, dtype=torch.float64, device=theta.device)
        self._warn(map_points(theta.double(), line.repeat(8), line.repeat_interleave(8)))

    def _warn_if_no_pixels(self, points: Tensor, size: Sequence[int]) -> None:
        """The same for points (B, h, w, 2), in pixels of images of `size`."""
        if points.is_meta or not tracing.is_eager(points) or not self.looks(points.device.type):
            return
        some = points[:, :: max(1, points.shape[1] // 8), :: max(1, points.shape[2] // 8)]
        ends = some.new_tensor((size[1], size[0]))
        self._warn(((2 * some + 1) / ends - 1).flatten(1, 2))

    def _warn(self, points: Tensor) -> None:
        """Warn if, for most of a batch, most points (B, N, 2) lie outside [-1, 1]."""
        outside = ~(points.abs() <= 1).all(-1)  # NaN counts as outside
        lost = int((outside.double().mean(-1) > 0.5).sum())
        if lost > len(points) / 2:
            text = f"SpatialTransformer: {lost} of {len(points)} images sample mostly outside "
            text += "their borders: the result is border, and its gradient vanishes (try a "
            warn(text + "smaller learning rate for the localization)")

    def looks(self, device: str) -> bool:
        """Whether this call checks its samples, by the kind of device; counts the call."""
        self.calls += 1
        return device == "cpu" or self.calls % LOOK_EVERY == 0

    def extra_repr(self) -> str:
        """Size, transform and options."""
        return f"size={self.size}, transform={self.transform!r}, " + ", ".join(
            f"{name}={value!r}" for name, value in self.options.items()
        )


def similarity(numbers: Tensor, tall: float) -> Tensor:
    """theta (B, 2, 3) of (a, b, right, down): [[1 + a, -b], [b, 1 + a]] in pixels, then the shift.

    The frame [-1, 1] is `tall` times as high as wide, in pixels: a rotation in pixels is not a
    rotation of the square.
    """
    a, b, right, down = numbers.unbind(-1)
    rows = ((1 + a, -b * tall, right), (b / tall, 1 + a, down))
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def thin_plate(
    numbers: Tensor, lattice: tuple[int, int], size_in: Sequence[int], size: tuple[int, int]
) -> Tensor:
    """The points (B, h, w, 2), float64, in pixels, of numbers (B, 2 rows columns): (dx, dy) each.

    They move the source positions of the lattice's points, in rows from edge to edge, in [-1, 1].
    """
    device, (rows, columns) = numbers.device, lattice
    ends = [torch.linspace(-0.5, n - 0.5, k, dtype=torch.float64, device=device)
            for n, k in zip(size, lattice, strict=True)]  # fmt: skip
    y, x = torch.meshgrid(*ends, indexing="ij")
    target = torch.stack((x, y), -1).flatten(0, 1)
    half = target.new_tensor((size_in[1] / 2, size_in[0] / 2))
    moves = numbers.double().unflatten(1, (rows * columns, 2)) * half
    # from the resized image's own points, so that a plate of zeros is exactly the resize
    scale = target.new_tensor((size_in[1] / size[1], size_in[0] / size[0]))
    still = (pixel_points(size, torch.float64, device) + 0.5) * scale - 0.5
    return still + thin_plate_spline(target + moves, target, size)
