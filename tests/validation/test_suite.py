"""`parity_suite`, its report and pages, and the libraries that are compared with warpkit."""

from __future__ import annotations

import base64
import json
import re
import sys
from html import unescape
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.validation.test_validation import cv2, off_by_one
from warpkit import validation, warp
from warpkit.engine.arithmetic import torch_resize
from warpkit.validation import html, pages, peers, report, resizes, suite


def shifted(image: Tensor, value: Tensor) -> Tensor:
    """Shifted by 2 to the right and 1 down."""
    result = value[:, None, None].expand_as(image).clone()
    result[..., 1:, 2:] = image[..., :-1, :-2]
    return result


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
@pytest.mark.parametrize("kind", ["affine", "perspective", "remap"])
@pytest.mark.parametrize("peer", peers.PEERS)
def test_peers_shift_by_whole_pixels(peer: str, kind: str, dtype: torch.dtype, interpolation: str):
    pytest.importorskip({"grid_sample": "torch"}.get(peer, peer))
    image, value = noise(1, 3, 8, 9, dtype=dtype), torch.tensor([0.0, 7.0, 30.0])
    where = torch.tensor([[1.0, 0, 2], [0, 1, 1], [0, 0, 1]], dtype=torch.float64)[None]
    where = where[:, :2] if kind == "affine" else where
    if kind == "remap":
        y, x = torch.meshgrid(torch.arange(8.0), torch.arange(9.0), indexing="ij")
        where = torch.stack((x - 2, y - 1), dim=-1)[None].double()
    part = {"angle": 0.0, "scale": 1.0, "translation": (2.0, 1.0), "center": (4.0, 3.5)}
    task = peers.PeerTask(kind, image, where, [part], interpolation, "constant", value)
    result = peers.PEERS[peer](task)
    if (peer, kind) == ("torchvision", "remap"):
        assert result is None
        return
    assert result.dtype == dtype
    scale = 255.0 if dtype == torch.uint8 else 1.0
    # their positions are float32; just off the edge they may blend a little of the border
    apart = (result.double() - shifted(image, value.to(dtype)).double()).abs() / scale
    assert apart.max() < 1 / 255


def test_torchvision_rotates_in_the_same_direction():
    pytest.importorskip("torchvision")
    image = noise(1, 3, 9, 9, dtype=torch.uint8)
    part = {"angle": 90.0, "scale": 1.0, "translation": (0.0, 0.0), "center": (4.0, 4.0)}
    matrix = wk.affine_matrix(angle=90.0, center=(4.0, 4.0))[None].double()
    task = peers.PeerTask("affine", image, matrix, [part], "nearest", "constant", torch.zeros(3))
    assert torch.equal(peers.by_torchvision(task), torch.rot90(image, 1, (-2, -1)))


# ---------------------------------------------------------------- parity_suite

FEW = tuple(
    suite.Setting(kind, interpolation, border, dtype, channels)
    for kind, interpolation, border, dtype, channels in (
        ("affine", "bilinear", "constant", "uint8", 3),
        ("affine", "bicubic", "transparent", "float32", 3),
        ("affine", "bicubic", "wrap", "float64", 1),
        ("perspective", "nearest", "reflect", "uint16", 4),
        ("remap", "bilinear", "replicate", "int16", 1),
    )
)
FEW_RESIZES = tuple(
    resizes.ResizeSetting(*values)
    for values in (
        ("opencv", "bilinear_exact", "uint8", 3),
        ("opencv_ipp", "bicubic", "uint16", 1),
        ("pillow", "bicubic", "float32", 1),
        ("torchvision", "bicubic", "uint8", 3),
        ("torch", "bilinear", "uint8", 3),
    )
)
PHOTOGRAPHS = {"one": noise(3, 90, 60, dtype=torch.uint8), "two": noise(1, 100, 130, seed=1)}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of five settings of warps and some of resizes."""
    monkeypatch.setattr(report, "settings", lambda: FEW)
    monkeypatch.setattr(report, "resize_settings", lambda _: FEW_RESIZES)


def test_the_suite_covers_all_options():
    rows = suite.settings()
    assert len(rows) == len(set(rows)) == 3 * 4 * 6 * 5 * 3


def lines_of(result: validation.ParityReport) -> dict[str, list[str]]:
    """The table's cells, by the first two words of their row."""
    text = result.to_table()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    found = [line.split() for line in text.splitlines() if line.strip()]
    return {" ".join(words[:2]): words[2:] for words in found}


