"""Random calls of compiled kernels compared with cv2 and torch, as in `scripts/compare face`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.engine.cpu.test_library import available, run
from tests.support import resize_cases
from tests.support.face_calls import CALLS, FaceCall, answers, differing
from tests.support.installed_opencv import installed_opencv
from warpkit.engine.arithmetic import opencv_ipp_resize, opencv_resize
from warpkit.engine.binding import plan
from warpkit.engine.definitions.resize import ResizeRule
from warpkit.opencv import door, lens_maps, resizing

cv2 = installed_opencv()
EACH = 15


@pytest.fixture(autouse=True)
def without_ipp(monkeypatch):
    before = cv2.ipp.useIPP()
    cv2.ipp.setUseIPP(False)
    monkeypatch.setattr(resizing, "installed_resize_arithmetic", ours.installed_arithmetic)
    yield
    cv2.ipp.setUseIPP(before)


@pytest.mark.parametrize("name", CALLS)
def test_random_calls_match_cv2(name):
    for seed in range(EACH):
        call = CALLS[name](np.random.default_rng(seed))
        wrong, count = differing(call, answers(ours, call), answers(cv2, call))
        assert wrong == 0, f"seed {seed}: {wrong} of {count} values differ"


@pytest.mark.parametrize("name", ["pyrDown", "copyMakeBorder", "rotate", "undistort"])
def test_one_value_that_is_off_by_one_is_detected(name):
    call = CALLS[name](np.random.default_rng(1))
    found = answers(ours, call)
    off = [part.copy() for part in found]
    off[-1][-1, -1] += 1
    numbers = off[-1][-1, -1].size
    assert differing(call._replace(tolerance=0.0), found, off)[0] == numbers


@pytest.mark.parametrize("avx512", [False, True])
@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4", "bilinear_exact"])
def test_resizes_have_the_bits_of_torch(interpolation, dtype, avx512, monkeypatch):
    launch = pytest.importorskip("warpkit.engine.cpu.resize.launch")
    monkeypatch.setattr(opencv_ipp_resize, "AVX512", avx512)
    served = 0
    for seed in range(24):
        random = np.random.default_rng(seed)
        channels = int(random.integers(1, 5))
        call = resize_cases.random_call(random, interpolation, dtype, channels, 40)
        if dtype.startswith("float") and seed % 5 == 0:
            call.image.reshape(-1)[seed % call.image.size] = np.nan
        height, width = call.image.shape[:2]
        size = call.dsize[::-1] if call.dsize else (round(height * call.fy), round(width * call.fx))
        if min(size) < 1:
            continue
        factors = None if call.dsize else (call.fy, call.fx)
        image = torch.from_numpy(call.image).permute(2, 0, 1)[None]
        image = image.contiguous() if seed % 3 == 0 else image
        for arithmetic in ("opencv5", "opencv5_ipp"):
            rule = ResizeRule(interpolation, False, arithmetic)
            found = launch.opencv(image, size, rule, factors)
            wanted = opencv_resize.resize(image, size, rule, None, factors)
            if found is not None:
                served += 1
                assert resize_cases.differing(found.numpy(), wanted.numpy()) == 0, f"seed {seed}"
    assert served > 15


@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32", "float64"])
def test_means_of_whole_cells_have_the_bits_of_torch(dtype):
    launch = pytest.importorskip("warpkit.engine.cpu.resize.launch")
    for seed in range(40):
        random = np.random.default_rng(seed)
        wide, high = (2, 2) if seed % 3 == 0 else (int(n) for n in random.integers(1, 9, 2))
        w, h, channels = (int(n) for n in random.integers(1, 6, 3))
        array = resize_cases.image(random, dtype, (h * high, w * wide, channels))
        image = torch.from_numpy(array).permute(2, 0, 1)[None]
        rule = ResizeRule("area", False, "opencv5")
        found, wanted = (f(image, (h, w), rule, None) for f in (launch.opencv, _by_torch))
        assert resize_cases.differing(found.numpy(), wanted.numpy()) == 0, f"seed {seed}"


def _by_torch(image, size, rule, factors):
    return opencv_resize.resize(image, size, rule, None, factors)


@pytest.mark.parametrize("width", [3, 8, 9, 16, 21])
def test_pixels_beyond_int16_saturate_in_blocks_of_eight_and_wrap_elsewhere(width):
    """A pixel at 500,000 wraps to -24,288."""
    view = np.array([[1e-6, 0, -0.5], [0, 1, 0], [0, 0, 1]])  # at (column + 0.5) million
    args = (np.eye(3), None, None, view, (width, 1), "CV_16SC2")
    call = FaceCall("initUndistortRectifyMap", args)
    pixels = answers(ours, call)[0][0, :, 0]
    eights = width // 8 * 8
    assert (pixels[:eights] == 32767).all()
    columns = np.arange(eights, width)
    wrapped = (columns * 1_000_000 + 500_000 + 2**15) % 2**16 - 2**15
    assert pixels[eights:].tolist() == wrapped.tolist()
    assert differing(call, answers(ours, call), answers(cv2, call))[0] == 0
    by_tensors = ours.initUndistortRectifyMap(
        torch.eye(3, dtype=torch.float64), None, None, torch.from_numpy(view), (width, 1), 35
    )
    assert by_tensors[0][0, :, 0].tolist() == pixels.tolist()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 127, 128, 143, 144, 1024, 1039, 1040, 1041])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_numbers_of_a_block_are_computed_separately(count, dtype):
    random = np.random.default_rng(count)
    x, y = (random.normal(0, 9, (1, count)).astype(dtype) for _ in range(2))
    for name in ("cartToPolar", "polarToCart"):
        call = FaceCall(name, (x, y))
        assert differing(call, answers(ours, call), answers(cv2, call))[0] == 0


@pytest.mark.parametrize("name", [n for n in CALLS if "ndistort" in n or "olar" in n])
def test_arrays_and_tensors_give_the_same_bits(name, monkeypatch):
    for seed in range(6):
        call = CALLS[name](np.random.default_rng(100 + seed))
        with monkeypatch.context() as patch:
            patch.setattr(door, "has_library", lambda: False)
            patch.setattr(plan, "_plans", {})
            wanted = answers(ours, call)
        assert differing(call, answers(ours, call), wanted)[0] == 0, seed


SETS = """
import hashlib, sys
import numpy as np
import warpkit.opencv as ours
from tests.support.face_calls import CALLS, answers
from warpkit.engine.cpu.native_library import LIBRARY
assert LIBRARY.isa == sys.argv[1]
for name, draw in CALLS.items():
    found = hashlib.sha256()
    for seed in range(40):
        try:
            parts = answers(ours, draw(np.random.default_rng(seed)))
        except ValueError:
            continue
        for part in parts:
            found.update(np.ascontiguousarray(part).tobytes())
    print(name, found.hexdigest())
