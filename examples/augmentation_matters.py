"""Measure how repeated sampling of training images changes a network's accuracy.

Each square of 96 pixels of five photographs is a class. A small network is trained on them with
five random transforms, sampled once (`Fused`) or five times (torchvision's Compose), with the same
seeds, and tested on plain crops that torchvision resized, with noise. One seed takes about a minute
on one thread: python -m examples.augmentation_matters --seeds 0
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms import v2

from warpkit import transforms
from warpkit.cli.image_files import read_image
from warpkit.transforms import Fused

FOLDER = Path(__file__).parents[1] / "data" / "images"
SQUARE, STEP, SIZE, MOST, DULL, NOISE = 96, 48, 48, 20, 12, 0.04
"""Pixels; squares per photograph at most; least spread of a square in levels; noise, of 1."""


def squares() -> Tensor:
    """(N, 3, SQUARE, SQUARE), in [0, 1]."""
    found = []
    for path in sorted(FOLDER.glob("*.png")):
        image = read_image(path).pixels.float().expand(3, -1, -1)
        tiles = image.unfold(1, SQUARE, STEP).unfold(2, SQUARE, STEP).flatten(1, 2).transpose(0, 1)
        found.append(tiles[tiles.std((1, 2, 3)) > DULL][:MOST])
    return torch.cat(found) / 255


def pipeline(module: Any) -> list[Any]:
    """Five transforms of warpkit or torchvision."""
    smooth = {"interpolation": v2.InterpolationMode.BILINEAR}
    return [
        module.RandomRotation(15, **smooth),
        module.RandomAffine(10, translate=(0.05, 0.05), scale=(0.9, 1.1), shear=5, **smooth),
        module.RandomPerspective(0.2, 1.0, **smooth),
        module.RandomHorizontalFlip(),
        module.RandomResizedCrop(SIZE, (0.6, 1.0), **smooth),
    ]


def network(classes: int) -> nn.Sequential:
    """Three convolutions: logits (N, classes)."""
    layers: list[nn.Module] = []
    for before, after in ((3, 24), (24, 48), (48, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(576, classes))


def train(augment: Any, images: Tensor, seed: int, steps: int, batch: int) -> nn.Sequential:
    """Train a network on `steps` batches; `augment` takes one image."""
    torch.manual_seed(seed)
    model = network(len(images)).train()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, steps)
    for _ in range(steps):
        labels = torch.randint(0, len(images), (batch,))
        shown = torch.stack([augment(image) for image in images[labels]])
        shown = shown + NOISE * torch.randn_like(shown)
        loss = F.cross_entropy(model(shown - 0.5), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def run(seed: int, steps: int = 120, batch: int = 32, views: int = 4) -> dict[str, float]:
    """The accuracy of each way on plain crops."""
    images = squares()
    torch.manual_seed(1000)
    crop = v2.RandomResizedCrop(SIZE, (0.6, 1.0), antialias=True)
    test = torch.stack([crop(image) for image in images.repeat(views, 1, 1, 1)])
    test = test + NOISE * torch.randn_like(test)
    labels = torch.arange(len(images)).repeat(views)
    ways = {"once": Fused(pipeline(transforms)), "five times": v2.Compose(pipeline(v2))}
    found = {}
    for name, augment in ways.items():
        model = train(augment, images, seed, steps, batch)
        with torch.no_grad():
            found[name] = (model(test - 0.5).argmax(1) == labels).float().mean().item()
    return found


def main() -> None:
    """Print one line per seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed in options.seeds:
        found = run(seed, options.steps)
        print(f"seed {seed}: " + ", ".join(f"{n} {v:.1%}" for n, v in found.items()), flush=True)


if __name__ == "__main__":
    main()
