"""Every `warpkit` command on the pages is one that the program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from tests.support import ROOT
from warpkit.cli.app import app, main
from warpkit.cli.options import gather
from warpkit.cli.warp import run

STANDS_FOR = {"$(cat matrix.txt)": "1 0 0 0 1 0"}


def commands() -> list[str]:
    """The commands of the shell examples, without pipes, comments and redirections."""
    found: set[str] = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                parts = (" ".join(part.split()) for part in re.split(r"[|>]| #", line))
                found.update(part for part in parts if part.startswith("warpkit "))
    return sorted(found)


COMMANDS = commands()


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_pages_is_valid(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    for text, numbers in STANDS_FOR.items():
        line = line.replace(text, numbers)
    name, *words = shlex.split(line)[1:]
    command = get_command(app).get_command(None, name)  # pyright: ignore
    command.make_context(name, gather(words))  # raises if a word is not one of the command's
    if name in ("warp", "resize", "undistort", "view"):  # raises if the options do not agree
        for work in ("do", "many", "check_target"):
            monkeypatch.setattr(run, work, lambda *_: 0)
        assert main([name, *words]) == 0, capsys.readouterr().err


def test_the_pages_have_commands():
    assert len(COMMANDS) > 30
    assert {line.split()[1] for line in COMMANDS} >= {"warp", "undistort", "view", "compare"}
