"""Splines in `resize` and `resize_axes`, and SciPy's and scikit-image's numbers: against both, and
against a linear system in numpy."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support import naive_splines
from tests.support.inputs import images, noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

BACKENDS = ("reference", "cpu")
NAMES = ("nearest", "bilinear", "spline2", "spline3", "spline4", "spline5")
SPLINES = NAMES[2:]
SCIPY = {"reflect_101": "mirror", "reflect": "reflect", "wrap": "grid-wrap", "replicate": "nearest"}
SKIMAGE = {"reflect_101": "reflect", "reflect": "symmetric", "wrap": "wrap", "replicate": "edge"}
SIZES = [
    ((1, 2), (3, 5)),
    ((3, 2), (1, 7)),
    ((5, 8), (8, 3)),
    ((21, 30), (40, 22)),
    ((64, 47), (13, 61)),
    ((201, 20), (7, 33)),
]
TYPES = (torch.float32, torch.float64, torch.uint8, torch.int16, torch.uint16)


def zoomed(array: np.ndarray, size: tuple[int, ...], order: int, mode: str, aligned: str):
    """scipy.ndimage.zoom to a size, or None where its rounding gives another one."""
    ndimage = pytest.importorskip("scipy.ndimage")
    factors = [m / n for m, n in zip(size, array.shape, strict=True)]
    found = ndimage.zoom(array, factors, order=order, mode=mode, grid_mode=aligned == "centers")
    return found if found.shape == tuple(size) else None


def compare(got: torch.Tensor, wanted: np.ndarray, image: torch.Tensor) -> None:
    """Within the promise: parts of the image's range, or a tie of integers."""
    assert got.dtype == image.dtype
    apart = np.abs(got.double().numpy() - wanted)
    if not image.is_floating_point():
        assert apart.max() <= 1
        assert (apart > 0).mean() <= 0.1 or got.numel() < 64
        return
    name = "zoom float64" if image.dtype == torch.float64 else "zoom float32"
    span = float(image.max() - image.min()) or 1.0
    assert apart.max() / span <= TOLERANCE[name]


@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("aligned", ["corners", "centers"])
@pytest.mark.parametrize(("shape", "size"), SIZES, ids=str)
def test_scipy_itself(shape, size, aligned, border):
    for (order, name), dtype in product(enumerate(NAMES), TYPES):
        if border == "reflect" and order > 1 and min(shape) < 20:
            continue  # SciPy's filter misses the pixels there before 1.18
        image = noise(*shape, dtype=dtype)
        wanted = zoomed(image.numpy(), size, order, SCIPY[border], aligned)
        if wanted is None:
            continue
        options = {"interpolation": name, "arithmetic": "scipy"}
        options |= {"border": border, "aligned": aligned}
        for backend in BACKENDS:
            got = wk.resize(image[None], size, backend=backend, **options)[0]
            compare(got, wanted, image)
            if order == 0:
                np.testing.assert_array_equal(got.numpy(), wanted)
        compare(wk.resize_axes(image, size, **options), wanted, image)


def test_scipys_integers_round_half_away_from_zero():
    image = torch.tensor([[[-3, -2, 1, 2, 5, 8]]], dtype=torch.int16)
    for backend in BACKENDS:
        got = wk.resize(image, (1, 3), arithmetic="scipy", aligned="centers", backend=backend)
        assert got.tolist() == [[[-3, 2, 7]]]
        even = wk.resize(image, (1, 3), arithmetic="skimage", antialias=False, backend=backend)
        assert even.tolist() == [[[-2, 2, 6]]]
    white = torch.tensor([[[0, 255, 255, 0, 255, 0]]], dtype=torch.uint8)
    options = {"interpolation": "spline5", "arithmetic": "scipy"}
    results = [wk.resize(white, (1, 61), backend=b, **options) for b in BACKENDS]
    assert torch.equal(*results)
    assert {0, 255} <= set(results[0].flatten().tolist())  # it overshoots, and saturates


