"""The forms of arguments that torchvision accepts, rejected arguments, and matrices."""

from __future__ import annotations

import importlib
import re

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import noise
from warpkit import transforms
from warpkit.transforms import RandomAffine, RandomPerspective

MODES = v2.InterpolationMode
PIL_MODES = PIL.Image.Resampling
IMAGE = noise(3, 17, 11)


@pytest.mark.parametrize("name", ["nn", "transforms"])
def test_modules_have_exactly_the_documented_names(name: str):
    page = (ROOT / "docs" / "api" / f"{name}.md").read_text()
    listed = re.findall(rf"^::: warpkit\.{name}\.(\w+)$", page, re.MULTILINE)
    module = importlib.import_module(f"warpkit.{name}")
    assert list(module.__all__) == sorted(listed)


def test_arguments_have_torchvisions_positions():
    arguments = 10, (0.1, 0.2), (0.7, 1.3), (1, 5, -7, 3), MODES.NEAREST, 0.25, (3, 4)
    torch.manual_seed(0)
    expected = v2.RandomAffine(*arguments)(IMAGE.double())
    torch.manual_seed(0)
    assert torch.equal(RandomAffine(*arguments)(IMAGE.double()), expected)
    arguments = 0.5, 1.0, MODES.NEAREST, 0.25
    torch.manual_seed(0)
    expected = v2.RandomPerspective(*arguments)(IMAGE.double())
    torch.manual_seed(0)
    assert torch.equal(RandomPerspective(*arguments)(IMAGE.double()), expected)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (0, "nearest"),
        (2, "bilinear"),
        (3, "bicubic"),
        (PIL_MODES.NEAREST, "nearest"),
        (PIL_MODES.BILINEAR, "bilinear"),
        (PIL_MODES.BICUBIC, "bicubic"),
        (MODES.NEAREST, "nearest"),
        (MODES.NEAREST_EXACT, "nearest"),
        (MODES.BILINEAR, "bilinear"),
        (MODES.BICUBIC, "bicubic"),
        ("nearest-exact", "nearest"),
        ("lanczos4", "lanczos4"),
    ],
)
def test_interpolations_of_pillow_and_torchvision_are_accepted(given, name: str):
    for make in (RandomAffine, RandomPerspective):
        assert make(0.5, interpolation=given).interpolation == name


@pytest.mark.parametrize("given", [1, 4, 7, -1, True, None, 2.0, "linear", "cubic", MODES.BOX])
@pytest.mark.parametrize("make", [RandomAffine, RandomPerspective])
def test_other_interpolations_are_rejected_with_the_valid_names(make, given):
    text = f"^{make.__name__}: `interpolation` must be .*'nearest', 'bilinear', 'bicubic', 'lanczo"
    with pytest.raises((ValueError, TypeError), match=text):
        make(0.5, interpolation=given)


@pytest.mark.parametrize("center", [3, (1, 2, 3), "12", (1, "x"), (), 2.5, {"x": 1, "y": 2}])
def test_bad_centers_are_rejected(center):
    text = f"RandomAffine: `center` must be (x, y), two numbers, got {center!r}"
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(text)}$"):
        RandomAffine(10, center=center)


@pytest.mark.parametrize("center", [(3, 4), [3.0, 4.0], np.array([3, 4]), torch.tensor([3, 4])])
def test_every_form_of_a_center_is_accepted(center):
    params = {"angle": 30.0, "translate": (0, 0), "scale": 1.0, "shear": (0.0, 0.0)}
    matrix = RandomAffine(10, center=center).matrix(params, (17, 11))
    fixed = torch.tensor([2.5, 3.5], dtype=torch.float64)  # the centre in pixel coordinates
    torch.testing.assert_close(wk.transform_points(matrix, fixed), fixed)


@pytest.mark.parametrize("fill", ["red", (), (1, "x"), [[1, 2]], torch.ones(3), 1j, {int: "a"}])
@pytest.mark.parametrize("make", [RandomAffine, RandomPerspective])
def test_bad_fills_are_rejected(make, fill):
    shown = fill[int] if isinstance(fill, dict) else fill
    text = f"{make.__name__}: `fill` must be a number, one for each channel, None, or a dictionary"
    text = f"^{re.escape(text)} of these by type, got {re.escape(repr(shown))}$"
    with pytest.raises(TypeError, match=text):
        make(0.5, fill=fill)


@pytest.mark.parametrize("fill", [(1, 2), {"others": (1, 2)}])
@pytest.mark.parametrize(("make", "options"), [(RandomAffine, {}), (RandomPerspective, {"p": 1.0})])
def test_a_fill_of_wrong_length_is_shown_as_given(make, options, fill):
    text = f"{make.__name__}: `fill` must be a number, or 3, for the channels of a Tensor of shape "
    text += "(3, 17, 11) (a dictionary holds one for each type), got [1.0, 2.0]"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        make(0.5, fill=fill, **options)(IMAGE)


