"""`warpkit attack`: its work in a small form, its figure, and its errors in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.cli.app import main
from warpkit.cli.attack import work as attack_demo


def test_quarters_are_the_photographs():
    photograph = noise(3, 9, 12)
    pieces = attack_demo.quarters(photograph)
    assert torch.equal(pieces[1], photograph[:, :4, 6:])
    assert torch.equal(pieces[2], photograph[:, 4:8, :6])
    assert torch.equal(attack_demo.joined(pieces), photograph[:, :8])


def test_the_net_learns_and_is_misled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attack_demo, "TRAINING_STEPS", 60)
    monkeypatch.setattr(attack_demo, "UNSEEN", 20)
    shade = torch.linspace(0, 1, 32)
    photograph = torch.stack((shade.expand(32, 32), shade[:, None].expand(32, 32), noise(32, 32)))
    done = attack_demo.attack(photograph.float(), 60 / 255, 12)
    clean, *attacked = done.rates.values()
    assert clean < 0.2
    assert max(attacked) > clean + 0.2
    assert (done.after - done.before).abs().max() <= 60 / 255
    levels = done.after * 255
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=TOLERANCE["levels"])
    assert len(done.history) == 12


def test_the_command_writes_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(attack_demo, "TRAINING_STEPS", 2)
    monkeypatch.setattr("warpkit.cli.attack.run.TRAINING_STEPS", 2)
    out = tmp_path / "out.png"
    assert main(["attack", "--out", str(out), "--steps", "2", "--epsilon", "4"]) == 0
    with Image.open(out) as figure:
        assert (figure.format, figure.width) == ("PNG", 1200)
    captured = capsys.readouterr()
    assert "optimised under transformations" in captured.out
    assert f"wrote {out}" in captured.out
    assert "learning the photograph" in captured.err
    assert "2/2" in captured.err


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ("attack missing.png", 1, "warpkit: missing.png: No such file or directory"),
        ("attack --out a.jpg", 1, "warpkit: a.jpg: the figure is a PNG: its name must end in .png"),
        (
            "attack strip.png",
            1,
            "warpkit: strip.png: the photograph must have at least 32 pixels a side ",
        ),
        ("attack --epsilon 0", 2, "warpkit: Invalid value for '--epsilon': "),
    ],
)
def test_errors_are_one_line(
    words: str,
    status: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (700, 70)).save("strip.png")
    assert main(words.split()) == status
    assert capsys.readouterr().err.startswith(text)
