"""`compare_with_opencv`: figures by hand, and the report of a wrong result."""

from __future__ import annotations

import math
import re
import subprocess
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support import ROOT
from tests.support.forks import python
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import BORDERS, DTYPES, INTERPOLATIONS, Case, corner
from warpkit import validation, warp
from warpkit.engine.arithmetic.guarantees import guaranteed
from warpkit.validation import calls
from warpkit.validation.metrics import Figures, figures, peak_of

cv2 = installed_opencv()
if not cv2.__version__.startswith(("4.14", "5.0")):
    pytest.skip("another OpenCV than is reproduced", allow_module_level=True)

NAME = "compare_with_opencv"


# ---------------------------------------------------------------- figures


def test_figures_by_hand():
    got = torch.tensor([[0, 1, 2, 250]], dtype=torch.uint8)
    expected = torch.tensor([[0, 5, 2, 247]], dtype=torch.uint8)
    found = figures(got, expected, 255.0)
    psnr = 10 * math.log10(255**2 / ((16 + 9) / 4))
    assert found == Figures(2, 4, 4.0, 7 / 4, pytest.approx(psnr))
    assert found.fraction == 0.5
    where = torch.tensor([True, True, False, False])
    assert figures(got, expected, 255.0, where).total == 2
    assert figures(got, expected, 255.0, ~where).max_abs == 3.0
    assert figures(got, got, 255.0, where) == Figures(0, 2, 0.0, 0.0, math.inf)


def test_figures_of_nonfinite_values():
    nan, inf = math.nan, math.inf
    got, expected = torch.tensor([nan, inf, nan, 1.0]), torch.tensor([nan, inf, 0.0, 1.0])
    found = figures(got, expected, 1.0)
    assert (found.differing, found.max_abs, found.psnr) == (1, inf, -inf)


def test_figures_of_empty_images():
    nothing = torch.zeros(0)
    assert figures(nothing, nothing, 1.0) == Figures(0, 0, 0.0, 0.0, math.inf)
    assert figures(nothing, nothing, 1.0).fraction == 0.0


def test_peak_values_of_types_and_floats():
    assert peak_of(torch.zeros(1, dtype=torch.uint8)) == 255
    assert peak_of(torch.zeros(1, dtype=torch.int16)) == 32767
    assert peak_of(torch.tensor([-0.5, math.nan])) == 1
    assert peak_of(torch.tensor([-7.0, math.inf])) == 7


# ---------------------------------------------------------------- compare_with_opencv

# 9 x 12 pixels shifted by 2 to the right: the source's x from -2 to 9, its y from 0 to 8
INNER = {
    "nearest": 9 * 10,
    "bilinear": 7 * 9,
    "bicubic": 5 * 8,
    "lanczos4": 1 * 4,
}


@pytest.mark.parametrize("interpolation", INNER)
def test_interior_and_border_pixels_are_counted(interpolation: str):
    image = noise(2, 9, 12, dtype=torch.uint8)
    parity = wk_compare(image, [[1, 0, 2], [0, 1, 0]], interpolation=interpolation)
    assert (parity.differing, parity.total, parity.psnr) == (0, 2 * 9 * 12, math.inf)
    assert parity.interior.total == 2 * INNER[interpolation]
    assert parity.border.total == parity.total - parity.interior.total


def wk_compare(image: Tensor, matrix: object, **options: object) -> validation.Parity:
    return validation.compare_with_opencv(image, matrix, **options)


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "wrap", "zeros"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_batches_and_options_are_accepted(border: str, dtype: torch.dtype):
    image = noise(2, 1, 3, 15, 20, dtype=dtype)
    turns = wk.rotation_matrix((9.0, 7.0), torch.tensor([20.0, -40.0, 95.0]).double(), 1.2)
    values = noise(3, 3, dtype=dtype, seed=1).double()
    options = {"size": (14, 21), "border": border, "border_value": values, "inverse": True}
    parity = wk_compare(image, turns, **options)
    assert (parity.differing, parity.total) == (0, 2 * 3 * 3 * 14 * 21)
    assert parity.opencv_version == cv2.__version__
    assert parity.optimized == cv2.useOptimized()


