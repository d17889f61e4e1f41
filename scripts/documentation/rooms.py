"""The end of docs/code.md: every file of the package by its room, with its own first line."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "code.md"
MARK = "<!-- scripts/list_files writes what follows -->\n"


def page() -> str:
    """docs/code.md as it should be."""
    return PAGE.read_text().partition(MARK)[0] + MARK + "\n" + rooms()


def rooms() -> str:
    """A list for each folder, in the order of their names."""
    package = ROOT / "warpkit"
    paths = sorted(package.rglob("*.py"), key=lambda path: (path.parent, path))
    told = []
    for folder, files in groupby(paths, lambda path: path.parent):
        name = folder.relative_to(ROOT).as_posix()
        lines = [f"- `{path.name}`: {first_line(path)}" for path in files]
        told.append(f"### {name}/\n\n" + "\n".join(lines) + "\n")
    return "\n".join(told)


def first_line(path: Path) -> str:
    """What a file says that it is."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
