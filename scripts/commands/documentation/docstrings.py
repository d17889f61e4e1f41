"""A Griffe extension that turns this project's docstrings into Markdown.

Doctests become code blocks and names of functions become links; asterisks of shapes stay asterisks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

PACKAGE = Path(__file__).parents[3] / "warpkit"
IMPORTED = re.compile(r"^ *from (warpkit\.\S+) import (\w+) as", re.M)
PUBLIC = {
    name: f"warpkit.{name}" for _, name in IMPORTED.findall((PACKAGE / "__init__.py").read_text())
}
for module, name in IMPORTED.findall((PACKAGE / "attacks" / "__init__.py").read_text()):
    PUBLIC[name] = f"{module}.{name}"


class Docstrings(griffe.Extension):
    """Rewrites every docstring once, when Griffe loads it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe for each module, class, function and attribute."""
        if obj.docstring:
            arguments = [p.name for p in getattr(obj, "parameters", [])]
            obj.docstring.value = as_markdown(obj.docstring.value, obj.name, arguments)


def as_markdown(text: str, own: str, arguments: list[str]) -> str:
    """The docstring of the object `own` as Markdown."""
    parts = re.split(r"(^ *>>> .*(?:\n.+)*)", text, flags=re.M)
    parts[::2] = [prose(part, own, arguments) for part in parts[::2]]
    parts[1::2] = [fenced(part) for part in parts[1::2]]
    return "".join(parts)


def fenced(doctest: str) -> str:
    """A doctest as a code block."""
    indent = doctest[: doctest.index(">")]
    return f"{indent}```pycon\n{doctest}\n{indent}```"


def prose(text: str, own: str, arguments: list[str]) -> str:
    """Text with links, arguments as code, and escaped asterisks, such as those of (*A, n, *B)."""

    def link(match: re.Match[str]) -> str:
        name = match[1].removeprefix("warpkit.")
        if name == own or name not in PUBLIC:
            return match[0]
        return f"[`{name}`][{PUBLIC[name]}]"

    text = re.sub(r"(?<!`)`([\w.]+)`(?!`)", link, text)
    text = re.sub(r"(?<!\w)\*(?=[A-Z])", r"\\*", text)
    text = re.sub(r"docs/([\w-]+)\.md", r"[docs/\1.md](../\1.md)", text)
    text = re.sub(r"::$", ":", text, flags=re.M)
    text = re.sub(r"\bGradients: ", "**Gradients:** ", text)
    if not arguments:
        return text
    # "image (..., C, H, W)" and "border: ...", but not the names that start the lines of "Args:"
    heads, names = r"^ {4}[*\w]+(?:, \w+)*:", "|".join(arguments)
    explained = rf"{heads}|(?<![\w.`])({names})(?= \(|: |, any shape| any shape)"
    return re.sub(explained, lambda m: f"`{m[1]}`" if m[1] else m[0], text, flags=re.M)
