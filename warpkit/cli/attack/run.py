"""`warpkit attack`: its progress bars, its figure and its closing words."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.table import Table

from warpkit.cli.attack.work import TRAINING_STEPS, UNSEEN, Attack, attack
from warpkit.cli.demo import work as demo
from warpkit.cli.demo.run import photograph
from warpkit.cli.image_files import check_figure, replacing
from warpkit.core.progress import progress_bar

LONGEST, SMALLEST = 128, 32
"""Pixels of the longest side: seconds on one core; of the shortest: its quarters must survive three
halvings."""


def run(source: Path | None, out: Path, levels: int, steps: int) -> None:
    """Do the work, show how it goes, write the figure, say what came out."""
    check_figure(out)
    image = photograph(source or demo.default_photograph(), LONGEST, SMALLEST)
    with progress_bar("learning the photograph", total=TRAINING_STEPS) as advance:
        done = attack(image, levels / 255, steps, learned=advance, show=True)
    with replacing(out) as file:
        draw(file, done, levels)
    console = Console(highlight=False)
    console.print(summary(done))
    console.print(f"\nwrote {out}", markup=False, soft_wrap=True)


def summary(done: Attack) -> Table:
    """How often the net names the next quarter, by what it is shown."""
    table = Table.grid(padding=(0, 2))
    table.add_row("which quarter is it?", f"fooled under {UNSEEN} unseen transformations")
    for name, rate in done.rates.items():
        table.add_row(name, f"{rate:.1%}")
    return table


def draw(out: BinaryIO, done: Attack, levels: int) -> None:
    """Before, perturbation, after, and the rates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from warpkit.cli.demo.figure import ACCENT, GREY, INK

    height, width = done.before.shape[-2:]
    figure = Figure(figsize=(12, max(12 / 4.6 * height / width, 1.6) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 4)
    delta = (done.after - done.before) * 255
    pictures = {
        "before": done.before,
        f"perturbation, {levels}/255 is full": 0.5 + delta / (2 * levels),
        "after": done.after,
    }
    for axes, (title, picture) in zip(panels, pictures.items(), strict=False):
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).numpy())
        axes.axhline(height / 2 - 0.5, color="white", linewidth=0.8)
        axes.axvline(width / 2 - 0.5, color="white", linewidth=0.8)
        axes.set_axis_off()
        axes.set_title(title, size=10, color=INK)
    axes = panels[3]
    bars = axes.barh(list(done.rates), [100 * rate for rate in done.rates.values()], color=ACCENT)
    axes.bar_label(bars, fmt="%.0f %%", size=9, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, 118)
    axes.set_title("fooled, unseen transformations", size=10, color=INK)
    axes.tick_params(labelsize=9, colors=GREY)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_xticks([])
    figure.savefig(out, dpi=100, format="png", facecolor="white")
