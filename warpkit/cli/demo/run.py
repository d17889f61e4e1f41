"""`warpkit demo`: runs the demonstration, writes its figure and prints a summary."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import warpkit as wk
from warpkit.cli.demo import work as demo
from warpkit.cli.errors import check_apart
from warpkit.cli.image_files import ImageFileError, check_figure, read_photograph, replacing

LONGEST, SMALLEST = 384, 64
"""The longest side in pixels, and the shortest: smaller images show too little."""


def run(source: Path | None, out: Path) -> None:
    """Run the demonstration, show its progress, write the figure and print the results."""
    check_figure(out)
    check_apart({"--out": out}, {"IMAGE": source})
    image = photograph(source or demo.default_photograph(), LONGEST, SMALLEST)
    center = wk.image_center((image.shape[-2], image.shape[-1]))
    matrix = wk.rotation_matrix(torch.tensor(center, dtype=torch.float64), demo.TURN, demo.ZOOM)
    console = Console(highlight=False)
    comparison = demo.compare(image, matrix)
    reach = demo.reach(image, matrix)
    with console.status("looking for the hidden warp"):
        recovery = demo.recover(image)

    from warpkit.cli.demo.figure import draw  # matplotlib takes a second to load

    figure = draw(image, comparison, reach, recovery)
    with replacing(out) as file:
        figure.savefig(file, format="png")
    console.print(summary(comparison, reach, recovery))
    console.print(f"\nwrote {out}", markup=False, soft_wrap=True)


def photograph(path: Path, longest: int, smallest: int) -> Tensor:
    """An image file as an RGB image in [0, 1], its sides at most `longest` and at least
    `smallest`."""
    picture = read_photograph(path, "the demonstration takes a grey or RGB photograph")
    image = demo.small(picture.pixels, longest)
    if min(image.shape[-2:]) < smallest:
        height, width = picture.pixels.shape[-2:]
        wanted = f"at least {smallest} pixels a side and be no long strip"
        raise ImageFileError(f"{path}: the photograph must have {wanted}, got {width} x {height}")
    return image


def summary(comparison: demo.Comparison, reach: demo.Reach, recovery: demo.Recovery) -> Table:
    """A table of the results."""
    table = Table.grid(padding=(0, 2))
    if comparison.theirs is None:
        table.add_row("OpenCV", f"{comparison.version}: nothing to compare with")
    else:
        table.add_row(f"OpenCV {comparison.version}", comparison.differing)
    table.add_row("gradient to image", f"arrives at {reach.fraction:.1%} of the pixels")
    rows = "   ".join(" ".join(f"{v:+.4f}" for v in row) for row in reach.to_matrix.tolist())
    table.add_row("gradient to matrix", rows)
    angle = f"{demo.HIDDEN[0]:.3f}°, found {recovery.angle:.3f}°: off by {recovery.error:.3f}°"
    table.add_row("hidden turn", angle)
    steps = f"{recovery.corners:.4f} pixels, after {recovery.steps} steps"
    table.add_row("corners are off by", steps)
    return table
