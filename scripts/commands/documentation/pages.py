"""MkDocs hooks for pages and pictures whose sources are elsewhere in the repository.

A line `<!-- README: NAME -->` becomes that section of README.md, `<!-- README -->` the text before
its first heading, and `<!-- benchmarks -->` the tables of data/benchmarks. The hooks add the
pictures of data/, CHANGELOG.md and CONTRIBUTING.md to the site, and draw the plots of benchmarks. A
Python block of a built page that is no Python fails the build.
"""

from __future__ import annotations

import ast
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))  # `mkdocs serve` does not import from its own folder
from benchmarks import plots  # noqa: E402


def on_files(files: Files, config: Any) -> Files:
    """Add the files from outside docs/."""
    for path in ("data/demo.png", "data/patches.png", "CHANGELOG.md", "CONTRIBUTING.md"):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for name, picture in plots.pictures().items():
        files.append(File.generated(config, f"images/{name}.svg", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page with its inclusions, and with links that are valid on the site."""
    included = re.compile(r"^<!-- README(?:: (.+))? -->$", re.M)
    markdown = included.sub(lambda m: readme(m[1]), markdown)
    markdown = markdown.replace("<!-- benchmarks -->", plots.tables())
    markdown = markdown.replace("](../data/", "](data/").replace("](docs/", "](")
    markdown = re.sub(
        r"\]\((?:\.\./)?examples/gallery/README\.md\)", "](gallery/index.md)", markdown
    )
    markdown = re.sub(r"\]\(\.\./examples/gallery/(\w+)\.py\)", r"](gallery/\1.md)", markdown)
    # mkdocs-gallery expects pages to be folders; here they are files
    markdown = re.sub(r'(class="reference internal" href="\w+)"', r'\1.html"', markdown)
    markdown = re.sub(r' srcset="\.\./images/[^"]*"', "", markdown)
    # not on the site: code, and files about the repository alone
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./examples|warpkit)/[^)]+\)", r"\1", markdown)
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.M)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """A built page, if its code is valid; signatures, on the pages of the API, are none."""
    if not page.file.src_uri.startswith("api/"):
        check_code(html, page.file.src_uri)
    return html


def check_code(html: str, name: str) -> None:
    """Raise SyntaxError if a Python block of a page, as readers see it, is no Python."""
    for block in re.findall(r'<div class="language-python[^>]*>.*?<code>(.*?)</code>', html, re.S):
        code = unescape(re.sub(r"<[^>]+>", "", block))
        ast.parse(code, f"the built {name}")


def readme(section: str | None) -> str:
    """A section of README.md without its heading; None: the text before the first heading."""
    head, *parts = re.split(r"^## ", (ROOT / "README.md").read_text(), flags=re.M)
    if section is None:
        text = head
    else:
        bodies = dict(part.split("\n", 1) for part in parts)
        text = bodies[section]
    return text.strip()
