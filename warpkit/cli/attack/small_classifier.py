"""The built-in classifier that `warpkit attack` uses without `--model`.

It distinguishes warpkit's five photographs. examples/small_classifier.py trains it, and writes its
weights and labels to a file beside this one.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

FILE = Path(__file__).with_name("small_classifier.pt")
PIPELINE = "resize:96:exact:area"
"""Its preprocessing: it takes floats in [0, 1] of any size from 16 x 16 pixels."""


def network(classes: int) -> nn.Sequential:
    """Three convolutions of stride 2 and means over 2 x 2 quarters: scores (N, classes).

    Each channel is normalised to mean 0 and deviation 1, at the start and after each convolution,
    so the lighting does not matter.
    """
    layers: list[nn.Module] = [nn.InstanceNorm2d(3)]
    for before, after in ((3, 16), (16, 24), (24, 32)):
        convolution = nn.Conv2d(before, after, 3, stride=2, padding=1)
        layers += [convolution, nn.InstanceNorm2d(after), nn.ReLU()]
    head = nn.Linear(4 * 32, classes)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), head)


def write_small_classifier(model: nn.Sequential, labels: list[str], path: Path = FILE) -> None:
    """The weights, as float16, and the labels as one file."""
    weights = {name: value.half() for name, value in model.state_dict().items()}
    torch.save({"labels": labels, "weights": weights}, path)


def read_small_classifier(path: Path = FILE) -> tuple[nn.Sequential, list[str]]:
    """The classifier, images (N, 3, h, w) to scores (N, labels), and its labels."""
    contents = torch.load(path, map_location="cpu", weights_only=True)
    model = network(len(contents["labels"]))
    model.load_state_dict(contents["weights"])  # into float32
    return model.eval().requires_grad_(False), contents["labels"]
