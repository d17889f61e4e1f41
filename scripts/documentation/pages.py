"""MkDocs hooks: pages and pictures that have their source elsewhere in the repository.

A line `<!-- README: NAME -->` becomes that section of the front page, `<!-- README -->` what
stands before its first heading, and `<!-- benchmarks -->` the tables of data/benchmarks. Pictures
of data/, CHANGELOG.md and CONTRIBUTING.md are part of the site, and benchmarks' plots are drawn.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for `mkdocs serve`, which does not look into its own folder
from benchmarks import plots  # noqa: E402


def on_files(files: Files, config: Any) -> Files:
    """Add what does not lie in docs/."""
    for path in ("data/demo.png", "data/patches.png", "CHANGELOG.md", "CONTRIBUTING.md"):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for name, picture in plots.pictures().items():
        files.append(File.generated(config, f"images/{name}.svg", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page with its inclusions, and with links that hold on the site."""
    included = re.compile(r"^<!-- README(?:: (.+))? -->$", re.M)
    markdown = included.sub(lambda m: readme(m[1]), markdown)
    markdown = markdown.replace("<!-- benchmarks -->", plots.tables())
    markdown = markdown.replace("](../data/", "](data/").replace("](docs/", "](")
    markdown = re.sub(
        r"\]\((?:\.\./)?examples/gallery/README\.md\)", "](gallery/index.md)", markdown
    )
    markdown = re.sub(r"\]\(\.\./examples/gallery/(\w+)\.py\)", r"](gallery/\1.md)", markdown)
    # mkdocs-gallery takes pages for folders; here they are files
    markdown = re.sub(r'(class="reference internal" href="\w+)"', r'\1.html"', markdown)
    markdown = re.sub(r' srcset="\.\./images/[^"]*"', "", markdown)
    # not on the site: code, and what is about the repository alone
    markdown = re.sub(r"\[([^\]]+)\]\((?:\.\./examples|warpkit)/[^)]+\)", r"\1", markdown)
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.M)


def readme(section: str | None) -> str:
    """A section of the front page, without its heading; what is before the first, where None."""
    head, *parts = re.split(r"^## ", (ROOT / "README.md").read_text(), flags=re.M)
    if section is None:
        text = head
    else:
        bodies = dict(part.split("\n", 1) for part in parts)
        text = bodies[section]
    return text.strip()
