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

from warpkit.engine.backends import cuda
from warpkit.engine.backends.cuda import inverse, launch
from warpkit.engine.backends.cuda.backward import backward_kernel
from warpkit.engine.backends.cuda.forward import forward_kernel
from warpkit.engine.backends.cuda.gather import gather_kernel
from warpkit.engine.backends.cuda.gather_affine import gather_affine_kernel
from warpkit.engine.backends.cuda.inverse import invert_kernel
from warpkit.engine.backends.cuda.scatter import collect_kernel, scatter_kernel
from warpkit.engine.sampling.rules import SamplingRule

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
KERNELS += (scatter_kernel, collect_kernel)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each kernel is compiled."""
    counts: Counter[str] = Counter()

    def compile_(self, key, signature, device, constexprs, options, attrs, warmup):
        counts[self.fn.__name__] += 1
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