def test_perspective_over_a_background():
    image, below = noise(3, 15, 20, dtype=torch.uint8), noise(3, 9, 11, dtype=torch.uint8, seed=1)
    matrix = [[1.0, 0.3, -2.0], [0.1, 1.0, 1.5], [-0.002, 0.005, 1.1]]
    options = {"size": (9, 11), "border": "transparent", "background": below}
    assert wk_compare(image, matrix, **options).differing == 0


def test_border_values_for_six_channels():
    image = noise(6, 5, 6, dtype=torch.uint8)
    matrix = [[1, 0, 2], [0, 1, 0]]
    assert wk_compare(image, matrix, border_value=[1, 2, 3, 4, 1, 2]).differing == 0
    text = f"{NAME}: `border_value` must be the same for channels that lie 4 apart"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk_compare(image, matrix, border_value=[1, 2, 3, 4, 5, 6])


def test_border_values_keep_their_digits():
    image = torch.ones(1, 2, 3, dtype=torch.float64)
    assert wk_compare(image, [[1, 0, 9], [0, 1, 0]], border_value=[0.1]).differing == 0


def test_the_other_versions_arithmetic_differs():
    image = noise(1, 40, 50, dtype=torch.uint8)
    matrix = wk.rotation_matrix((25.0, 20.0), 33.0, 0.9)
    assert wk_compare(image, matrix).differing == 0
    mine = "opencv4" if cv2.__version__.startswith("4") else "opencv5"
    assert wk_compare(image, matrix, arithmetic=mine).arithmetic == mine
    other = "opencv5" if mine == "opencv4" else "opencv4"
    parity = wk_compare(image, matrix, arithmetic=other)
    assert 0.1 < parity.fraction < 1
    assert parity.max_abs < 30


def off_by_one(where: tuple[int, ...], amount: int):
    """warp_affine with one wrong value."""
    right = warp.warp_affine

    def wrong(*args, **options):
        result = right(*args, **options).clone()
        result[where] = result[where] + amount
        return result

    return wrong


@pytest.mark.parametrize(("column", "inside"), [(1, 0), (4, 1)])
def test_a_wrong_value_is_counted(monkeypatch: pytest.MonkeyPatch, column: int, inside: int):
    monkeypatch.setattr(warp, "warp_affine", off_by_one((0, 3, column), 3))
    image = noise(1, 8, 9, dtype=torch.uint8) // 2
    parity = wk_compare(image, [[1, 0, 2], [0, 1, 0]])
    assert (parity.differing, parity.max_abs, parity.mean_abs) == (1, 3.0, 3 / 72)
    assert parity.psnr == pytest.approx(10 * math.log10(255**2 / (9 / 72)))
    assert (parity.interior.differing, parity.border.differing) == (inside, 1 - inside)


def test_the_text_of_a_comparison():
    image = noise(1, 5, 6, dtype=torch.uint8)
    lines = repr(wk_compare(image, [[1, 0, 2], [0, 1, 0]])).splitlines()
    assert lines[0].startswith("Parity of arithmetic")
    assert f"OpenCV {cv2.__version__}" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["differing", "all", "interior", "border"]
    assert lines[2].split()[1:] == ["0", "30", "0.000%", "0", "0", "inf"]
    assert len(set(map(len, lines[1:]))) == 1


def test_ipp_is_switched_off_and_restored(monkeypatch: pytest.MonkeyPatch):
    used = cv2.ipp.useIPP()
    seen = []
    real = calls.call_cv2

    def spy(*args, **options):
        seen.append(cv2.ipp.useIPP())
        return real(*args, **options)

    monkeypatch.setattr(calls, "call_cv2", spy)
    try:
        for state in (True, False):
            cv2.ipp.setUseIPP(state)
            before = cv2.ipp.useIPP()
            wk_compare(noise(1, 5, 6), [[1, 0, 2], [0, 1, 0]])
            assert cv2.ipp.useIPP() == before
    finally:
        cv2.ipp.setUseIPP(used)
    assert seen == [False, False]


