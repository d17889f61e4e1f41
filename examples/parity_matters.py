"""Do OpenCV's own pixels in the loop make a better attack?

    python -m examples.parity_matters

The attacked pipeline reads an 8-bit file, warps it with cv2.warpAffine, and asks the net. The same
perturbation is optimised twice: through torch's grid_sample on unrounded pixels, as is usual, then
rounded to 8 bits; and through the pipeline's own arithmetic on 8-bit pixels. Both are judged by the
real cv2 under transformations that neither has seen.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from examples.digits import SIZE, Digits, load, network, train
from examples.figures import ACCENT, SECOND, new_figure, save
from examples.robust_perturbation import MOVES, UNSEEN, towards
from warpkit.attacks import optimize_perturbation
from warpkit.attacks.expectations import to_levels
from warpkit.core.progress import progress_bar

ARITHMETIC = f"opencv{re.match('[0-9]+', cv2.__version__)[0]}"  # pyright: ignore
LEVELS = (2, 8, 16, 32)
"""Epsilons in 8-bit levels."""

LOOPS = ("grid_sample in the loop", "OpenCV's arithmetic in the loop")
INTERPOLATIONS = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR}


def pipeline(images: Tensor, matrices: Tensor, interpolation: str) -> Tensor:
    """cv2's warps of the images (B, 1, H, W) as 8-bit files, image by image."""
    views = [
        cv2.warpAffine(file, matrix, (SIZE, SIZE), flags=INTERPOLATIONS[interpolation])
        for file in to_levels(images)[:, 0].numpy()
        for matrix in matrices.double().numpy()
    ]
    return torch.from_numpy(np.stack(views)).float()[:, None] / 255


def judge(model: nn.Module, images: Tensor, labels: Tensor, matrices: Tensor, how: str) -> float:
    """The share of the pipeline's answers that are the next digit."""
    with torch.no_grad():
        answers = model(pipeline(images, matrices, how)).argmax(1)
    targets = ((labels + 1) % 10).repeat_interleave(len(matrices))
    return (answers == targets).double().mean().item()


def run(
    data: tuple[Digits, Digits],
    *,
    seeds: int,
    count: int,
    epochs: int,
    steps: int,
    levels: Sequence[int] = LEVELS,
    show: bool = False,
) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """The rates of both loops, for every interpolation, epsilon and seed."""
    training, test = data
    files = test.take(slice(count))
    files = Digits(to_levels(files.images) / 255, files.labels)
    cases = [(how, level) for how in INTERPOLATIONS for level in levels]
    rates: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
    with progress_bar("attacking", total=seeds * len(cases), visible=show) as advance:
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = train(network(16), training, MOVES, epochs=epochs, seed=seed, lr=1e-2)
            generator = torch.Generator().manual_seed(100 + seed)
            matrices = MOVES.sample(UNSEEN, size=(SIZE, SIZE), generator=generator)
            for how, level in cases:
                found = attack_both(model, files, how, level / 255, steps, seed)
                pair = [judge(model, x, files.labels, matrices, how) for x in found]
                rates[how, level].append((pair[0], pair[1]))
                advance(f"{how}, {level}: {pair[0]:.1%}, {pair[1]:.1%}")
    return rates


def attack_both(
    model: nn.Module, files: Digits, how: str, epsilon: float, steps: int, seed: int
) -> list[Tensor]:
    """The images that each of LOOPS finds, from the same draws."""
    loops = ({"backend": "grid_sample"}, {"arithmetic": ARITHMETIC, "quantize": True})
    return [
        optimize_perturbation(
            towards(model, (files.labels + 1) % 10),
            files.images,
            MOVES,
            epsilon=epsilon,
            steps=steps,
            samples=4,
            generator=torch.Generator().manual_seed(seed),
            interpolation=how,
            **loop,
        ).image
        for loop in loops
    ]


def table(rates: dict[tuple[str, int], list[tuple[float, float]]]) -> Table:
    """Means over the seeds, and the mean difference with its standard error."""
    seeds = len(next(iter(rates.values())))
    title = f"digits read as the next one through cv2 {cv2.__version__}, seeds: {seeds}"
    result = Table(title=title)
    for name in ("interpolation", "epsilon", *LOOPS, "difference"):
        result.add_column(name, justify="left" if name == "interpolation" else "right")
    for (how, level), pairs in rates.items():
        values = torch.tensor(pairs, dtype=torch.float64) * 100
        gain = values[:, 1] - values[:, 0]
        error = f" ± {gain.std().item() / seeds**0.5:.2f}" if seeds > 1 else ""
        means = (f"{v:.1f} %" for v in values.mean(0).tolist())
        result.add_row(how, f"{level}/255", *means, f"{gain.mean():+.2f}{error}")
    return result


def draw(path: Path, rates: dict[tuple[str, int], list[tuple[float, float]]]) -> None:
    """Both loops side by side for every case; a line for each seed."""
    figure = new_figure(9.0, 3.2)
    panels = figure.subplots(1, len(INTERPOLATIONS), sharey=True)
    for axes, how in zip(panels, INTERPOLATIONS, strict=True):
        own = {level: torch.tensor(p) * 100 for (h, level), p in rates.items() if h == how}
        for i, (loop, colour) in enumerate(zip(LOOPS, (SECOND, ACCENT), strict=True)):
            middle = [values[:, i].mean().item() for values in own.values()]
            places = [k + 0.4 * i - 0.2 for k in range(len(own))]
            axes.bar(places, middle, 0.38, color=colour, label=loop, alpha=0.75)
            for place, values in zip(places, own.values(), strict=True):
                axes.plot([place] * len(values), values[:, i], ".", color="black", markersize=4)
        axes.set_xticks(range(len(own)), [f"{level}/255" for level in own])
        axes.set(title=f"cv2.warpAffine, {how}", xlabel="epsilon")
    panels[0].set_ylabel("% fooled, judged by cv2")
    panels[0].legend(fontsize=8, loc="upper left")
    save(path, figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, attack, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--count", type=int, default=40, help="how many test digits")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("docs/images/parity-matters.png"))
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # small layers: threads cost more than they bring
    sizes = {name: getattr(options, name) for name in ("seeds", "count", "epochs", "steps")}
    rates = run(load(), **sizes, show=True)
    Console().print(table(rates))
    draw(options.out, rates)


if __name__ == "__main__":
    main()