"""


def test_every_instruction_set_gives_the_same_bits():
    """They are cv2's bits: without an fma instruction, SSE4 emulates it."""
    found = {isa: run(SETS, isa, WARPKIT_ISA=isa).stdout for isa in available()}
    assert len(found["sse4"].splitlines()) == len(CALLS)
    for isa, lines in found.items():
        assert lines == found["sse4"], isa


def test_cached_calls_read_new_numbers():
    """A cached call uses its own array, centre, borders and factors."""
    random = np.random.default_rng(0)
    for _ in range(3):
        image = random.integers(0, 256, (9, 12, 3)).astype(np.uint8)
        around = [int(n) for n in random.integers(0, 5, 4)]
        center = tuple(float(n) for n in random.uniform(0, 9, 2))
        calls = [
            FaceCall("copyMakeBorder", (image, *around, 0), {"value": (1, 2, 3)}),
            FaceCall("getRectSubPix", (image, (5, 4), center)),
            FaceCall("resize", (image, None), {"fx": float(random.choice([0.5, 2.0])), "fy": 0.5}),
        ]
        for call in calls:
            for _ in range(2):
                assert differing(call, answers(ours, call), answers(cv2, call))[0] == 0


def test_the_fast_paths_need_kernels(monkeypatch):
    monkeypatch.setattr(door, "has_library", lambda: False)
    assert not lens_maps.has_kernel(np.eye(3), None)
    assert not door.runs_kernels(torch.zeros(3, 1, 2), torch.eye(2))
