"""The documentation is complete: pages in the menu, names on pages, and pictures.

The strict build, which scripts/test runs, checks that links resolve.
"""

from __future__ import annotations

import ast
import re
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray

import warpkit
from benchmarks import plots
from tests.support import ROOT
from warpkit import attacks, indexing, validation

DOCS = ROOT / "docs"
PACKAGE = ROOT / "warpkit"
PAGES = {
    str(page.relative_to(DOCS))
    for page in DOCS.glob("**/*.md")
    if page.parent != DOCS / "gallery"  # written by a build
}
GENERATED = {"CHANGELOG.md", "CONTRIBUTING.md", "gallery"}
"""Entries of the menu whose source is not in docs/."""


def leaves(menu: object) -> list[str]:
    """The pages of a menu, in order."""
    if isinstance(menu, str):
        return [menu]
    entries = menu.values() if isinstance(menu, dict) else menu
    return [page for entry in entries for page in leaves(entry)]


def test_the_menu_lists_every_page_once():
    menu = leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(menu) == sorted(PAGES | GENERATED)


def test_every_public_name_is_documented_once():
    text = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    paths = re.findall(r"^::: (\S+)$", text, re.M)
    assert len(paths) == len(set(paths))
    documented = [resolve_name(path) for path in paths]
    for module in (warpkit, attacks, indexing, validation):
        for name in module.__all__:
            assert any(getattr(module, name) is each for each in documented), name


def test_every_file_has_a_description():
    for path in (ROOT / "warpkit").rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(docstring.partition("\n")[0]) > 20, path


def test_every_file_named_in_the_guide_to_the_code_exists():
    for name in re.findall(r"`([\w/.]+(?:\.py|/))`", (DOCS / "code.md").read_text()):
        found = [*(ROOT / "warpkit").rglob(name), *ROOT.glob(name)]
        assert found, name


def pictures() -> list[Path]:
    return sorted((DOCS / "images").iterdir())


@pytest.mark.parametrize("picture", pictures(), ids=lambda path: path.name)
def test_a_picture_is_drawn_by_a_script_and_shown_on_a_page(picture: Path):
    code = [*(ROOT / "scripts/commands").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    drawing = "".join(path.read_text() for path in code if path.is_file())
    assert re.search(rf"\b{picture.stem.replace('-', '[-_]')}\b", drawing), "no script mentions it"
    assert any(f"images/{picture.name})" in (DOCS / page).read_text() for page in PAGES)


def test_the_scripts_draw_their_pictures(tmp_path: Path):
    pictures = import_module("scripts.commands.document.draw")
    pictures.draw("conventions", tmp_path / "conventions.png")
    assert (tmp_path / "conventions.png").stat().st_size > 1e5
    pictures.draw("flow_fields", tmp_path / "flow.png")
    assert (tmp_path / "flow.png").stat().st_size > 3e4
    assert all((ROOT / path).is_file() for path in pictures.PICTURES.values())


def test_the_pictures_are_small():
    assert sum(path.stat().st_size for path in pictures()) < 3e6


def test_the_start_page_begins_like_the_readme():
    pages = import_module("scripts.commands.documentation.pages")
    screen = pages.on_page_markdown("<!-- README -->", None)
    assert screen.startswith("# warpkit\n\nOpenCV's and Pillow's geometric image operations")
    assert "](data/demo.png)" in screen
    assert "](docs/" not in screen
    assert "](performance.md#" in pages.on_page_markdown("<!-- README: Install -->", None)


def test_links_to_files_outside_the_site_become_text():
    pages = import_module("scripts.commands.documentation.pages")
    text = "see [`calibrate.py`](../examples/calibrate.py) and [it](warpkit/README.md)"
    assert pages.on_page_markdown(text, None) == "see `calibrate.py` and it"


def built(markdown: str) -> str:
    """A page as the site shows it: the blocks that run, and the lines that are hidden."""
    markdown_exec = pytest.importorskip("markdown_exec")
    from markdown import Markdown

    fence = {"name": "python", "class": "python", "format": markdown_exec.formatter}
    fences = {"custom_fences": [{**fence, "validator": markdown_exec.validator}]}
    made = Markdown(
        extensions=["pymdownx.superfences", "pymdownx.highlight", "md_in_html"],
        extension_configs={"pymdownx.superfences": fences, "pymdownx.highlight": HIGHLIGHT},
    )
    return made.convert(markdown)


HIGHLIGHT = {"use_pygments": True, "pygments_lang_class": True}


def test_a_block_that_is_no_python_on_the_site_fails_the_build():
    """A formatter may spread a hidden line over several, of which only the last has the comment."""
    page = """```python exec="1" source="above" html="1"
seen = 1 < 2
print(
    {"seen": seen}
)  # markdown-exec: hide
```
"""
    pages = import_module("scripts.commands.documentation.pages")
    with pytest.raises(SyntaxError):
        pages.check_code(built(page), "page")
    whole = page.replace('print(\n    {"seen": seen}\n)', 'print({"seen": seen})')
    html = built(whole)
    assert "&lt;" in html
    assert "markdown-exec" not in html
    pages.check_code(html, "page")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_what_the_site_shows_of_a_block_that_runs_is_python(page: str):
    for code in re.findall(
        r"^```python exec.*?\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S
    ):
        shown = [line for line in code.splitlines() if "markdown-exec: hide" not in line]
        ast.parse("\n".join(shown), page)


def test_docstrings_are_converted_to_markdown():
    as_markdown = import_module("scripts.commands.documentation.docstrings").as_markdown
    text = "Like `remap`.\n\nimage (*A, H); see docs/gradients.md.\n\n>>> f(1)\n2\n\nEnd."
    assert as_markdown(text, "f", ["image"]) == (
        "Like [`remap`][warpkit.remap].\n\n"
        "`image` (\\*A, H); see [docs/gradients.md](../gradients.md).\n\n"
        "```pycon\n>>> f(1)\n2\n```\n\nEnd."
    )
    assert as_markdown("Args:\n    image: of `f`", "f", ["image"]) == "Args:\n    image: of `f`"


def test_plots_accept_any_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plots, "ROWS", tmp_path)
    (tmp_path / "new.csv").write_text(
        "workload,size,note,way,extra,forward_ms,times_warpkit,date\n"
        "large,1024,,theirs,x,8.0,4.00,2026-01-01\n"
        "large,1024,,warpkit,x,2.0,1.00,2026-01-01\n"
        "alone,1,,warpkit,x,2.0,1.00,2026-01-02\n"
    )
    (tmp_path / "empty.csv").write_text("case,way,ms,times_warpkit\n")
    table = plots.tables()
    assert "| large, 1,024 size | warpkit | 2.0 | 1.00 |\n|  | theirs | 8.0 | 4.00 |" in table
    assert "| alone, 1 size | warpkit | 2.0 | 1.00 |" in table
    assert "2026" not in table  # shown only if it is the same for all rows
    drawn = plots.pictures()
    assert list(drawn) == ["benchmarks-new", "benchmarks-new-dark"]
    assert [svg.count("<svg") for svg in drawn.values()] == [1, 1]
    assert "#1f2129" in drawn["benchmarks-new-dark"]
    assert "benchmarks-new-dark.svg#only-dark" in table
    assert plots.pictures() == drawn  # every build gives the same pictures


