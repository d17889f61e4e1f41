"""The workloads of `warpkit bench`: warps on this CPU, with grid_sample, kornia and OpenCV.

Every workload first checks that all libraries agree, and then times them in turns, as in a user's
program: each call follows those of the others, so its data is in no cache and its threads may
sleep, and each is first in a turn equally often. Each library allocates outputs in its own way. The
ratio is the median over the turns of (other / warpkit). Between the turns a fixed task measures the
machine's load (`noise`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from warpkit.cli.bench.noise import Noise
from warpkit.cli.bench.timing import PAUSE, Turns, in_turns, ratio
from warpkit.engine.arithmetic.guarantees import installed_arithmetic

Way = tuple[str, Callable[..., Any], list[Tensor]]


class Workload(NamedTuple):
    """An image size, matrices for each image (or for the only one), and the operation."""

    name: str
    shape: tuple[int, int, int, int]
    matrices: int
    does: str = "forward"
    interpolation: str = "bilinear"
    samples: int = 0
    """Samples along an axis for antialias; 0 without it."""
    is_8_bit: bool = False
    """Whether to compute cv2's own pixels for HWC arrays."""

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the output."""
        height, width = self.shape[-2:]
        return (round(height * SHRUNK), round(width * SHRUNK)) if self.samples else (height, width)


FORWARD, GRADIENTS, SECOND = "forward", "forward + gradients", "second order"
SHRUNK = 0.21
"""The scale for antialias, which takes 5 samples along an axis."""

LARGE, HUGE, SMALL, DEEP = (8, 3, 512, 512), (1, 3, 2160, 3840), (64, 3, 64, 64), (32, 64, 56, 56)
MANY, TINY = (1, 3, 224, 224), (1, 3, 32, 32)
WORKLOADS = [
    Workload(name, shape, matrices, does)
    for name, shape, matrices in (
        ("8x3x512x512", LARGE, 8),
        ("1x3x2160x3840", HUGE, 1),
        ("64x3x64x64", SMALL, 64),
        ("32x64x56x56", DEEP, 32),
        ("one 224x224, 64 matrices", MANY, 64),
        ("one 1x3x32x32 call", TINY, 1),
    )
    for does in (FORWARD, GRADIENTS)
]
WORKLOADS += [
    Workload("8x3x512x512", LARGE, 8, interpolation=name) for name in ("bicubic", "nearest")
]
WORKLOADS += [
    Workload("4x3x512x768 by 0.21, antialias", (4, 3, 512, 768), 4, GRADIENTS, samples=5),
    Workload("8x3x128x128", (8, 3, 128, 128), 8, SECOND),
]
WORKLOADS += [
    Workload(f"uint8 {height}x{width}x3", (1, 3, height, width), 1, is_8_bit=True)
    for height, width in ((224, 224), (512, 512), (2160, 3840))
]


def ways(work: Workload) -> Iterator[Way]:
    """The name, function and inputs of each library: an image, and a map in its own convention."""
    items, channels, height, width = work.shape
    angles = torch.full((work.matrices,), 33.0)
    size, mode = work.size, work.interpolation
    matrix = wk.rotation_matrix(wk.image_center((height, width)), angles, 1.1)
    if work.is_8_bit:
        rows = torch.randint(256, (items, height, width, channels), dtype=torch.uint8)
        yield "warpkit", partial(opencv, matrix.double().numpy(), mode, wk.opencv), [rows]
        if find_spec("cv2"):
            yield "cv2", partial(opencv, matrix.double().numpy(), mode, None), [rows]
        return
    if work.samples:
        shift = (SHRUNK - 1) / 2  # keeps edges on edges
        matrix = wk.compose(matrix, torch.tensor([[SHRUNK, 0, shift], [0, SHRUNK, shift]]))
    image = torch.rand(work.shape)
    options: dict[str, Any] = {"interpolation": mode, "size": size}
    options |= {"antialias": work.samples} if work.samples else {}
    yield "warpkit", partial(wk.warp_affine, **options), [image, matrix]
    if work.does == SECOND:
        # torch's own sampler is not always twice differentiable, but this backend is
        yield "grid_sample", partial(wk.warp_affine, backend="grid_sample"), [image, matrix]
        return

    def grid_sample(image: Tensor, theta: Tensor) -> Tensor:
        """image (B, C, H, W); theta (B, 2, 3) as in F.affine_grid."""
        samples = max(work.samples, 1)
        fine = [side * samples for side in size]
        grid = F.affine_grid(theta, [work.matrices, channels, *fine], align_corners=False)
        image = image.expand(work.matrices, *image.shape[1:])
        result = F.grid_sample(image, grid, align_corners=False, mode=mode)
        return F.avg_pool2d(result, samples) if samples > 1 else result

    theta = wk.to_theta(matrix, (height, width), size).float()
    yield "grid_sample", grid_sample, [image, theta]
    # kornia's bicubic uses another grid than its bilinear
    if work.interpolation != "bicubic" and not work.samples and find_spec("kornia"):
        from kornia.geometry.transform import warp_affine as kornia_warp

        def kornia(image: Tensor, matrix: Tensor) -> Tensor:
            """image (B, C, H, W); matrix (B, 2, 3) in pixels."""
            image = image.expand(work.matrices, *image.shape[1:])
            return kornia_warp(image, matrix, size, mode, align_corners=True)

        yield "kornia", kornia, [image, matrix]
    if work.does == FORWARD and work.matrices == items and channels == 3 and find_spec("cv2"):
        rows = image.permute(0, 2, 3, 1).contiguous()
        yield "cv2", partial(opencv, matrix.double().numpy(), work.interpolation, None), [rows]


def opencv(
    matrices: np.ndarray, interpolation: str, module: Any, images: Tensor
) -> list[np.ndarray]:
    """warpAffine in a loop over (H, W, C) images, from cv2 or the given module."""
    if module is None:
        import cv2 as module

        module.setNumThreads(torch.get_num_threads())
    names = {"nearest": "NEAREST", "bilinear": "LINEAR", "bicubic": "CUBIC"}
    flag = getattr(module, f"INTER_{names[interpolation]}")
    size = (images.shape[2], images.shape[1])
    pairs = zip(images.numpy(), matrices, strict=True)
    return [module.warpAffine(image, matrix, size, flags=flag) for image, matrix in pairs]


def prepare(work: Workload) -> dict[str, Callable[[], object]]:
    """The calls to time, after a check that their results agree."""
    calls: dict[str, Callable[[], object]] = {}
    wanted = None
    for name, function, inputs in ways(work):
        result = function(*inputs)
        if isinstance(result, list):
            result = torch.from_numpy(np.stack(result)).permute(0, 3, 1, 2)
        result = result.detach().double()
        wanted = result if wanted is None else wanted
        expected = wanted
        if name == "cv2" and not work.is_8_bit and installed_arithmetic() != "opencv5":
            # OpenCV 4 samples floats at multiples of 1/32 pixel, so compare with our pixels of this
            # kind
            ours = opencv(*function.args[:2], wk.opencv, *inputs)  # pyright: ignore
            expected = torch.from_numpy(np.stack(ours)).permute(0, 3, 1, 2).double()
        # float32 coordinates are off by up to 2e-4 pixels at 4K, and a nearest pixel may flip
        far = ((result - expected).abs() > 5e-3).double().mean().item()
        if far > (0 if work.is_8_bit else 1e-3):
            raise AssertionError(f"{work.name}: {name} differs in {far:.1%} of the values")
        calls[name] = partial(function, *inputs)
        if work.does != FORWARD:
            grad = torch.rand(result.shape, generator=torch.Generator().manual_seed(0))
            timed = gradients if work.does == GRADIENTS else second_order
            calls[name] = partial(timed, function, inputs, grad)
    return calls


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> None:
    """Forward, and the gradients to image and map.

    inputs: images (B, C, H, W) and a matrix or points; grad (B, C, h, w).
    """
    inputs = [x.detach().requires_grad_() for x in inputs]
    torch.autograd.grad(function(*inputs), inputs, grad)


def second_order(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> None:
    """Forward, the gradients to image and map, and those of the map's gradient.

    inputs: images (B, C, H, W) and a matrix; grad (B, C, h, w).
    """
    inputs = [x.detach().requires_grad_() for x in inputs]
    (to_map,) = torch.autograd.grad(function(*inputs), inputs[1], grad, create_graph=True)
    torch.autograd.grad(to_map.square().sum(), inputs)


def measure(work: Workload, turns: int, noise: Noise) -> Iterator[dict[str, Any]]:
    """One row for each library; the noise is measured between the turns."""
    calls = prepare(work)
    repeat = 200 if work.shape == TINY else 1
    how = Turns(turns, pause=PAUSE, repeat=repeat, rotate=True)
    times = in_turns(calls, how, between=noise.listen)
    for name, seconds in times.items():
        yield {
            "workload": work.name,
            "interpolation": work.interpolation,
            "does": work.does,
            "way": name,
            "ms": f"{statistics.median(seconds) * 1e3:.4g}",
            "times_warpkit": f"{ratio(seconds, times['warpkit']):.2f}",
        }