def test_scipys_default_mode_is_reflect_101_except_for_the_last_line_it_loses():
    ndimage = pytest.importorskip("scipy.ndimage")
    image = noise(40, 30).numpy()
    for size in ((31, 30), (57, 19), (80, 61)):
        wanted = ndimage.zoom(image, (size[0] / 40, size[1] / 30), order=3)
        options = {"interpolation": "spline3", "arithmetic": "scipy"}
        got = wk.resize_axes(torch.from_numpy(image), size, **options).numpy()
        lost = [np.all(wanted == 0, axis=axis) for axis in (1, 0)]
        assert all(line[:-1].sum() == 0 for line in lost)
        kept = np.ix_(~lost[0], ~lost[1])
        np.testing.assert_allclose(got[kept], wanted[kept], atol=TOLERANCE["zoom float64"])


def smoothed_zoom(image, size, order: int, mode: str, antialias) -> np.ndarray:
    """The calls of scipy in skimage.transform.resize, preserve_range=True."""
    ndimage = pytest.importorskip("scipy.ndimage")
    x = image.astype(np.float64)
    factors = np.divide(x.shape, size)
    if antialias is not False and order > 0 and (factors > 1).any():
        x = ndimage.gaussian_filter(x, np.maximum(0, (factors - 1) / 2), mode=mode)
    found = ndimage.zoom(x, 1 / factors, order=order, mode=mode, grid_mode=True)
    return np.clip(found, np.nanmin(image), np.nanmax(image))


@pytest.mark.parametrize("border", SKIMAGE)
@pytest.mark.parametrize("antialias", [None, True, False])
@pytest.mark.parametrize(("shape", "size"), SIZES, ids=str)
def test_scikit_images_resize(shape, size, antialias, border):
    for (order, name), dtype in product(enumerate(NAMES), TYPES):
        if (border == "reflect" and order > 1 and min(shape) < 20) or (order == 0 and antialias):
            continue
        image = noise(*shape, dtype=dtype)
        wanted = smoothed_zoom(image.numpy(), size, order, SCIPY[border], antialias)
        options = {"interpolation": name, "arithmetic": "skimage"}
        options |= {"border": border, "antialias": antialias}
        if not dtype.is_floating_point:
            wanted = np.rint(wanted)
        for backend in BACKENDS:
            got = wk.resize(image[None], size, backend=backend, **options)[0]
            compare(got, wanted, image)
        compare(wk.resize_axes(image, size, **options), wanted, image)


@pytest.mark.parametrize("border", SKIMAGE)
def test_scikit_image_itself(border):
    transform = pytest.importorskip("skimage.transform")
    image = noise(40, 31).numpy()
    for (order, name), size in product(enumerate(NAMES), [(13, 50), (20, 20)]):
        how = {"preserve_range": True, "anti_aliasing": order > 0}
        wanted = transform.resize(image, size, order=order, mode=SKIMAGE[border], **how)
        options = {"interpolation": name, "arithmetic": "skimage", "border": border}
        compare(wk.resize_axes(torch.from_numpy(image), size, **options), wanted, noise(40, 31))


def test_each_image_is_clamped_to_its_own_range():
    image = torch.stack((noise(2, 9, 8), 5 + 0.1 * noise(2, 9, 8, seed=1)))
    options = {"interpolation": "spline5", "arithmetic": "skimage", "antialias": False}
    got = wk.resize(image, (20, 30), **options)
    for one, alone in zip(got, image, strict=True):
        assert one.amin() == alone.amin()  # it overshoots in either direction
        assert one.amax() == alone.amax()
        torch.testing.assert_close(one, wk.resize(alone, (20, 30), **options), rtol=0, atol=0)
    planes = wk.resize_axes(image, (20, 30), **options)  # over `axes`: each channel by itself
    assert torch.equal(planes.amax((-2, -1)), image.amax((-2, -1)))
    image[0, 0, 3, 3] = torch.nan  # left out of the range
    with_nan = wk.resize(image, (20, 30), **options)
    assert with_nan[0, 0].isnan().any()
    assert torch.equal(with_nan[0, 1], got[0, 1].clamp(with_nan[0, 1].min(), None))
    assert torch.equal(with_nan[1], got[1])


