"""Selects a backend for a call, and defines what a backend is: `Backend`.

A backend is a module with the functions of `Backend`, imported on first use. A backend that is
given by name is used or rejected with reasons, never replaced. `opencv` joins the values of
OpenCV's arithmetics with the gradients of "reference" and "cpu". `resizing` selects backends for
`resize`, and `spheres` for spherical images. `grid_sample` is torch's own sampler, and the packages
`engine.cpu` and `engine.triton` have kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NoReturn, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from warpkit.core.checks import check_name, fail
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import SamplingRule

BACKENDS = ("reference", "grid_sample", "cpu", "cuda")
"""All give the same result within the tolerance table, but differ in speed and supported calls."""

PREFERENCE = ("cpu", "cuda", "reference")
"""The order in which "auto" tries backends. grid_sample is excluded: its grid loses digits in
float32."""

OPENCV = ("reference", "cpu")
"""The backends that also compute OpenCV's pixels."""


class Backend(Protocol):
    """The functions of a module that computes warps: with the reference's results and gradients.

    Shapes: image (*I, C, H, W); to_source (*M, 2 or 3, 3), float64, and matrix, its inverse; points
    (*P, h, w, 2), (x, y) in pixels; fill broadcasts to the result, (*batch, C, h, w), and has the
    type of the computation. OpenCV's also take `border_value`, for which `fill` may be the
    background: see `arithmetic.opencv.warp`.
    """

    def unsupported_reasons(self, image: Tensor, rule: SamplingRule) -> list[str]:
        """The reasons why a call is not supported; empty if it is."""
        ...

    def warp(
        self,
        image: Tensor,
        to_source: Tensor,
        size: Sequence[int],
        fill: Tensor,
        rule: SamplingRule,
    ) -> Tensor:
        """`image` at the positions to which a matrix destination -> source maps the pixels of
        `size` (h, w)."""
        ...

    def warp_forward(
        self, image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
    ) -> Tensor:
        """The same for a matrix source -> destination, of any float type.

        Shapes as in `Backend`.
        """
        ...

    def sample(self, image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
        """`image` at points.

        Shapes as in `Backend`.
        """
        ...

    def inverse_map(self, matrix: Tensor) -> Tensor:
        """The inverses of float64 matrices, NaN for singular ones."""
        ...


# A backend may also have `sample_offsets` and `splat_offsets`: `sample` and `splat` at every
# pixel's own position plus an offset, added in float64. And `prepare`, for plans: it returns a
# function for further calls with images and mappings of the same memory layout, or None.


def takes_wide(backend: object, image: Tensor, *others: Tensor) -> bool:
    """Whether `warp` and `sample` of a backend take `wide=True` for such an image: a result that is
    not rounded to the image's type, without a converted copy of the image.

    image (..., C, H, W), and the other tensors of the call.
    """
    if backend is not backend_module("cpu") or not is_eager(image, *others):
        return False
    return image.dtype != compute_dtype(image.dtype) and not wants_gradient(image)


class SplatBackend(Protocol):
    """An additional function of the backends in `PREFERENCE`."""

    def splat(
        self, image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """image (*I, C, H, W) added to `size` (h, w) at points (*P, H, W, 2): `reference.splat`."""
        ...


class SumsBackend(Protocol):
    """An optional part of a backend: the sums over pixels in an alignment's equations.

    fixed (N, C, h, w); seen (N, C or more, h, w), whose first C channels are read; weight (N, 1, h,
    w), 0 on the outermost ring; all of one float type, float32 or float64.
    """

    def first_sums(self, fixed: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
        """The sums of 1, W, F, W W, F F, W F with W = seen and F = fixed, times weight: (N, C, 6),
        float64."""
        ...

    def second_sums(
        self,
        fixed: tuple[Tensor, Tensor, Tensor],
        seen: Tensor,
        weight: Tensor,
        gain: Tensor,
        bias: Tensor,
        half: float,
        degree: int,
    ) -> Tensor:
        """The moments x^i y^j, i and j up to `degree`, of 8 + 4 C maps: (N, 8 + 4 C, D), float64.

        fixed: the image and its slopes along x and y; gain and bias (N, C, 1, 1); half: pixels per
        unit of x and y, which the slopes also use. The maps are those of `alignment.equations`.
        """
        ...


def select_sums(images: Tensor, *others: Tensor) -> SumsBackend | None:
    """The backend with kernels for an alignment's sums, if it can read the tensors, or None."""
    if images.device.type != "cpu" or not is_eager(images, *others):
        return None
    module = backend_module("cpu")
    refused = module.unsupported_reasons(images, SamplingRule("bilinear", "constant"))
    return None if refused else cast(SumsBackend, module)


def select_descent(moving: Tensor, fixed: Tensor, *others: Tensor) -> ModuleType | None:
    """Kernels for the steps of alignments, if they can read the tensors and are faster, or None.

    moving and fixed (N, C, H, W).
    """
    if torch.is_grad_enabled() or select_sums(moving, fixed, *others) is None:
        return None
    from warpkit.engine.cpu import descent

    return descent if descent.supports(moving, fixed) else None


def select_fits(*points: Tensor) -> ModuleType | None:
    """Kernels that refine matrices of points, if they can read the tensors, or None."""
    if any(tensor.device.type != "cpu" for tensor in points) or not is_eager(*points):
        return None
    module = backend_module("cpu")
    if module.unsupported_reasons(points[0], SamplingRule("bilinear", "constant")):
        return None
    from warpkit.engine.cpu import fits

    return fits


def select_levels(*images: Tensor) -> ModuleType | None:
    """Kernels for pyramid levels without gradients, if they can read the tensors, or None."""
    if torch.is_grad_enabled() or select_sums(*images) is None:
        return None
    from warpkit.engine.cpu import levels

    return levels


class PictureBackend(Protocol):
    """An optional part of a backend: operations on whole pictures, without gradients.

    Pictures are arrays (H, W, C), sizes (h, w).
    """

    def pyramid_down(self, image: np.ndarray, size: tuple[int, int], border: str) -> np.ndarray:
        """As `arithmetic.opencv_pyramids.down`."""
        ...

    def pyramid_up(self, image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """As `arithmetic.opencv_pyramids.up`."""
        ...

    def rectangle(
        self,
        image: np.ndarray,
        size: tuple[int, int],
        first: tuple[int, int],
        fractions: np.ndarray,
        floating: bool,
    ) -> np.ndarray:
        """As `arithmetic.opencv_rectangles.rectangle`, in the result's type.

        first: its first row and column; fractions (2,), float32, along x and y.
        """
        ...

    def framed(
        self, image: np.ndarray, sides: tuple[int, int, int, int], border: str, fill: np.ndarray
    ) -> np.ndarray:
        """The picture with rows above and below, and columns left and right; fill: the bytes of a
        pixel."""
        ...

    def arranged(self, view: np.ndarray) -> np.ndarray:
        """A dense copy of a rotated or flipped view."""
        ...


def select_pictures() -> PictureBackend | None:
    """The backend with kernels for pictures, or None."""
    module = backend_module("cpu")
    refused = module.unsupported_reasons(
        torch.empty(0, device="cpu"), SamplingRule("nearest", "constant")
    )
    if refused:
        return None
    from warpkit.engine.cpu import pictures

    return cast(PictureBackend, pictures)


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """torch.empty on the CPU, for float32 or float64, in memory that is reused once it is free.

    The first write to a new page costs more than most computations of its content.
    """
    from warpkit.engine.cpu import memory

    kind = np.dtype(np.float64 if dtype == torch.float64 else np.float32)
    return torch.from_numpy(memory.empty(shape, kind))


def select_splat(function: str, image: Tensor, rule: SamplingRule) -> SplatBackend:
    """The backend that splats `image` (*I, C, H, W)."""
    return cast(SplatBackend, select_backend(function, "auto", image, rule))


def select_backend(function: str, backend: str, image: Tensor, rule: SamplingRule) -> Backend:
    """The backend's module, or an error with the reasons of all backends that were tried."""
    refused = {}
    for name in PREFERENCE if backend == "auto" else (backend,):
        exact = rule.arithmetic == "exact"
        module = backend_module(name) if exact or name not in OPENCV else opencv_backend(name)
        refused[name] = module.unsupported_reasons(image, rule)
        if not exact and name not in OPENCV:
            refused[name].append(f"has no arithmetic {rule.arithmetic!r}")
        if not refused[name]:
            return module
    refuse(function, backend, refused)


def refuse(function: str, backend: str, refused: Mapping[str, Sequence[str]]) -> NoReturn:
    """Raise the error of a call that no backend supports, with the reasons by backend."""
    reasons = "\n".join(f"  {name}: {reason}" for name in refused for reason in refused[name])
    fail(function, "backend", "one that can do this", f"{backend!r}:\n{reasons}")


def backend_module(name: str) -> Backend:
    """The module of a backend, by a plain import.

    It does not use importlib's function, which Dynamo cannot trace.
    """
    if name == "reference":
        from warpkit.engine.definitions import reference as module
    elif name == "cpu":
        from warpkit.engine import cpu as module
    elif name == "cuda":
        from warpkit.engine import triton as module
    else:
        from warpkit.engine.backends import grid_sample as module
    return module


def opencv_backend(name: str) -> Backend:
    """OpenCV's arithmetics by one of `OPENCV`."""
    from warpkit.engine.backends import opencv

    return opencv.CPU if name == "cpu" else opencv.REFERENCE


def named_backend(name: str, backend: object) -> str:
    """The name of a backend, or "auto", checked."""
    return check_name(name, "backend", backend, ("auto", *BACKENDS))
