"""`identify` of programs that read a file's path, or its bytes."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from warpkit.validation import compare_pipelines, identify


def by_path(path: str) -> np.ndarray:
    return cv2.resize(cv2.imread(path), (64, 64))


def by_bytes(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize((64, 64)))


@pytest.mark.parametrize("takes", ["auto", "file"])
def test_programs_of_files_are_found(takes):
    seen = []

    def noting(path):
        seen.append(path)
        return by_path(path)

    found = identify(noting, takes=takes)
    assert found.known, str(found)
    assert (found.takes, found.size, found.channels) == ("file", (64, 64), "reversed")
    assert "It takes a file's path" in str(found)
    paths = [path for path in seen if isinstance(path, str)]
    assert len(paths) == found.calls - (len(seen) - len(paths))
    assert not any(Path(path).exists() or Path(path).parent.exists() for path in paths)
    found = identify(by_bytes, takes=takes)
    assert found.known, str(found)
    assert (found.takes, found.arithmetic, found.channels) == ("bytes", "pillow", "kept")


def test_programs_of_files_and_of_arrays_are_compared():
    comparison = compare_pipelines(by_path, lambda x: cv2.resize(x, (64, 64))[..., ::-1])
    assert comparison.equal
    assert compare_pipelines(by_bytes, by_bytes, takes=("file", "file")).equal


def test_the_pipelines_text_says_its_steps():
    found = identify(by_path, takes="file")
    text = repr(found.pipeline)
    assert text.startswith("Pipeline(resize to fixed (64, 64) by opencv")
    assert "channels reversed" in text
