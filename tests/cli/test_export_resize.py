"""`warpkit export-resize`: its model gives the libraries' pixels; one line per error."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.support.installed_opencv import compares_with_opencv
from warpkit.cli.app import main

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 19, 25, 3), dtype=np.uint8)


def run(path: Path, images: np.ndarray) -> np.ndarray:
    """Run the model on images (N, H, W, C) in onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (made,) = session.run(["resized"], {"image": images.transpose(0, 3, 1, 2)})
    assert made.dtype == np.uint8
    return made.transpose(0, 2, 3, 1)


def of_pillow(images: np.ndarray, size: tuple[int, int], name: str) -> np.ndarray:
    kind = Image.Resampling[name.upper()]
    return np.stack(
        [np.asarray(Image.fromarray(i).resize((size[1], size[0]), kind)) for i in images]
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for name in ("onnx", "onnxscript"):
        pytest.importorskip(name)
    return tmp_path / "resize.onnx"


def test_pillows_pixels_of_any_batch_and_size(out, capsys):
    words = ["--size", "7", "9", "--interpolation", "bicubic"]
    assert main(["export-resize", str(out), *words]) == 0
    assert capsys.readouterr() == ("", "")
    model = pytest.importorskip("onnx").load(out)
    assert {node.domain for node in model.graph.node} <= {""}
    assert not model.functions
    # which pass comes first is chosen in the graph, and a picture of the size itself stays
    shapes = (PIXELS.shape, (1, 19, 25, 3), (1, 40, 5, 3), (2, 5, 300, 3), (2, 7, 9, 3))
    for shape in shapes:
        images = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
        np.testing.assert_array_equal(run(out, images), of_pillow(images, (7, 9), "bicubic"))


def test_pillows_pixels_of_one_size(out):
    words = ["--size", "31", "12", "--from", "19", "25", "--interpolation", "box"]
    assert main(["export-resize", str(out), *words]) == 0
    for images in (PIXELS, PIXELS[:1]):
        np.testing.assert_array_equal(run(out, images), of_pillow(images, (31, 12), "box"))


@compares_with_opencv
def test_opencvs_pixels_of_one_channel(out):
    cv2.ipp.setUseIPP(False)
    words = ["--size", "7", "9", "--from", "19", "25", "--channels", "1"]
    words += ["--interpolation", "area", "--arithmetic", "opencv5"]
    assert main(["export-resize", str(out), *words]) == 0
    wanted = [cv2.resize(i, (9, 7), interpolation=cv2.INTER_AREA) for i in PIXELS[..., 0]]
    np.testing.assert_array_equal(run(out, PIXELS[..., :1])[..., 0], np.stack(wanted))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "takes --size H W: the model's result has one size"),
        (["--size", "7"], "takes 2 whole positive numbers, got 1"),
        (["--size", "99999", "99999"], "--size makes images of up to 178,956,970 pixels"),
        (["--size", "7", "9", "--from", "99999", "99999"], "--from"),
        (["--size", "7", "9", "--interpolation", "area"], "--interpolation must be one of"),
        (["--size", "7", "9", "--interpolation", "box"], "takes --from H W, the images' size"),
        (["--size", "7", "9", "--arithmetic", "opencv5"], "takes --from H W, the images' size"),
        (["--size", "7", "9", "--arithmetic", "exact"], "'exact' is not one of opencv4"),
        (
            ["--size", "7", "9", "--arithmetic", "opencv5_ipp", "--interpolation", "bicubic"],
            "takes --from H W, the images' size",
        ),
    ],
)
def test_errors_are_one_line(words, text, tmp_path, capsys):
    target = tmp_path / "resize.onnx"
    assert main(["export-resize", str(target), *words]) == 2
    shown = capsys.readouterr().err
    assert text in shown
    assert shown.count("\n") == 1
    assert not target.exists()


def test_a_missing_folder_is_reported_before_the_work(tmp_path, capsys):
    target = tmp_path / "nowhere" / "resize.onnx"
    assert main(["export-resize", str(target), "--size", "7", "9"]) == 1
    shown = capsys.readouterr().err
    assert "nowhere" in shown
    assert shown.count("\n") == 1


def test_the_help_names_the_filters_of_each_library(capsys):
    assert main(["export-resize", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "exact:" not in shown
    for name in ("pillow: nearest, box,", "torchvision: nearest,", "bilinear_exact, bicubic, area"):
        assert name in shown


def test_missing_packages_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["export-resize", str(tmp_path / "a.onnx"), "--size", "7", "9"]) == 2
    assert "needs onnx and onnxscript: pip install onnx onnxscript" in capsys.readouterr().err
