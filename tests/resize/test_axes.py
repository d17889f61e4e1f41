"""`resize_axes`: any axes of any tensor, against SciPy, against `resize`, and its errors."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.resize.test_splines import NAMES, SCIPY, SKIMAGE, compare, smoothed_zoom, zoomed
from tests.support.inputs import noise, seeded
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.core.checks import LABELS


@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.int16])
def test_volumes_match_scipy_and_scikit_image(dtype, border):
    volume = noise(20, 23, 31, dtype=dtype)
    for (order, name), size in product(enumerate(NAMES), [(31, 20, 40), (11, 23, 52)]):
        options = {"interpolation": name, "border": border}
        for aligned in ("corners", "centers"):
            wanted = zoomed(volume.numpy(), size, order, SCIPY[border], aligned)
            assert wanted is not None
            got = wk.resize_axes(volume, size, arithmetic="scipy", aligned=aligned, **options)
            compare(got, wanted, volume)
        assert border in SKIMAGE
        wanted = smoothed_zoom(volume.numpy(), size, order, SCIPY[border], None)
        got = wk.resize_axes(volume, size, arithmetic="skimage", **options)
        compare(got, wanted if dtype.is_floating_point else np.rint(wanted), volume)


WAYS = [
    {},
    {"interpolation": "nearest"},
    {"interpolation": "bicubic", "antialias": False},
    {"interpolation": "area"},
    {"interpolation": "lanczos"},
    {"interpolation": "spline4"},
    {"interpolation": "spline3", "arithmetic": "scipy"},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda o: "-".join(map(str, o.values())) or "default")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.uint8])
def test_two_axes_are_those_of_resize(options, dtype):
    image = noise(2, 3, 17, 26, dtype=dtype)
    wanted = wk.resize(image, (9, 40), **options)
    atol = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 1e-3, torch.uint8: 1.0}[dtype]
    for order in ((0, 1, 2, 3), (2, 3, 0, 1), (2, 0, 3, 1), (3, 1, 2, 0), (1, 2, 3, 0)):
        turned = image.permute(order)
        axes = order.index(2), order.index(3) - 4
        for array in (turned, turned.contiguous()):
            got = wk.resize_axes(array, (9, 40), axes=axes, **options)
            assert got.is_contiguous()
            back = got.permute([order.index(axis) for axis in range(4)])
            torch.testing.assert_close(back, wanted, rtol=0, atol=atol)
            assert torch.equal(wk.resize_axes(array, (9, 40), axes=axes, **options), got)


def test_one_axis_of_any_shape():
    row = noise(11)
    wanted = wk.resize(row[None, None], (1, 5))[0, 0]
    for shape in ((11,), (1, 11), (11, 1), (3, 11, 2), (2, 11, 40), (40, 11)):
        axis = shape.index(11)
        array = row.reshape([11 if length == 11 else 1 for length in shape]).expand(shape)
        for one in (array, array.contiguous(), array.contiguous().mT if len(shape) > 1 else array):
            at = one.shape.index(11)
            got = wk.resize_axes(one, [5], axes=[at])
            want = wanted.reshape([5 if k == at else 1 for k in range(len(shape))]).expand_as(got)
            torch.testing.assert_close(got, want, rtol=0, atol=1e-15)
        assert wk.resize_axes(array, [11], axes=[axis]).shape == shape


def test_axes_that_are_not_named_are_carried_along():
    assert wk.resize_axes(torch.zeros(0, 5, 3), (7,), axes=(1,)).shape == (0, 7, 3)
    assert wk.resize_axes(torch.zeros(4, 5, 0), (7, 2), axes=(1, 0)).shape == (2, 7, 0)
    batch = noise(3, 4, 5, 6, 7)
    got = wk.resize_axes(batch, (6, 3, 9))
    each = torch.stack([wk.resize_axes(one, (6, 3, 9), axes=(1, 2, 3)) for one in batch])
    assert torch.equal(got, each)
    same = wk.resize_axes(batch, (6, 7))
    assert torch.equal(same, batch)
    assert same.data_ptr() != batch.data_ptr()


@pytest.mark.parametrize("dtype", LABELS)
def test_labels_are_copied(dtype):
    low, high = -(2**63), 2**63 - 1
    volume = torch.randint(low, high, (4, 5, 6), generator=seeded(3))
    volume = volume > 0 if dtype == torch.bool else volume.to(dtype)
    options = {"interpolation": "nearest", "arithmetic": "scipy", "aligned": "centers"}
    got = wk.resize_axes(volume, (8, 3, 6), **options)
    d = np.floor((np.arange(8) + 0.5) * 0.5).astype(int)
    h = np.floor((np.arange(3) + 0.5) * (5 / 3)).astype(int)
    assert got.dtype == dtype
    assert got.tolist() == [[volume[i, j].tolist() for j in h] for i in d]


GRADIENTS = [*WAYS, {"interpolation": "spline3", "arithmetic": "skimage"}]


@pytest.mark.parametrize("options", GRADIENTS, ids=lambda o: "-".join(map(str, o.values())) or "d")
def test_every_gradient(options):
    volume = noise(4, 3, 5).requires_grad_()

    def function(x):
        return wk.resize_axes(x, (3, 5, 7), **options)

    assert gradcheck(function, (volume,), check_forward_ad=True)
    assert gradgradcheck(lambda x: function(x).square(), (volume,))
    mapped = torch.func.vmap(function)(noise(2, 4, 3, 5))
    wanted = torch.stack([function(one) for one in noise(2, 4, 3, 5)])
    torch.testing.assert_close(mapped, wanted, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_programs_have_the_same_numbers():
    def function(x):
        return wk.resize_axes(x, (3, 9, 7), interpolation="spline3", arithmetic="skimage")

    volume = noise(8, 6, 5)
    got = torch.compile(function, fullgraph=True, backend="aot_eager")(volume)
    atol = TOLERANCE["reference float64"]
    torch.testing.assert_close(got, function(volume), rtol=0, atol=atol)


ARRAY = torch.zeros(4, 5, 6)
WRONG = [
    ({"array": ARRAY.numpy()}, "`array` must be a tensor, got ndarray"),
    ({"array": ARRAY.to(torch.complex64)}, "`array` must be of one of the types"),
    ({"size": ()}, "`size` must be whole numbers of at least 1, one for each axis, got ()"),
    ({"size": (3, 0)}, "`size` must be whole numbers of at least 1, one for each axis"),
    ({"size": (3, 2.5)}, "`size` must be whole numbers of at least 1, one for each axis, got (3, 2.5)"),
    ({"size": 3}, "`size` must be whole numbers of at least 1, one for each axis, got 3"),
    ({"size": (1, 2, 3, 4)}, "`size` must be at most 3 numbers for an array of shape (4, 5, 6), got 4"),
    ({"size": (3,), "axes": (0, 1)}, "`size` must be 2 numbers, one for each of `axes`, (0, 1), got 1"),
    ({"axes": (0, 3)}, "`axes` must be different whole numbers from -3 to 2, the axes of an array of shape (4, 5, 6), got (0, 3)"),
    ({"axes": (0, -3)}, "`axes` must be different whole numbers from -3 to 2"),
    ({"axes": (0, 1.0)}, "`axes` must be different whole numbers from -3 to 2"),
    ({"axes": 1}, "`axes` must be different whole numbers from -3 to 2"),
    ({"array": ARRAY[:, :0]}, "`array` must be at least one element along `axes`, got shape (4, 0, 6)"),
    ({"arithmetic": "pillow"}, "`arithmetic` must be one of 'exact', 'scipy', 'skimage', got 'pillow'"),
    ({"border": "wrap"}, "`border` must be None with arithmetic='exact'"),
    ({"interpolation": "linear"}, "`interpolation` must be one of"),
    ({"array": ARRAY.long()}, "`interpolation` must be 'nearest' for torch.int64"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_errors(options, text):
    call = {"array": ARRAY, "size": (2, 3), **options}
    with pytest.raises((ValueError, TypeError), match=re.escape(f"resize_axes: {text}")):
        wk.resize_axes(call.pop("array"), call.pop("size"), **call)
