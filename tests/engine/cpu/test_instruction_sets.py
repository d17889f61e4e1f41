"""The native library's instruction sets, each in its own process, compared with each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.engine.cpu.test_library import available, run
from tests.support import ROOT
from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions.rules import TAPS

CALLS = """
import sys, torch, warpkit as wk
from warpkit.engine.cpu.native_library import LIBRARY
from warpkit.engine.definitions.rules import BORDERS, TAPS
assert LIBRARY.isa == sys.argv[2]
torch.manual_seed(0)
floats = torch.rand(2, 3, 33, 37, dtype=torch.float64)
turn = wk.rotation_matrix((18.0, 15.0), torch.tensor([33.0, 200.0]).double(), 1.3)
tilt = torch.cat((turn, torch.tensor([[1e-3, -2e-3, 1.0]]).double().expand(2, 1, 3)), -2)
points = torch.rand(2, 34, 36, 2, dtype=torch.float64) * 50 - 8
points[0, 0, :4, 0] = torch.tensor([torch.nan, torch.inf, 2.0**31 - 1, -2.0**31])
maps = (wk.warp_affine, turn), (wk.warp_perspective, tilt), (wk.remap, points)
maps += ((wk.remap, points.float()),)
found = {}
for interpolation in TAPS:
    for border in BORDERS[:-1]:
        for n, (function, where) in enumerate(maps):
            options = {"interpolation": interpolation, "border": border, "border_value": 0.5}
            for dtype in (torch.float32, torch.float64, torch.uint8):
                image = (floats * (255 if dtype == torch.uint8 else 1)).to(dtype)
                for layout in (torch.contiguous_format, torch.channels_last):
                    key = str((interpolation, border, n, dtype, layout))
                    pixels = image.detach().contiguous(memory_format=layout)
                    leaf = where.clone().requires_grad_(dtype != torch.uint8)
                    pixels.requires_grad_(dtype != torch.uint8)
                    out = function(pixels, leaf, backend="cpu", **options)
                    found[key] = [out.detach()]
                    if dtype != torch.uint8:
                        push = torch.rand(out.shape, generator=torch.Generator().manual_seed(1))
                        out.backward(push.to(dtype))
                        found[key] += [pixels.grad, leaf.grad]
depth = torch.rand(2, 1, 33, 37, dtype=torch.float64) * 5 + 0.2
depth[0, 0, 3, :4] = torch.tensor([torch.nan, torch.inf, 1e7, 0.0])
camera = torch.tensor([[30.0, 0, 18], [0, 29, 16], [0, 0, 1]]).double()
pose = wk.camera.pose(wk.camera.rotation(yaw=3.0), [0.2, 0.1, -0.1]).double().repeat(2, 1, 1)
for kind, count in (("z", 0), ("ray", 5), ("inverse", 12)):
    leaves = [t.clone().requires_grad_() for t in (depth, camera, pose, torch.rand(count).double())]
    lens = {"other_matrix": camera, "other_distortion": 0.01 * leaves[3]} if count else {}
    points, own = wk.camera.depth_points(*leaves[:3], **lens, kind=kind)
    (points.nan_to_num(0, 0, 0).square().sum() + own.nan_to_num(0, 0, 0).sum()).backward()
    found[f"depth {kind}"] = [points.detach(), own.detach(), *(leaf.grad for leaf in leaves)]
torch.save(found, sys.argv[1])
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, dict[str, list[Tensor | None]]]:
    """Values and gradients of each instruction set."""
    folder, found = tmp_path_factory.mktemp("sets"), {}
    for isa in available():
        path = Path(folder / isa)
        run(CALLS, str(path), isa, WARPKIT_ISA=isa)
        found[isa] = torch.load(path)
    return found


def near(one: Tensor, other: Tensor, key: str) -> bool:
    """Whether two results differ only by rounding, relative to the largest entry."""
    largest = max(1.0, one.abs().nan_to_num(posinf=0).max().item())
    kind = torch.float32 if "float32" in key else torch.float64
    atol = 1.0 if one.dtype == torch.uint8 else largest * TOLERANCE[f"cpu {kind}"]
    return torch.allclose(one, other, atol=atol, rtol=0, equal_nan=True)


def test_instruction_sets_with_fma_give_the_same_bits(results):
    """Except the gradient to a float32 image, which is summed one vector at a time."""
    if "avx512" not in results:
        pytest.skip("needs two such sets: AVX2 and AVX-512")
    assert len(results["avx2"]) == len(TAPS) * 5 * 4 * 3 * 2 + 3
    for key, wanted in results["avx2"].items():
        for n, (one, other) in enumerate(zip(wanted, results["avx512"][key], strict=True)):
            if one is None or other is None:
                assert one is other
            elif n == 1 and "float32" in key:
                assert near(one, other, key), key
            else:
                assert torch.equal(one.nan_to_num(7), other.nan_to_num(7)), (key, n)


def test_sse4_rounds_twice_and_differs_by_rounding_only(results):
    if "avx2" not in results:
        pytest.skip("needs two sets")
    differing = 0
    for key, wanted in results["avx2"].items():
        for one, other in zip(wanted, results["sse4"][key], strict=True):
            if one is None or other is None:
                assert one is other
            else:
                assert near(one, other, key), key
                differing += not torch.equal(one, other)
    assert differing  # otherwise the environment variable had no effect


def test_the_digests_of_kernels_need_only_python():
    """scripts/digest kernels, which compares an emulated processor with this one."""
    found = {}
    for isa in available():
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(ROOT / "scripts/commands/digest/kernels.py")],
            env={**os.environ, "WARPKIT_ISA": isa},
            check=True,
            capture_output=True,
            text=True,
        )
        first, *found[isa] = done.stdout.splitlines()
        assert first == f"isa {isa}"
        # taps, methods and float types; of fits, polar, transform, resize_torch, sphere and jpeg 16
        assert len(found[isa]) == len({line.split()[-1] for line in found[isa]}) == 16 + 16
    files = [[line for line in lines if "jpeg" in line] for lines in found.values()]
    assert len(files[0]) == 2  # with their gradient, of which no sum is fused
    assert all(lines == files[0] for lines in files)
    if "avx512" in found:
        pairs = zip(found["avx2"], found["avx512"], strict=True)
        assert all("backward float32" in one for one, other in pairs if one != other)