def test_a_dictionary_of_fills_is_not_modified():
    fill = {tv_tensors.Image: (1, 2, 3), "others": None}
    RandomAffine(10, fill=fill)
    assert fill == {tv_tensors.Image: (1, 2, 3), "others": None}


@pytest.mark.parametrize("fill", [np.float32(0.5), np.int64(1), np.float64(0.25)])
def test_numpy_numbers_are_accepted_as_fills(fill):
    moved = RandomAffine(0, scale=(0.5, 0.5), fill=fill)(IMAGE)
    assert (moved[:, 0, 0] == float(fill)).all()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_images_are_refused(dtype: torch.dtype):
    with pytest.raises(TypeError, match=r"^RandomAffine: `inpt` must be of one of the types "):
        RandomAffine(10)(IMAGE.to(dtype))


SIZE = (60, 80)
MOVES = {
    "affine": RandomAffine((25, 40), (0.1, 0.1), (0.7, 0.9), 15, center=(30, 35)),
    "perspective": RandomPerspective(0.4, 1.0, "nearest"),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_matrix_gives_the_new_positions_of_pixels(name: str):
    """They equal those of torchvision's key points, which use edge coordinates."""
    move = MOVES[name]
    points = torch.tensor([[40.0, 30.0], [33.25, 24.5], [47.0, 35.75]], dtype=torch.float64)
    given = tv_tensors.KeyPoints(points, canvas_size=SIZE)
    torch.manual_seed(1)
    params = move.make_params([torch.zeros(3, *SIZE)])
    expected = move.transform(given, params).as_subclass(Tensor)
    matrix = move.matrix(params, SIZE)
    assert matrix.dtype == torch.float64
    got = wk.transform_points(matrix, points - 0.5) + 0.5
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)  # torchvision computes in float32
    image = noise(3, *SIZE)
    warp = wk.warp_affine if name == "affine" else wk.warp_perspective
    warped = warp(image, matrix, interpolation="nearest")
    assert torch.equal(warped, move.transform(image, params))


def test_the_old_call_gives_the_old_matrix_with_a_warning():
    params = {"coefficients": [1.0, 0.0, 5.0, 0.0, 1.0, -2.0, 0.0, 0.0]}
    move = RandomPerspective(0.5)
    with pytest.warns(FutureWarning, match=r"matrix\(params, size\) maps source -> destination"):
        old = move.matrix(params)
    assert old.tolist() == [[1, 0, 5], [0, 1, -2], [0, 0, 1]]
    assert move.matrix(params, SIZE).tolist() == [[1, 0, -5], [0, 1, 2], [0, 0, 1]]


@pytest.mark.parametrize("border", [("wrap", "constant"), ["zeros", "reflect"]])
def test_borders_may_differ_by_axis(border):
    options = {"interpolation": "bilinear", "border": border, "fill": 0.5}
    exact = {"border": border, "border_value": 0.5}
    matrix = wk.affine_matrix(translation=(4, -3))
    shift = RandomAffine(0, translate=(1, 1), **options)
    shift.make_params = lambda _: {  # pyright: ignore[reportAttributeAccessIssue]
        "angle": 0.0,
        "translate": (4, -3),
        "scale": 1.0,
        "shear": (0.0, 0.0),
    }
    expected = wk.warp_affine(IMAGE, matrix, **exact)
    torch.testing.assert_close(shift(IMAGE), expected)
    assert f"border={tuple(border)!r}" in repr(shift)
    bend = transforms.ElasticTransform(sigma=1.0, border=border, fill=0.5)
    assert bend(IMAGE).shape == IMAGE.shape
    fused = transforms.Fused([shift, transforms.RandomRotation((0, 0), **options)])
    torch.testing.assert_close(fused(IMAGE), expected)


def test_runs_with_two_border_pairs_or_none_are_rejected():
    first, other = (RandomAffine(5, border=pair) for pair in (("wrap", "zeros"), ("wrap", "wrap")))
    text = "got border=('wrap', 'constant'), fill=0.0 in RandomAffine (transforms[0]) and border='w"
    with pytest.raises(ValueError, match=re.escape(text)):
        transforms.Fused([first, other])
    for border, wanted in ((("wrap",), "a name, or two"), (("wrap", "transparent"), "two names")):
        with pytest.raises(ValueError, match=f"RandomPerspective: `border` must be {wanted}"):
            RandomPerspective(border=border)
