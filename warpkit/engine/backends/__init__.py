"""Selects a backend for a call, and defines what a backend is: `Backend`.

A backend is a module with the functions of `Backend`, imported on first use. One that is asked for
by name is used or refused with its reasons, never replaced. For OpenCV's arithmetics "reference"
is `arithmetic.opencv` and "cpu" is `cpu.opencv`: see `OPENCV`. `resizing` is the same choice for
`resize`, `spheres` for pictures of the sphere. `operators` makes torch operators of kernels,
`prepared` makes a call again without its checks, `inverse` inverts matrices, `grid_sample` is
torch's own sampler; `cpu` and `cuda` are folders of kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NoReturn, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from warpkit.core.checks import check_name, fail
from warpkit.core.tracing import is_eager
from warpkit.engine.compositing.canvases import Images, listed
from warpkit.engine.compositing.layers import Layers, Plain
from warpkit.engine.compositing.rectangles import Rectangles, Rows
from warpkit.engine.sampling.rules import SamplingRule

BACKENDS = ("reference", "grid_sample", "cpu", "cuda")
"""All of them give the same answer, within the tolerance table; speed and reach differ."""

PREFERENCE = ("cpu", "cuda", "reference")
"""The order in which "auto" asks. grid_sample is not asked: its grid loses digits in float32."""

OPENCV = {"reference": "opencv", "cpu": "cpu_opencv"}
"""The backends that also compute OpenCV's pixels, and the module of each that does."""


class Backend(Protocol):
    """What a module owes that computes warps: the reference's results and gradients.

    Shapes: image (*I, C, H, W); to_source (*M, 2 or 3, 3), float64, and matrix, its inverse; points
    (*P, h, w, 2), (x, y) in pixels; fill broadcasts to the result, (*batch, C, h, w), and is in the
    type of the computation. OpenCV's modules take `border_value` besides, where fill is the
    background: see `arithmetic.opencv.warp`.
    """

    def unsupported_reasons(self, image: Tensor, rule: SamplingRule) -> list[str]:
        """Why this cannot be served; nothing where it can."""
        ...

    def warp(
        self,
        image: Tensor,
        to_source: Tensor,
        size: Sequence[int],
        fill: Tensor,
        rule: SamplingRule,
    ) -> Tensor:
        """`image` where the matrix destination -> source sends each pixel of `size` (h, w)."""
        ...

    def warp_forward(
        self, image: Tensor, matrix: Tensor, size: Sequence[int], fill: Tensor, rule: SamplingRule
    ) -> Tensor:
        """The same by the matrix source -> destination, of any float type.

        Shapes as of `Backend`.
        """
        ...

    def sample(self, image: Tensor, points: Tensor, fill: Tensor, rule: SamplingRule) -> Tensor:
        """`image` at points.

        Shapes as of `Backend`.
        """
        ...

    def inverse_map(self, matrix: Tensor) -> Tensor:
        """The inverse of float64 matrices, NaN where there is none (0 in OpenCV's arithmetics)."""
        ...


# One may have `sample_offsets` and `splat_offsets` too: `sample` and `splat` at every pixel's own
# place plus an offset, added in float64. And `prepare`, for `prepared`: what makes calls of images
# and mappings like those of its arguments, given how these lie in memory, or None.


