"""Warps on this machine's CPU beside grid_sample, kornia and OpenCV: what `warpkit bench` measures.

Every workload first proves that its ways agree, then times them in turns, so that a busy moment
meets all of them; the second of two calls is timed, which finds the way's own data in the caches
and its own threads awake. All outputs are allocated as each way does. The ratio is the median over
the turns of (other / warpkit).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk

PAUSE = 0.005
"""Seconds before each way's turn: OpenMP's threads spin for about one millisecond after their work,
and would take a core from a way that comes next and has threads of its own."""

Way = tuple[str, Callable[..., Any], list[Tensor]]


class Workload(NamedTuple):
    """An image size, matrices for each image (or for the one), and what is done."""

    name: str
    shape: tuple[int, int, int, int]
    matrices: int
    gradients: bool = False
    interpolation: str = "bilinear"


LARGE, HUGE, SMALL, DEEP = (8, 3, 512, 512), (1, 3, 2160, 3840), (64, 3, 64, 64), (32, 64, 56, 56)
MANY, TINY = (1, 3, 224, 224), (1, 3, 32, 32)
WORKLOADS = [
    Workload(name, shape, matrices, gradients)
    for name, shape, matrices in (
        ("8x3x512x512", LARGE, 8),
        ("1x3x2160x3840", HUGE, 1),
        ("64x3x64x64", SMALL, 64),
        ("32x64x56x56", DEEP, 32),
        ("one 224x224, 64 matrices", MANY, 64),
        ("one 1x3x32x32 call", TINY, 1),
    )
    for gradients in (False, True)
]
WORKLOADS += [
    Workload("8x3x512x512", LARGE, 8, interpolation=name) for name in ("bicubic", "nearest")
]


def ways(work: Workload) -> Iterator[Way]:
    """Each way's name, its function, and its inputs: an image and a map in its own convention."""
    items, channels, height, width = work.shape
    image = torch.rand(work.shape)
    size, mode = (height, width), work.interpolation
    angles = torch.full((work.matrices,), 33.0)
    matrix = wk.rotation_matrix(wk.image_center(size), angles, 1.1)
    yield "warpkit", partial(wk.warp_affine, interpolation=work.interpolation), [image, matrix]

    def grid_sample(image: Tensor, theta: Tensor) -> Tensor:
        """image (B, C, H, W); theta (B, 2, 3), of F.affine_grid."""
        grid = F.affine_grid(theta, [work.matrices, channels, *size], align_corners=False)
        image = image.expand(work.matrices, *image.shape[1:])
        return F.grid_sample(image, grid, align_corners=False, mode=mode)

    yield "grid_sample", grid_sample, [image, wk.to_theta(matrix, size, size).float()]
    # kornia's bicubic has another grid than its bilinear one
    if work.interpolation != "bicubic" and find_spec("kornia"):
        from kornia.geometry.transform import warp_affine as kornia_warp

        def kornia(image: Tensor, matrix: Tensor) -> Tensor:
            """image (B, C, H, W); matrix (B, 2, 3), pixels."""
            image = image.expand(work.matrices, *image.shape[1:])
            return kornia_warp(image, matrix, size, mode, align_corners=True)

        yield "kornia", kornia, [image, matrix]
    if not work.gradients and work.matrices == items and channels == 3 and find_spec("cv2"):
        rows = image.permute(0, 2, 3, 1).contiguous()
        yield "cv2", partial(opencv, matrix.double().numpy(), work.interpolation), [rows]


def opencv(matrices: np.ndarray, interpolation: str, images: Tensor) -> list[np.ndarray]:
    """cv2.warpAffine in a loop over (H, W, C) images."""
    import cv2

    cv2.setNumThreads(torch.get_num_threads())
    flags = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR}
    flag = {**flags, "bicubic": cv2.INTER_CUBIC}[interpolation]
    size = (images.shape[2], images.shape[1])
    pairs = zip(images.numpy(), matrices, strict=True)
    return [cv2.warpAffine(image, matrix, size, flags=flag) for image, matrix in pairs]


def prepare(work: Workload) -> dict[str, Callable[[], object]]:
    """The calls to time, after a proof that they agree."""
    calls: dict[str, Callable[[], object]] = {}
    wanted = None
    for name, function, inputs in ways(work):
        result = function(*inputs)
        if isinstance(result, list):
            result = torch.from_numpy(np.stack(result)).permute(0, 3, 1, 2)
        wanted = result if wanted is None else wanted
        # float32 coordinates are off by up to 2e-4 pixels at 4K, and a nearest pixel may flip
        far = ((result - wanted).abs() > 5e-3).double().mean().item()
        if far > 1e-3:
            raise AssertionError(f"{work.name}: {name} differs in {far:.1%} of the values")
        calls[name] = partial(function, *inputs)
        if work.gradients:
            calls[name] = partial(both_ways, function, inputs, torch.rand_like(result))
    return calls


def both_ways(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> None:
    """Forward, and the gradients to image and map.

    inputs: images (B, C, H, W) and a matrix or points; grad (B, C, h, w).
    """
    inputs = [x.detach().requires_grad_() for x in inputs]
    torch.autograd.grad(function(*inputs), inputs, grad)


def measure(work: Workload, turns: int) -> Iterator[dict[str, Any]]:
    """One row for each way."""
    calls = prepare(work)
    repeat = 200 if work.shape == TINY else 1
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns + 1):  # the first turn warms up
        for name, call in calls.items():
            time.sleep(PAUSE)
            call()
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[name].append((time.perf_counter() - start) / repeat)
    for name, seconds in times.items():
        pairs = zip(seconds[1:], times["warpkit"][1:], strict=True)
        yield {
            "workload": work.name,
            "interpolation": work.interpolation,
            "does": "forward + gradients" if work.gradients else "forward",
            "way": name,
            "ms": f"{statistics.median(seconds[1:]) * 1e3:.4g}",
            "times_warpkit": f"{statistics.median(a / b for a, b in pairs):.2f}",
        }


def warm() -> Iterator[str]:
    """Compile what is commonly used, for float32; the name of each kind as it is done."""
    image = torch.rand(2, 3, 40, 40, requires_grad=True)
    single = torch.rand(1, 3, 700, 700, requires_grad=True)  # shared by bands of rows
    affine = wk.rotation_matrix((20.0, 20.0), 33.0)
    maps = {
        "affine": (wk.warp_affine, affine),
        "perspective": (wk.warp_perspective, wk.compose(affine, torch.eye(3))),
        "points": (wk.remap, torch.rand(40, 40, 2) * 40),
    }
    for interpolation in ("bilinear", "nearest", "bicubic", "lanczos4"):
        for kind, (function, mapping) in maps.items():
            for picture in (image, single, image.to(memory_format=torch.channels_last)):
                for wanted in (False, True):  # the gradient to the map as well
                    mapping = mapping.detach().requires_grad_(wanted)
                    function(picture, mapping, interpolation=interpolation).sum().backward()
            yield f"{kind}, {interpolation}"
