"""`warpkit attack`: its progress bars, its figure and its closing words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpkit.cli.attack.models import UNSEEN as MODEL_UNSEEN
from warpkit.cli.attack.models import (
    ModelAttack,
    Subject,
    attack_model,
    read_labels,
    read_model,
)
from warpkit.cli.attack.programs import read_pipeline
from warpkit.cli.attack.work import TRAINING_STEPS, UNSEEN, Attack, attack
from warpkit.cli.demo import work as demo
from warpkit.cli.demo.run import photograph
from warpkit.cli.errors import CommandError
from warpkit.cli.image_files import check_figure, check_target, replacing
from warpkit.cli.image_files import write_image as write
from warpkit.cli.image_kinds import Picture
from warpkit.core.progress import progress_bar

LONGEST, SMALLEST = 128, 32
"""Pixels of the longest side: seconds on one core; of the shortest: its quarters must survive three
halvings."""
LARGEST = 2**31
"""A model of the user's is shown the photograph as it is."""


@dataclass(frozen=True)
class Options:
    """The options of `warpkit attack` that say whom to fool, as the command line has read them."""

    model: Path | None = None
    labels: Path | None = None
    target: str | None = None
    pipeline: str | None = None
    image_out: Path | None = None

    def check(self) -> None:
        """Refuse before any work what cannot be right."""
        for option, value in (("--labels", self.labels), ("--target", self.target)):
            if self.model is None and value is not None:
                raise CommandError(f"{option} is of a model of yours: give --model too")
        if self.image_out is not None:
            check_figure(self.image_out)
            check_target(self.image_out)


def run(
    source: Path | None, out: Path, levels: int, steps: int, options: Options | None = None
) -> None:
    """Do the work, show how it goes, write the figure, say what came out."""
    options = options or Options()
    check_figure(out)
    options.check()
    pipeline = read_pipeline(options.pipeline)
    path = source or demo.default_photograph()
    if options.model is None:
        image = photograph(path, LONGEST, SMALLEST)
        with progress_bar("learning the photograph", total=TRAINING_STEPS) as advance:
            program = pipeline if options.pipeline else None
            done = attack(image, levels / 255, steps, pipeline=program, learned=advance, show=True)
        table = summary(done)
    else:
        labels = read_labels(options.labels)
        subject = Subject(read_model(options.model), pipeline, labels)
        image = photograph(path, LARGEST, 1)
        done = attack_model(image, subject, options.target, levels / 255, steps, show=True)
        table = spoken(done)
    with replacing(out) as file:
        draw(file, done, levels)
    console = Console(highlight=False)
    console.print(table)
    written = [out]
    if options.image_out is not None:
        pixels = (done.after * 255).round().to(torch.uint8)
        write(options.image_out, Picture(pixels, "RGB"), "PNG")
        written.append(options.image_out)
    names = " and ".join(map(str, written))
    console.print(f"\nwrote {names}", markup=False, soft_wrap=True)


def summary(done: Attack) -> Table:
    """How often the net names the next quarter, by what it is shown."""
    table = Table.grid(padding=(0, 2))
    table.add_row("which quarter is it?", f"fooled under {UNSEEN} unseen transformations")
    for name, rate in done.rates.items():
        table.add_row(name, f"{rate:.1%}")
    return table


def spoken(done: ModelAttack) -> Table:
    """What the model says of the photograph before and after, and how often it is fooled."""
    table = Table.grid(padding=(0, 2))
    table.add_row("", "the model says", f"fooled under {MODEL_UNSEEN} unseen transformations")
    for name, answer in done.answers.items():
        said = Text(f"{answer.name} ({answer.probability:.1%})")
        table.add_row(name, said, f"{done.rates[name]:.1%}")
    return table


def draw(out: BinaryIO, done: Attack | ModelAttack, levels: int) -> None:
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
        if isinstance(done, Attack):
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
