"""`warpkit attack`: progress bars, figure and summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpkit.cli.attack.models import (
    UNSEEN,
    ModelAttack,
    Subject,
    attack_model,
    read_labels,
    read_model,
)
from warpkit.cli.attack.programs import read_pipeline
from warpkit.cli.attack.small_classifier import PIPELINE, read_small_classifier
from warpkit.cli.demo import work as demo
from warpkit.cli.demo.run import photograph
from warpkit.cli.errors import CommandError, check_apart
from warpkit.cli.image_files import check_figure, check_target, replacing
from warpkit.cli.image_files import write_image as write
from warpkit.cli.image_kinds import Picture

LARGEST = 2**31
"""The default size: the model receives the photograph as it is."""


@dataclass(frozen=True)
class Options:
    """The options of `warpkit attack` that select the model and the target."""

    model: Path | None = None
    labels: Path | None = None
    target: str | None = None
    pipeline: str | None = None
    image_out: Path | None = None
    jpeg: tuple[int, int] | None = None

    def check(self) -> None:
        """Reject invalid options before any work."""
        if self.model is None and self.labels is not None:
            raise CommandError("--labels is of a model of yours: give --model too")
        if self.jpeg is not None and not 1 <= self.jpeg[0] <= self.jpeg[1] <= 100:
            got = " ".join(map(str, self.jpeg))
            raise CommandError(f"--jpeg takes two qualities, 1 <= LOW <= HIGH <= 100, got {got}")
        if self.image_out is not None:
            check_figure(self.image_out, "the perturbed photograph")
            check_target(self.image_out)


def subject_of(options: Options) -> Subject:
    """The model to attack with its pipeline: the user's, or the built-in one."""
    if options.model is None:
        model, labels = read_small_classifier()
        return Subject(model, read_pipeline(options.pipeline or PIPELINE), labels)
    pipeline, labels = read_pipeline(options.pipeline), read_labels(options.labels)
    return Subject(read_model(options.model), pipeline, labels)


def run(
    source: Path | None, out: Path, levels: int, steps: int, options: Options | None = None
) -> None:
    """Run the attack, show the progress, write the figure and print the results."""
    options = options or Options()
    check_figure(out)
    options.check()
    inputs = {"IMAGE": source, "--model": options.model, "--labels": options.labels}
    check_apart({"--out": out, "--image-out": options.image_out}, inputs)
    subject = subject_of(options)
    image = photograph(source or demo.default_photograph(), LARGEST, 1)
    epsilon, jpeg = levels / 255, options.jpeg
    attack = attack_model(image, subject, options.target, epsilon, steps, show=True, jpeg=jpeg)
    with replacing(out) as file:
        draw(file, attack, levels)
    console = Console(highlight=False)
    console.print(spoken(attack))
    outputs = [out]
    if options.image_out is not None:
        pixels = (attack.after * 255).round().to(torch.uint8)
        write(options.image_out, Picture(pixels, "RGB"), "PNG")
        outputs.append(options.image_out)
    names = " and ".join(map(str, outputs))
    console.print(f"\nwrote {names}", markup=False, soft_wrap=True)


def spoken(attack: ModelAttack) -> Table:
    """The model's predictions before and after, and how often it is fooled."""
    table = Table.grid(padding=(0, 2))
    table.add_row("", "the model says", f"fooled, {UNSEEN} unseen views")
    for name, answer in attack.answers.items():
        label = Text(f"{answer.name} ({answer.probability:.1%})")
        table.add_row(name, label, f"{attack.rates[name]:.1%}")
    return table


def draw(out: BinaryIO, attack: ModelAttack, levels: int) -> None:
    """Draws the images before and after, the perturbation, and the rates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from warpkit.cli.demo.figure import ACCENT, GREY, INK

    height, width = attack.before.shape[-2:]
    figure = Figure(figsize=(12, max(12 / 4.6 * height / width, 1.6) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 4)
    delta = (attack.after - attack.before) * 255
    pictures = {
        "before": attack.before,
        f"perturbation, {levels}/255 is full": 0.5 + delta / (2 * levels),
        "after": attack.after,
    }
    for axes, (title, picture) in zip(panels, pictures.items(), strict=False):
        axes.imshow(picture.clamp(0, 1).permute(1, 2, 0).numpy())
        axes.set_axis_off()
        axes.set_title(title, size=10, color=INK)
    axes = panels[3]
    names = [name.replace("perturbed ", "perturbed\n") for name in attack.rates]
    bars = axes.barh(names, [100 * rate for rate in attack.rates.values()], color=ACCENT)
    axes.bar_label(bars, fmt="%.0f %%", size=9, padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, 118)
    axes.set_title("fooled, unseen transformations", size=10, color=INK)
    axes.tick_params(labelsize=9, colors=GREY)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_xticks([])
    figure.savefig(out, dpi=100, format="png", facecolor="white")
