"""The compiler runs once for pictures of all sizes: each of its runs takes a second or two.

A driver without a device stands in: Triton decides by a call's arguments whether to compile, and
nothing is compiled or launched.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from warpkit.engine import triton as cuda
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.sweep import Sweep
from warpkit.engine.triton import correlation, depth, front, inverse, jpeg, launch, sweep
from warpkit.engine.triton.backward import backward_kernel
from warpkit.engine.triton.correlation_kernels import (
    correlation_gather_kernel,
    correlation_gradient_kernel,
    correlation_kernel,
    correlation_scatter_kernel,
)
from warpkit.engine.triton.depth_points import points_backward_kernel, points_kernel
from warpkit.engine.triton.fixed_point import largest_kernel
from warpkit.engine.triton.forward import forward_kernel
from warpkit.engine.triton.front import front_kernel, moved_kernel
from warpkit.engine.triton.gather import gather_kernel
from warpkit.engine.triton.gather_affine import gather_affine_kernel
from warpkit.engine.triton.inverse import invert_kernel
from warpkit.engine.triton.jpeg_blocks import blocks_kernel
from warpkit.engine.triton.jpeg_pixels import colours_kernel, gathered_kernel, shown_kernel
from warpkit.engine.triton.scatter import collect_kernel, scatter_kernel
from warpkit.engine.triton.sweep_kernels import sweep_backward_kernel, sweep_kernel

pytestmark = pytest.mark.skipif(cuda.INTERPRETED, reason="nothing is compiled in this process")


class Driver:
    """What Triton asks of a driver before it compiles a kernel."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


class Kernel:
    """A compiled kernel that does nothing."""

    function, packed_metadata, metadata = 0, (1, 1, 0), None

    def launch_metadata(self, *arguments: object) -> None:
        return None

    def run(self, *arguments: object) -> None:
        return None


