"""The texts of `--help` and of errors about numbers use users' words, not Python's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from warpkit.cli.app import app, main

COMMANDS = [(c.name or c.callback.__name__) for c in app.registered_commands if c.callback]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_names_no_types(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: warpkit {command} [OPTIONS]")
    assert max(map(len, text.splitlines())) <= 80
    assert not [word for word in ("<", "{", "}", "list[", ">=", "…") if word in text]


def test_usage_shows_required_arguments(capsys: pytest.CaptureFixture[str]):
    main(["parity", "--help"])
    assert "parity [OPTIONS] IMAGE...\n" in capsys.readouterr().out
    main(["compare", "--help"])
    assert "compare [OPTIONS] A B [IMAGE]...\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["--help", "warp --help", "export-resize -h", "--version"])
def test_help_comes_without_torch(words: str):
    """Importing torch takes two seconds; the rest of the command a quarter of one."""
    code = (
        "import sys; from warpkit.__main__ import main; "
        f"status = main({words.split()}); assert 'torch' not in sys.modules; sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "arpkit" in done.stdout


NUMBERS = {
    "bench --threads x": "'--threads': takes a whole number, 1 or more, got x",
    "attack --steps 0": "'--steps': takes a whole number, 1 or more, got 0",
    "attack --epsilon 256": "'--epsilon': takes a whole number from 1 to 255, got 256",
    "warp in.png --out d --workers 1.5": "'--workers': takes a whole number, 1 or more, got 1.5",
}


@pytest.mark.parametrize("words", NUMBERS)
def test_an_invalid_count_is_rejected_in_plain_words(
    words: str, capsys: pytest.CaptureFixture[str]
):
    assert main(words.split()) == 2
    assert capsys.readouterr().err == f"warpkit: Invalid value for {NUMBERS[words]}\n"


def test_a_warp_without_a_motion_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, target = str(tmp_path / "in.png"), str(tmp_path / "out.png")
    Image.new("L", (20, 30)).save(source)
    told = "warpkit: no --angle, --scale, --matrix or the like: every pixel stayed in place\n"
    asked = {"": told, "--center 1 1": told, "--angle 0": "", "--size 9 9": "", "--format png": ""}
    for words, said in asked.items():
        assert main(["warp", source, target, *words.split()]) == 0
        assert capsys.readouterr().err == said
