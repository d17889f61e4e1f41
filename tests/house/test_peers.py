"""docs/peers.md agrees with data/parity/peers.csv."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tests.support import ROOT

PAGE = (ROOT / "docs" / "peers.md").read_text()
NAMES = {
    "warpkit, default": "warpkit, exact",
    'warpkit, arithmetic="opencv5"': "warpkit, opencv5",
    'warpkit, arithmetic="opencv4"': "warpkit, opencv4",
    'warpkit, arithmetic="pillow"': "warpkit, pillow",
    'warpkit, "opencv5", interpolation="area"': "warpkit, opencv5, area",
    "F.grid_sample": "grid_sample",
    "F.interpolate(antialias=True)": "F.interpolate, antialias",
    "SciPy's zoom": "SciPy",
}
"""What a row of the page is called in the file."""


def ways(cell: str) -> list[str]:
    """The libraries of a row."""
    plain = cell.replace("`", "")
    if plain in NAMES:
        return [NAMES[plain]]
    return [NAMES.get(name, name) for name in re.split(r"; |, ", plain.replace("warpkit, ", ""))]


def said(share: str, levels: str) -> str:
    """A cell of the page: percent with two digits, and levels; 0 if none differs."""
    percent = 100 * float(share)
    digits = 2 if percent < 0.1 else 1 if percent < 10 else 0
    return f"{percent:.{digits}f} %, {levels}" if int(levels) else "0"


def test_the_page_of_peers_agrees_with_the_table():
    with Path(ROOT / "data/parity/peers.csv").open() as file:
        rows = {(row["work"], row["way"]): row for row in csv.DictReader(file)}
    columns = {
        "turn": ("opencv5", "opencv4", "pillow"),
        "resize": ("opencv", "opencv_area", "pillow"),
    }
    tables = re.findall(r"^\| (turned|resized) .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    assert [name for name, _ in tables] == ["turned", "resized"]
    seen = set()
    for (_, text), work in zip(tables, columns, strict=True):
        for line in text.splitlines():
            name, *cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
            for way in ways(name):
                row = rows[work, "warpkit, exact" if way == "default" else way]
                seen.add((work, row["way"]))
                wanted = [said(row[c], row[f"{c}_levels"]) for c in columns[work]]
                assert cells == wanted, way
    left_out = {("turn", "OpenCV"), ("resize", "OpenCV"), ("resize", "OpenCV, INTER_AREA")}
    assert seen == set(rows) - left_out - {("resize", "Pillow")}
