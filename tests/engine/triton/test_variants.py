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

from tests.support.cuda_stub import stub_driver
from warpkit.engine import triton as cuda
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.sweep import Sweep
from warpkit.engine.triton import correlation, depth, front, inverse, jpeg, launch, sweep

pytestmark = pytest.mark.skipif(cuda.INTERPRETED, reason="nothing is compiled in this process")


@pytest.fixture
def compiled() -> Iterator[Counter[str]]:
    """How often each kernel is compiled."""
    with stub_driver(compiles=False) as trace:
        yield trace.variants


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
    for _ in range(500):
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
