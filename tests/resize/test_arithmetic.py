"""The pixels of cv2.resize and PIL.Image.resize: recorded, and of the installed libraries."""

from __future__ import annotations

import json
from functools import lru_cache

import cv2
import numpy as np
import PIL
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_opencv import compares_with_opencv
from tests.support.opencv_cases import GOLDEN
from tests.support.resize_cases import (
    FLAGS,
    MODES,
    Call,
    avx2_calls,
    call_cv2,
    call_pillow,
    call_warpkit,
    differing,
    fits,
    image,
    random_call,
    side,
)
from warpkit.engine.arithmetic import (
    guarantees,
    opencv_ipp_resize,
    opencv_resize,
    pillow,
    pillow_tables,
    resize_tables,
)
from warpkit.engine.binding import plan
from warpkit.engine.cpu.resize import axes, opencv_calls, prepared
from warpkit.validation import resizes

DTYPES = ("uint8", "uint16", "int16", "float32", "float64")
EXACT_DTYPES = (*DTYPES, "int8", "int32")
INSTALLED = guarantees.installed_arithmetic()
PILLOW = tuple(int(part) for part in PIL.__version__.split(".")[:2])
A_ROW_OF_IPPS = resizes.ResizeSetting("opencv_ipp", "bicubic", "uint8", 3)
IPP_IS_KNOWN = resizes.promised(A_ROW_OF_IPPS, cv2, INSTALLED).where == "everywhere"
"""Not on processors with SSE alone, nor where OpenCV is told to pass over its registers; other
versions of OpenCV bring other versions of IPP, whose 16-bit numbers differ."""


@pytest.fixture(autouse=True)
def _no_plans():
    """Plans are kept by the arguments; some tests change a constant behind them."""
    plan._plans.clear()
    yield
    plan._plans.clear()


@lru_cache
def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"resize-{name}.npz") as arrays:
        return dict(arrays)


def is_promised(
    call: Call, arithmetic: str, result: np.ndarray, processor: str | None = None
) -> bool:
    found = guarantees.guaranteed_resize(
        arithmetic,
        interpolation=call.interpolation,
        channels=call.image.shape[2],
        dtype=call.image.dtype.name,
        fits=fits(call, result),
        processor=processor,
    )
    return found.where == "everywhere"


@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp"])
def test_recorded_results_of_opencv(arithmetic, monkeypatch):
    monkeypatch.setattr(opencv_ipp_resize, "AVX512", True)  # recorded with AVX-512
    arrays, checked, left_out, wrong = golden("opencv"), 0, 0, {}
    for case in json.loads(str(arrays["cases"])):
        name = case["id"]
        wanted = arrays[f"{name}.5.0"]
        if arithmetic.startswith("opencv4"):
            wanted = arrays.get(f"{name}.4.14", wanted)
        if arithmetic.endswith("_ipp"):
            wanted = arrays.get(f"{name}.5.0.ipp", wanted)
        fy, fx = case["factors"] or (0.0, 0.0)
        size = wanted.shape[:2]
        dsize = None if case["factors"] else size[::-1]
        call = Call(arrays[f"{name}.input"], case["interpolation"], dsize, fx, fy)
        if call.image.dtype in (np.int8, np.int32) and call.interpolation in ("bicubic", "area"):
            continue  # labels of unchanged size, which these arithmetics do not accept
        if not is_promised(call, arithmetic, wanted, "x86_64"):
            left_out += 1
            continue
        checked += 1
        if count := differing(call_warpkit(call, size, arithmetic), wanted):
            wrong[name] = count, call.interpolation, call.image.dtype, call.image.shape
    assert checked > 600
    assert left_out == 0 or arithmetic.endswith("_ipp")
    assert not wrong


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_recorded_results_of_ipp_with_avx2(backend, monkeypatch):
    """Each of them would be different with AVX-512."""
    arrays = golden("ipp-avx2")
    for wide in (False, True):
        monkeypatch.setattr(opencv_ipp_resize, "AVX512", wide)
        plan._plans.clear()
        for n, call in enumerate(avx2_calls()):
            wanted = arrays[str(n)]
            got = call_warpkit(call, wanted.shape[:2], "opencv5_ipp", backend)
            assert (differing(got, wanted) > 0) == wide, call[1:]
    assert len(arrays) == len(avx2_calls()) > 20