KERNELS = (invert_kernel, forward_kernel, gather_affine_kernel, gather_kernel, backward_kernel)
KERNELS += (scatter_kernel, collect_kernel, largest_kernel, points_kernel, points_backward_kernel)
KERNELS += (correlation_kernel, correlation_gradient_kernel, correlation_gather_kernel)
KERNELS += (correlation_scatter_kernel, front_kernel, moved_kernel, blocks_kernel, shown_kernel)
KERNELS += (gathered_kernel, colours_kernel, sweep_kernel, sweep_backward_kernel)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each kernel is compiled."""
    counts: Counter[str] = Counter()

    def compile_(self, key, signature, device, constexprs, options, attrs, warmup):
        counts[self.fn.__name__] += 1
        assert self.cache_key  # Triton notes the globals, which may not change: NaN would
        self.device_caches[device][0][key] = Kernel()
        return self.device_caches[device][0][key]

    monkeypatch.setattr(JITFunction, "_do_compile", compile_)
    before = dict(vars(driver))
    driver.set_active(Driver())
    for kernel in KERNELS:
        kernel.device_caches.clear()
    yield counts
    for kernel in KERNELS:
        kernel.device_caches.clear()
    vars(driver).clear()
    vars(driver).update(before)


def correlation_of(count: int, size: tuple[int, int], out: tuple[int, int]) -> None:
    """A correlation by a flow, one of whole pixels, and all gradients."""
    first, second = (torch.empty(count, 5, *sides, device="meta") for sides in (size, out))
    radius = (size[0] % 5, out[1] % 5)
    tensors = (first, second, torch.empty(count, *size, 2, device="meta"))
    for step, used in ((1.0, tensors), (1.0 + count, tensors[:2])):
        options = Square(radius, step, "constant")
        found, _ = correlation.forward(options, *used)
        correlation.backward(options, None, (found,), used, (True,) * len(used))


def depth_of(count: int, size: tuple[int, int], out: tuple[int, int]) -> None:
    """Points of depths, and their gradients."""
    options = Depths("z", "brown", True, True, ("bilinear", *out))
    shapes = ((count, *size), (4,), (count, 3, 4), (4,), ())
    tensors = tuple(torch.empty(shape, dtype=torch.float64, device="meta") for shape in shapes)
    found, kept = depth.forward(options, *tensors)
    depth.backward(options, kept, found[:2], tensors, (True,) * 5)


def sweep_of(count: int, size: tuple[int, int], out: tuple[int, int]) -> None:
    """A sweep of eight groups, and all gradients."""
    options = Sweep("z", "brown", True, size, "correlation", 8, None)
    count, views, planes = 1 + count % 4, 1 + count % 5, 1 + size[0] % 40
    shapes = ((count, views, 8, *out), (planes, 1, 1), (4,), (views, 3, 4), (1, 4), (1,))
    kinds = (torch.float32, torch.float64, torch.float64, torch.float64, torch.float64)
    tensors = tuple(
        torch.empty(shape, dtype=kind, device="meta")
        for shape, kind in zip(shapes, (*kinds, torch.float64), strict=True)
    )
    tensors += (torch.empty(count, 8, *size, device="meta"),)
    (cost, _), kept = sweep.forward(options, *tensors)
    sweep.backward(options, kept, (cost,), tensors, (True,) * 7)


def front_of(count: int, size: tuple[int, int], out: tuple[int, int]) -> None:
    """Pixels in front, and their gradient."""
    shapes = ((count, 3, *size), (count, *size, 2), (count, *size))
    tensors = tuple(torch.empty(shape, device="meta") for shape in shapes)
    found, kept = front.forward(out, *tensors)
    front.backward(out, kept, found[:1], tensors, (True, False, False))


def file_of(count: int, size: tuple[int, int], out: tuple[int, int]) -> None:
    """A file of a picture in colour, and its gradient."""
    images = torch.empty(count, 3, *size, device="meta")
    quality = torch.empty(count, dtype=torch.int32, device="meta")
    found, _ = jpeg.forward("4:2:0", images, quality)
    jpeg.backward("4:2:0", None, (found,), (images, quality), (True, False))


def call(count: int, size: tuple[int, int], out: tuple[int, int], points: bool) -> None:
    """A warp of planar pictures and its gradients to image and map."""
    image = torch.empty(count, 3, *size, device="meta")
    fill, rule = torch.empty((), device="meta"), SamplingRule("bilinear", "constant")
    if points:
        where = torch.empty(count, *out, 2, device="meta")
    else:
        matrix = torch.empty(count, 2, 3, dtype=torch.float64, device="meta")
        where, _ = inverse.forward(torch.nan, matrix)
    launch.forward(image, where, fill, out, rule)
    grad = torch.empty(count, 3, *out, device="meta")
    launch.backward(grad, image, where, fill, out, rule, [True, True, False])


@pytest.mark.parametrize("points", [False, True])
def test_sizes_are_no_reason_to_compile(compiled: Counter[str], points: bool):
    draw = random.Random(0)
    for _ in range(200):
        size, out = ((draw.randint(1, 800), draw.randint(1, 800)) for _ in range(2))
        call(draw.randint(1, 64), size, out, points)
    assert len(compiled) == 4
    assert set(compiled.values()) == {1}


@pytest.mark.parametrize(
    ("task", "variants"),
    [
        # with a flow and without; the largest of gradient and picture are of one kernel
        (correlation_of, {"correlation_kernel": 2, "correlation_gradient_kernel": 2}),
        (depth_of, {}),
        (sweep_of, {}),
        # the first pass and the second; pixels and their gradient
        (front_of, {"front_kernel": 2, "moved_kernel": 2}),
        # brightness and colours, each with its gradient
        (file_of, {"blocks_kernel": 4, "shown_kernel": 2}),
    ],
)
def test_other_kernels_are_not_compiled_by_size(compiled, task, variants):
    draw = random.Random(0)
    for _ in range(60):
        size, out = ((draw.randint(1, 800), draw.randint(1, 800)) for _ in range(2))
        task(draw.randint(1, 64), size, out)
    assert dict(compiled) == {name: variants.get(name, 1) for name in compiled}
    assert compiled