def test_a_library_has_one_marker_and_colour_in_all_plots():
    """No two share a marker, and most differ in colour, also as seen by protanopes."""
    markers = [marker for _, marker, _ in plots.LIBRARIES.values()]
    assert len(set(markers)) == len(markers)
    one = plots.styles(["cv2", "grid_sample", "kornia"])
    other = plots.styles(["F.interpolate", "cv2, two threads", "cv2"])
    assert other["cv2, two threads"] == one["cv2"]  # its first variant
    assert other["cv2"] == one["cv2"] | {"fillstyle": "none"}
    assert other["F.interpolate"] == one["grid_sample"]
    ways = {row["way"] for rows in plots.files().values() for row in rows}
    for library in plots.LIBRARIES:
        assert library in map(plots.library_of, ways)
    seen = [protanope(colour) for colour, *_ in plots.LIBRARIES.values() if colour != "#808080"]
    for one_seen, other_seen in combinations(seen, 2):
        assert np.linalg.norm(one_seen - other_seen) > 15  # in CIELAB, where 2 is just noticeable


def protanope(colour: str) -> NDArray[np.float64]:
    """CIELAB of a colour as seen without red cones, by Machado, Oliveira and Fernandes (2009)."""
    shares = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(shares > 0.04045, ((shares + 0.055) / 1.055) ** 2.4, shares / 12.92)
    blind = [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(to_xyz @ (blind @ linear).clip(0, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_numbers_of_threads_are_distinguished_if_a_file_has_several():
    rows = [
        {"case": "large", "way": way, "ms": "2.0", "times_warpkit": "1.00", "threads": threads}
        for threads in ("1", "2")
        for way in ("warpkit", "theirs")
    ]
    assert list(plots.cases(rows)) == ["large, threads: 1", "large, threads: 2"]
    assert list(plots.cases(rows[:2])) == ["large"]


def test_docstrings_name_pages_that_exist():
    code = "".join(path.read_text() for path in (ROOT / "warpkit").glob("**/*.py"))
    named = set(re.findall(r"docs/([\w-]+\.md)", code))
    assert named
    assert named <= PAGES


def test_the_guide_to_the_code_names_every_file_of_its_call():
    """Also those of a second call with gradients, which skips validation and uses caches."""
    image, matrix = torch.tensor([[[0.0, 1.0], [2.0, 3.0]]]), [[1, 0, 0.5], [0, 1, 0]]
    files = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            files.add(path.relative_to(PACKAGE).as_posix())

    def run() -> torch.Tensor:
        learned = torch.tensor(matrix, requires_grad=True)
        warpkit.warp_affine(image, learned).sum().backward()
        return warpkit.warp_affine(image, matrix)

    run()
    sys.setprofile(note)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    assert result.tolist() == [[[0.0, 0.5], [1.0, 2.5]]]
    section = (DOCS / "code.md").read_text().partition("## One call, file by file")[2]
    named = section.partition("\n## ")[0]
    assert len(files) > 15
    files.discard("distributed/__init__.py")  # imported if another test did so
    assert [file for file in sorted(files) if f"`{file}`" not in named] == []
