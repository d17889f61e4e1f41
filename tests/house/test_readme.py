"""Every Python block of README.md and docs/ runs.

The blocks of one page share their names, as a reader would run them one after another. A line
`>>> ...` makes a block a doctest instead: its output is compared.
"""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision.transforms.v2 import functional as tv

import warpkit as wk
from tests.support import ROOT

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.glob("**/*.md")) if page.parent != DOCS / "gallery"),
]
"""Without what a build of the gallery writes: tests/house/test_gallery.py runs its source."""


def blocks(page: Path) -> list[tuple[int, str]]:
    """The line and the text of every block of a page."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [(text.count("\n", 0, match.start()) + 2, match[1]) for match in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")  # some pages read a photograph
    names: dict[str, object] = {}
    for line, code in blocks(page):
        if ">>> " in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(verbose=False)
            assert runner.run(test, clear_globs=False).failed == 0, f"{page.name}:{line}"
            names.update(test.globs)
        else:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


def test_the_readme_is_short_and_has_code():
    page = ROOT / "README.md"
    assert blocks(page)
    assert len(page.read_text().splitlines()) <= 120


def test_the_readmes_table_of_resizes_is_true():
    picture = Image.open(ROOT / "data" / "images" / "coffee.png").convert("RGB")
    image, size = torch.from_numpy(np.array(picture)).permute(2, 0, 1), (224, 224)
    peers = [
        torch.from_numpy(cv2.resize(np.array(picture), size)).permute(2, 0, 1),
        torch.from_numpy(np.array(picture.resize(size, Image.Resampling.BILINEAR))).permute(
            2, 0, 1
        ),
    ]
    smooth = F.interpolate(image[None].float(), size, mode="bilinear")[0].round().byte()
    results = [*peers, tv.resize(image, list(size)), smooth]
    if find_spec("kornia"):
        resized = import_module("kornia.geometry.transform").resize(image[None].float(), size)[0]
        results.append(resized.round().byte())
    found = [[int((a.int() - b.int()).abs().max()) for b in peers] for a in results]
    found.append([int((wk.resize(image, size, arithmetic="opencv5").int() - peers[0]).abs().max())])
    found[-1].append(
        int((wk.resize(image, size, arithmetic="pillow").int() - peers[1]).abs().max())
    )
    text = (ROOT / "README.md").read_text().split("| call |")[1].split("\n\n")[0]
    if not find_spec("kornia"):
        text = re.sub(r"^\| `kornia.*\n", "", text, flags=re.M)
    written = re.findall(r"^\| `.*` \| (\d+) \| (\d+) \|", text, re.M)
    assert [[str(n) for n in row] for row in found] == [list(row) for row in written]


def test_the_start_page_names_every_function():
    text = (ROOT / "docs" / "index.md").read_text()
    names = [*wk.__all__, *(f"indexing.{name}" for name in wk.indexing.__all__)]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_resolve(page: Path):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
