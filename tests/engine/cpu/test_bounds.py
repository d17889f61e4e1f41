"""Kernels of warps stay within their arrays for any map; guard pages check it."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import signal

import pytest

from tests.support.guarded_memory import empty, survives
from warpkit.engine.definitions.rules import INTERPOLATIONS, TAPS

HOSTILE = """
import torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
from warpkit.engine.definitions.rules import BORDERS
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
    ("warp_affine", "bilinear", image, BORDERS[:-1]),
    ("warp_affine", "bilinear", image.double(), BORDERS[:-1]),
    ("warp_perspective", "bilinear", image, BORDERS[:-1]),
    ("remap", "bilinear", image, BORDERS[:-1]),
    ("warp_affine", "bicubic", image, BORDERS[:-1]),
    ("warp_affine", "nearest", image, BORDERS[:-1]),
    ("warp_affine", "nearest", image.mul(255).byte(), BORDERS[:-1]),
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
            for _ in range(2):  # a call that came before is made again as it was
                leaves = [guarded(t).requires_grad_(t.is_floating_point()) for t in (pixels, where)]
                out = getattr(wk, function)(*leaves, **options)
                if out.requires_grad:
                    out.backward(guarded(torch.rand_like(out)))
"""


def test_hostile_maps_stay_inside_the_arrays():
    assert survives(HOSTILE)


LAUNCHED = """
import sys, torch
from tests.support.guarded_memory import guard_what_is_made, guarded
from warpkit.engine.cpu import calls, backward_schedule, launch
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.rules import BORDERS, SamplingRule
guard_what_is_made()
torch.manual_seed(0)
interpolation, pieces = sys.argv[1], sys.argv[2] == "pieces"
made = []
if pieces:  # small images are split as large ones are
    backward_schedule.BANDED = calls.INLINE = 1
    for name in ("by_strips", "by_bands", "by_tile_rows"):
        def noted(*given, name=name, function=getattr(backward_schedule, name)):
            found = function(*given)
            made.append(name if found is not None else None)
            return found
        setattr(launch, name, noted)
size = (136, 37) if pieces else (34, 33)
big = [0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 2.0**31, 2.0**31 - 1, -2.0**31, 1e300]
big += [float("inf"), float("nan")]
pick = lambda *shape: torch.tensor(big, dtype=torch.float64)[torch.randint(len(big), shape)]
turn = torch.tensor([[0.9, 0.3, -2.0], [-0.4, 1.1, 3.0]], dtype=torch.float64)
tilt = torch.cat((turn, torch.tensor([[0.01, -0.02, 1.0]]).double()))
around = torch.rand(1, *size, 2).double() * 16 - 3
floats = [torch.float32, torch.float64]
types = floats + [torch.uint8, torch.int16, torch.uint16]
types += [torch.int32, torch.int64, torch.bool] if interpolation == "nearest" else []
for border in BORDERS:
    rule = SamplingRule(interpolation, border)
    for dtype in floats if pieces else types:
        for shape in ((1, 3, 90, 11),) if pieces else ((2, 5, 9, 11), (1, 1, 1, 1), (1, 3, 1, 70)):
            layouts = [torch.contiguous_format, torch.channels_last]
            for layout in layouts if shape[1] > 1 else layouts[:1]:
                image = (torch.rand(shape) * 200).to(dtype).contiguous(memory_format=layout)
                dense = border == "transparent"
                fill = torch.rand(shape[1], *(size if dense else (1, 1))) * 200
                fill = fill.to(compute_dtype(dtype) if dtype in types[:5] else dtype)
                planes = around.movedim(-1, 1).contiguous().movedim(1, -1)
                maps = [turn[None], tilt[None], around, around.float(), around / 4, planes]
                maps += [turn.repeat(3, 1, 1)] if shape[0] == 1 else []
                maps += [pick(shape[0], 2, 3), pick(shape[0], 3, 3), pick(1, *size, 2)]
                for n, where in enumerate(maps):
                    options = {"relative": n == 4 or (n == len(maps) - 1 and border == "wrap")}
                    given = [guarded(t) for t in (image, where, fill)]
                    out = launch.forward(*given, size, rule, **options)
                    if dtype not in floats:
                        continue
                    push = guarded(torch.rand_like(out))
                    for wanted in ((True, True, True), (False, True, True)):
                        launch.backward(push, *given, size, rule, wanted, **options)
                # a list of images
                where, of = turn.expand(4, 2, 3).contiguous(), torch.arange(4) % shape[0]
                given = [guarded(t) for t in (image, where, fill[:, :1, :1].contiguous())]
                out = launch.forward(*given, size, rule, guarded(of).numpy())
                if dtype in floats:
                    push, wanted = guarded(torch.rand_like(out)), (True, True, True)
                    launch.backward(push, *given, size, rule, wanted, guarded(of).numpy())
