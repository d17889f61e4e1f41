"""OpenCV's pixels, bit for bit: recorded results of both versions, and the installed OpenCV."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import warpkit as wk
from tests.support.inputs import images, noise
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import (
    BORDERS,
    DTYPES,
    GOLDEN,
    INTERPOLATIONS,
    Case,
    call_cv2,
    call_warpkit,
    cases,
    corner,
    hangs,
    matrices,
    vector_case,
)
from warpkit import opencv
from warpkit.engine.arithmetic import opencv4_sums as table_sums
from warpkit.engine.arithmetic import opencv4_tables
from warpkit.engine.definitions.maps import inverse_map

VERSIONS = {"4.14.0": "opencv4", "5.0.0": "opencv5"}
ARITHMETICS = tuple(VERSIONS.values())
OPTIONS = [(a, i, b) for a in ARITHMETICS for i in INTERPOLATIONS for b in BORDERS]


@lru_cache
def golden(version: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"opencv-{version}.npz") as arrays:
        return dict(arrays)


def differing(got: np.ndarray, expected: np.ndarray) -> int:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    return int((got != expected).sum())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_results(version, dtype, monkeypatch):
    monkeypatch.setattr(table_sums, "OPENCV_VECTOR_FLOATS", 16)  # recorded with AVX-512
    checked, wrong = 0, {}
    for n, case in enumerate(cases()):
        if case.dtype != dtype or corner(case, version):
            continue
        got = call_warpkit(case, VERSIONS[version])
        checked += 1
        if count := differing(got, golden(version)[str(n)]):
            wrong[n] = (count, case)
    assert checked > 100
    assert not wrong


def test_recorded_results_without_avx512(monkeypatch):
    monkeypatch.setattr(table_sums, "OPENCV_VECTOR_FLOATS", 8)
    numbers = [n for n, case in enumerate(cases()) if vector_case(case)]
    recorded = golden("4.14.0")
    wide = [str(n) for n in numbers]
    narrow = [f"{n}-avx2" for n in numbers]
    for n, name in zip(numbers, narrow, strict=True):
        assert differing(call_warpkit(cases()[n], "opencv4"), recorded[name]) == 0, cases()[n]
    pairs = zip(wide, narrow, strict=True)
    assert sum(differing(recorded[a], recorded[b]) for a, b in pairs) > 50


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_results_on_cuda(version, monkeypatch):
    monkeypatch.setattr(table_sums, "OPENCV_VECTOR_FLOATS", 16)
    for n, case in enumerate(cases()):
        if not corner(case, version):
            got = call_warpkit(case, VERSIONS[version], device="cuda")
            assert differing(got, golden(version)[str(n)]) == 0, case


@pytest.mark.parametrize(
    ("arithmetic", "parts", "expected"),
    [
        ("opencv4", [0, 15, 16, 31], [1, 1, 2, 2]),  # 0.5 and above rounds up
        ("opencv5", [0, 15, 16, 31], [2, 2, 1, 1]),  # below 0.5 rounds up
    ],
)
def test_nearest_rounds_fixed_point_maps_as_each_version_does(arithmetic, parts, expected):
    """OpenCV 5.0.0 rounds the 1/32 fractions the wrong way; maps without fractions are exact."""
    row = np.arange(6, dtype=np.float32)[None]
    pixels = np.array([[[1, 0]] * 4], np.int16)
    fractions = np.array([parts], np.uint16) + 32 * 16 * (arithmetic == "opencv5")
    options = {"interpolation": opencv.INTER_NEAREST, "arithmetic": arithmetic}
    assert opencv.remap(row, pixels, fractions, **options).tolist() == [expected]
    assert opencv.remap(row, pixels, None, **options).tolist() == [[1] * 4]


def test_nearest_of_fixed_maps_differs_between_the_versions():
    fixed = [n for n, c in enumerate(cases()) if (c.maps, c.interpolation) == ("fixed", "nearest")]
    assert all(differing(golden("4.14.0")[str(n)], golden("5.0.0")[str(n)]) > 0 for n in fixed)
    assert fixed


def test_opencv5_truncates_float64_bicubic_near_the_border():
    """Results of cv2 5.0.0 for these calls: int32 near the border, float32 inside."""
    image = torch.full((1, 6, 6), 1.9, dtype=torch.float64)
    rule = {"interpolation": "bicubic", "arithmetic": "opencv5"}
    still = [[1.0, 0, 0], [0, 1, 0]]
    got = wk.warp_affine(image, still, border="replicate", **rule)[0]
    assert (got[0, 0], got[2, 2]) == (1.0, np.float32(1.9))
    for value, cut in ((-1.99999999999, -1.0), (3e9, -(2.0**31)), (16777217.7, 16777216.0)):
        got = wk.warp_affine(torch.full_like(image, value), still, border="replicate", **rule)
        assert got[0, 0, 0] == cut
    below = torch.full_like(image, 9.7)
    moved = [[1.0, 0, 4], [0, 1, 0]]
    options = {"border": "transparent", "background": below}
    got = wk.warp_affine(torch.zeros_like(image), moved, **options, **rule)[0]
    assert got[0].tolist() == [9.7, 9.0, 9.0, 9.0, 0.0, 0.0]


# ---------------------------------------------------------------- the installed OpenCV


@pytest.fixture(scope="module")
def cv2():
    module = installed_opencv()
    if not module.__version__.startswith(("4.14", "5.0")):
        pytest.skip(f"OpenCV {module.__version__} is neither 4.14 nor 5.0")
    module.setNumThreads(1)
    used = module.ipp.useIPP()
    module.ipp.setUseIPP(False)
    yield module
    module.ipp.setUseIPP(used)


@st.composite
def calls(draw) -> Case:
    side = st.integers(1, 70)
    size, out = draw(st.tuples(side, side)), draw(st.tuples(side, side))
    interpolation = draw(st.sampled_from(list(INTERPOLATIONS)))
    function = draw(st.sampled_from(("affine", "affine", "perspective", "remap")))
    dtype = draw(st.sampled_from(DTYPES))
    few = interpolation in ("bicubic", "lanczos4")
    values = st.integers(-300, 70000) if few and dtype == "float64" else st.floats(-300, 70000)
    case = Case(
        function=function,
        dtype=dtype,
        channels=draw(st.sampled_from((1, 1, 2, 3, 4) if few else (1, 1, 2, 3, 4, 5))),
        size=size,
        out=out,
        interpolation=interpolation,
        border=draw(st.sampled_from(list(BORDERS))),
        value=tuple(float(draw(values)) for _ in range(4)),
        seed=draw(st.integers(0, 2**20)),
    )
    if function == "remap":
        return replace(case, maps=draw(st.sampled_from(("planes", "pairs", "fixed"))))
    matrix = draw(affine_maps(size))
    if function == "perspective":
        # in steps, so that a matrix is either singular or far from it; others reach beyond 2^31
        tilt = [draw(st.integers(-40, 40)) / 1e4 for _ in range(2)]
        matrix = (*matrix, (*tilt, draw(st.sampled_from((1.0, 0.9)))))
    return replace(case, matrix=matrix, inverse=draw(st.booleans()))


@st.composite
def affine_maps(draw, size: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    if draw(st.booleans()):
        named = matrices(*size)
        return named[draw(st.sampled_from([name for name in named if name != "far"]))]
    scale, turn = draw(st.floats(0.2, 4)), draw(st.floats(-3.2, 3.2))
    a, b = scale * np.cos(turn), scale * np.sin(turn)
    shift = st.one_of(st.floats(-60, 60), st.integers(-30, 30).map(lambda n: n / 2))
    shear = draw(st.floats(-0.3, 0.3))
    assume(abs(a * a + b * (b + shear)) > 1e-3)
    return ((a, b + shear, draw(shift)), (-b, a, draw(shift)))


@settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(case=calls())
def test_installed_opencv(cv2, case):
    assume(not corner(case, cv2.__version__) and not hangs(case))
    arithmetic = "opencv4" if cv2.__version__[0] == "4" else "opencv5"
    if case.function == "perspective":
        assume(not near_horizon(case))
    assert differing(call_warpkit(case, arithmetic), call_cv2(cv2, case)) == 0


def near_horizon(case: Case) -> bool:
    """Whether positions are so far away that OpenCV 5.0.0 loops for seconds."""
    matrix = np.array(case.matrix)
    if not case.inverse:
        if abs(np.linalg.det(matrix)) < 1e-9:
            return False
        matrix = np.linalg.inv(matrix)
    corners = np.array([(x, y, 1) for x in (0, case.out[1]) for y in (0, case.out[0])])
    w = corners @ matrix[2]
    return bool(w.min() < 0.1 * abs(w).max())


def test_transparent_bicubic_of_opencv5_agrees_where_no_neighbour_is_missing():
    """OpenCV 5 defines bicubic with a transparent border only where all taps are inside."""
    compared = 0
    for n, case in enumerate(cases()):
        if case.function != "affine" or not (corner(case, "5.0.0") or "").startswith("bicubic"):
            continue
        inner = sees_the_image_alone(case)
        got, expected = call_warpkit(case, "opencv5"), golden("5.0.0")[str(n)]
        assert differing(got[inner], expected[inner]) == 0, case
        compared += int(inner.sum())
    assert compared > 500


@pytest.mark.parametrize("border", BORDERS)
def test_float64_bicubic_agrees_with_its_fractions(cv2, border):
    """The recorded cases hold whole numbers, which OpenCV 5.0.0 cannot truncate."""
    image, below = noise(30, 40, seed=1).mul(255), noise(30, 40, seed=2).mul(255)
    matrix = ((0.9, 0.1, 1.0), (-0.1, 0.95, 2.0))
    options = {"arithmetic": "opencv4" if cv2.__version__[0] == "4" else "opencv5"}
    options["border_value"] = 7.6
    if border == "transparent":
        options["background"] = below[None]
    got = wk.warp_affine(
        image[None],
        torch.tensor(matrix).double(),
        interpolation="bicubic",
        border=border,
        **options,
    )[0].numpy()
    expected = cv2.warpAffine(
        image.numpy(),
        torch.tensor(matrix).double().numpy(),
        (40, 30),
        dst=below.numpy().copy(),
        flags=cv2.INTER_CUBIC,
        borderMode=BORDERS[border],
        borderValue=7.6,
    )
    assert differing(got, expected) == 0


def sees_the_image_alone(case: Case) -> np.ndarray:
    """Where all taps of bicubic are inside the image, (h, w), for an affine case."""
    matrix = torch.tensor(case.matrix, dtype=torch.float64)
    matrix = matrix if case.inverse else inverse_map(matrix)
    x, y = torch.meshgrid(*map(torch.arange, case.out[::-1]), indexing="xy")
    points = matrix @ torch.stack([x, y, torch.ones_like(x)]).double().flatten(1)
    limit = torch.tensor([case.size[1] - 2.1, case.size[0] - 2.1])[:, None]
    return ((points > 1.1) & (points < limit)).all(0).reshape(case.out).numpy()


def test_affine_inverses_have_opencvs_bits(cv2):
    for matrix in noise(2000, 2, 3, seed=1).sub(0.5).mul(7):
        expected = cv2.invertAffineTransform(matrix.numpy())
        assert differing(inverse_map(matrix).numpy(), expected) == 0


def test_perspective_inverses_have_opencvs_bits(cv2):
    for matrix in noise(2000, 3, 3, seed=2).sub(0.5).mul(7):
        _, expected = cv2.invert(matrix.numpy())
        assert differing(inverse_map(matrix).numpy(), expected) == 0


# ---------------------------------------------------------------- warpkit's own promises


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_batches_equal_loops(arithmetic, dtype):
    for name, image in images(dtype).items():
        matrix = wk.rotation_matrix((3.0, 2.0), torch.tensor([33.0, -71.0]).double(), 1.1)
        options = {"arithmetic": arithmetic, "size": (6, 19), "border_value": 3.4}
        for interpolation in INTERPOLATIONS:
            options["interpolation"] = interpolation
            result = wk.warp_affine(image, matrix, **options)
            batch = torch.broadcast_shapes(image.shape[:-3], (2,))
            assert result.shape == (*batch, image.shape[-3], 6, 19), name
            many = image.expand(*batch, *image.shape[-3:]).flatten(0, -4)
            each = matrix.expand(*batch, 2, 3).flatten(0, -3)
            for got, one, m in zip(result.flatten(0, -4), many, each, strict=True):
                assert torch.equal(got, wk.warp_affine(one.contiguous(), m, **options)), name


@pytest.mark.parametrize(("arithmetic", "interpolation", "border"), OPTIONS)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 2.0**31, -1e300])
def test_nonfinite_and_huge_positions_show_the_border(arithmetic, interpolation, border, bad):
    image = noise(2, 5, 6, dtype=torch.uint8)
    background = noise(2, 4, 20, dtype=torch.uint8, seed=1)
    options = {"arithmetic": arithmetic, "interpolation": interpolation, "border": border}
    options["border_value"] = [7, 8.6]
    expected = torch.tensor([7, 9], dtype=torch.uint8)[:, None, None].expand(2, 4, 20)
    if border == "transparent":
        options["background"] = expected = background
    for k in range(6):
        matrix = torch.eye(3, dtype=torch.float64)[:2].clone()
        matrix.view(-1)[k] = bad
        got = wk.warp_affine(image, matrix, size=(4, 20), inverse=True, **options)
        # a finite factor leaves the pixels of row or column 0 in place
        kept = 0 if k in (2, 5) or not np.isfinite(bad) else 1
        assert torch.equal(got[:, kept:, kept:], expected[:, kept:, kept:]), k
    for k in range(9):
        matrix = torch.eye(3, dtype=torch.float64)
        matrix.view(-1)[k] = torch.nan
        got = wk.warp_perspective(image, matrix, size=(4, 20), inverse=True, **options)
        assert torch.equal(got, expected), k
    points = torch.ones(4, 20, 2, dtype=torch.float64)
    for axis in (0, 1):
        points[1, 2:, axis] = bad
    got = wk.remap(image, points, **options)
    assert torch.equal(got[:, 1, 2:], expected[:, 1, 2:])
    assert torch.equal(got[:, 2], image[:, 1, 1, None].expand(2, 20))


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_singular_matrix_reads_pixel_0(arithmetic):
    image = noise(3, 5, 6, dtype=torch.uint8)
    got = wk.warp_affine(image, [[1.0, 2, 3], [2, 4, 1]], arithmetic=arithmetic)
    assert torch.equal(got, image[:, :1, :1].expand_as(image))


def test_a_singular_perspective_reads_pixel_0_or_the_border():
    """w = 0: OpenCV 4 reads pixel (0, 0); OpenCV 5 gets 0 / 0, which shows the border."""
    image = noise(3, 5, 6, dtype=torch.uint8)
    options = {"border": "replicate", "border_value": 9}
    got = wk.warp_perspective(image, np.zeros((3, 3)), arithmetic="opencv4", **options)
    assert torch.equal(got, image[:, :1, :1].expand_as(image))
    got = wk.warp_perspective(image, np.zeros((3, 3)), arithmetic="opencv5", **options)
    assert torch.equal(got, torch.full_like(image, 9))


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_border_values_saturate_as_int32(arithmetic):
    """Rounded half to even and clamped; values beyond int32 become its lowest value."""
    expected = {2.5: (2, 2), 3.5: (4, 4), -7: (0, -7), 3e5: (255, 32767), 3e9: (0, -32768)}
    for value, wanted in expected.items():
        for dtype, want in zip((torch.uint8, torch.int16), wanted, strict=True):
            image = torch.ones(1, 2, 3, dtype=dtype)
            got = wk.warp_affine(
                image, [[1, 0, 9], [0, 1, 0]], border_value=value, arithmetic=arithmetic
            )
            assert got.unique().tolist() == [want]


def test_a_border_number_keeps_all_its_digits():
    image = torch.ones(1, 2, 3, dtype=torch.float64)
    for arithmetic in ("exact", *ARITHMETICS):
        got = wk.warp_affine(
            image,
            [[1, 0, 9], [0, 1, 0]],
            border_value=0.1,
            interpolation="nearest",
            arithmetic=arithmetic,
        )
        assert got.unique().tolist() == [0.1]


@pytest.mark.parametrize("function", ["warp_affine", "warp_perspective", "remap"])
def test_errors(function):
    second = torch.zeros(2, 2, 2) if function == "remap" else torch.eye(3)
    call = getattr(wk, function)
    image = torch.ones(1, 2, 2)
    text = f"{function}: `arithmetic` must be one of 'exact', 'opencv4', 'opencv5', got 'opencv'"
    with pytest.raises(ValueError, match=re.escape(text)):
        call(image, second, arithmetic="opencv")
    for dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        texts = (
            f"{function}: `backend` must be one that can do this, got 'auto':\n",
            f"\n  reference: OpenCV warps uint8, uint16, int16, float32, float64 and no {name}",
        )
        with pytest.raises(ValueError, match="(?s)" + ".*".join(map(re.escape, texts))):
            call(image.to(dtype), second, arithmetic="opencv5")
    text = (
        f"{function}: `backend` must be one that can do this, got 'grid_sample':\n"
        "  grid_sample: has no arithmetic 'opencv4'"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        call(image, second, arithmetic="opencv4", backend="grid_sample")


def test_tables_are_marked_as_constant_for_torch_compile():
    marked = vars(torch.compiler.assume_constant_result(lambda: None))
    assert marked
    assert vars(opencv4_tables.axis_table).items() >= marked.items()
    assert vars(opencv4_tables.integer_table).items() >= marked.items()
