"""Which backend serves which call, and what a backend is: `Backend`.

A backend is a module with the functions of `Backend`, imported on first use. One that is asked for
by name is used or refused with its reasons, never replaced. For OpenCV's arithmetics "reference"
is `arithmetic.opencv` and "cpu" is `cpu.opencv`: see `OPENCV`. `resizing` is the same choice for
`resize`. `operators` makes torch operators of kernels, `recipes` make a small call again without
its checks, `inverse` inverts matrices, `grid_sample` is torch's own sampler; `cpu` and `cuda` are
folders of kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol, cast

from torch import Tensor

from warpkit.core.checks import fail
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
# place plus an offset, added in float64.


class SplatBackend(Protocol):
    """What those of `PREFERENCE` owe besides."""

    def splat(
        self, image: Tensor, points: Tensor, size: Sequence[int], rule: SamplingRule
    ) -> Tensor:
        """image (*I, C, H, W) added to `size` (h, w) at points (*P, H, W, 2): `reference.splat`."""
        ...


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
