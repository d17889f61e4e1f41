"""Every Python block of the front page and of docs/ runs.

The blocks of one page share their names, as a reader would run them one after another. A line
`>>> ...` makes a block a doctest instead: its output is compared.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import warpkit as wk
from tests.support import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(page: Path) -> list[tuple[int, str]]:
    """The line and the text of every block of a page."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [(text.count("\n", 0, match.start()) + 2, match[1]) for match in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")  # for the pages that read a photograph
    names: dict[str, object] = {}
    for line, code in blocks(page):
        if ">>> " in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(verbose=False)
            assert runner.run(test, clear_globs=False).failed == 0, f"{page.name}:{line}"
            names.update(test.globs)
        else:
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


def test_the_front_page_has_code_and_names_every_function():
    text = (ROOT / "README.md").read_text()
    assert blocks(ROOT / "README.md")
    assert [name for name in wk.__all__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
