"""A patch that survives a lens: python -m examples.lens_patch

A network classifies photographs that it sees through a wide-angle lens. A patch near a corner,
where the lens distorts most, should make it name another class. The patch is optimised once on flat
photographs, as is usual, and once through `camera.distort_map`. The test uses unseen 8-bit
photographs that OpenCV distorts: cv2.undistortPoints and cv2.remap.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import warpkit as wk
from examples.figures import new_figure, save
from examples.photographs import NAMES, SIZE, Crops, learn
from warpkit import camera

CAMERA = torch.tensor([[26.0, 0, 23.5], [0, 26, 23.5], [0, 0, 1]], dtype=torch.float64)
LENS = torch.tensor([-0.3, 0.045, 0.0, 0.0], dtype=torch.float64)
"""Barrel distortion that moves the corners 37 % closer to the centre."""

BOX, SIDE, BATCH = (1.0, 1.0, 21.0, 21.0), 20, 32
SHOWN = camera.distort_map(CAMERA, LENS, (SIZE, SIZE))
LOOPS: dict[str, Callable[[Tensor], Tensor]] = {
    "flat photographs": lambda images: images,
    "what the lens shows": lambda images: wk.remap(images, SHOWN),
}
"""The transforms between patch and network during the optimisation."""


def by_opencv(images: Tensor) -> Tensor:
    """8-bit images (N, 3, H, W) distorted by OpenCV, in [0, 1]."""
    pixels = wk.pixel_grid((SIZE, SIZE)).reshape(-1, 1, 2).double().numpy()
    view, k = CAMERA.numpy(), LENS.numpy()
    criteria = (cv2.TERM_CRITERIA_COUNT, 200, 0.0)
    points = cv2.undistortPoints(pixels, view, k, None, None, view, criteria)
    where = points.reshape(SIZE, SIZE, 2).astype(np.float32)
    arrays = (images * 255).round().byte().permute(0, 2, 3, 1).numpy()
    shown = [cv2.remap(array, where, None, cv2.INTER_LINEAR) for array in arrays]
    return torch.from_numpy(np.stack(shown)).permute(0, 3, 1, 2) / 255


def put_on(images: Tensor, patch: Tensor) -> Tensor:
    """Images (N, 3, H, W) with the patch (3, h, w) in their corner."""
    index = torch.arange(len(images))
    boxes = torch.tensor([BOX]).expand(len(images), 4)
    matrices = wk.box_to_matrix(boxes, (SIDE, SIDE))
    return wk.paste_patches(images, patch, matrices, index)


def search(
    model: nn.Module, images: Tensor, target: int, through: Callable[[Tensor], Tensor], steps: int
) -> Tensor:
    """A patch (3, h, w) that makes the net name `target` on images (N, 3, H, W)."""
    patch = torch.full((3, SIDE, SIDE), 0.5, requires_grad=True)
    optimizer, generator = torch.optim.Adam([patch], lr=0.05), torch.Generator().manual_seed(0)
    wanted = torch.full((BATCH,), target)
    for _ in range(steps):
        optimizer.zero_grad()
        batch = images[torch.randint(len(images), (BATCH,), generator=generator)]
        F.cross_entropy(model(through(put_on(batch, patch))), wanted).backward()
        optimizer.step()
        with torch.no_grad():
            patch.clamp_(0, 1)
    return wk.quantize(patch.detach())


def judge(model: nn.Module, images: Tensor, patch: Tensor, target: int) -> float:
    """The share of photographs, distorted by OpenCV, that are classified as `target`."""
    with torch.no_grad():
        named = model(by_opencv(put_on(images, patch))).argmax(1)
    return (named == target).double().mean().item()


def run(count: int, steps: int, targets: int) -> tuple[dict[str, list[float]], dict[str, Tensor]]:
    """Each loop's rates by target, and its last scene through the lens."""
    training, unseen = Crops(count, seed=0), Crops(count, seed=1)
    lens = LOOPS["what the lens shows"]
    flat = training.images
    training.images = lens(flat)
    model = learn(training).eval()
    rates: dict[str, list[float]] = {"no patch": [], **{loop: [] for loop in LOOPS}}
    scenes = {}
    for target in range(targets):
        others, new = training.labels != target, unseen.labels != target
        images = unseen.images[new]
        with torch.no_grad():
            clean = model(by_opencv(images)).argmax(1) == target
        rates["no patch"].append(clean.double().mean().item())
        for loop, through in LOOPS.items():
            patch = search(model, flat[others], target, through, steps)
            rates[loop].append(judge(model, images, patch, target))
            scenes[loop] = torch.cat(
                (put_on(images[:3], patch), by_opencv(put_on(images[:3], patch)))
            )
    return rates, scenes


def table(rates: dict[str, list[float]]) -> Table:
    """One row for each loop."""
    result = Table(title="unseen photographs named as the patch wants, through OpenCV's lens")
    for name in ("the patch was found on", "mean", "least", "most"):
        result.add_column(name)
    for loop, values in rates.items():
        figures = (sum(values) / len(values), min(values), max(values))
        result.add_row(loop, *(f"{value:.0%}" for value in figures))
    return result


def draw(path: Path, scenes: dict[str, Tensor]) -> None:
    """The last target's scenes: flat above, through the lens below."""
    figure = new_figure(9.0, 3.4)
    parts = figure.subfigures(1, len(scenes))
    for part, (loop, images) in zip(parts, scenes.items(), strict=True):
        part.suptitle(f"found on {loop}")
        for axes, image in zip(part.subplots(2, 3).flat, images, strict=True):
            axes.imshow(image.permute(1, 2, 0).numpy())
            axes.axis("off")
    save(path, figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, search, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many crops of photographs")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path("lens_patch.png"))
    options = parser.parse_args(argv)
    rates, scenes = run(options.count, options.steps, targets=len(NAMES))
    Console().print(table(rates))
    draw(options.out, scenes)


if __name__ == "__main__":
    main()
