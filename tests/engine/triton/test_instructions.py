"""What the CUDA kernels cost, without a device: instructions and launches.

Kernels are compiled for sm_90 by the code that launches them, and their machine code is counted.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import pytest

pytest.importorskip("triton")

import triton
from packaging.version import Version

from tests.support.cuda_calls import BYTE, CALLS, files, fronts, invert, points, squares, warp
from tests.support.cuda_stub import CUOBJDUMP, Instruction, instructions_of, stub_driver
from warpkit.engine import triton as cuda

if cuda.INTERPRETED:
    pytest.skip("the kernels are interpreted in this process", allow_module_level=True)

NEWEST = Version(triton.__version__) >= Version("3.9")
"""Compilers differ: Triton 3.3 and 3.6 issue up to 5 % more, and 40 % in `gather_affine_kernel`."""

counted = pytest.mark.skipif(
    not (NEWEST and CUOBJDUMP.exists()), reason="counts are of Triton 3.9, with its cuobjdump"
)

THREADS = 128
"""Of a program."""
BOTH = True, True, False
SIZE = 100, 120


class Count(NamedTuple):
    """The largest numbers of instructions for a pixel of three channels."""

    all: float
    doubles: float
    """Of float64, which many GPUs compute at 1/64 of float32's rate."""
    trips: tuple[int, ...]
    """Of the loops, from the outside."""
    pixels: int
    """Of a program."""


WARPS = {
    # 12 loads, 4 addresses, and weights and masks for each channel: the loop over channels must
    # not compute a position again. The positions' products and sums, and their floors
    ("bilinear", "forward_kernel"): Count(290, 18, (3,), 512),
    ("bicubic", "forward_kernel"): Count(930, 23, (3,), 256),  # 16 taps, in one loop of four rows
    # a division by the period for each axis, which is a reciprocal and 5 corrections
    ("reflect", "forward_kernel"): Count(500, 53, (3,), 512),
    ("perspective", "forward_kernel"): Count(380, 46, (3,), 512),  # two divisions
    ("points", "forward_kernel"): Count(295, 11, (3,), 512),  # no products: points are read
    ("bytes", "forward_kernel"): Count(360, 70, (3,), 512),  # sums are float64, rounded once
    # one reader, 4 rows of 3 columns: only rows have float64, the first distance of each
    ("bilinear", "gather_affine_kernel"): Count(1900, 240, (1, 4, 3), 128),
    ("bilinear", "backward_kernel"): Count(445, 23, (3,), 512),  # and six sums over the program
    ("points", "backward_kernel"): Count(410, 13, (3,), 512),
    ("points", "scatter_kernel"): Count(350, 71, (3,), 512),  # 4 terms in float64 become integers
    ("points", "collect_kernel"): Count(280, 40, (), 1024 // 3),  # a division for its unit
}
OTHERS = {
    ("inverse", "invert_kernel"): Count(190, 58, (), 128),
    ("jpeg", "blocks_kernel"): Count(930, 0, (), 256),  # colours; 4 sums of 8 integers a pixel
    ("jpeg", "shown_kernel"): Count(155, 0, (), 512),
    ("points of depths", "points_kernel"): Count(660, 300, (), 128),  # a lens, in float64
    ("points of depths", "points_backward_kernel"): Count(1620, 620, (), 128),
    ("front", "front_kernel"): Count(127, 17, (), 512),
    ("front", "moved_kernel"): Count(205, 0, (3,), 512),
    # 9 offsets a row; inside are products of 32 channels, four in a trip
    ("correlation", "correlation_kernel"): Count(12_200, 60, (10, 8), 128),
}
MAKERS = {
    "bilinear": lambda: warp(2, SIZE, BOTH),
    "bicubic": lambda: warp(2, SIZE, way="bicubic"),
    "reflect": lambda: warp(2, SIZE, border="reflect"),
    "perspective": lambda: warp(2, SIZE, kind="perspective"),
    "points": lambda: warp(2, SIZE, BOTH, kind="points"),
    "bytes": lambda: warp(2, SIZE, dtype=BYTE),
    "inverse": lambda: invert(2, 2),
    "jpeg": lambda: files(2, SIZE),
    "points of depths": lambda: points(2, SIZE, (True,) * 4 + (False,)),
    "front": lambda: fronts(2, SIZE),
    "correlation": lambda: squares(2, SIZE),
}


@cache
def kernels_of(name: str) -> list[tuple[str, list[Instruction]]]:
    """The kernels that a call compiles, by name, and their instructions."""
    with stub_driver(compiles=True) as trace:
        MAKERS[name]()
    return [(kernel, instructions_of(code)) for kernel, code in trace.compiled]


@counted
@pytest.mark.parametrize(("call", "kernel"), WARPS | OTHERS)
def test_instructions_of_a_pixel(call: str, kernel: str):
    most = (WARPS | OTHERS)[call, kernel]
    every, doubles = 0.0, 0.0
    weights = list(accumulate((1, *most.trips), mul))
    for name, found in kernels_of(call):
        if name != kernel:
            continue
        every = max(every, sum(weights[i.depth] for i in found))
        doubles = max(doubles, sum(weights[i.depth] for i in found if i.is_double))
    per = THREADS / most.pixels
    assert 0.8 * most.all < every * per <= most.all
    assert 0.8 * most.doubles <= doubles * per <= most.doubles


@counted
@pytest.mark.parametrize("call", MAKERS)
def test_no_register_is_spilled(call: str):
    for kernel, found in kernels_of(call):
        names = {i.name for i in found}
        assert {"LDG", "STG", "RED"} & names
        assert not {"LDL", "STL"} & names, kernel


@counted
def test_the_loops_over_channels_have_no_float64():
    """Of float32 images: the positions are computed before them."""
    for call in ("bilinear", "bicubic", "reflect", "perspective", "points"):
        for kernel, found in kernels_of(call):
            if kernel in ("forward_kernel", "backward_kernel"):
                assert any(i.depth for i in found)
                assert not any(i.is_double and i.depth for i in found), (call, kernel)


LAUNCHES = {
    "warp": (1, 0),
    "warp, gradients to image and matrix": (3, 1),
    # integers of a scatter are set to 0, and their units are 14 operations with a number a channel
    "warp under reflect, gradients": (4, 17),
    "remap, gradients": (4, 16),
    "inverse": (1, 0),
    "jpeg": (3, 0),
    "jpeg, gradient": (10, 1),
    "depth_points": (1, 33),  # the numbers of a lens and a pose in one row
    "depth_points, gradients": (2, 35),
    "correlation": (1, 0),
    "correlation, gradients": (6, 24),
    "correlation without a flow, gradients": (3, 2),
    "front": (3, 4),
    "front, gradient": (4, 8),
    "plane_sweep": (1, 33),
    "plane_sweep, gradients": (14, 145),
}
"""The numbers of launches of Triton's kernels, and the largest of torch's operations."""


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_of_a_call(name: str):
    assert LAUNCHES.keys() == CALLS.keys()
    with stub_driver(compiles=False) as trace:
        CALLS[name](2, SIZE)
    launches, operations = LAUNCHES[name]
    assert len(trace.launches) == launches
    assert trace.operations.total() <= operations