assert {"by_strips", "by_bands", "by_tile_rows"} <= set(made) or not pieces
"""


@pytest.mark.parametrize("pieces", ["whole", "pieces"])
@pytest.mark.parametrize("interpolation", TAPS)
def test_no_kernel_touches_memory_beside_an_array(interpolation, pieces):
    """Every border, type, layout and kind of map; images in one piece, in strips and in bands."""
    assert survives(f"import sys; sys.argv[1:] = {[interpolation, pieces]}\n{LAUNCHED}")


LISTED = """
import sys, torch, warpkit as wk
from tests.support.guarded_memory import empty, guard_what_is_made, guarded
guard_what_is_made()
torch.manual_seed(0)
cuts = [
    lambda t: t,
    lambda t: t[:, 2:-3, 1:-4],
    lambda t: t.mT,
    lambda t: t.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    lambda t: t[:, :1].expand(3, 9, 40),
    lambda t: t[:, :, ::2],
]


def between(view):
    # a copy with the same strides, whose own first and last pixels touch the guards
    numbers = sum((n - 1) * step for n, step in zip(view.shape, view.stride(), strict=True)) + 1
    flat = torch.from_numpy(empty(numbers * view.element_size(), "u1")).view(view.dtype)
    return flat.as_strided(view.shape, view.stride())


for dtype in (torch.float32, torch.float64):
    for border in ("constant", "reflect"):
        images = [between(cut(torch.rand(3, 33, 40, dtype=dtype))).requires_grad_() for cut in cuts]
        middles, sides = 40 * torch.rand(30, 2), 30 * torch.rand(30, 2) + 1
        boxes = guarded(torch.cat((middles, sides, 360 * torch.rand(30, 1)), 1)).requires_grad_()
        index = torch.randint(0, len(images), (30,))
        options = {"interpolation": sys.argv[1], "border": border}
        crops = wk.crop_patches(images, boxes, index, (33, 35), **options)
        (crops * guarded(torch.rand_like(crops))).sum().backward()
        moves = guarded((torch.eye(2, 3) + 0.3 * torch.randn(30, 2, 3)).to(dtype)).requires_grad_()
        batch = guarded(torch.rand(2, 3, 33, 40, dtype=dtype)).requires_grad_()
        wk.transform_patches(batch, boxes, moves, index % 2, **options).sum().backward()
"""


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_image_lists_and_rotated_boxes_stay_inside_the_arrays(interpolation):
    """Listed images with different strides; rows of rotated boxes."""
    assert survives(f"import sys; sys.argv[1:] = {[interpolation]}\n{LISTED}")


BESIDE = """
import numpy as np, torch
from tests.support.guarded_memory import bytes_between_guards
from warpkit.engine.cpu import launch
from warpkit.engine.definitions.rules import SamplingRule
rows = bytes_between_guards(20 * 30 * 4, True).view(np.float32)
image = torch.from_numpy(rows).as_strided((1, 1, 20, 30), (600, 600, 30, 1))
if {wrong}:  # a kernel is told of more rows than there are
    run = launch.result
    launch.result = lambda call, image, *rest: run(call, image[:, :, 5:], *rest)
launch.forward(image, torch.eye(2, 3).double(), torch.zeros(()), (20, 30),
               SamplingRule("{interpolation}", "replicate"))
"""


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_a_kernel_with_a_wrong_number_of_rows_is_detected(interpolation):
    assert survives(BESIDE.format(wrong=False, interpolation=interpolation))
    assert not survives(BESIDE.format(wrong=True, interpolation=interpolation))


def test_a_byte_read_beside_an_array_ends_the_process():
    """Otherwise the tests with guard pages could not fail."""
    one, other = (empty(5, "uint8") for _ in "12")
    for array in (one, other):
        first = array.ctypes.data
        ended = [ends_by_reading(first + n) for n in (-1, 0, 4, 5)]
        at_end = first % mmap.PAGESIZE != 0
        assert ended == [not at_end, False, False, at_end]
    assert one.ctypes.data % mmap.PAGESIZE != other.ctypes.data % mmap.PAGESIZE


def ends_by_reading(address: int) -> bool:
    """Whether reading a byte ends the process."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.string_at(address, 1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGSEGV


RESIZED = """
import torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
guard_what_is_made()
types = [torch.uint8, torch.int16, torch.uint16, torch.float32, torch.float64]
for dtype in types:
    for channels in (1, 2, 3, 4, 5):
        for sides in ((1, 1), (2, 2), (2, 3), (18, 42), (36, 22)):
            image = (torch.rand(2, channels, *sides) * 200).to(dtype)
            for layout in (torch.contiguous_format, torch.channels_last):
                for size in ((1, 1), (9, 21), (18, 11), (50, 7), (3, 90)):
                    given = guarded(image.contiguous(memory_format=layout))
                    for name in ("bilinear", "bicubic", "area"):
                        wk.resize(given, size, interpolation=name, arithmetic="opencv5_ipp")
"""


def test_opencvs_resizes_stay_inside_the_arrays():
    """Every type, with every number of channels that has its own kernel, and one more."""
    assert survives(RESIZED)