@compares_with_opencv
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("interpolation", FLAGS)
@pytest.mark.parametrize("ipp", [False, True])
def test_the_installed_opencvs_pixels(interpolation, ipp, channels):
    """No value differs where this is guaranteed; elsewhere values are close."""
    if ipp and not IPP_IS_KNOWN:
        pytest.skip(f"nothing is promised of {cv2.ipp.getIppVersion()}")
    cv2.ipp.setUseIPP(ipp)
    arithmetic = INSTALLED + "_ipp" * ipp
    moves = interpolation in ("bilinear_exact", "nearest", "nearest_exact")
    random = np.random.default_rng([FLAGS[interpolation], ipp, channels])
    values = 0
    for dtype in EXACT_DTYPES if moves else DTYPES:
        for _ in range(6):
            call = random_call(random, interpolation, dtype, channels)
            wanted = call_cv2(cv2, call)
            if wanted is None:  # OpenCV rejects these channels or types
                continue
            got = call_warpkit(call, wanted.shape[:2], arithmetic)
            values += got.size
            if is_promised(call, arithmetic, wanted):
                assert differing(got, wanted) == 0, (dtype, call.image.shape, call[1:])
            else:
                largest = max(1.0, float(np.abs(call.image.astype(float)).max()))
                allowed = 1 if got.dtype.kind in "iu" else 1e-6 * largest
                assert np.abs(got.astype(float) - wanted).max() <= allowed
    assert values > 10_000


@compares_with_opencv
def test_the_installed_opencvs_pixels_of_larger_images():
    """Rows of several vector registers and blocks, up to 300 pixels a side."""
    random = np.random.default_rng(4)
    for ipp in (False, True) if IPP_IS_KNOWN else (False,):
        cv2.ipp.setUseIPP(ipp)
        for interpolation in ("bilinear", "bicubic", "lanczos4", "area"):
            for dtype, channels in (("uint8", 3), ("float32", 1), ("uint16", 4), ("float32", 3)):
                shape = (*(int(n) for n in random.integers(200, 301, 2)), channels)
                for dsize in ((224, 224), (640, 97), (31, 260)):
                    call = Call(image(random, dtype, shape), interpolation, dsize)
                    wanted = call_cv2(cv2, call)
                    assert wanted is not None, (interpolation, dtype, channels, dsize)
                    got = call_warpkit(call, dsize[::-1], INSTALLED + "_ipp" * ipp)
                    assert differing(got, wanted) == 0, (ipp, call.image.shape, call[1:])


def test_recorded_results_of_pillow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pillow, "CHOOSES_ORDER", True)  # recorded with Pillow 13
    arrays = golden("pillow")
    cases = json.loads(str(arrays["cases"]))
    for case in cases:
        given, wanted = arrays[f"{case['id']}.input"], arrays[case["id"]]
        planes = torch.from_numpy(given).movedim(-1, 0)
        options = {"interpolation": case["interpolation"], "arithmetic": "pillow"}
        got = wk.resize(planes, wanted.shape[:2], **options).movedim(0, -1).numpy()
        assert differing(got, wanted) == 0, case
    assert len(cases) > 150


def test_before_pillow_13_the_pass_along_x_comes_first(monkeypatch: pytest.MonkeyPatch):
    """The two passes then equal two resizes, each of which changes one side."""
    image = torch.randint(256, (3, 40, 50), dtype=torch.uint8)
    options = {"interpolation": "bicubic", "arithmetic": "pillow"}
    across = wk.resize(wk.resize(image, (40, 57), **options), (33, 57), **options)
    down = wk.resize(wk.resize(image, (33, 50), **options), (33, 57), **options)
    assert not torch.equal(across, down)
    for chooses, wanted in ((False, across), (True, down)):
        monkeypatch.setattr(pillow, "CHOOSES_ORDER", chooses)
        plan._plans.clear()
        for backend in ("cpu", "reference"):
            assert torch.equal(wk.resize(image, (33, 57), backend=backend, **options), wanted)


