"""Measure how the resize in an attack's loop matters: python -m examples.resize_matters

A program reads an 8-bit file, shrinks it with its own library, and classifies the digit. The file
is perturbed so that the program reads the next digit: with F.interpolate in the loop, as is usual,
with and without antialias, and with the program's own resize (`wk.resize` through 8 bits). The test
runs the program itself, cv2 or Pillow, on the saved files.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import warpkit as wk
from examples.digits import SIZE, Digits, load, network, train
from examples.figures import ACCENT, SECOND, new_figure, save
from examples.parity_matters import ARITHMETIC
from examples.robust_perturbation import MOVES

SIDES = {"by 2.3": 55, "by 5": 120}
"""Sides of the files, which the program shrinks to SIZE: the ratio 512 to 224, and more."""

Resize = Callable[[Tensor], Tensor]


def by_cv2(flag: int) -> Callable[[np.ndarray], np.ndarray]:
    """cv2.resize of one file (H, W)."""
    return lambda file: cv2.resize(file, (SIZE, SIZE), interpolation=flag)


def by_pillow(file: np.ndarray) -> np.ndarray:
    """PIL.Image.resize of one file (H, W), bilinear."""
    return np.array(Image.fromarray(file).resize((SIZE, SIZE), Image.Resampling.BILINEAR))


PROGRAMS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Resize]] = {
    "cv2 linear": (
        by_cv2(cv2.INTER_LINEAR),
        partial(wk.resize, size=(SIZE, SIZE), arithmetic=ARITHMETIC),
    ),
    "cv2 area": (
        by_cv2(cv2.INTER_AREA),
        partial(wk.resize, size=(SIZE, SIZE), interpolation="area", arithmetic=ARITHMETIC),
    ),
    "Pillow bilinear": (
        by_pillow,
        partial(wk.resize, size=(SIZE, SIZE), arithmetic="pillow"),
    ),
}
"""The real program's resize of a file, and warpkit's, which has a gradient."""


def interpolate(images: Tensor, antialias: bool) -> Tensor:
    """F.interpolate of (N, 1, H, W)."""
    options = {"mode": "bilinear", "align_corners": False, "antialias": antialias}
    return F.interpolate(images, (SIZE, SIZE), **options)


def loops(own: Resize) -> dict[str, Resize]:
    """The resizes that replace the program's during the attack."""
    return {
        "F.interpolate": partial(interpolate, antialias=False),
        "F.interpolate, antialias": partial(interpolate, antialias=True),
        "its own": lambda images: wk.through_uint8(own, images),
    }


def attack(
    model: nn.Module, files: Digits, resize: Resize, epsilon: float, steps: int
) -> np.ndarray:
    """8-bit files (N, H, W) within epsilon of the originals that should read as the next digit."""
    targets = (files.labels + 1) % 10
    found = files.images.clone()
    for _ in range(steps):
        found.requires_grad_()
        loss = F.cross_entropy(model(resize(wk.quantize(found))), targets)
        (gradient,) = torch.autograd.grad(loss, found)
        moved = found.detach() - 2.5 * epsilon / steps * gradient.sign()
        found = (files.images + (moved - files.images).clamp(-epsilon, epsilon)).clamp(0, 1)
    return (found * 255).round().byte()[:, 0].numpy()


def judge(
    model: nn.Module, files: np.ndarray, labels: Tensor, program: Callable[..., np.ndarray]
) -> float:
    """The share of the program's answers that are the next digit; files (N, H, W), labels (N,)."""
    small = torch.from_numpy(np.stack([program(file) for file in files])).float()[:, None] / 255
    with torch.no_grad():
        return (model(small).argmax(1) == (labels + 1) % 10).double().mean().item()


def run(
    data: tuple[Digits, Digits], *, count: int, epochs: int, steps: int, level: int = 24
) -> dict[tuple[str, str], dict[str, float]]:
    """The rates of every loop for every side and program."""
    training, test = data
    torch.manual_seed(0)
    model = train(network(16), training, MOVES, epochs=epochs, seed=0, lr=1e-2)
    chosen = test.take(slice(count))
    rates = {}
    for side, pixels in SIDES.items():
        large = wk.resize(chosen.images, (pixels, pixels), interpolation="bicubic").clamp(0, 1)
        files = Digits((large * 255).round() / 255, chosen.labels)
        for name, (program, own) in PROGRAMS.items():
            rates[side, name] = {
                loop: judge(
                    model,
                    attack(model, files, resize, level / 255, steps),
                    files.labels,
                    program,
                )
                for loop, resize in loops(own).items()
            }
    return rates


def table(rates: dict[tuple[str, str], dict[str, float]], level: int = 24) -> Table:
    """A row for each program and side."""
    result = Table(title=f"files read as the next digit, perturbed by at most {level}/255")
    for name in ("the program's resize", "shrinks", *next(iter(rates.values()))):
        result.add_column(name)
    for (side, program), row in rates.items():
        result.add_row(program, side, *(f"{rate:.1%}" for rate in row.values()))
    return result


def draw(path: Path, rates: dict[tuple[str, str], dict[str, float]]) -> None:
    """Bars for every program and loop."""
    figure = new_figure(9.0, 3.2)
    panels = figure.subplots(1, len(SIDES), sharey=True)
    for axes, side in zip(panels, SIDES, strict=True):
        own = {program: row for (s, program), row in rates.items() if s == side}
        for i, (loop, colour) in enumerate(
            zip(next(iter(own.values())), (SECOND, "0.75", ACCENT), strict=True)
        ):
            heights = [row[loop] * 100 for row in own.values()]
            axes.bar([k + 0.27 * (i - 1) for k in range(len(own))], heights, 0.25, color=colour,
                     label=loop)  # fmt: skip
        axes.set_xticks(range(len(own)), list(own))
        axes.set_title(f"the program shrinks {side}")
    panels[0].set_ylabel("% read as the next digit")
    panels[0].set_ylim(0, 115)
    panels[1].legend(fontsize=8, title="in the loop", title_fontsize=8, ncols=3, loc="upper center")
    save(path, figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, attack, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many test digits")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--level", type=int, default=24, help="epsilon, in levels of 8 bits")
    parser.add_argument("--out", type=Path, default=Path("resize_matters.png"))
    options = parser.parse_args(argv)
    rates = run(
        load(),
        count=options.count,
        epochs=options.epochs,
        steps=options.steps,
        level=options.level,
    )
    Console().print(table(rates, options.level))
    draw(options.out, rates)


if __name__ == "__main__":
    main()
