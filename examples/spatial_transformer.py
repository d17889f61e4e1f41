"""A spatial transformer raises the accuracy on rotated digits.

    python -m examples.spatial_transformer

A small network with and without the layer, and a wider one with more parameters than both, are
trained alike on digits rotated by up to 60 degrees, over several seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from examples.digits import SIZE, Digits, accuracy, load, moved, network, train
from examples.figures import grey_row, save
from warpkit.attacks import AffineDistribution
from warpkit.core.progress import progress_bar
from warpkit.nn import SpatialTransformer

TURNS = AffineDistribution(angle=(-60, 60), scale=(0.7, 1.1), translation=(-2, 2))
CHANNELS, WIDER = 4, 12
KINDS = ("the net", "a wider net", "similarity + the net", "affine + the net")


def build(kind: str) -> nn.Module:
    """One of KINDS; the transformer's localization is as small as the network."""
    if kind == "a wider net":
        return network(WIDER)
    net = network(CHANNELS)
    if kind == "the net":
        return net
    localization = nn.Sequential(
        *network(CHANNELS)[:-1], nn.Linear(2 * CHANNELS * 16, 32), nn.Tanh()
    )
    transform = kind.split()[0]
    look = SpatialTransformer(localization, (SIZE, SIZE), transform=transform, features=32)
    return nn.Sequential(look, net)


def run(
    seeds: int, epochs: int, data: tuple[Digits, Digits], show: bool = False
) -> tuple[dict[str, list[float]], dict[str, nn.Module]]:
    """Accuracy on rotated test digits for every kind and seed; and the last seed's models."""
    training, test = data
    views = moved(test.images, TURNS, torch.Generator().manual_seed(99))
    scores: dict[str, list[float]] = {kind: [] for kind in KINDS}
    models: dict[str, nn.Module] = {}
    with progress_bar("training", total=seeds * len(KINDS), visible=show) as advance:
        for seed in range(seeds):
            for kind in KINDS:
                torch.manual_seed(seed)
                model = train(build(kind), training, TURNS, epochs=epochs, seed=seed, lr=1e-2)
                scores[kind].append(accuracy(model, views, test.labels))
                models[kind] = model
                advance(f"{kind}: {scores[kind][-1]:.1%}")
    return scores, models


def table(scores: dict[str, list[float]], models: dict[str, nn.Module]) -> Table:
    """Mean and spread over the seeds."""
    result = Table(title=f"accuracy on turned digits, {len(scores[KINDS[0]])} seeds")
    for name in ("", "parameters", "mean", "standard deviation", "lowest", "highest"):
        result.add_column(name, justify="right" if name else "left")
    for kind, values in scores.items():
        numbers = torch.tensor(values, dtype=torch.float64)
        spread = numbers.std().item() if len(values) > 1 else 0.0
        figures = (numbers.mean().item(), spread, min(values), max(values))
        parameters = sum(p.numel() for p in models[kind].parameters())
        result.add_row(kind, f"{parameters:,}", *(f"{100 * v:.1f} %" for v in figures))
    return result


def draw(path: Path, models: dict[str, nn.Module], test: Digits) -> None:
    """Ten digits before and after each transformer."""
    rows = torch.stack([(test.labels == n).nonzero()[0, 0] for n in range(10)])
    views = moved(test.images[rows], TURNS, torch.Generator().manual_seed(5))
    shown: dict[str, Tensor] = {"what comes in": views}
    for kind in ("similarity + the net", "affine + the net"):
        model = models[kind]
        assert isinstance(model, nn.Sequential)
        shown[f"through {kind.split()[0]}"] = model[0](views)
    save(path, grey_row(shown))


def main(argv: Sequence[str] | None = None) -> None:
    """Train, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("docs/images/spatial-transformer.png"))
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # threads slow down small layers
    data = load()
    scores, models = run(options.seeds, options.epochs, data, show=True)
    Console().print(table(scores, models))
    draw(options.out, models, data[1])


if __name__ == "__main__":
    main()
