"""`warpkit identify ORIGINALS RESULTS`: two folders, skipped files, one line per error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.drawn_pairs import pictures
from warpkit.cli.app import main


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """originals/ and the cache/ that Pillow made from them, each with a subfolder."""
    monkeypatch.chdir(tmp_path)
    for name in ("originals", "cache"):
        (tmp_path / name / "class").mkdir(parents=True)
    for k, image in enumerate(pictures(np.random.default_rng(3), 4, 0)):
        original = Image.fromarray(image)
        original.save(f"originals/class/{k}.png")
        original.resize((48, 48), Image.Resampling.BICUBIC).save(f"cache/class/{k}.bmp")
    return tmp_path


def test_the_program_between_two_folders_is_named(
    folders: Path, capsys: pytest.CaptureFixture[str]
):
    (folders / "originals" / "notes.txt").write_text("no picture")
    assert main(["identify", "originals", "cache", "--json", "found.json"]) == 0
    out, err = capsys.readouterr()
    assert "Every picture becomes 48 x 48" in out
    assert "Pillow's bicubic, antialiased" in out
    assert "Left out, 1: originals/notes.txt (no result of this name)" in out
    assert err == ""
    found = json.loads((folders / "found.json").read_text())
    assert (found["rule"], found["size"], found["arithmetic"]) == ("fixed", [48, 48], "pillow")


def test_unreadable_files_are_named_and_candidates_listed(
    folders: Path, capsys: pytest.CaptureFixture[str]
):
    (folders / "cache" / "class" / "1.bmp").write_bytes(b"broken")
    for k in (0, 2, 3):
        path = folders / "cache" / "class" / f"{k}.bmp"
        with Image.open(path) as image:
            levels = np.asarray(image).copy()
        levels[3, 3] ^= 2
        Image.fromarray(levels).save(path)
    assert main(["identify", "originals", "cache"]) == 1
    out, _ = capsys.readouterr()
    assert "Left out, 1: cache/class/1.bmp (not an image)" in out
    assert "\n1. Every picture becomes 48 x 48" in out
    assert "Of 20,736 values compared 9 differ" in out
    assert "Pillow's bicubic, antialiased" in out.splitlines()[1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("identify originals", "originals is a folder: name a second one"),
        ("identify originals nowhere", "nowhere: no such folder"),
        ("identify module:function cache", "module:function: no such folder"),
        ("identify originals originals", "originals is named twice"),
        ("identify originals cache --takes pil", "--takes says how a program is called"),
        ("identify originals cache/class", "no files of the same names|have files of the same"),
    ],
)
def test_errors_are_one_line(command: str, said: str, capsys: pytest.CaptureFixture[str]):
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert any(words in err for words in said.split("|"))


def test_results_of_other_images_are_rejected(folders: Path, capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(0)
    for k in range(4):
        noise = rng.integers(0, 256, (48, 48, 3), np.uint8)
        Image.fromarray(noise).save(folders / "cache" / "class" / f"{k}.bmp")
    assert main(["identify", "originals", "cache"]) == 2
    _, err = capsys.readouterr()
    assert "`results` must be what a resize, a crop or a letterbox makes of" in err