@pytest.mark.usefixtures("few")
def test_a_report_as_text_json_and_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    result = validation.parity_suite(PHOTOGRAPHS)
    assert result.passed
    assert not result.broken
    assert [row.setting for row in result.rows] == list(FEW)
    assert [row.parity.total for row in result.rows] == [3 * c * 80 * 125 for c in (3, 3, 1, 4, 1)]
    assert result.images == ("one", "two", "white noise")
    assert "promised pixel is that of OpenCV" in repr(result)
    assert lines_of(result)["affine bilinear"][:3] == ["90,000", "0", "0"]
    assert [row.setting for row in result.resizes] == list(FEW_RESIZES)
    pixels = sum(h * w for h, w in resizes.SIZES)
    assert [row.figures.total for row in result.resizes] == [
        3 * c * pixels for c in (3, 1, 1, 3, 3)
    ]
    # no comparison with itself
    assert lines_of(result)["OpenCV bilinear_exact"][:3] == ["0", "0", "-"]
    assert capsys.readouterr() == ("", "")

    result.to_json(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text())
    assert read == result.as_dict()
    assert read["passed"] is True
    assert read["rows"][0]["warpkit"]["all"] == {
        "differing": 0,
        "total": 90000,
        "max_abs": 0.0,
        "mean_abs": 0.0,
        "psnr": None,
    }
    assert read["rows"][0]["peers"]["grid_sample"]["max_abs"] >= 1
    assert read["rows"][4]["peers"]["grid_sample"] is None
    assert [row["library"] for row in read["resizes"]] == [
        *("opencv", "opencv_ipp", "pillow", "torchvision", "torch")
    ]
    assert "antialias=True" in read["resizes"][3]["call"]
    assert "antialias=False" in read["resizes"][4]["call"]
    assert read["resizes"][4]["peers"]["opencv"]["max_abs"] == 1
    assert read["resizes"][4]["peers"]["torchvision"]["max_abs"] > 1
    assert read["resizes"][4]["peers"]["torch"] is None
    assert read["resizes"][2]["peers"]["opencv"]["max_abs"] > 0.1  # it does not average
    assert read["resizes"][1]["peers"] == dict.fromkeys(["opencv", *resizes.resize_peers()])

    result.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    text = re.sub(r"data:image/png;base64,[\w+/=]*", "data:", page)
    assert not re.search(r"""https?:|//[a-z]|(src|href)=["'](?!data:|#)|@import|url\(""", text)
    assert page.count("<tr><td") == len(FEW)
    assert page.count("OpenCV + IPP bicubic") == 2
    assert page.count("data:image/png;base64,") >= 3
    assert f"OpenCV {cv2.__version__}" in page
    assert page.count("cv2.resize(interpolation=INTER_LINEAR_EXACT), IPP off") == 2


@pytest.mark.usefixtures("few")
def test_a_notebook_shows_a_report(monkeypatch: pytest.MonkeyPatch):
    result = validation.parity_suite(PHOTOGRAPHS)
    cell = result._repr_html_()
    assert cell is not None
    assert result.verdict[1:] in unescape(cell)
    assert cell.count("<table>") == 2
    assert cell.count("data:image/png;base64,") >= 4
    assert not re.search(r"https?:|<script|undefined", cell)
    assert len(cell) < 300_000  # it is stored in the notebook's file
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    assert result._repr_html_() is None  # the notebook shows its text
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ModuleNotFoundError, match=r"^to_table: a table needs rich, which is not"):
        result.to_table()
    with pytest.raises(ModuleNotFoundError, match=r"^to_html: a page needs rich, which is not"):
        result.to_html("page.html")


def test_differences_are_red():
    """By hand: equal, slightly different in one channel, and as different as possible."""
    apart = torch.tensor([[[0.0, 0.0, 9.0]], [[0.0, 1e-4, 1.0]]])
    panel = html.difference("ours", apart.double())
    assert panel["note"] == "3 of 6 differ, by up to 9"
    file = BytesIO(base64.b64decode(panel["src"].split(",")[1]))
    pixels = np.asarray(Image.open(file))
    assert pixels.tolist() == [[[0, 0, 0], [190, 20, 20], [255, 225, 90]]]
    same = html.difference("ours", torch.zeros(3, 2, 2).double())
    assert same["note"] == "0: every value is the same"


@pytest.mark.usefixtures("few")
def test_a_report_finds_a_wrong_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(warp, "warp_affine", off_by_one((0, 0, 40, 60), -1))
    result = validation.parity_suite(PHOTOGRAPHS)
    assert not result.passed
    assert {row.setting for row in result.broken} == set(FEW[:3])
    assert result.broken[0].parity.differing == 1
    assert "3 of 5 settings differ" in repr(result)
    assert lines_of(result)["affine bilinear"][:3] == ["90,000", "1", "1"]
    result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count('<tr class="broken">') == 3


