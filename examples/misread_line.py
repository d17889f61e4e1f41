"""A line that a text recogniser reads otherwise.

    .venv-published/bin/python -m examples.misread_line    # scripts/test published makes it

rapidocr shrinks every line of text to 48 pixels by cv2.resize, which reads few of its pixels.
`attacks.scaling_attack` changes these alone: people read one amount, the recogniser another. It
needs no gradient of the model, not even its answers.
"""

from __future__ import annotations

import argparse
import io
import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR
from torch import Tensor

import warpkit as wk
from examples.figures import ACCENT, GREY, INK, new_figure, save

READ = 48
"""Pixels of the height that the recogniser resizes to; its width keeps the aspect, rounded up."""
SHOWN, AIM = "Total EUR 38.50", "Total EUR 98.20"
HEIGHT = 240
"""Five times the recogniser's."""

AIMS: dict[str, dict[str, Any]] = {
    "cv2 linear": {"arithmetic": "opencv5"},
    "cv2 area": {"arithmetic": "opencv5", "interpolation": "area"},
    "Pillow bilinear": {"arithmetic": "pillow"},
}
"""The resizes that are attacked; the first is the recogniser's own."""

Resize = Callable[[np.ndarray, tuple[int, int]], np.ndarray]
JUDGES: dict[str, Resize] = {
    "cv2 linear": lambda image, size: cv2.resize(image, size[::-1]),
    "cv2 area": lambda image, size: cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA),
    "Pillow bilinear": lambda image, size: np.array(
        Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR)
    ),
}
"""The same by the libraries themselves; the recogniser keeps what has its height already."""


class Reading(NamedTuple):
    """What the recogniser reads, and its confidence."""

    text: str
    score: float

    def __str__(self) -> str:
        return f"{self.text.split()[-1]} ({self.score:.3f})"


class Found(NamedTuple):
    """A line made for one resize."""

    image: np.ndarray
    """(H, W), uint8."""
    changed: float
    """Root mean square difference from the line that is shown, in levels of 255."""
    read: dict[str, Reading]
    """By the resize before the recogniser."""


def engine() -> RapidOCR:
    """The published recogniser, on one thread."""
    return RapidOCR(intra_op_num_threads=1)


def read(ocr: RapidOCR, image: np.ndarray) -> Reading:
    """The recogniser alone, on a line (H, W)."""
    (text, score), *_ = ocr(image, use_det=False, use_cls=False)[0] or [("", 0.0)]
    return Reading(text, score)


def line(text: str, height: int) -> Tensor:
    """Black text on white in Pillow's own font, (1, height, 4.43 height) in [0, 1]."""
    picture = Image.new("L", (round(4.43 * height), height), "white")
    ink = {"fill": "black", "font": ImageFont.load_default(0.55 * height), "anchor": "lm"}
    ImageDraw.Draw(picture).text((height / 4, height / 2), text, **ink)
    return torch.from_numpy(np.array(picture))[None].float() / 255


def small_size(image: Tensor) -> tuple[int, int]:
    """The size (h, w) that the recogniser resizes a line (1, H, W) to."""
    height, width = image.shape[-2:]
    return READ, math.ceil(READ * (width / height))


def attack(
    shown: str, aim: str, how: dict[str, Any], height: int = HEIGHT, steps: int = 100
) -> wk.attacks.ScalingAttack:
    """Change the line `shown` as little as possible so that a resize makes the line `aim` of it."""
    image, other = line(shown, height), line(aim, height)
    size = small_size(image)
    target = wk.resize(other, size, **how).clamp(0, 1)
    return wk.attacks.scaling_attack(target, image, size, steps=steps, **how)


def pixels(image: Tensor) -> np.ndarray:
    """(1, H, W) in [0, 1] as an array (H, W), uint8."""
    return (image[0] * 255).round().byte().numpy()


def run(ocr: RapidOCR, height: int = HEIGHT, steps: int = 100) -> dict[str, Found]:
    """One line for each resize, read after each."""
    found = {}
    for name, how in AIMS.items():
        made = attack(SHOWN, AIM, how, height, steps)
        file, size = pixels(made.image), small_size(made.image)
        reads = {judge: read(ocr, shrink(file, size)) for judge, shrink in JUDGES.items()}
        assert read(ocr, file) == reads["cv2 linear"]  # the recogniser's own resize
        found[name] = Found(file, made.changed, reads)
    return found


