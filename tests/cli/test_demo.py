"""The demonstration prints true figures and writes its picture."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

import warpkit as wk
from tests.support import ROOT
from tests.support.installed_opencv import compares_with_opencv
from tests.support.tolerances import TOLERANCE
from warpkit.cli.app import main
from warpkit.cli.demo import work as demo
from warpkit.cli.demo.figure import draw
from warpkit.cli.image_files import read_image

PHOTOGRAPH = demo.default_photograph()


@pytest.fixture
def small() -> torch.Tensor:
    """The photograph at a third of its size."""
    return demo.small(read_image(PHOTOGRAPH).pixels, side=128)


@pytest.fixture
def matrix(small: torch.Tensor) -> torch.Tensor:
    height, width = small.shape[-2:]
    center = torch.tensor(wk.image_center((height, width)), dtype=torch.float64)
    return wk.rotation_matrix(center, 30.0, 1.1)


def test_the_shipped_photograph_equals_the_one_in_data():
    assert PHOTOGRAPH.samefile(ROOT / "data" / "images" / "coffee.png")


def test_small_accepts_every_kind_of_pixel():
    grey = torch.tensor([[[0, 255], [51, 102]]], dtype=torch.uint8)
    expected = torch.tensor([[0, 1], [0.2, 0.4]]).expand(3, 2, 2)
    torch.testing.assert_close(demo.small(grey, 2), expected)
    torch.testing.assert_close(demo.small(grey.to(torch.uint16) * 257, 2), expected)
    torch.testing.assert_close(demo.small(grey.repeat(4, 1, 1), 2), expected)
    assert demo.small(torch.zeros(3, 100, 200), side=50).shape == (3, 25, 50)


@compares_with_opencv
def test_the_comparison_is_with_opencv(small: torch.Tensor, matrix: torch.Tensor):
    done = demo.compare(small, matrix)
    pixels = np.ascontiguousarray((small * 255).round().byte().permute(1, 2, 0).numpy())
    theirs = cv2.warpAffine(pixels, matrix.numpy(), (small.shape[2], small.shape[1]))
    assert done.theirs is not None
    np.testing.assert_array_equal(done.theirs.permute(1, 2, 0).numpy(), theirs)
    np.testing.assert_array_equal(done.warped.permute(1, 2, 0).numpy(), theirs)
    assert done.differing == f"0 of {theirs.size:,} values differ"
    assert done.version == cv2.__version__


def test_a_difference_is_counted(small: torch.Tensor, matrix: torch.Tensor):
    done = demo.compare(small, matrix)
    assert done.theirs is not None
    done.theirs[0, 40, 60] ^= 1
    done.theirs[2, 41, 60] ^= 2
    assert done.differing == f"2 of {done.theirs.numel():,} values differ"
    assert done.apart.max() == 2


def test_a_missing_opencv_is_reported(
    small: torch.Tensor, matrix: torch.Tensor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "cv2", None)
    done = demo.compare(small, matrix)
    assert done.theirs is None
    torch.testing.assert_close(
        done.warped, wk.warp_affine((small * 255).round().byte(), matrix), rtol=0, atol=0
    )
    assert done.version == "not installed"


def test_the_gradient_reaches_all_visible_pixels(small: torch.Tensor, matrix: torch.Tensor):
    done = demo.reach(small, matrix)
    height, width = small.shape[-2:]
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    to = wk.transform_points(matrix, torch.stack((x, y), -1).double())
    inside = ((to >= 0) & (to <= torch.tensor([width - 1, height - 1]))).all(-1)
    far = ((to < -2) | (to > torch.tensor([width + 1, height + 1]))).any(-1)
    assert done.mask[inside].all()
    assert not done.mask[far].any()
    assert done.fraction == done.mask.sum().item() / (height * width)
    step = torch.zeros(2, 3, dtype=torch.float64)
    step[0, 2] = 1e-4
    image = small.double()
    change = (
        wk.warp_affine(image, matrix + step).mean() - wk.warp_affine(image, matrix - step).mean()
    )
    slope = change.item() / 2e-4
    assert done.to_matrix[0, 2].item() == pytest.approx(slope, rel=TOLERANCE["demo slope"])


def test_the_hidden_warp_is_found(small: torch.Tensor):
    done = demo.recover(small)
    assert done.error == abs(done.angle - 24.0)
    assert done.error < TOLERANCE["demo degrees"]
    assert done.corners < TOLERANCE["demo corners"]
    height, width = small.shape[-2:]
    hidden = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), 24.0, 0.85)
    hidden[:, 2] += 0.05 * width, -0.03 * width
    seen = wk.warp_affine(small, hidden)
    torch.testing.assert_close(done.target, 0.6 * seen + 0.1)
    assert (done.picture - seen).abs().mean() < TOLERANCE["demo levels"]
    assert (done.tiles[:, :10, :10] == done.target[:, :10, :10]).all()
    side = min(height, width) // 6
    assert (done.tiles[:, :side, side : 2 * side] == done.picture[:, :side, side : 2 * side]).all()


def test_the_figure_shows_the_results(small: torch.Tensor, matrix: torch.Tensor):
    comparison, reach = demo.compare(small, matrix), demo.reach(small, matrix)
    assert comparison.theirs is not None
    comparison.theirs[:, 40, 60] ^= 1
    zero = torch.zeros_like(small)
    recovery = demo.Recovery(zero + 0.25, zero + 0.5, 24.1, 0.1, 7)
    figure = draw(small, comparison, reach, recovery)
    shown = [
        torch.from_numpy(np.array(axes.images[0].get_array())).permute(2, 0, 1)
        for axes in figure.axes
    ]
    torch.testing.assert_close(shown[0], small)
    torch.testing.assert_close(shown[1], comparison.warped / 255)
    torch.testing.assert_close(shown[2], comparison.theirs / 255)
    expected = torch.zeros_like(small).double()
    expected[:, 40, 60] = 1
    torch.testing.assert_close(shown[3], expected)
    assert ((shown[4] == small).all(0) == reach.mask).float().mean() > 0.99  # others stay white
    torch.testing.assert_close(shown[5], recovery.target)
    torch.testing.assert_close(shown[6], recovery.picture)
    torch.testing.assert_close(shown[7], recovery.tiles)


@pytest.mark.parametrize("opencv", [True, False])
def test_the_command_writes_its_figure(
    opencv: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    if not opencv:
        monkeypatch.setitem(sys.modules, "cv2", None)
    with Image.open(PHOTOGRAPH) as image:
        image.resize((96, 64)).save(tmp_path / "in.png")
    out = tmp_path / "out.png"
    assert main(["demo", str(tmp_path / "in.png"), "--out", str(out)]) == 0
    with Image.open(out) as figure:
        assert (figure.format, figure.width) == ("PNG", 1200)
    text = capsys.readouterr().out
    assert f"wrote {out}" in text
    assert (cv2.__version__ if opencv else "not installed: nothing to compare with") in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png", "out.png"]
