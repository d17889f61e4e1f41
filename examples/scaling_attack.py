"""A picture that a library shrinks to another one: python -m examples.scaling_attack

The image-scaling attack (Xiao et al., USENIX Security 2019): a photograph is changed as little as
possible so that one library's resize makes another photograph of it. The gradient goes through that
library's own 8-bit pixels (`through_uint8`); the result is saved as 8 bits and judged by the real
cv2.resize and PIL.Image.resize, and by torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

import warpkit as wk
from examples.figures import new_figure, save
from examples.photographs import FOLDER

SIZE = (64, 96)
"""A quarter of the photographs' 256 x 384 along each side."""

Resize = Callable[[np.ndarray], np.ndarray]


def by_cv2(flag: int) -> Resize:
    """cv2.resize of an image (H, W, 3)."""
    return lambda image: cv2.resize(image, SIZE[::-1], interpolation=flag)


def by_pillow(filter: Image.Resampling) -> Resize:
    """PIL.Image.resize."""
    return lambda image: np.array(Image.fromarray(image).resize(SIZE[::-1], filter))


def by_torch(antialias: bool) -> Resize:
    """F.interpolate of 8 bits."""

    def resize(image: np.ndarray) -> np.ndarray:
        planes = torch.from_numpy(image).permute(2, 0, 1)[None]
        small = F.interpolate(planes, SIZE, mode="bilinear", antialias=antialias)
        return small[0].permute(1, 2, 0).numpy()

    return resize


JUDGES: dict[str, Resize] = {
    "cv2 linear": by_cv2(cv2.INTER_LINEAR),
    "cv2 cubic": by_cv2(cv2.INTER_CUBIC),
    "cv2 area": by_cv2(cv2.INTER_AREA),
    "Pillow bilinear": by_pillow(Image.Resampling.BILINEAR),
    "Pillow bicubic": by_pillow(Image.Resampling.BICUBIC),
    "torch": by_torch(False),
    "torch antialias": by_torch(True),
}
AIMS: dict[str, Callable[[Tensor], Tensor]] = {
    "cv2 linear": partial(wk.resize, size=SIZE, arithmetic="opencv5"),
    "cv2 area": partial(wk.resize, size=SIZE, interpolation="area", arithmetic="opencv5"),
    "Pillow bilinear": partial(wk.resize, size=SIZE, arithmetic="pillow"),
}
"""The libraries that a picture is made for."""


class Found(NamedTuple):
    """What was found for one library."""

    image: np.ndarray
    """(H, W, 3), uint8."""
    changed: float
    """Root mean square difference to the photograph, in levels of 255."""
    missed: dict[str, float]
    """By judge: root mean square difference of its small image to the one that was wanted."""


def load(name: str) -> Tensor:
    """A photograph (3, 256, 384) in [0, 1]."""
    pixels = np.array(Image.open(FOLDER / f"{name}.png").convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255


def attack(aim: str, shown: Tensor, hidden: Tensor, steps: int, weight: float = 0.02) -> Found:
    """Change `shown` (3, H, W) so that the library `aim` makes `hidden` (3, h, w) of it."""
    levels = shown.clone().requires_grad_()
    optimizer = torch.optim.Adam([levels], lr=0.02)
    for step in range(steps):
        image = levels.clamp(0, 1)
        small = wk.through_uint8(AIMS[aim], wk.quantize(image))
        # in the last quarter the small image alone counts
        near = weight if step < steps * 3 // 4 else weight / 20
        loss = (small - hidden).square().mean() + near * (image - shown).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            levels.clamp_(0, 1)
    pixels = (levels.detach() * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
    wanted = (hidden * 255).permute(1, 2, 0).numpy()
    before = (shown * 255).permute(1, 2, 0).numpy()
    missed = {name: rms(judge(pixels), wanted) for name, judge in JUDGES.items()}
    return Found(pixels, rms(pixels, before), missed)


def rms(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square difference."""
    return float(np.sqrt(np.square(a.astype(np.float64) - b).mean()))


def run(steps: int) -> dict[str, Found]:
    """One picture for each library: a coffee that becomes a rocket."""
    hidden = wk.resize(load("rocket"), SIZE).mul(255).round() / 255
    return {aim: attack(aim, load("coffee"), hidden, steps) for aim in AIMS}


def table(found: dict[str, Found]) -> str:
    """In Markdown: a row for each picture, a column for each library that shrinks it."""
    head = ["made for", "changed by", *JUDGES]
    rows = [
        [aim, f"{f.changed:.1f}", *(f"{f.missed[judge]:.1f}" for judge in JUDGES)]
        for aim, f in found.items()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def draw(found: dict[str, Found], out: Path) -> None:
    """Each picture, and what every library makes of it, side by side."""
    figure = new_figure(15.0, 1.75 * len(found) + 0.2)
    rows = figure.subplots(len(found), 1 + len(JUDGES), squeeze=False)
    for row, (aim, f) in zip(rows, found.items(), strict=True):
        titles = [f"made for {aim}", *JUDGES]
        for axes, title, pixels in zip(
            row, titles, [f.image, *(judge(f.image) for judge in JUDGES.values())], strict=True
        ):
            axes.imshow(pixels, interpolation="nearest")
            axes.set_title(title, fontsize=9, fontweight="bold" if title == aim else "normal")
            axes.set_axis_off()
    save(out, figure)


def main() -> None:
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("scaling_attack.png"))
    options = parser.parse_args()
    found = run(options.steps)
    print(table(found))
    draw(found, options.out)


if __name__ == "__main__":
    main()
