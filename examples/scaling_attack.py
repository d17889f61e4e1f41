"""A picture that shrinks to another picture: python -m examples.scaling_attack

The image-scaling attack (Xiao et al., USENIX Security 2019): a photograph is changed as little as
possible so that one program's resize turns it into another photograph (`attacks.scaling_attack`).
The result is saved as 8 bits and tested with the real cv2.resize, PIL.Image.resize and torchvision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

import warpkit as wk
from examples.figures import ACCENT, INK, new_figure, save
from examples.photographs import FOLDER

SIZE = (64, 96)
"""A quarter of the photographs' 256 x 384 along each side."""

Resize = Callable[[np.ndarray], np.ndarray]


def by_cv2(flag: int) -> Resize:
    """cv2.resize of an image (H, W, 3)."""
    return lambda image: cv2.resize(image, SIZE[::-1], interpolation=flag)


def by_pillow(filter: Image.Resampling) -> Resize:
    """PIL.Image.resize."""
    return lambda image: np.array(Image.fromarray(image).resize((SIZE[1], SIZE[0]), filter))


def by_torchvision(antialias: bool) -> Resize:
    """torchvision's resize of a tensor of 8 bits."""

    def resize(image: np.ndarray) -> np.ndarray:
        planes = torch.from_numpy(image).permute(2, 0, 1)
        small = v2.functional.resize(planes, list(SIZE), antialias=antialias)
        return small.permute(1, 2, 0).numpy()

    return resize


JUDGES: dict[str, Resize] = {
    "cv2 linear": by_cv2(cv2.INTER_LINEAR),
    "torchvision, antialias=False": by_torchvision(False),
    "cv2 cubic": by_cv2(cv2.INTER_CUBIC),
    "cv2 area": by_cv2(cv2.INTER_AREA),
    "Pillow bilinear": by_pillow(Image.Resampling.BILINEAR),
    "Pillow bicubic": by_pillow(Image.Resampling.BICUBIC),
    "torchvision": by_torchvision(True),
}
"""The programs that shrink each picture; torchvision's default is antialiased."""
FROM_AFAR = "cv2 area"
"""The programs that average all pixels under each small pixel, as an eye does."""

AIMS: dict[str, dict[str, Any]] = {
    "cv2 linear": {"arithmetic": "opencv5"},
    "torchvision, antialias=False": {"arithmetic": "torchvision", "antialias": False},
    "Pillow bilinear": {"arithmetic": "pillow"},
}
"""The programs that are attacked, and warpkit's equivalent of their resize."""


class Found(NamedTuple):
    """The attack on one program."""

    image: np.ndarray
    """(H, W, 3), uint8."""
    changed: float
    """Root mean square difference to the photograph, in levels of 255."""
    missed: dict[str, float]
    """By program: root mean square difference of its small image to the hidden image."""
    fooled: dict[str, bool]
    """By program: whether it sees the hidden image, while an average sees the photograph."""


def load(name: str) -> Tensor:
    """A photograph (3, 256, 384) in [0, 1]."""
    pixels = np.array(Image.open(FOLDER / f"{name}.png").convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255


def attack(aim: str, shown: Tensor, hidden: Tensor, steps: int) -> Found:
    """Change `shown` (3, H, W) so that the program `aim` shrinks it to `hidden` (3, h, w)."""
    made = wk.attacks.scaling_attack(hidden, shown, SIZE, steps=steps, **AIMS[aim])
    pixels, before, wanted = map(as_pixels, (made.image, shown, hidden))
    missed = {name: rms(judge(pixels), wanted) for name, judge in JUDGES.items()}
    honest = {name: rms(judge(pixels), judge(before)) for name, judge in JUDGES.items()}
    shows_photograph = honest[FROM_AFAR] < missed[FROM_AFAR]
    fooled = {name: shows_photograph and missed[name] < honest[name] for name in JUDGES}
    return Found(pixels, made.changed, missed, fooled)


def as_pixels(image: Tensor) -> np.ndarray:
    """(3, H, W) in [0, 1] as an array (H, W, 3), uint8."""
    return (image * 255).round().byte().permute(1, 2, 0).contiguous().numpy()


def rms(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square difference."""
    return float(np.sqrt(np.square(a.astype(np.float64) - b).mean()))


def run(steps: int) -> dict[str, Found]:
    """One picture for each program: a cup of coffee that becomes a rocket."""
    hidden = wk.quantize(wk.resize(load("rocket"), SIZE).clamp(0, 1))
    return {aim: attack(aim, load("coffee"), hidden, steps) for aim in AIMS}


def table(found: dict[str, Found]) -> str:
    """A Markdown table with a row per picture and a column per program; bold if it is fooled."""
    head = ["made for", "changed by", *JUDGES]
    rows = [
        [aim, f"{f.changed:.1f}", *(told(f, judge) for judge in JUDGES)] for aim, f in found.items()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def told(found: Found, judge: str) -> str:
    """The difference of a program's small image from the hidden one, in levels."""
    number = f"{found.missed[judge]:.1f}"
    return f"**{number}**" if found.fooled[judge] else number


def draw(found: dict[str, Found], out: Path) -> None:
    """Each picture beside every program's result."""
    figure = new_figure(17.0, 2.1 * len(found))
    rows = figure.subplots(len(found), 1 + len(JUDGES), squeeze=False)
    for row, (aim, f) in zip(rows, found.items(), strict=True):
        made = [f.image, *(judge(f.image) for judge in JUDGES.values())]
        titles = [f"made for {aim}", *JUDGES]
        for axes, title, pixels in zip(row, titles, made, strict=True):
            fooled = f.fooled.get(title, False)
            axes.imshow(pixels, interpolation="nearest")
            axes.set_title(
                title.replace(", ", ",\n"),
                fontsize=11,
                fontweight="bold" if title == aim else "normal",
                color=ACCENT if fooled else INK,
            )
            axes.set_axis_off()
    save(out, figure, 128)


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
