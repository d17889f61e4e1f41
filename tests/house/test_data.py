"""The files of data/images are those that data/README.md describes."""

from __future__ import annotations

import hashlib
import re

import pytest
from PIL import Image

from tests.support import ROOT

DATA = ROOT / "data"
README = (DATA / "README.md").read_text()
SUMS = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", README, re.M)}


def test_every_image_is_listed_with_source_and_licence():
    files = {path.name for path in (DATA / "images").iterdir()}
    rows = {
        row[0]: row for row in re.findall(r"^\| `(\S+)` \|(.*)\|(.*)\|(.*)\|(.*)\|$", README, re.M)
    }
    assert files == set(rows) == set(SUMS)
    for _, _, _, source, licence in rows.values():
        assert source.strip()
        assert re.search("public domain|CC0", licence)


@pytest.mark.parametrize("name", SUMS)
def test_an_image_is_the_one_described(name: str):
    path = DATA / "images" / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SUMS[name]
    with Image.open(path) as image:
        assert max(image.size) <= 512
        assert f"| {image.width} x {image.height}" in README
