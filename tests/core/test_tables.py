"""Tables on terminals of different widths."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from warpkit.core.tables import print_fitting

NAMES = ("kornia", "torchvision", "grid_sample")


def make(names: Sequence[str]) -> Table:
    table = Table()
    table.add_column("warp")
    for name in ("values", "differing", *names):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("affine bilinear", "4,800,000", "1.5e-07", *("261e-05" for _ in names))
    return table


@pytest.mark.parametrize(("width", "gone"), [(50, 2), (60, 1), (80, 0), (120, 0)])
def test_narrow_tables_drop_columns_before_digits(width: int, gone: int):
    out = StringIO()
    print_fitting(Console(file=out, width=width, color_system=None, highlight=False), make, NAMES)
    text = out.getvalue()
    assert "\u2026" not in text
    assert "4,800,000" in text
    assert "1.5e-07" in text
    assert text.count("261e-05") == 3 - gone
    left_out = f"too narrow for {', '.join(NAMES[3 - gone :])}\n" if gone else "\u2518\n"
    assert text.endswith(left_out)
    assert max(map(len, text.splitlines())) <= width
