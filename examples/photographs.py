"""Crops of the photographs in data/images, and a small network that classifies them."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from warpkit import crop_patches
from warpkit.cli.demo.work import small
from warpkit.cli.image_files import read_image

FOLDER = Path(__file__).parents[1] / "data" / "images"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.png")))
SIZE, LONGEST = 48, 384
"""Pixels of a crop's side, and of a photograph's longest side."""


class Crops(Dataset[tuple[Tensor, int]]):
    """`count` squares of 64 to 128 pixels from the photographs in turn, resized to SIZE."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        photographs = [small(read_image(FOLDER / f"{n}.png").pixels, LONGEST) for n in NAMES]
        self.images = torch.empty(count, 3, SIZE, SIZE)
        self.labels = torch.arange(count) % len(NAMES)
        for label, photograph in enumerate(photographs):
            of_it = self.labels == label
            draws = torch.rand(int(of_it.sum()), 3, generator=generator)
            side = 64 + 64 * draws[:, 2:]
            room = torch.tensor([photograph.shape[2], photograph.shape[1]]) - side
            corner = draws[:, :2] * room
            boxes = torch.cat((corner, corner + side), dim=1)
            index = torch.zeros(len(boxes), dtype=torch.int64)
            self.images[of_it] = crop_patches(photograph, boxes, index, (SIZE, SIZE))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], int(self.labels[index])


def network() -> nn.Sequential:
    """Three convolutions and a mean over quarters: logits (N, photographs)."""
    layers: list[nn.Module] = []
    for before, after in ((3, 12), (12, 24), (24, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    head = nn.Linear(4 * 32, len(NAMES))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), head)


def learn(crops: Crops, steps: int = 150) -> nn.Sequential:
    """Train a network to classify the photographs; the result is the same at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for _ in range(steps):
            rows = torch.randint(len(crops), (50,))
            optimizer.zero_grad()
            answers = model(crops.images[rows])
            F.cross_entropy(answers, crops.labels[rows], label_smoothing=0.1).backward()
            optimizer.step()
    return model