REFUSED = {
    "`image` must be of a type that OpenCV warps (uint8, uint16, int16, float32, float64), got "
    "torch.float16": (TypeError, {"image": torch.ones(1, 2, 2).half(), "arithmetic": "exact"}),
    "`matrix` must be of shape (..., 2, 3) or (..., 3, 3), got (2, 2)": (
        ValueError,
        {"matrix": torch.eye(2)},
    ),
    "`image` must be a tensor of shape (..., C, H, W), got ndarray": (
        TypeError,
        {"image": np.ones((1, 2, 2))},
    ),
    "`arithmetic` must be one of 'auto', 'exact', 'opencv4', 'opencv5', got 'opencv'": (
        ValueError,
        {"arithmetic": "opencv"},
    ),
    "OpenCV": (ValueError, {"image": torch.ones(5, 9, 9), "interpolation": "bicubic"}),
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors(text: str):
    error, options = REFUSED[text]
    options = {"image": torch.ones(1, 4, 4), "matrix": torch.eye(3)[:2], **options}
    with pytest.raises(error, match=re.escape(f"{NAME}: {text}")):
        wk_compare(**options)


@pytest.mark.skipif(cv2.__version__[0] != "5", reason="only OpenCV 5 loops for ever")
@pytest.mark.parametrize(("size", "move"), [((1, 9), 2.0), ((9, 9), 1.5e9)])
def test_calls_that_loop_in_opencv_5_are_rejected(size: tuple[int, int], move: float):
    options = {"interpolation": "bicubic", "border": "reflect_101"}
    with pytest.raises(ValueError, match="OpenCV 5 loops for ever, got 'reflect_101'"):
        wk_compare(torch.ones(1, *size), [[1, 0, move], [0, 1, 0]], size=(40, 40), **options)


def run(code: str) -> subprocess.CompletedProcess[str]:
    root = str(ROOT)
    code = f"import sys; sys.path.insert(0, {root!r}); {code}"
    return subprocess.run([*python(), "-c", code], capture_output=True, text=True)


def test_packages_load_on_first_use():
    done = run(
        "import warpkit.validation; print([n for n in"
        " ('cv2', 'kornia', 'torchvision', 'rich', 'jinja2', 'PIL') if n in sys.modules])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", [NAME, "parity_suite"])
def test_a_missing_opencv_is_reported(name: str):
    call = "(torch.ones(1, 2, 2), [[1, 0, 0], [0, 1, 0]])" if name == NAME else "([])"
    done = run(
        "import torch, warpkit.validation as v; sys.modules['cv2'] = None\n"
        f"try: v.{name}{call}\nexcept ImportError as e: print(e)"
    )
    assert (done.stdout, done.stderr) == (
        f"{name} needs OpenCV: pip install '.[opencv]' in a checkout\n",
        "",
    )


@pytest.mark.parametrize("version", ["4.14.0", "5.0.0", "4.10.0"])
def test_guarantees_have_exactly_the_known_exceptions(version: str):
    """All other calls are compared with OpenCV's pixels."""
    found = set()
    for dtype, channels, interpolation, border in product(
        DTYPES, range(1, 5), INTERPOLATIONS, BORDERS
    ):
        setting = {"channels": channels, "interpolation": interpolation, "border": border}
        kept = guaranteed(version, dtype=dtype, processor="x86_64", **setting)
        assert bool(kept.reason) == (kept.where != "everywhere")
        case = Case("affine", dtype, channels, (5, 6), (7, 8), interpolation, border)
        assert (kept.where != "everywhere") == (corner(case, version) is not None), case
        found.add(kept.where)
    expected = {"4.14.0": {"everywhere"}, "5.0.0": {"everywhere", "interior"}}
    assert found == expected.get(version, {"nowhere"})


def test_results_do_not_depend_on_the_default_device():
    image = noise(3, 5, 6, dtype=torch.uint8)
    with torch.device("meta"):
        found = validation.compare_with_opencv(image, [[1, 0, 0.5], [0, 1, 0]])
    assert found == validation.compare_with_opencv(image, [[1, 0, 0.5], [0, 1, 0]])
