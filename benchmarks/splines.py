"""Splines beside SciPy's, scikit-image's, torch-interpol's and torch: python -m benchmarks.splines

Every case first proves that the values are the peer's, within 1e-5 of the range (torch-interpol's:
1e-4). torch's trilinear and bicubic interpolations have other values: they are what a network would
call instead. `harness` says how they are timed. Where scikit-image or torch-interpol is missing, so
are its rows.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

import warpkit as wk
from benchmarks import harness
from benchmarks.harness import Case, Way

CLOSE = 1e-5
CLOSE_IN_FLOATS = 1e-4
"""torch-interpol filters in float32, by recursions."""
VOLUMES = [
    ((128, 128, 128), (160, 160, 160)),
    ((128, 128, 128), (80, 80, 80)),
    ((64, 256, 256), (64, 320, 320)),
]
AXES, AXES_BACK = "SciPy at least 25 times ours", "ours at most 2 times torch's"
WARP, WARP_BACK = "SciPy at least 8 times ours", "ours at most 2 times bicubic's"


def close(ours: Any, theirs: Any, within: float = CLOSE) -> None:
    """Equal for an image in [0, 1]."""
    apart = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)).max()
    assert apart <= within, apart


def found(name: str) -> Any:
    """A module, or None if it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name.split(".")[0]) else None


def gradients(function: Callable[..., Tensor], *inputs: Tensor) -> Way:
    """A call with the gradients to all its tensors."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    push = torch.rand_like(function(*leaves))
    return lambda: torch.autograd.grad(function(*leaves), leaves, push)


def interpolated(interpol: Any, volume: Tensor, size: tuple[int, ...]) -> Tensor:
    """torch-interpol's resize of order 3 with the end pixels aligned."""
    options = {"interpolation": 3, "bound": "dct1", "prefilter": True, "anchor": "centers"}
    return interpol.resize(volume, shape=list(size), **options)


def axes_cases() -> Iterator[Case]:
    """Volumes and a picture by spline3."""
    interpol, transform = found("interpol"), found("skimage.transform")
    shapes = [*VOLUMES, ((512, 512), (640, 640))]
    for shape, size in shapes:
        volume = torch.rand(shape)
        array = volume.numpy()
        mode = "trilinear" if len(shape) == 3 else "bicubic"
        factors = [m / n for m, n in zip(size, shape, strict=True)]

        def ours(x: Tensor = volume, size: tuple[int, ...] = size) -> Tensor:
            return wk.resize_axes(x, size, interpolation="spline3", arithmetic="scipy")

        def torchs(x: Tensor = volume, size: tuple[int, ...] = size, mode: str = mode) -> Tensor:
            return F.interpolate(x[None, None], size, mode=mode)[0, 0]

        def scipys(x: Any = array, factors: Any = factors) -> Any:
            return ndimage.zoom(x, factors, order=3, mode="mirror")

        close(ours(), scipys())
        ways: dict[str, Way] = {"warpkit": ours, "scipy.ndimage.zoom": scipys}
        back: dict[str, Way] = {"warpkit": gradients(ours, volume)}
        if interpol and max(shape) != 256:  # it takes 19 seconds there

            def theirs(x: Tensor = volume, size: tuple[int, ...] = size) -> Tensor:
                return interpolated(interpol, x, size)

            close(ours(), theirs(), CLOSE_IN_FLOATS)
            ways["torch-interpol"] = theirs
            if len(shape) == 2:
                back["torch-interpol"] = gradients(theirs, volume)
        ways[f"F.interpolate, {mode}"] = torchs
        back[f"F.interpolate, {mode}"] = gradients(torchs, volume)
        name = f"{' x '.join(map(str, shape))} to {' x '.join(map(str, size))}, spline3"
        aimed = size == (160, 160, 160)
        yield Case(name, ways, AXES * aimed)
        yield Case(f"{name}, gradient", back, AXES_BACK * aimed)
    if transform:
        yield _nnu_net(transform)


def _nnu_net(transform: Any) -> Case:
    """nnU-Net's resampling of a channel."""
    volume, size = torch.rand(128, 128, 128), (160, 160, 160)

    def ours() -> Tensor:
        how = {"interpolation": "spline3", "arithmetic": "skimage", "border": "replicate"}
        return wk.resize_axes(volume, size, antialias=False, **how)  # pyright: ignore

    def theirs() -> Any:
        return transform.resize(volume.numpy(), size, order=3, mode="edge", anti_aliasing=False)

    close(ours(), theirs())
    ways = {"warpkit": ours, "skimage.transform.resize": theirs}
    return Case("nnU-Net: 128 x 128 x 128 to 160 x 160 x 160", ways)


def warp_cases() -> Iterator[Case]:
    """A turned picture of three channels."""
    image = torch.rand(3, 512, 512)
    turn = wk.rotation_matrix(wk.image_center((512, 512)), 25.0, 1.1)
    rows_first, offset = turn.double().numpy()[::-1, 1::-1], turn.double().numpy()[::-1, 2]
    theta = wk.to_theta(wk.invert(turn), (512, 512), (512, 512))
    grid = F.affine_grid(theta[None], [1, 3, 512, 512], align_corners=False)

    def by(name: str) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda image, turn: wk.warp_affine(image, turn, interpolation=name, inverse=True)  # pyright: ignore

    def scipys(order: int) -> Any:
        how = {"order": order, "mode": "grid-constant"}
        planes = [ndimage.affine_transform(c, rows_first, offset, **how) for c in image.numpy()]
        return np.stack(planes)

    def torchs(image: Tensor, grid: Tensor) -> Tensor:
        return F.grid_sample(image[None], grid, mode="bicubic", align_corners=False)[0]

    for name in ("spline3", "spline5"):
        order = int(name[-1])
        close(by(name)(image, turn), scipys(order))
        ways: dict[str, Way] = {"warpkit": lambda n=name: by(n)(image, turn)}
        ways["scipy.ndimage.affine_transform"] = lambda o=order: scipys(o)
        ways["warpkit, bicubic"] = lambda: by("bicubic")(image, turn)
        ways["F.grid_sample, bicubic"] = lambda: torchs(image, grid)
        aimed = name == "spline3"
        yield Case(f"warp_affine, 3 x 512 x 512, {name}", ways, WARP * aimed)
        ways = {"warpkit": gradients(by(name), image, turn)}
        ways["warpkit, bicubic"] = gradients(by("bicubic"), image, turn)
        ways["F.grid_sample, bicubic"] = gradients(torchs, image, grid)
        yield Case(f"warp_affine, 3 x 512 x 512, {name}, both gradients", ways, WARP_BACK * aimed)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from axes_cases()
    yield from warp_cases()


if __name__ == "__main__":
    names = {"scipy": "scipy", "scikit-image": "skimage", "torch-interpol": "interpol"}
    installed = [package for package, module in names.items() if found(module)]
    harness.main(__doc__, "splines", cases, seconds=6.0, packages=installed)