@pytest.mark.parametrize("name", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
@pytest.mark.parametrize("mode", MODES)
def test_the_installed_pillows_pixels(mode, name):
    random = np.random.default_rng([len(name), len(mode), ord(mode[0])])
    dtype, channels = MODES[mode]
    for n in range(30):
        height, width, *size = (side(random, 150) for _ in range(4))
        size = [
            (height, width, size[0], size[1])[k] for k in ((2, 1), (0, 3), (2, 3))[min(n % 9, 2)]
        ]
        given, box = image(random, dtype, (height, width, channels)), None
        if n % 2:
            (x1, x2), (y1, y2) = np.sort(random.random((2, 2)) * [[width], [height]])
            box = tuple(map(float, (x1, y1, x2, y2)))
            if n % 4 == 1:
                box = (int(x1), int(y1), min(int(x2) + 1, width), min(int(y2) + 1, height))
            if n % 8 == 3:
                box = (0, 0, width, height)
        if mode == "I;16" and PILLOW < (12, 3):  # they kept the low byte of values above 65535
            given = given // 3 + given.dtype.type(20_000)
        try:
            wanted = call_pillow(given, mode, size, name, box)
        except ValueError:
            assert (mode, PILLOW < (11,)) == ("I;16", True), n
            pytest.skip("this Pillow resizes no I;16")
        planes = torch.from_numpy(given).movedim(-1, 0)
        got = wk.resize(planes, size, interpolation=name, arithmetic="pillow", box=box)
        got = got.movedim(0, -1).numpy()
        assert differing(got, wanted) == 0, (given.shape, size, box)


IPP_MUTATIONS = [
    (opencv_ipp_resize, "AVX512", not opencv_ipp_resize.AVX512, "bilinear", "float32", "ipp"),
    (opencv_ipp_resize, "CHANNELS", (), "bicubic", "uint8", "ipp"),
]
if opencv_ipp_resize.AVX512:
    IPP_MUTATIONS.append((opencv_ipp_resize, "BLOCK", 8, "bilinear", "float32", "ipp"))
MUTATIONS = [
    *(IPP_MUTATIONS if IPP_IS_KNOWN else ()),
    (opencv_resize, "UINT8_ONE", 1 << 12, "bilinear", "uint8", None),
    (opencv_resize, "VECTORS", {("bicubic", torch.uint8): 1 << 20}, "bicubic", "uint8", None),
    (opencv_resize, "VECTORS", {}, "bicubic", "float32", None),
    (opencv_resize, "EPSILON", 1e-1, "area", "uint8", None),
    (resize_tables, "SLIVER", 2e-2, "area", "float32", None),
    (pillow, "BITS", 12, "bicubic", "uint8", "pillow"),
    (pillow_tables, "FLOAT32_TERMS", (0.54, 0.46), "hamming", "float32", "pillow"),
]


@compares_with_opencv
@pytest.mark.parametrize(("module", "constant", "value", "name", "dtype", "kind"), MUTATIONS)
def test_another_constant_gives_other_pixels(
    module, constant, value, name, dtype, kind, monkeypatch
):
    """So the comparisons above would detect it."""
    cv2.ipp.setUseIPP(kind == "ipp")
    random = np.random.default_rng(3)
    calls = [
        Call(image(random, dtype, (97, 131, channels)), name, size)
        for channels in (3, 4)
        for size in ((43, 32), (181, 155), (50, 30), (2751, 9))
    ]

    def total() -> int:
        plan._plans.clear()
        resize_tables.table.cache_clear()
        resize_tables._kept.cache_clear()
        for kept in (
            axes.opencv_axis,
            axes.pillow_axis,
            axes.table_axis,
            opencv_calls.opencv_call,
            prepared.pillow_call,
        ):
            kept.cache_clear()
        count = 0
        for call in calls:
            size = call.dsize[::-1]  # pyright: ignore
            if kind == "pillow":
                given = call.image[..., :1] if dtype == "float32" else call.image
                mode = {1: "F", 3: "RGB", 4: "CMYK"}[given.shape[2]]
                wanted = call_pillow(given, mode, size, name, None)
                planes = torch.from_numpy(given.copy()).movedim(-1, 0)
                options = {"interpolation": name, "arithmetic": "pillow"}
                got = wk.resize(planes, size, **options).movedim(0, -1).numpy()
            else:
                wanted = call_cv2(cv2, call)
                got = call_warpkit(call, size, INSTALLED + "_ipp" * (kind == "ipp"))
            count += differing(got, wanted)
        return count

    assert total() == 0
    monkeypatch.setattr(module, constant, value)
    assert total() > 0
    monkeypatch.undo()
    assert total() == 0


def test_versions_differ_only_in_nearest_exact():
    given = noise(3, 38, 52, dtype=torch.uint8)
    for name in FLAGS:
        four, five = (
            wk.resize(given, (23, 47), interpolation=name, arithmetic=arithmetic)
            for arithmetic in ("opencv4", "opencv5")
        )
        assert torch.equal(four, five) == (name != "nearest_exact"), name


def test_batches_equal_single_images():
    given = noise(2, 2, 3, 13, 17, dtype=torch.uint8)
    for arithmetic in ("opencv5", "opencv5_ipp", "pillow"):
        options = {"interpolation": "bicubic", "arithmetic": arithmetic}
        got = wk.resize(given, (9, 23), **options)
        assert torch.equal(got[1, 0], wk.resize(given[1, 0], (9, 23), **options))


@compares_with_opencv
@pytest.mark.parametrize("dsize", [(9, 7), (23, 19)], ids=["smaller", "larger"])
@pytest.mark.parametrize("name", ["bilinear", "bicubic", "lanczos4", "area"])
def test_nan_and_infinity_spread_as_in_opencv(name, dsize):
    cv2.ipp.setUseIPP(False)
    given = np.random.default_rng(0).random((13, 17, 3)).astype(np.float32)
    given[5, 6, 1], given[2, 9] = np.nan, np.inf
    call = Call(given, name, dsize)
    wanted = call_cv2(cv2, call)
    assert wanted is not None
    assert differing(call_warpkit(call, dsize[::-1], INSTALLED), wanted) == 0
