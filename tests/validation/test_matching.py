"""Files of two folders by their names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpkit.validation.pairs import matching


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("originals", "results"):
        (tmp_path / name / "locked").mkdir(parents=True)
        (tmp_path / name / "a.png").write_bytes(b"")
        (tmp_path / name / "locked" / "b.png").write_bytes(b"")
    locked = str(tmp_path / "originals" / "locked")
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path) == locked:  # root may read everything
            raise PermissionError(13, "Permission denied", locked)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for _ in range(2):
        found = matching.match_folders("f", tmp_path / "originals", tmp_path / "results")[2]
        assert found.pairs == [(0, 0)]
        assert found.left_out[0] == f"{locked} (a folder that cannot be read: Permission denied)"
        assert len(found.left_out) == 2  # and the result without an image
