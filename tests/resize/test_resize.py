"""`resize` compared with its definition in numpy, the warps, torch, and numbers by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import warpkit as wk
from tests.support import naive_resize
from tests.support.inputs import images, noise, seeded
from tests.support.tolerances import TOLERANCE
from warpkit.core.checks import LABELS
from warpkit.engine.definitions.resize import AREA_FILTERS, POINT_FILTERS

WAYS = [(name, False) for name in POINT_FILTERS] + [(name, True) for name in AREA_FILTERS]
BACKENDS = ("reference", "cpu")
SIZES = [(5, 6), (3, 2), (9, 14), (7, 3), (1, 1), (13, 5)]


def close(got, expected, name: str = "reference float64") -> None:
    torch.testing.assert_close(got, torch.as_tensor(expected), rtol=0, atol=TOLERANCE[name])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_every_size_and_layout_matches_the_definition(name, antialias, backend):
    for image in images().values():
        for size in SIZES:
            options = {"interpolation": name, "antialias": antialias, "backend": backend}
            got = wk.resize(image, size, **options)
            close(got, naive_resize.resize(image.numpy(), size, name, antialias))


@given(
    st.tuples(*[st.integers(1, 40)] * 4),
    st.sampled_from(WAYS),
    st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4, unique=True),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_boxes_anywhere_match_the_definition(sizes, way, corners):
    height, width, *size = sizes
    x1, x2 = (c * width for c in sorted(corners[:2]))
    y1, y2 = (c * height for c in sorted(corners[2:]))
    if x2 - x1 < 1e-3 or y2 - y1 < 1e-3:
        return
    image, box = noise(2, height, width), (x1, y1, x2, y2)
    name, antialias = way
    got = wk.resize(image, size, interpolation=name, antialias=antialias, box=box)
    wanted = naive_resize.resize(image.numpy(), tuple(size), name, antialias, box)
    if name in ("nearest", "box"):
        # where a fraction was rounded, a tie may go either way, in one row and one column
        wrong = ((got - torch.from_numpy(wanted)).abs() > TOLERANCE["resize box"]).any(0)
        rows, columns = wrong.double().mean(1) > 0.5, wrong.double().mean(0) > 0.5
        assert rows.sum() <= 1 or size[1] == 1
        assert columns.sum() <= 1 or size[0] == 1
        assert not wrong[~rows][:, ~columns].any()
    else:
        # a fractional edge of a box is rounded once more than in the definition
        close(got, wanted, "resize box")


@pytest.mark.parametrize("name", POINT_FILTERS)
@pytest.mark.parametrize("size", [(20, 30), (80, 17), (37, 20), (1, 1), (74, 106)])
def test_without_antialias_a_resize_equals_a_warp(name, size):
    image, (h, w) = noise(2, 3, 37, 53), size
    scale = torch.tensor([[w / 53, 0, (w / 53 - 1) / 2], [0, h / 37, (h / 37 - 1) / 2]])
    scale = scale.double()
    scale[0, 0], scale[1, 1] = w / 53, h / 37
    scale[0, 2], scale[1, 2] = (w / 53 - 1) / 2, (h / 37 - 1) / 2
    warped = wk.warp_affine(image, scale, size=size, interpolation=name, border="replicate")
    close(wk.resize(image, size, interpolation=name, antialias=False), warped, "resize warp")


@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resizes_match_torchs_interpolate(name, antialias):
    image = noise(2, 3, 37, 53)
    for size in ((20, 30), (80, 17), (37, 20)):
        wanted = F.interpolate(image, size, mode=name, antialias=antialias)
        close(wk.resize(image, size, interpolation=name, antialias=antialias), wanted)


def test_a_two_by_four_image_by_hand():
    image = torch.tensor([[[0.0, 1, 2, 3], [4, 5, 6, 7]]])
    assert wk.resize(image, (1, 2), interpolation="area").tolist() == [[[2.5, 4.5]]]
    assert wk.resize(image, (2, 2), interpolation="nearest").tolist() == [[[0, 2], [4, 6]]]
    # the triangle over columns -1 to 2 has weights 1/4, 3/4, 3/4, 1/4; column -1 is left out
    wanted = [(0 * 3 + 1 * 3 + 2) / 7, (1 + 2 * 3 + 3 * 3) / 7]
    got = wk.resize(image, (2, 2))[0, 0]
    torch.testing.assert_close(got, torch.tensor(wanted))


@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_an_unchanged_size_returns_the_image(name, antialias):
    image = torch.tensor([[[float("nan"), -0.0, 1e300], [float("inf"), 2.0, -0.0]]]).double()
    got = wk.resize(image, (2, 3), interpolation=name, antialias=antialias)
    assert torch.equal(got.view(torch.int64), image.view(torch.int64))
    assert got.data_ptr() != image.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8], ids=str)
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_a_constant_image_stays_constant(name, antialias, dtype):
    image = torch.full((3, 17, 23), 200, dtype=dtype)
    for size in ((5, 40), (40, 5), (16, 22), (1, 1)):
        got = wk.resize(image, size, interpolation=name, antialias=antialias)
        close(got, torch.full((3, *size), 200, dtype=dtype))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16])
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_integers_are_rounded_once_and_saturated(name, antialias, dtype, backend):
    image = noise(2, 3, 11, 13, dtype=dtype)
    limits = torch.iinfo(dtype)
    for size in ((5, 7), (22, 26), (4, 30)):
        exact = naive_resize.resize(image.double().numpy(), size, name, antialias)
        options = {"interpolation": name, "antialias": antialias, "backend": backend}
        got = wk.resize(image, size, **options)
        assert got.dtype == dtype
        wanted = np.clip(np.rint(exact), limits.min, limits.max)
        near_a_tie = np.abs(exact - np.floor(exact) - 0.5) < 1e-7
        assert ((got.double().numpy() == wanted) | near_a_tie).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_ties_go_to_the_even_level(backend):
    image = torch.tensor([[[0, 1, 1, 2, 254, 255]]], dtype=torch.uint8)
    got = wk.resize(image, (1, 3), interpolation="area", backend=backend)
    assert got.tolist() == [[[0, 2, 254]]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_types_and_float32(dtype, backend):
    image = noise(2, 3, 11, 13)
    for name, antialias in WAYS:
        options = {"interpolation": name, "antialias": antialias, "backend": backend}
        got = wk.resize(image.to(dtype), (5, 20), **options)
        assert got.dtype == dtype
        wanted = wk.resize(image.to(dtype).double(), (5, 20), **options)
        names = {torch.float32: "reference float32"}
        # lanczos and bicubic overshoot up to 1.5
        tolerance = TOLERANCE[names.get(dtype, str(dtype).removeprefix("torch."))]
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=1.5 * tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", LABELS)
def test_nearest_copies_labels_bit_by_bit(dtype, backend):
    low, high = -(2**63), 2**63 - 1
    image = torch.randint(low, high, (2, 7, 9), generator=seeded(3))
    image = image > 0 if dtype == torch.bool else image.to(dtype)
    got = wk.resize(image, (3, 20), interpolation="nearest", backend=backend)
    index = torch.arange(63).reshape(1, 7, 9).double()
    index = wk.resize(index, (3, 20), interpolation="nearest", backend="reference").long()
    assert got.dtype == dtype
    for channel, moved in zip(image, got, strict=True):
        pixels = channel.flatten().tolist()
        assert moved.flatten().tolist() == [pixels[k] for k in index.flatten().tolist()]
    with pytest.raises(ValueError, match="`interpolation` must be 'nearest' for"):
        wk.resize(image, (3, 20), backend=backend)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
@pytest.mark.parametrize("backend", BACKENDS)
def test_channels_last_is_kept(backend, dtype):
    image = noise(2, 3, 12, 14, dtype=dtype)
    last = image.to(memory_format=torch.channels_last)
    for size in ((5, 6), (20, 30)):
        got = wk.resize(last, size, backend=backend)
        assert got.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(got, wk.resize(image, size, backend=backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_affects_only_pixels_that_read_it(backend):
    image = torch.zeros(1, 1, 12, dtype=torch.float64)
    image[0, 0, 6] = torch.nan
    for size, wanted in ((3, [0, 1, 0]), (4, [0, 0, 1, 0])):
        got = wk.resize(image, (1, size), interpolation="area", backend=backend)
        assert got.isnan().flatten().int().tolist() == wanted
    image[0, 0, 6] = torch.inf
    got = wk.resize(image, (1, 3), interpolation="bilinear", backend=backend)
    assert not got.isnan().any()
    assert got.isinf().flatten().int().tolist() == [0, 1, 1]


def test_empty_batches_and_many_dimensions():
    assert wk.resize(torch.zeros(0, 3, 5, 6), (2, 2)).shape == (0, 3, 2, 2)
    image = noise(2, 1, 3, 2, 5, 6)
    got = wk.resize(image, (3, 9))
    assert got.shape == (2, 1, 3, 2, 3, 9)
    assert torch.equal(got[1, 0, 2], wk.resize(image[1, 0, 2], (3, 9)))


def test_an_integer_box_without_antialias_equals_the_slice_inside():
    image = noise(1, 20, 30)
    got = wk.resize(image, (14, 18), interpolation="area", box=(3, 2, 21, 16))
    close(got, image[:, 2:16, 3:21])
    whole = wk.resize(image, (7, 9), interpolation="area", box=(3, 2, 21, 16))
    close(whole, wk.resize(image[:, 2:16, 3:21], (7, 9), interpolation="area"))


IMAGE = torch.zeros(1, 3, 8, 10)
WRONG = [
    ({"interpolation": "cubic"}, "`interpolation` must be one of 'nearest', 'bilinear', 'bicubic', 'lanczos4', 'box', 'hamming', 'lanczos', 'area', 'spline2', 'spline3', 'spline4', 'spline5' with arithmetic='exact', got 'cubic' (write 'bicubic')"),
    ({"interpolation": "hamming", "arithmetic": "opencv5"}, "`interpolation` must be one of 'nearest', 'nearest_exact', 'bilinear', 'bilinear_exact', 'bicubic', 'area', 'lanczos4' with arithmetic='opencv5', got 'hamming'"),
    ({"interpolation": "area", "arithmetic": "pillow"}, "`interpolation` must be one of 'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos' with arithmetic='pillow', got 'area'"),
    ({"interpolation": "nearest", "antialias": True}, "`antialias` must be None or False with interpolation='nearest', which has no antialias: 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos', 'area' have, got True"),
    ({"antialias": True, "arithmetic": "opencv4"}, "`antialias` must be None or False with arithmetic='opencv4': cv2.resize has no antialias (its 'area' takes means by itself), got True"),
    ({"interpolation": "area", "antialias": False}, "`antialias` must be None or True with interpolation='area' and arithmetic='exact', which has no other way, got False"),
    ({"antialias": False, "arithmetic": "pillow"}, "`antialias` must be None or True with interpolation='bilinear' and arithmetic='pillow', which has no other way, got False"),
    ({"antialias": 1}, "`antialias` must be True or False, got 1"),
    ({"arithmetic": "cv2"}, "`arithmetic` must be one of 'exact', 'opencv4', 'opencv5', 'opencv4_ipp', 'opencv5_ipp', 'pillow', 'torchvision', 'scipy', 'skimage', got 'cv2'"),
    ({"size": (0, 3)}, "`size` must be (H, W), two integers of at least 1, got (0, 3)"),
    ({"size": (3, -1)}, "`size` must be (H, W), two integers of at least 1, got (3, -1)"),
    ({"size": [5]}, "`size` must be (H, W), two integers of at least 1, got [5]"),
    ({"box": (0, 0, 11, 8)}, "`box` must be (x1, y1, x2, y2) with 0 <= x1 < x2 <= 10 and 0 <= y1 < y2 <= 8, got (0, 0, 11, 8)"),
    ({"box": (3, 0, 3, 8)}, "`box` must be (x1, y1, x2, y2) with 0 <= x1 < x2 <= 10 and 0 <= y1 < y2 <= 8, got (3, 0, 3, 8)"),
    ({"box": (-0.1, 0, 3, 8)}, "`box` must be"),
    ({"box": torch.tensor([3.0, 0, 3, 8])}, "`box` must be (x1, y1, x2, y2) with 0 <= x1 < x2 <= 10 and 0 <= y1 < y2 <= 8, got [3.0, 0.0, 3.0, 8.0]"),
    ({"box": (float("nan"), 0, 3, 8)}, "`box` must be"),
    ({"box": (0, 0, 3)}, "`box` must be (x1, y1, x2, y2), of shape (4,), got (3,)"),
    ({"box": (0, 0, 3, 3), "arithmetic": "opencv5"}, "`box` must be None with arithmetic='opencv5': cv2.resize has none (image[..., y1:y2, x1:x2] is a slice), got (0, 0, 3, 3)"),
    ({"image": IMAGE.half(), "arithmetic": "opencv5"}, "`image` must be of one of the types uint8, uint16, int16, float32, float64 with arithmetic='opencv5': cv2.resize has no other, got torch.float16"),
    ({"image": IMAGE.double(), "arithmetic": "pillow"}, "`image` must be of one of the types uint8, uint16, float32 with arithmetic='pillow': Pillow has no other, got torch.float64"),
    ({"backend": "grid_sample"}, "`backend` must be one of 'auto', 'reference', 'cpu', got 'grid_sample'"),
    ({"image": IMAGE[0, 0]}, "`image` must be of shape (..., C, H, W), got (8, 10)"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_errors(options, text):
    call = {"image": IMAGE, "size": (4, 5), **options}
    with pytest.raises((ValueError, TypeError), match=re.escape(f"resize: {text}")):
        wk.resize(call.pop("image"), call.pop("size"), **call)


def test_other_libraries_names_of_arguments_get_a_hint():
    with pytest.raises(TypeError, match=r"resize: `dsize` must be called `size`, \(H, W\)"):
        wk.resize(IMAGE, dsize=(4, 5))  # pyright: ignore


def test_tables_are_cached_up_to_a_limit():
    from warpkit.engine.definitions.resize import KEPT_TABLES, _kept_taps

    _kept_taps.cache_clear()
    for _ in range(3):
        wk.resize(IMAGE, (4, 5), backend="reference")
    assert _kept_taps.cache_info().misses == 2
    assert _kept_taps.cache_info().hits == 4
    assert _kept_taps.cache_info().maxsize == KEPT_TABLES


def test_tables_made_in_inference_mode_work_with_gradients():
    from warpkit.engine.definitions.resize import _kept_taps

    _kept_taps.cache_clear()
    with torch.inference_mode():
        wk.resize(IMAGE, (4, 5), backend="reference")
    image = IMAGE.clone().requires_grad_()
    wk.resize(image, (4, 5), backend="reference").sum().backward()
    assert image.grad is not None
