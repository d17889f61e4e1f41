"""The claims of the gallery's figures are true.

Every example runs, cell by cell, when scripts/document builds the site; an error stops the build.
"""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
from PIL import Image

from tests.support import ROOT

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = ROOT / "examples" / "gallery"

CLAIMS: dict[str, Callable[[list[str]], bool]] = {
    "antialias": lambda says: float(says[1].split()[0]) < 1 < float(says[0].split()[0]),
    "beside_opencv": lambda says: "no pixel differs" in says[:2] and "by up to 1" in says[3],
    "depth": lambda says: [float(n) < 6 for n in re.findall(r"[\d.]+", says[3])] == [True, False],
    "frame_interpolation": lambda says: True,
    "gradients": lambda says: says[-2].startswith("100.0%"),
    "jpeg": lambda says: all(": 0 values differ" in text for text in says[:4]),
}
"""For each example: whether the labels of its figure match its text."""


@pytest.mark.parametrize("example", CLAIMS)
def test_the_claims_of_a_figure_hold(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"plot_{example}.py"))
    (number,) = plt.get_fignums()
    labels = [axes.get_xlabel() for axes in plt.figure(number).axes]
    plt.close("all")
    assert CLAIMS[example](labels), labels
    for moving in tmp_path.iterdir():
        assert moving.stat().st_size < 1e6
        with Image.open(moving) as picture:
            assert getattr(picture, "n_frames", 1) >= 20


@pytest.mark.filterwarnings("ignore:warning_filter doesn't do anything:DeprecationWarning")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("plot_*.py")), ids=lambda path: path.stem[5:])
def test_a_notebook_runs_the_code_of_its_script(path: Path):
    """The build runs the script cell by cell, but readers download only the notebook."""
    from mkdocs_gallery import notebook, py_source_parser

    blocks = py_source_parser.split_code_and_text_blocks(path)[1]
    cells = notebook.jupyter_notebook_skeleton()
    notebook.fill_notebook(cells, blocks)
    code = ["".join(cell["source"]) for cell in cells["cells"] if cell["cell_type"] == "code"]
    script = ast.parse(path.read_text())
    assert ast.dump(ast.parse("\n".join(code))) == ast.dump(
        ast.Module(script.body[1:], [])  # the docstring is its own cell
    )
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(script)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    here = {item.name.removesuffix(".py") for item in (*ROOT.iterdir(), *FOLDER.parent.iterdir())}
    assert not {name.split(".")[0] for name in imported} & (here - {"warpkit"}), imported


def test_every_example_of_the_gallery_is_ordered():
    path = ROOT / "docs" / "gallery_conf.py"
    settings = ModuleType("gallery_conf")
    SourceFileLoader("gallery_conf", str(path)).exec_module(settings)
    assert sorted(settings.ORDER) == sorted(p.stem[5:] for p in FOLDER.glob("plot_*.py"))