@pytest.mark.parametrize("name", SPLINES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_exact_splines_match_a_linear_system(name, backend):
    order = NAMES.index(name)
    for image in images().values():
        for size in ((5, 6), (3, 2), (9, 14), (1, 1)):
            got = wk.resize(image, size, interpolation=name, backend=backend)
            wanted = image.numpy()
            for axis in (-2, -1):
                places = naive_splines.places(image.shape[axis], size[axis], "centers")
                table = naive_splines.samples(places, image.shape[axis], order, "replicate")
                wanted = np.moveaxis(np.moveaxis(wanted, axis, -1) @ table.T, -1, axis)
                if image.shape[axis] == size[axis]:
                    np.testing.assert_allclose(table, np.eye(size[axis]), atol=1e-12)
            atol = TOLERANCE["reference float64"]
            torch.testing.assert_close(got, torch.from_numpy(wanted), rtol=0, atol=atol)


@pytest.mark.parametrize("border", ["reflect", "reflect_101", "wrap", "replicate"])
@pytest.mark.parametrize("aligned", ["corners", "centers"])
def test_short_axes_match_a_linear_system_where_scipy_errs(aligned, border):
    for length, size, (order, name) in product((1, 2, 3, 5, 12), (1, 2, 7), enumerate(NAMES)):
        if order == 0:
            continue
        row, places = noise(length), naive_splines.places(length, size, aligned)
        wanted = naive_splines.samples(places, length, order, border) @ row.numpy()
        options = {"interpolation": name, "arithmetic": "scipy"}
        got = wk.resize_axes(row, [size], border=border, aligned=aligned, **options)
        np.testing.assert_allclose(got, wanted, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize("name", SPLINES)
def test_splines_pass_through_the_pixels_and_reproduce_polynomials(name):
    order, row = NAMES.index(name), noise(9)
    options = {"interpolation": name, "arithmetic": "scipy"}
    got = wk.resize_axes(row, [33], **options)
    np.testing.assert_allclose(got[::4], row, atol=TOLERANCE["reference float64"])
    x = torch.linspace(-1, 1, 201, dtype=torch.float64)
    fine = wk.resize_axes(x**order, [801], **options)
    middle = torch.linspace(-1, 1, 801, dtype=torch.float64) ** order
    # the border bends the ends; 70 pixels from them nothing of it is left
    torch.testing.assert_close(fine[280:-280], middle[280:-280], rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SPLINES)
def test_a_box_of_splines_reads_beyond_it(name, backend):
    image, box = noise(2, 12, 15), (2.5, 1.25, 11.0, 9.75)
    got = wk.resize(image, (7, 9), interpolation=name, box=box, backend=backend)
    wanted = image.numpy()
    for axis, low, high, size in ((-2, 1.25, 9.75, 7), (-1, 2.5, 11.0, 9)):
        places = (np.arange(size) + 0.5) * (high - low) / size + low - 0.5
        order = NAMES.index(name)
        table = naive_splines.samples(places, image.shape[axis], order, "replicate")
        wanted = np.moveaxis(np.moveaxis(wanted, axis, -1) @ table.T, -1, axis)
    np.testing.assert_allclose(got, wanted, atol=TOLERANCE["resize box"])


SMALL_BOX = torch.tensor([0.3, 0.7, 4.2, 4.9], dtype=torch.float64)


@pytest.mark.parametrize("name", SPLINES)
def test_boxes_have_gradients(name):
    def function(image, box):
        return wk.resize(image, (2, 8), interpolation=name, box=box)

    inputs = noise(1, 5, 6).requires_grad_(), SMALL_BOX.clone().requires_grad_()
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


def test_an_invalid_box_that_cannot_be_read_gives_nan():
    image, boxes = noise(2, 9, 10), torch.tensor([[0.5, 1.0, 7.0, 6.0], [0.0, 0.0, torch.nan, 6.0]])
    found = torch.func.vmap(lambda b: wk.resize(image, (3, 4), interpolation="spline3", box=b))(
        boxes
    )
    assert found[0].isfinite().all()
    assert found[1].isnan().all()


ALL_WAYS = [
    *({"interpolation": name} for name in SPLINES),
    *({"interpolation": name, "arithmetic": "scipy"} for name in NAMES),
    {"interpolation": "spline3", "arithmetic": "scipy", "border": "wrap", "aligned": "centers"},
    *({"interpolation": name, "arithmetic": "skimage"} for name in NAMES),
    {"interpolation": "spline5", "arithmetic": "skimage", "border": "replicate"},
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", ALL_WAYS, ids=lambda o: "-".join(o.values()))
def test_every_gradient(options, backend):
    image = noise(1, 2, 5, 6).requires_grad_()

    def function(x):
        return wk.resize(x, (8, 3), backend=backend, **options)

    assert gradcheck(function, (image,), check_forward_ad=True, fast_mode=True)  # it is linear
    assert gradgradcheck(lambda x: function(x).square(), (image,))
    result = function(image)
    if options.get("arithmetic") == "skimage":
        return  # the clamp is not linear
    other = noise(*result.shape, seed=7)
    (back,) = torch.autograd.grad(result, image, other)
    torch.testing.assert_close((result * other).sum(), (image * back).sum(), rtol=1e-12, atol=0)


def test_the_ends_of_the_range_have_gradients():
    image = torch.tensor([[[0.0, 1.0, 0.0, 1.0, 1.0, 0.25]]], dtype=torch.float64)
    image.requires_grad_()
    options = {"interpolation": "spline3", "arithmetic": "skimage", "antialias": False}
    got = wk.resize(image, (1, 25), **options)
    low, high = got == 0, got == 1
    assert low.any()
    assert high.any()
    slope = torch.autograd.grad(got[low].sum() + got[high].sum(), image)[0]
    assert float(slope.sum()) == pytest.approx(int(low.sum() + high.sum()))


@pytest.mark.parametrize("options", ALL_WAYS, ids=lambda o: "-".join(o.values()))
def test_types_views_batches_and_transforms(options):
    image = noise(2, 3, 14, 12)
    got = wk.resize(image, (9, 20), **options)
    view = noise(2, 14, 12, 3).copy_(image.movedim(1, -1)).movedim(-1, 1)  # channels-last
    atol = TOLERANCE["reference float64"]
    torch.testing.assert_close(wk.resize(view, (9, 20), **options), got, rtol=0, atol=atol)
    turned = image.mT.contiguous().mT
    torch.testing.assert_close(wk.resize(turned, (9, 20), **options), got, rtol=0, atol=atol)
    mapped = torch.func.vmap(lambda x: wk.resize(x, (9, 20), **options))(image)
    torch.testing.assert_close(mapped, got, rtol=0, atol=atol)
    empty = wk.resize(image[:0], (9, 20), **options)
    assert empty.shape == (0, 3, 9, 20)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(
            wk.resize(image.float(), (9, 20), **options),
            wk.resize(image.float(), (9, 20), **options),
        )
        again = wk.resize(image, (9, 20), **options)
    assert torch.equal(again, got)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        small = wk.resize(image.to(dtype), (9, 20), **options)
        assert small.dtype == dtype
        wanted = wk.resize(image.to(dtype).double(), (9, 20), **options)
        name = {torch.float32: "reference float32"}.get(dtype, str(dtype).removeprefix("torch."))
        torch.testing.assert_close(small.double(), wanted, rtol=0, atol=2 * TOLERANCE[name])


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("options", ALL_WAYS[3::4], ids=lambda o: "-".join(o.values()))
def test_compiled_programs_have_the_same_numbers_and_gradients(options):
    def function(x):
        return wk.resize(x, (9, 20), **options)

    image = noise(2, 3, 14, 12).requires_grad_()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    pair = compiled(image), function(image)
    torch.testing.assert_close(*pair, rtol=0, atol=TOLERANCE["reference float64"])
    slopes = [torch.autograd.grad(result.square().sum(), image)[0] for result in pair]
    torch.testing.assert_close(*slopes, rtol=0, atol=TOLERANCE["two modes float64"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_spoils_its_channel_at_most(backend):
    image = noise(2, 40, 41)
    image[1, 20:23, 20:23] = torch.nan  # nearest skips single pixels
    clean = torch.where(image.isnan(), 0.5, image)
    for options in ALL_WAYS:
        got = wk.resize(image, (50, 20), backend=backend, **options)
        wanted = wk.resize(clean, (50, 20), backend=backend, **options)
        if options.get("arithmetic") != "skimage":  # whose range is of both channels
            assert torch.equal(got[0], wanted[0])
        assert not got[0].isnan().any()
        assert got[1].isnan().any()
        plain = options["interpolation"] in ("nearest", "bilinear")
        if plain and options["arithmetic"] == "scipy":
            assert got[1].isnan().sum() <= 24
    row = torch.tensor([0.0, 1.0, torch.nan, 3.0])
    got = wk.resize_axes(row, [7], arithmetic="scipy")  # at a pixel no other one is read
    assert got.isnan().tolist() == [False, False, False, True, True, True, False]


IMAGE = torch.zeros(1, 3, 8, 10)
WRONG = [
    ({"border": "wrap"}, "`border` must be None with arithmetic='exact': 'scipy' and 'skimage' have it, got 'wrap'"),
    ({"aligned": "corners", "arithmetic": "pillow"}, "`aligned` must be None with arithmetic='pillow': 'scipy' and 'skimage' have it, got 'corners'"),
    ({"arithmetic": "scipy", "border": "constant"}, "`border` must be one of 'reflect_101', 'reflect', 'wrap', 'replicate', got 'constant'"),
    ({"arithmetic": "scipy", "border": "mirror"}, "`border` must be one of 'reflect_101', 'reflect', 'wrap', 'replicate', got 'mirror' (write 'reflect_101')"),
    ({"arithmetic": "scipy", "aligned": "start"}, "`aligned` must be one of 'centers', 'corners', got 'start'"),
    ({"arithmetic": "skimage", "aligned": "corners"}, "`aligned` must be None or 'centers' with arithmetic='skimage', which has no other positions, got 'corners'"),
    ({"arithmetic": "scipy", "antialias": True}, "`antialias` must be None or False with arithmetic='scipy': zoom has no antialias ('skimage' has), got True"),
    ({"arithmetic": "skimage", "interpolation": "nearest", "antialias": True}, "`antialias` must be None or False with interpolation='nearest', which has no antialias: 'bilinear', 'spline2', 'spline3', 'spline4', 'spline5' have, got True"),
    ({"interpolation": "spline3", "antialias": True}, "`antialias` must be None or False with interpolation='spline3', which has no antialias: 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos', 'area' have, got True"),
    ({"arithmetic": "scipy", "interpolation": "bicubic"}, "`interpolation` must be one of 'nearest', 'bilinear', 'spline2', 'spline3', 'spline4', 'spline5' with arithmetic='scipy', got 'bicubic'"),
    ({"arithmetic": "opencv5", "interpolation": "spline3"}, "`interpolation` must be one of 'nearest', 'nearest_exact', 'bilinear'"),
    ({"arithmetic": "scipy", "box": (0, 0, 4, 4)}, "`box` must be None with arithmetic='scipy': scipy.ndimage.zoom has none (image[..., y1:y2, x1:x2] is a slice), got (0, 0, 4, 4)"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_errors(options, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"resize: {text}")):
        wk.resize(IMAGE, (4, 5), **options)
    labels = torch.zeros(3, 4, 5, dtype=torch.int64)
    with pytest.raises(ValueError, match="resize: `interpolation` must be 'nearest' for"):
        wk.resize(labels, (2, 2), interpolation="spline3", arithmetic="scipy")
