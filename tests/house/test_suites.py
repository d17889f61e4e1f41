"""data/parity/suites.csv and docs/validation.md agree with the tests of other projects."""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter

from tests.support import ROOT

ROWS = list(csv.DictReader((ROOT / "data/parity/suites.csv").read_text().splitlines()))
STATUSES = ("held", "differs", "outside")


def functions(path: str) -> set[str]:
    """The names of the tests that a file defines."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test_or_a_reason():
    for row in ROWS:
        assert row["status"] in STATUSES, row
        assert row["where"] if row["status"] == "held" else row["note"], row
        if row["where"]:
            path, _, name = row["where"].partition("::")
            assert name in functions(path), row


def test_no_test_of_another_project_is_listed_twice():
    counts = Counter((row["project"], row["suite"], row["test"]) for row in ROWS)
    assert max(counts.values()) == 1


def test_the_page_has_the_files_counts():
    counts = Counter((row["project"], row["status"]) for row in ROWS)
    page = (ROOT / "docs" / "validation.md").read_text()
    table = page.split("| project | tests | held | differ | outside |\n")[1].split("\n\n")[0]
    said = {
        cells[0]: [int(n) for n in cells[1:]]
        for cells in (re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[1:])
    }
    wanted = {
        name: [sum(counts[name, status] for status in STATUSES)]
        + [counts[name, status] for status in STATUSES]
        for name in sorted({row["project"] for row in ROWS}, key=str.lower)
    }
    assert said == wanted
