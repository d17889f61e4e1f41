"""Run a page's examples of libraries that the tests do not need: its ```py and ```python blocks.

    PYTHONPATH=/folder/with/monai scripts/compare peers

A block whose library is not installed is reported as skipped, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "from-monai-pillow.md"


def missing(code: str) -> list[str]:
    """The packages that a block imports but that are not installed."""
    modules = re.findall(r"^(?:from|import) (\w+)", code, re.M)
    return sorted({name for name in modules if find_spec(name) is None})


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    os.chdir(ROOT)
    text = PAGE.read_text()
    names: dict[str, object] = {}
    left_out = 0
    for match in re.finditer(r"^```(python|py)\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 2
        absent = missing(match[2])
        if absent:
            print(f"{PAGE.name}:{line}: left out, no {', '.join(absent)}")
            left_out += 1
            continue
        exec(compile("\n" * (line - 1) + match[2], str(PAGE), "exec"), names)
        print(f"{PAGE.name}:{line}: holds")
    return int(left_out > 0)


if __name__ == "__main__":
    sys.exit(main())