class SplatBackend(Protocol):
    """What those of `PREFERENCE` owe besides."""

    def splat(
        self, image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """image (*I, C, H, W) added to `size` (h, w) at points (*P, H, W, 2): `reference.splat`."""
        ...


class SumsBackend(Protocol):
    """What a backend may have besides: the sums over pixels of an alignment's equations.

    fixed (N, C, h, w); seen (N, C or more, h, w), of which the first C channels are read; weight
    (N, 1, h, w), 0 on the outermost ring; of one float type, float32 or float64.
    """

    def first_sums(self, fixed: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
        """Of W = seen and F = fixed, times weight: 1, W, F, W W, F F, W F, (N, C, 6), float64."""
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

        fixed: the image and its slopes along x and y; gain and bias (N, C, 1, 1); half: pixels to a
        unit of x and y, which the slopes are by as well. The maps are those of
        `alignment.equations`.
        """
        ...


class ObjectsBackend(Protocol):
    """What one may have besides: it paints objects over images and cuts them out.

    `reference` does the same in plain torch: a backend leaves to it what it cannot do, and the
    gradients of gradients.
    """

    def paint(
        self,
        layers: Layers,
        boxes: Rectangles,
        rule: SamplingRule,
        reference: Plain,
        rows: Rows | None = None,
    ) -> Images:
        """Objects over images, a later one over an earlier one; all read the original.

        Returns images like these. `reference` is of the layers. rows: what objects that show what
        the images have read and paint, where they do not fill their rectangles.
        """
        ...

    def crop(
        self,
        images: Images,
        to_source: Tensor,
        fill: Tensor,
        index: Tensor,
        size: Sequence[int],
        rule: SamplingRule,
        reference: Plain,
    ) -> Tensor:
        """(N, C, h, w): images[index] under maps, or at points.

        to_source (N, 2 or 3, 3), float64, output -> source, or points (N, h, w, 2); fill (1 or N, 1
        or C, 1, 1); index (N,), within the images. `reference` is of the first three.
        """
        ...


def select_sums(images: Tensor, *others: Tensor) -> SumsBackend | None:
    """The backend with sums of an alignment by kernels that may read the tensors, or None."""
    if images.device.type != "cpu" or not is_eager(images, *others):
        return None
    module = backend_module("cpu")
    refused = module.unsupported_reasons(images, SamplingRule("bilinear", "constant"))
    return None if refused else cast(SumsBackend, module)


def select_descent(moving: Tensor, fixed: Tensor, *others: Tensor) -> ModuleType | None:
    """The steps of alignments by kernels, where they may read the tensors and are faster, or None.

    moving and fixed (N, C, H, W).
    """
    if torch.is_grad_enabled() or select_sums(moving, fixed, *others) is None:
        return None
    from warpkit.engine.backends.cpu import descent

    return descent if descent.supports(moving, fixed) else None


def select_fits(*points: Tensor) -> ModuleType | None:
    """Matrices of points by kernels that may read the tensors, or None."""
    if select_lenses(*points) is None:
        return None
    from warpkit.engine.backends.cpu import fits

    return fits


def select_levels(image: Tensor) -> ModuleType | None:
    """The pictures of a pyramid by kernels that may read the tensor, without gradients, or None."""
    if torch.is_grad_enabled() or select_sums(image) is None:
        return None
    from warpkit.engine.backends.cpu import levels

    return levels


def select_lenses(*tensors: Tensor) -> ModuleType | None:
    """The formulas of lenses by kernels that may read the tensors, or None."""
    if any(tensor.device.type != "cpu" for tensor in tensors) or not is_eager(*tensors):
        return None
    module = backend_module("cpu")
    if module.unsupported_reasons(tensors[0], SamplingRule("bilinear", "constant")):
        return None
    from warpkit.engine.backends.cpu import lenses

    return lenses


class PictureBackend(Protocol):
    """What a backend may have besides: whole pictures by kernels, without gradients.

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

        first: the row and the column that it begins at; fractions (2,), float32, along x and y.
        """
        ...

    def framed(
        self, image: np.ndarray, sides: tuple[int, int, int, int], border: str, fill: np.ndarray
    ) -> np.ndarray:
        """With rows above and below, columns left and right; fill: the bytes of a pixel."""
        ...

    def arranged(self, view: np.ndarray) -> np.ndarray:
        """A dense copy of a turned or flipped view."""
        ...


def select_pictures() -> PictureBackend | None:
    """The backend that has pictures by kernels, or None."""
    module = backend_module("cpu")
    refused = module.unsupported_reasons(torch.empty(0), SamplingRule("nearest", "constant"))
    if refused:
        return None
    from warpkit.engine.backends.cpu import pictures

    return cast(PictureBackend, pictures)


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """torch.empty on the CPU, of float32 or float64, in memory that is used again once it is free.

    The first write to a new page costs more than most of what is written there.
    """
    from warpkit.engine.backends.cpu import memory

    kind = np.dtype(np.float64 if dtype == torch.float64 else np.float32)
    return torch.from_numpy(memory.empty(shape, kind))


def select_painter(function: str, images: Images, rule: SamplingRule) -> ObjectsBackend | None:
    """The backend that serves images, if it is an `ObjectsBackend`; else None.

    Then plain torch paints, as under all that follows a call but autograd's reverse mode.
    """
    if not is_eager(*listed(images)):
        return None
    backend = select_backend(function, "auto", listed(images)[0], rule)
    return cast(ObjectsBackend, backend) if hasattr(backend, "paint") else None


def select_splat(function: str, image: Tensor, rule: SamplingRule) -> SplatBackend:
    """The backend that splats `image` (*I, C, H, W)."""
    return cast(SplatBackend, select_backend(function, "auto", image, rule))


def select_backend(function: str, backend: str, image: Tensor, rule: SamplingRule) -> Backend:
    """The backend's module, or an error with the reasons of every refusal."""
    refused = {}
    for name in PREFERENCE if backend == "auto" else (backend,):
        exact = rule.arithmetic == "exact"
        module = backend_module(name if exact else OPENCV.get(name, name))
        refused[name] = module.unsupported_reasons(image, rule)
        if not exact and name not in OPENCV:
            refused[name].append(f"has no arithmetic {rule.arithmetic!r}")
        if not refused[name]:
            return module
    refuse(function, backend, refused)


def refuse(function: str, backend: str, refused: Mapping[str, Sequence[str]]) -> NoReturn:
    """Raise the error of a call that nobody serves, with the reasons by the backends' names."""
    reasons = "\n".join(f"  {name}: {reason}" for name in refused for reason in refused[name])
    fail(function, "backend", "one that can do this", f"{backend!r}:\n{reasons}")


def backend_module(name: str) -> Backend:
    """The module of a backend or an arithmetic, by a plain import.

    Not by importlib's function, which Dynamo cannot trace.
    """
    if name == "reference":
        from warpkit.engine.sampling import reference as module
    elif name == "opencv":
        from warpkit.engine.arithmetic import opencv as module
    elif name == "cpu_opencv":
        from warpkit.engine.backends.cpu import opencv as module
    elif name == "cpu":
        from warpkit.engine.backends import cpu as module
    elif name == "cuda":
        from warpkit.engine.backends import cuda as module
    else:
        from warpkit.engine.backends import grid_sample as module
    return module


def named_backend(name: str, backend: object) -> str:
    """A backend, or "auto", by its name."""
    return check_name(name, "backend", backend, ("auto", *BACKENDS))
