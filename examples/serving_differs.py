"""A classifier with different preprocessing in serving: python -m examples.serving_differs

A camera's pictures of digits, 120 x 120 with noise, are shrunk by Pillow for training. The robot
that serves the model shrinks them by cv2.resize instead, and reads fewer digits.
`compare_pipelines` calls both programs and reports what differs. `identify` returns a twin of the
training's program, which restores the accuracy without the code of either.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from examples.digits import SIZE, Digits, load, network, train
from warpkit.attacks import AffineDistribution
from warpkit.validation import PipelineComparison, compare_pipelines

SIDE = 120
NOISE = 90.0
"""The camera's noise in levels: a mean over 25 pixels removes it, a sample of 4 does not."""

File = NDArray[np.uint8]


def trained(image: Image.Image) -> Tensor:
    """The preprocessing in training: Pillow, antialiased, from -1 to 1."""
    small = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR))
    return torch.from_numpy(small.transpose(2, 0, 1) / np.float32(127.5) - 1)


def served(image: File) -> Tensor:
    """The preprocessing on the robot: cv2 instead of Pillow."""
    small = cv2.resize(image, (SIZE, SIZE))
    return torch.from_numpy(small.transpose(2, 0, 1) / np.float32(127.5) - 1)


def files(digits: Digits, seed: int) -> list[File]:
    """Pictures as from a camera, (SIDE, SIDE, 3) uint8."""
    generator = np.random.default_rng(seed)
    found = []
    for image in digits.images:
        large = cv2.resize(image[0].numpy(), (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        noisy = 60 + 130 * large[..., None] + generator.normal(0, NOISE, (SIDE, SIDE, 3))
        found.append(noisy.clip(0, 255).astype(np.uint8))
    return found


def run(
    data: tuple[Digits, Digits], *, epochs: int = 8
) -> tuple[dict[str, float], PipelineComparison]:
    """The model's accuracy behind each program, and the answer of `compare_pipelines`."""
    training, test = data
    seen = torch.stack([gray(trained(Image.fromarray(file))) for file in files(training, 1)])
    torch.manual_seed(0)
    still = AffineDistribution()
    model = train(network(), Digits(seen, training.labels), still, epochs=epochs, seed=0)
    pictures = files(test, 2)
    comparison = compare_pipelines(trained, served, images=pictures[:8], model=averaged(model))
    twin = comparison.first.pipeline
    assert twin is not None
    programs: dict[str, Callable[[File], Tensor]] = {
        "as trained": lambda file: trained(Image.fromarray(file)),
        "as served": served,
        "as served, by the twin": lambda file: twin(torch.from_numpy(file).movedim(-1, 0)[None])[0],
    }
    scores = {}
    for name, program in programs.items():
        batch = torch.stack([gray(program(file)) for file in pictures])
        with torch.no_grad():
            right = model(batch).argmax(1) == test.labels
        scores[name] = float(right.float().mean())
    return scores, comparison


def gray(numbers: Tensor) -> Tensor:
    """Average (3, h, w) to the network's one channel (1, h, w)."""
    return numbers.mean(-3, keepdim=True)


def averaged(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """The model on three channels."""
    return lambda numbers: model(gray(numbers))


def table(scores: dict[str, float]) -> Table:
    """Accuracy behind each program."""
    made = Table("preprocessing", "digits read", title="One model, three ways to feed it")
    for name, score in scores.items():
        made.add_row(name, f"{100 * score:.1f} %")
    return made


def main() -> None:
    """Train, compare, put right."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    scores, comparison = run(load())
    console = Console()
    console.print(table(scores))
    console.print(str(comparison), markup=False, highlight=False)


if __name__ == "__main__":
    main()
