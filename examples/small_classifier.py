"""Train the default classifier of `warpkit attack`: python -m examples.small_classifier

It learns to classify views of the photographs in data/images, which are rotated, scaled, moved and
lit at random, and pass through the command's pipeline. The table shows the accuracy on unseen
views. The weights go into the package.
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
from examples.photographs import FOLDER, NAMES
from warpkit.attacks import AffineDistribution, Photometric
from warpkit.cli.attack.programs import read_pipeline
from warpkit.cli.attack.small_classifier import FILE, PIPELINE, network, write_small_classifier
from warpkit.cli.image_files import read_image

LIGHT = Photometric(brightness=(-0.15, 0.15), contrast=(0.6, 1.4), gamma=(0.7, 1.4), noise=0.01)
BORDER = "reflect_101"


def moves(size: tuple[int, int]) -> AffineDistribution:
    """Rotations, scales from a wider frame to a quarter of it, and shifts up to a quarter."""
    reach = min(size) / 4
    return AffineDistribution(angle=(-25, 25), scale=(0.8, 4), translation=(-reach, reach))


class Views:
    """`count` views of each photograph through the pipeline, (5 count, 3, h, w), evenly lit."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        pipeline, seen = read_pipeline(PIPELINE), []
        for name in NAMES:
            pixels = read_image(FOLDER / f"{name}.png").pixels.float() / 255
            photograph = pixels[:3].expand(3, -1, -1)
            size = (photograph.shape[-2], photograph.shape[-1])
            drawn = moves(size).sample(count, size=size, generator=generator)
            warped = (wk.warp_affine(photograph, matrix, border=BORDER) for matrix in drawn)
            seen += [pipeline(view[None]) for view in warped]
        self.images = torch.cat(seen)
        self.labels = torch.arange(len(NAMES)).repeat_interleave(count)


def faded(images: Tensor, generator: torch.Generator) -> Tensor:
    """Make half of the images (N, C, H, W) grey, so that colour alone does not decide."""
    grey = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
    return images.mean(1, keepdim=True).where(grey, images)


def learn(views: Views, steps: int, seed: int = 0) -> nn.Sequential:
    """Train a network to classify the photographs; the result is the same at every call."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = network(len(NAMES))
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(steps):
        rows = torch.randint(len(views.images), (40,), generator=generator)
        images = faded(LIGHT(views.images[rows], generator=generator), generator)
        optimizer.zero_grad()
        # smoothed labels: a fully confident network would have no gradient to attack
        F.cross_entropy(model(images), views.labels[rows], label_smoothing=0.1).backward()
        optimizer.step()
        schedule.step()
    return model.eval().requires_grad_(False)


def accuracy(model: nn.Module, views: Views, generator: torch.Generator) -> dict[str, float]:
    """The accuracy on the views in random light, by photograph."""
    right = model(LIGHT(views.images, generator=generator)).argmax(1) == views.labels
    rates = right.double().unflatten(0, (len(NAMES), -1)).mean(1)
    return dict(zip(NAMES, rates.tolist(), strict=True))


def table(rates: dict[str, float]) -> Table:
    """One row for each photograph."""
    result = Table(title="views not seen before that are named right")
    result.add_column("photograph")
    result.add_column("accuracy", justify="right")
    for name, rate in rates.items():
        result.add_row(name, f"{rate:.1%}")
    return result


def main(argv: Sequence[str] | None = None) -> None:
    """Train, print the table, write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=60, help="training views of each photograph")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # threads slow down small layers
    model = learn(Views(options.views, seed=1), options.steps)
    Console().print(table(accuracy(model, Views(100, seed=2), torch.Generator().manual_seed(3))))
    write_small_classifier(model, list(NAMES), options.out)
    print(f"wrote {options.out}, {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
