"""`warpkit parity`: on the terminal and in files, the exit status, one line for every error."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support import ROOT
from tests.support.forks import python
from tests.validation.test_suite import FEW, FEW_RESIZES
from tests.validation.test_validation import off_by_one
from warpkit import warp
from warpkit.cli.app import main
from warpkit.validation import report

PIXELS = np.random.default_rng(0).integers(0, 256, (90, 130, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with in.png, and a suite of few settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(report, "settings", lambda: FEW)
    monkeypatch.setattr(report, "resize_settings", lambda _: FEW_RESIZES)
    Image.fromarray(PIXELS).save("in.png")
    return tmp_path


def test_a_report_is_printed_and_written(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "page.html").write_text("old")
    command = "parity in.png in.png --html page.html --json rows.json"
    assert main(command.split()) == 0
    out, err = capsys.readouterr()
    assert err.startswith("comparing with OpenCV")
    assert f"{len(FEW)}/{len(FEW)}" in err
    assert "affine bilinear" in out
    assert "Pillow bicubic" in out
    assert "promised pixel is that of OpenCV" in out
    assert out.endswith("wrote page.html\nwrote rows.json\n")
    assert max(map(len, out.splitlines())) <= 80
    rows = json.loads((folder / "rows.json").read_text())
    assert rows["images"] == ["in.png", "in.png (2)", "white noise"]
    assert len(rows["rows"]) == len(FEW)
    assert "in.png" in (folder / "page.html").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["in.png", "page.html", "rows.json"]


def test_a_wrong_pixel_gives_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(warp, "warp_affine", off_by_one((0, 0, 40, 60), 1))
    assert main(["parity", "in.png", "--json", "rows.json"]) == 1
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 2, "only progress bars"
    assert "3 of 5 settings differ" in out
    assert json.loads(Path("rows.json").read_text())["passed"] is False


def test_differences_in_another_arithmetic_are_no_failure(capsys: pytest.CaptureFixture[str]):
    assert main(["parity", "in.png", "--arithmetic", "exact"]) == 0
    assert "nothing is promised" in capsys.readouterr().out


BAD = {
    "parity": (2, "Missing argument 'IMAGE'."),
    "parity none.png": (1, "none.png: No such file or directory"),
    "parity cmyk.jpg": (1, "cmyk.jpg: the comparison takes grey and RGB photographs"),
    "parity in.png --html nowhere/page.html": (1, "nowhere/page.html: No such file or directory"),
    "parity in.png --json .": (1, ".: Is a directory"),
    "parity in.png --arithmetic opencv": (
        2,
        ("Invalid value for '--arithmetic': 'opencv' is not one of auto, exact, opencv4, opencv5"),
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_an_error_is_one_line(line: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    Image.fromarray(PIXELS).convert("CMYK").save("cmyk.jpg")
    before = sorted(folder.iterdir())
    status, message = BAD[line]
    assert main(line.split()) == status
    assert capsys.readouterr() == ("", f"warpkit: {message}\n")
    assert sorted(folder.iterdir()) == before


def test_a_missing_opencv_is_one_line():
    root = str(ROOT)
    code = f"import sys; sys.path.insert(0, {root!r}); sys.modules['cv2'] = None; "
    code += "from warpkit.cli import main; sys.exit(main(['parity', 'in.png']))"
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True)
    message = "warpkit: parity_suite needs OpenCV: pip install '.[opencv]' in a checkout\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]):
    assert main(["parity", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: warpkit parity [OPTIONS]")
    assert max(map(len, text.splitlines())) <= 80
