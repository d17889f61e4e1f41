"""Warps by kernels touch nothing beside their arrays, whatever the maps; guards that show it."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import signal

import pytest

pytest.importorskip("numba")

from tests.support.guarded_memory import empty, survives

HOSTILE = """
import torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
from warpkit.engine.sampling.rules import BORDERS
guard_what_is_made()
torch.manual_seed(0)
big = [0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 2.0**31, 2.0**31 - 1, -2.0**31, 1e300]
big += [float("inf"), float("nan")]
pick = lambda *shape: torch.tensor(big, dtype=torch.float64)[torch.randint(len(big), shape)]
image = torch.rand(2, 5, 9, 11)
last = image.contiguous(memory_format=torch.channels_last)
shapes = {"warp_affine": (2, 3), "warp_perspective": (3, 3), "remap": (40, 37, 2)}
turned = {"warp_affine": wk.rotation_matrix((5.0, 4.0), 33.0, 0.4).double().repeat(2, 1, 1)}
turned["warp_perspective"] = torch.eye(3).double() + 0.02 * torch.rand(2, 3, 3).double()
turned["remap"] = torch.rand(2, 40, 37, 2).double() * 20 - 4
for function, interpolation, pixels, borders in (
    # planes without a background, by the kernels that read pairs of neighbours
    ("warp_affine", "bilinear", image, BORDERS[:-1]),
    ("warp_affine", "bilinear", image.double(), BORDERS[:-1]),
    ("warp_perspective", "bilinear", image, BORDERS[:-1]),
    ("remap", "bilinear", image, BORDERS[:-1]),
    ("warp_affine", "bicubic", image, BORDERS[:-1]),
    ("warp_affine", "nearest", image, BORDERS[:-1]),
    ("warp_affine", "nearest", image.mul(255).byte(), BORDERS[:-1]),
    # by the kernels for everything
    ("remap", "bilinear", last, BORDERS),
    ("warp_perspective", "lanczos4", image, BORDERS),
):
    for border in borders:
        for where in (turned[function], *(pick(2, *shapes[function]) for _ in range(4))):
            options = {"interpolation": interpolation, "border": border, "backend": "cpu"}
            if border == "transparent":
                options["background"] = guarded(torch.rand(2, 5, 40, 37))
            if function != "remap":
                options |= {"inverse": True, "size": (40, 37)}
            for _ in range(2):  # a call that came before is made again by a recipe
                leaves = [guarded(t).requires_grad_(t.is_floating_point()) for t in (pixels, where)]
                out = getattr(wk, function)(*leaves, **options)
                if out.requires_grad:
                    out.backward(guarded(torch.rand_like(out)))
"""


def test_hostile_maps_stay_inside_the_arrays():
    assert survives(HOSTILE)


CHECKED = """
import torch, warpkit as wk
from warpkit.engine.sampling.rules import BORDERS
image = torch.rand(2, 5, 9, 11)
last = image.contiguous(memory_format=torch.channels_last)
for border in BORDERS[:-1]:
    for scale in (0.1, 1.0, 30.0):
        pixels, points, planes = (t.detach().requires_grad_() for t in (
            last, (torch.rand(2, 40, 37, 2).double() - 0.5) * 20 * scale, image
        ))
        turn = wk.rotation_matrix((5.0, 4.0), 33.0, scale).double().requires_grad_()
        wk.remap(pixels, points, border=border, backend="cpu").sum().backward()
        wk.warp_affine(planes, turn, size=(40, 37), border=border, backend="cpu").sum().backward()
"""


def test_parts_of_a_threads_memory_stay_apart():
    """By Numba's check of bounds, since no guard lies between the parts.

    One kernel that is written in Python and one that is written as vectors: 12 s, compiled anew.
    """
    light = {"NUMBA_OPT": "1", "NUMBA_LOOP_VECTORIZE": "0"}  # half the compilation
    assert survives(CHECKED, NUMBA_BOUNDSCHECK="1", **light)


def test_a_byte_read_beside_an_array_ends_the_process():
    """Otherwise the tests by guards could not fail."""
    one, other = (empty(5, "uint8") for _ in "12")
    for array in (one, other):
        first = array.ctypes.data
        ended = [ends_by_reading(first + n) for n in (-1, 0, 4, 5)]
        at_end = first % mmap.PAGESIZE != 0
        assert ended == [not at_end, False, False, at_end]
    assert one.ctypes.data % mmap.PAGESIZE != other.ctypes.data % mmap.PAGESIZE


def ends_by_reading(address: int) -> bool:
    """Whether it ends a process to read a byte."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.string_at(address, 1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGSEGV
