"""Results that are too large to read again are rejected before the work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from warpkit.cli.app import main
from warpkit.cli.errors import cause_of
from warpkit.cli.sizes import MOST_PIXELS

TOO_MANY = {
    "warp in.png out.png --size 1000000000 1": "--size {}, got 1000000000 x 1",
    "warp in.png out.png --size 100000000 100000000": "--size {}, got 100000000 x 100000000",
    "warp in.png out.png --size 1e30 1": "--size {}, got 1e+30 x 1",
    "warp in.png out.png --corners 0 0 9 0 9 9 0 9 --size 2 1e9": "--size {}, got 2 x 1000000000",
    "resize in.png out.png --size 1 1000000000": "--size {}, got 1 x 1000000000",
    "resize in.png out.png --scale 1e9 1e3": "--scale {}, got 9000000000 x 9000",
    "resize in.png --out folder --scale 1e5": "in.png: --scale {}, got 900000 x 900000",
    "attack --pipeline resize:1000000000x1": "--pipeline {}, got 1000000000 x 1",
}
LIMIT = "makes images of up to 178,956,970 pixels, the most that Pillow reads"


@pytest.mark.parametrize("line", TOO_MANY)
def test_a_result_that_is_too_large_is_rejected(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (9, 9)).save("in.png")
    several = "--out folder" in line
    assert main(line.split()) == (1 if several else 2)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"warpkit: {TOO_MANY[line].format(LIMIT)}"
    assert len(said) == 1 + several
    assert [path.name for path in tmp_path.rglob("*.png")] == ["in.png"]


@pytest.mark.parametrize(("pixels", "refused"), [(MOST_PIXELS, False), (MOST_PIXELS + 1, True)])
def test_the_limit_is_pillows_limit(
    pixels: int, refused: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """A file without pixels suffices: Pillow reads the header first."""
    path = tmp_path / "in.ppm"
    path.write_bytes(f"P4 {pixels} 1\n".encode())
    assert main(["resize", str(path), str(tmp_path / "out.png"), "--size", "1", "1"]) == 1
    assert ("exceeds limit" in capsys.readouterr().err) == refused


def test_too_little_memory_is_one_line():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    wanted = ("not enough memory for images of this size", 1)
    assert cause_of(caught.value) == wanted
    assert cause_of(MemoryError()) == wanted
