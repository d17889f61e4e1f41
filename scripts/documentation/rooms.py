"""The list of files at the end of docs/code.md: by folder, with each file's first line."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "code.md"
MARK = "<!-- scripts/list_files writes what follows -->\n"


def page() -> str:
    """The expected text of docs/code.md."""
    return PAGE.read_text().partition(MARK)[0] + MARK + "\n" + rooms()


def rooms() -> str:
    """One list per folder, sorted by name."""
    package = ROOT / "warpkit"
    paths = sorted(package.rglob("*.py"), key=lambda path: (path.parent, path))
    told = []
    for folder, files in groupby(paths, lambda path: path.parent):
        name = folder.relative_to(ROOT).as_posix()
        lines = [f"- `{path.name}`: {first_line(path)}" for path in files]
        told.append(f"### {name}/\n\n" + "\n".join(lines) + "\n")
    return "\n".join(told)


def first_line(path: Path) -> str:
    """The first line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
