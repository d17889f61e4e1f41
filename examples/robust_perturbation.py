"""A perturbation that survives unseen transformations.

    python -m examples.robust_perturbation

Test digits are perturbed twice within the same epsilon, to be read as the next digit: once upright,
and once on average over random transformations. Both are tested under unseen transformations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import warpkit as wk
from examples.digits import SIZE, Digits, load, network, train
from examples.figures import ACCENT, GREY, SECOND, new_figure, save
from warpkit.attacks import AffineDistribution, optimize_perturbation
from warpkit.attacks.expectations import Objective

MOVES = AffineDistribution(angle=(-60, 60), scale=(0.7, 1.2), translation=(-3, 3))
EPSILONS = (0.05, 0.1, 0.15, 0.2)
UNSEEN = 50
WAYS = ("no perturbation", "optimised as it stands", "optimised under transformations")


def towards(model: nn.Module, targets: Tensor) -> Objective:
    """The objective of an attack: the loss of the answers against the targets (B,)."""

    def objective(views: Tensor) -> Tensor:
        copies = len(views) // len(targets)
        return F.cross_entropy(model(views), targets.repeat_interleave(copies))

    return objective


def fooled(model: nn.Module, images: Tensor, targets: Tensor, matrices: Tensor) -> float:
    """The share of all images under all matrices (n, 2, 3) that are read as their target."""
    with torch.no_grad():
        views = wk.warp_affine(images[:, None], matrices).flatten(0, 1)
        hits = model(views).argmax(1) == targets.repeat_interleave(len(matrices))
    return hits.double().mean().item()


def run(
    data: tuple[Digits, Digits],
    *,
    count: int,
    epochs: int,
    steps: int,
    epsilons: Sequence[float] = EPSILONS,
    show: bool = False,
) -> tuple[dict[float, dict[str, float]], dict[str, Tensor]]:
    """How often each way fools the network at each epsilon; and its images at the last epsilon."""
    training, test = data
    torch.manual_seed(0)
    model = train(network(16), training, MOVES, epochs=epochs, seed=0, lr=1e-2)
    test = test.take(slice(count))
    targets = (test.labels + 1) % 10
    objective = towards(model, targets)
    matrices = MOVES.sample(UNSEEN, size=(SIZE, SIZE), generator=torch.Generator().manual_seed(99))
    rates: dict[float, dict[str, float]] = {}
    images: dict[str, Tensor] = {}
    for epsilon in epsilons:
        images = {WAYS[0]: test.images}
        for way, distribution in zip(WAYS[1:], (None, MOVES), strict=True):
            images[way] = optimize_perturbation(
                objective,
                test.images,
                distribution,
                epsilon=epsilon,
                steps=steps,
                samples=8,
                generator=torch.Generator().manual_seed(1),
                progress=show,
            ).image
        rates[epsilon] = {way: fooled(model, x, targets, matrices) for way, x in images.items()}
    return rates, images


def table(rates: dict[float, dict[str, float]], count: int) -> Table:
    """One row for each epsilon."""
    result = Table(title=f"{count} digits read as the next one, {UNSEEN} unseen transformations")
    result.add_column("epsilon", justify="right")
    for way in WAYS:
        result.add_column(way, justify="right")
    for epsilon, row in rates.items():
        result.add_row(f"{epsilon:g}", *(f"{row[way]:.1%}" for way in WAYS))
    return result


def draw(path: Path, rates: dict[float, dict[str, float]], images: dict[str, Tensor]) -> None:
    """The rates over epsilon, and five digits of each way."""
    figure = new_figure(9.5, 3.4)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    axes = left.subplots()
    for way, colour in zip(WAYS, (GREY, SECOND, ACCENT), strict=True):
        axes.plot(
            list(rates), [100 * r[way] for r in rates.values()], "o-", color=colour, label=way
        )
    axes.set(xlabel="epsilon (linf, of 1 for white)", ylabel="% fooled, unseen transformations")
    axes.set_ylim(0, 100)
    axes.grid(color="0.9")
    axes.legend(fontsize=8)
    panels = right.subplots(3, 5, gridspec_kw={"hspace": 0.22})
    for line, (way, shown) in zip(panels, images.items(), strict=True):
        at = {"xycoords": "axes fraction", "textcoords": "offset points"}
        # keep long labels out of the layout, or they widen the first column
        words = line[0].annotate(way, (0, 1), (0, 4), size=9, **at)
        words.set_in_layout(way == WAYS[0])
        for panel, image in zip(line, shown, strict=False):
            panel.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1)
            panel.set_axis_off()
    save(path, figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, attack, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many test digits")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/images/robust-perturbation.png"))
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # threads slow down small layers
    rates, images = run(
        load(), count=options.count, epochs=options.epochs, steps=options.steps, show=True
    )
    Console().print(table(rates, options.count))
    draw(options.out, rates, images)


if __name__ == "__main__":
    main()
