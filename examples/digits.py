"""scikit-learn's digits, and a small convolutional network that trains on them in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

import warpkit as wk
from warpkit.attacks import AffineDistribution

SIZE = 24
"""Side in pixels: the 8 x 8 digits twice as large, with room for rotations."""


@dataclass(frozen=True)
class Digits:
    """Images (N, 1, SIZE, SIZE) in [0, 1] and labels (N,)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: Tensor | slice) -> Digits:
        """Some of them."""
        return Digits(self.images[rows], self.labels[rows])


def load() -> tuple[Digits, Digits]:
    """1297 training and 500 test digits, always the same."""
    data = load_digits()
    images = torch.from_numpy(data.images / 16.0).float()[:, None]
    images = F.interpolate(images, scale_factor=2, mode="bilinear")
    digits = Digits(F.pad(images, (4, 4, 4, 4)), torch.from_numpy(data.target))
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    return digits.take(order[500:]), digits.take(order[:500])


def moved(images: Tensor, distribution: AffineDistribution, generator: torch.Generator) -> Tensor:
    """Warp every image with its own random matrix."""
    matrices = distribution.sample(len(images), size=(SIZE, SIZE), generator=generator)
    return wk.warp_affine(images, matrices, backend="grid_sample")


def network(channels: int = 8) -> nn.Sequential:
    """Two convolutions and one linear layer: logits (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * channels * 4 * 4, 10),
    )


def train(
    model: nn.Module,
    digits: Digits,
    distribution: AffineDistribution,
    *,
    epochs: int,
    seed: int,
    lr: float = 3e-3,
) -> nn.Module:
    """Train with Adam on new views in every epoch; returns the model in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    batches = -(-len(digits) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=epochs * batches)
    model.train()
    for _ in range(epochs):
        views = moved(digits.images, distribution, generator)
        for rows in torch.randperm(len(digits), generator=generator).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(views[rows]), digits.labels[rows]).backward()
            optimizer.step()
            schedule.step()
    return model.eval().requires_grad_(False)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images that are classified correctly."""
    with torch.no_grad():
        return (model(images).argmax(1) == labels).double().mean().item()
