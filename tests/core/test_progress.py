"""Progress on stderr: bars on terminals, lines elsewhere."""

from __future__ import annotations

import pytest

from warpkit.core import progress


@pytest.fixture
def dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "60")


@pytest.mark.usefixtures("dumb")
@pytest.mark.parametrize("is_terminal", ["0", "1"])
def test_dumb_terminals_get_lines_instead_of_bars(
    is_terminal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TTY_COMPATIBLE", is_terminal)
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    with progress.progress_bar("[looking]", total=3, completed=1) as advance:
        advance("one " + 50 * "x")
        advance("[b]two")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"[looking] 2/3 one {50 * 'x'}\n[looking] 3/3 [b]two\n"


@pytest.mark.usefixtures("dumb")
def test_quick_steps_are_left_out_of_lines(capsys: pytest.CaptureFixture[str]):
    with progress.progress_bar("looking", total=1000) as advance:
        for number in range(1000):
            advance(str(number))
    assert capsys.readouterr().err == "looking 1000/1000 999\n"


def test_two_bars_of_a_command_have_their_own_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TERM", "dumb")
    for name in ("first", "second"):
        with progress.bar_named(name), progress.progress_bar("both", total=1) as advance:
            advance("")
    with progress.progress_bar("both", total=1) as advance:
        advance("")
    names = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert names == ["first", "second", "both"]
