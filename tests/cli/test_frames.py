"""Files with several images: the first is used, and one line on stderr says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from warpkit.cli.app import main
from warpkit.cli.image_files import read_image

ENDINGS = ["gif", "png", "tif", "webp"] + ["avif"] * bool(features.check("avif"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pictures(count: int) -> list[Image.Image]:
    values = np.random.default_rng(0).integers(0, 256, (count, 20, 40), dtype=np.uint8)
    return [Image.fromarray(each) for each in values]


def save(name: str, count: int) -> None:
    first, *others = pictures(count)
    first.save(name, save_all=True, append_images=others)


def said(name: str, count: int) -> str:
    return f"warpkit: {name}: has {count} images: using the first one only\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_with_several_images_get_one_message(ending: str, capsys: pytest.CaptureFixture[str]):
    save(f"many.{ending}", 3)
    save(f"one.{ending}", 1)
    many, one = read_image(f"many.{ending}"), read_image(f"one.{ending}")
    assert capsys.readouterr() == ("", said(f"many.{ending}", 3))
    assert many.pixels.shape == one.pixels.shape
    if ending in ("gif", "png", "tif"):
        assert np.array_equal(many.pixels[0], np.asarray(pictures(1)[0]))


def test_pages_of_other_sizes_and_modes_do_not_affect_the_first(
    capsys: pytest.CaptureFixture[str],
):
    first = Image.fromarray(np.arange(480, dtype=np.uint16).reshape(20, 24) * 100)
    first.save("in.tif", save_all=True, append_images=[Image.new("RGB", (5, 7))])
    picture = read_image("in.tif")
    assert picture.mode == "I;16"
    assert np.array_equal(picture.pixels[0], np.asarray(first))
    assert capsys.readouterr().err == said("in.tif", 2)


@pytest.mark.parametrize(
    "line",
    [
        "warp in.tif out.tif --angle 3",
        "resize in.tif out.tif --size 5 6",
        "undistort in.tif out.tif --camera 20 20 12 10 --distortion 0 0 0 0",
        "view in.tif out.tif --size 9 12",
        "warp in.tif --out folder --angle 3",
    ],
)
def test_commands_report_it_once(line: str, capsys: pytest.CaptureFixture[str]):
    save("in.tif", 2)
    assert main(line.split()) == 0
    assert capsys.readouterr().err == said("in.tif", 2)


def test_align_reports_it_for_each_of_its_images(capsys: pytest.CaptureFixture[str]):
    save("a.tif", 2)
    save("b.tif", 3)
    assert main(["align", "a.tif", "b.tif", "out.png"]) == 0
    lines = capsys.readouterr().err.splitlines(keepends=True)
    assert [lines[0], lines[1]] == [said("a.tif", 2), said("b.tif", 3)]


def test_standard_input_may_hold_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    save("in.gif", 4)
    with open("in.gif") as file:
        monkeypatch.setattr("sys.stdin", file)
        read_image("-")
    assert capsys.readouterr().err == said("standard input", 4)


def test_errors_after_the_first_image_do_not_matter(folder: Path):
    save("whole.gif", 3)
    data = (folder / "whole.gif").read_bytes()
    (folder / "cut.gif").write_bytes(data[: len(data) - 300])
    cut = read_image("cut.gif")
    assert np.array_equal(cut.pixels[0], np.asarray(pictures(1)[0]))