def test_the_suite_covers_every_filter_of_opencv_and_pillow():
    found = resizes.resize_settings(cv2)
    has_lanczos = torch_resize.has_kernel("lanczos", True, torch.uint8, "cpu")
    torches = 3 * (4 + has_lanczos + 3)
    ipp = 2 if cv2.ipp.getIppVersion() != "disabled" else 1
    assert len(found) == len(set(found)) == ipp * 7 * 3 * 2 + 6 * 3 + torches


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("library", "broken"), [("opencv", 1), ("pillow", 2), ("torchvision", 3)])
def test_a_report_finds_a_wrong_resize(
    library: str, broken: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """One of the 8 values that each row of a library compares is wrong by 1 of its type."""
    right = resizes.by_warpkit

    def wrong(setting, image, size, arithmetic):
        result = right(setting, image, size, arithmetic).clone()
        if setting.library == library and size == resizes.SIZES[0]:
            result[0, 0, 3, 4] += 1
        return result

    monkeypatch.setattr(resizes, "by_warpkit", wrong)
    monkeypatch.setattr(report, "settings", lambda: FEW[:1])
    result = validation.parity_suite(PHOTOGRAPHS)
    assert not result.passed
    assert not result.broken
    (row,) = result.broken_resizes
    assert (row.setting.library, row.figures.differing) == (library, 1)
    assert row.figures.max_abs == pytest.approx(1)
    assert "1 of 5 resizes differ" in repr(result)
    assert repr(result).startswith("ParityReport(FAILED")
    result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count('<tr class="broken">') == 2  # for two types


def test_libraries_are_compared_with_each_other():
    """By hand: an image of two greys, halved, is their mean or the value in the middle."""
    image = torch.tensor([10.0, 50, 90, 130, 170, 210]).byte().expand(1, 1, 6, 6)

    def middle(name: str, library: str, interpolation: str) -> float | None:
        setting = resizes.ResizeSetting(library, interpolation, "uint8", 1)
        result = resizes.beside(name, setting, image, (2, 2), cv2)
        return None if result is None else result[0, 0, 0, 0].item()

    for name in ("torch", "torchvision", "kornia"):
        pytest.importorskip(name)
        # torchvision antialiases by default, with a triangle of 3 pixels on each side
        assert middle(name, "opencv", "bilinear") == (60 if name == "torchvision" else 50)
        assert middle(name, "opencv", "lanczos4") is None
        assert middle(name, "pillow", "hamming") is None
    # about 50: (2 * 10 + 3 * 50 + 2 * 90 + 1 * 130) / 8
    assert middle("torch", "pillow", "bilinear") == 50
    assert middle("torchvision", "pillow", "bilinear") == 60
    assert middle("opencv", "pillow", "box") == middle("pillow", "opencv", "area") == 50
    assert middle("torch", "opencv", "area") == 50
    assert middle("opencv", "pillow", "bilinear") == 50
    assert middle("pillow", "opencv", "bilinear") == 60


@pytest.mark.usefixtures("few")
def test_another_arithmetic_guarantees_nothing():
    result = validation.parity_suite(PHOTOGRAPHS, arithmetic="exact")
    assert result.passed
    assert sum(row.parity.differing for row in result.rows) > 10000
    assert not result.promised
    assert repr(result).startswith("ParityReport(nothing promised")


def test_the_number_of_threads_is_restored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(report, "settings", lambda: FEW[:1])
    monkeypatch.setattr(report, "resize_settings", lambda _: FEW_RESIZES[:1])
    before = torch.get_num_threads()
    validation.parity_suite([noise(1, 9, 9)])
    assert torch.get_num_threads() == before


BAD = {
    "`images` must be at least one, got none": [],
    "`images` must be each of shape (C, H, W), got (1, 1, 4, 4)": [torch.ones(1, 1, 4, 4)],
    "`images` must be a tensor of shape (..., C, H, W), got str": {"one": "in.png"},
}


@pytest.mark.parametrize("text", BAD)
def test_errors_of_images(text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(f"parity_suite: {text}")):
        validation.parity_suite(BAD[text])


def test_crops_keep_the_middle():
    image = torch.arange(100 * 130).reshape(1, 100, 130) % 251
    image = image.to(torch.uint8)
    found = suite.crop(image)
    assert torch.equal(found, image[:, 10:90, 2:127].expand(3, -1, -1))
    deep = (image.int() * 257).to(torch.uint16)
    assert torch.equal(suite.crop(deep), found)
    assert torch.equal(suite.crop(image / 255), found)
    assert suite.crop(image[:, :7, :9]).shape == (3, 80, 125)