def as_file(image: np.ndarray, quality: int) -> np.ndarray:
    """What a JPEG file of the image shows."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.array(Image.open(file))


def afterwards(ocr: RapidOCR, image: np.ndarray) -> dict[str, Reading]:
    """What the recogniser reads if the file is saved again, or cut."""
    found = {f"JPEG, quality {q}": read(ocr, as_file(image, q)) for q in (95, 75, 50, 30)}
    for rows, columns in ((1, 0), (0, 1), (1, 1), (2, 2)):
        cut = np.ascontiguousarray(image[rows:, columns:])
        found[f"cut by {rows} row(s), {columns} column(s)"] = read(ocr, cut)
    return found


def amounts(ocr: RapidOCR, count: int) -> list[Reading | None]:
    """For random pairs of amounts: what the recogniser reads if it is the aim, else None."""
    draw, readings = random.Random(0), []
    for _ in range(count):
        shown, aim = (f"Total EUR {draw.randint(10, 99)}.{draw.randint(10, 99)}" for _ in range(2))
        reading = read(ocr, pixels(attack(shown, aim, AIMS["cv2 linear"]).image))
        readings.append(reading if reading.text == aim else None)
    return readings


def by_hand(image: Tensor, target: Tensor, steps: int, **how: Any) -> Tensor:
    """The same descent through F.interpolate on floats, as one would write it; 8 bits last."""
    levels = image.clone().requires_grad_()
    optimizer = torch.optim.Adam([levels], lr=0.02)
    for _ in range(steps):
        small = F.interpolate(levels[None], target.shape[-2:], mode="bilinear", **how)[0]
        loss = (small - target).square().mean() + 0.02 * (levels - image).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            levels.clamp_(0, 1)
    return (levels.detach() * 255).round() / 255


def beside_by_hand(ocr: RapidOCR, steps: int = 100) -> str:
    """What F.interpolate in the loop does, and the times (the least of three, in turn)."""
    image = line(SHOWN, HEIGHT)
    target = wk.resize(line(AIM, HEIGHT), small_size(image), arithmetic="opencv5")
    loops = {
        "warpkit": lambda: attack(SHOWN, AIM, AIMS["cv2 linear"], steps=steps).image,
        "F.interpolate": lambda: by_hand(image, target, steps),
        "F.interpolate, antialias": lambda: by_hand(image, target, steps, antialias=True),
    }
    said = {name: [] for name in loops}
    for _ in range(3):
        for name, loop in loops.items():
            start = time.perf_counter()
            made = loop()
            changed = (made - image).square().mean().sqrt().item() * 255
            said[name].append((time.perf_counter() - start, read(ocr, pixels(made)), changed))
    rows = [(name, *min(runs)) for name, runs in said.items()]
    return "\n".join(f"{n}: {t:.2f} s, {r}, changed by {c:.1f}" for n, t, r, c in rows)


def table(found: dict[str, Found]) -> str:
    """A Markdown table with a row per line and a column per resize; bold where it is misled."""
    head = ["made for", "changed by", *JUDGES]
    rows = [
        [name, f"{f.changed:.1f}", *(told(reading) for reading in f.read.values())]
        for name, f in found.items()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def told(reading: Reading) -> str:
    """A reading, bold if it is the aim."""
    return f"**{reading}**" if reading.text == AIM else str(reading)


def draw(found: dict[str, Found], out: Path) -> None:
    """The lines for cv2 and for Pillow, and what either library makes of them."""
    figure = new_figure(11.0, 4.0)
    grid = figure.add_gridspec(4, 2, width_ratios=(2, 1))
    names = ("cv2 linear", "Pillow bilinear")
    for row, name in zip((0, 2), names, strict=True):
        f = found[name]
        size = small_size(torch.from_numpy(f.image)[None])
        title = f"the file made for {name}: changed by {f.changed:.1f} levels"
        show(figure.add_subplot(grid[row : row + 2, 0]), f.image, title, INK)
        for below, judge in enumerate(names):
            reading = f.read[judge]
            title = f"after {judge}, rapidocr reads {reading.text.split()[-1]}"
            panel = figure.add_subplot(grid[row + below, 1])
            small = JUDGES[judge](f.image, size)
            show(panel, small, title, ACCENT if reading.text == AIM else INK)
    save(out, figure)


def show(panel: Any, image: np.ndarray, title: str, colour: str) -> None:
    """A grey image in a frame; smoothed if the figure has fewer pixels, as an eye would."""
    panel.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="antialiased")
    panel.set_title(title, size=10, color=colour)
    panel.set(xticks=[], yticks=[])
    for spine in panel.spines.values():
        spine.set_color(GREY)


def main() -> None:
    """Print all figures, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--amounts", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("misread_line.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ocr = engine()
    found = run(ocr, steps=options.steps)
    print(table(found))
    file = found["cv2 linear"].image
    for what, reading in afterwards(ocr, file).items():
        print(f"{what}: {reading}")
    print("with its detector before:", [said[1:] for said in ocr(file)[0] or []])
    for times in (2, 3, 4, 5, 6, 8):
        made = attack(SHOWN, AIM, AIMS["cv2 linear"], READ * times, options.steps)
        print(f"{times} times as high: {read(ocr, pixels(made.image))}, {made.changed:.1f} levels")
    readings = amounts(ocr, options.amounts)
    scores = [reading.score for reading in readings if reading]
    print(f"{len(scores)} of {len(readings)} random amounts, score at least {min(scores):.3f}")
    print(beside_by_hand(ocr, options.steps))
    draw(found, options.out)


if __name__ == "__main__":
    main()
