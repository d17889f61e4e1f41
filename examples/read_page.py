"""A recogniser's whole preprocessing in the loop: python -m examples.read_page

rapidocr finds the corners of a line on a page, crops it by a cubic warp, resizes and normalises the
crop, and reads it. `validation.identify` names what it does to a picture without seeing its code;
the twin and `warp_perspective` put the same numbers into a loop, with gradients to the page. Its
packages are those of scripts/test published.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR
from rapidocr_onnxruntime.utils import reduce_max_side
from torch import Tensor

import warpkit as wk
from examples.figures import ACCENT, GREY, INK, new_figure, save
from warpkit.attacks import Pipeline
from warpkit.validation import Preprocessing, identify

SHOWN, AIM = "EUR 38.50", "EUR 98.20"
SIZE, FONT = (400, 900), 170
"""Of the page, (H, W), and of the text, in pixels."""
READ = 320 / 48
"""The recogniser's input, width by height, of lines that are not longer."""

Program = Callable[[Tensor], Tensor]
"""From pages (1, 3, H, W), uint8 or floats in [0, 1], to the recogniser's input."""
Loop = Callable[[np.ndarray], Program]
"""From the corners (4, 2) to the program."""


class Found(NamedTuple):
    """A page that was made, and what rapidocr reads on it."""

    page: Tensor
    """(1, H, W), uint8."""
    changed: float
    """Root mean square difference from the page that is shown, in levels of 255."""
    read: str
    score: float
    seconds: float


def engine() -> RapidOCR:
    """The published program, on one thread."""
    return RapidOCR(intra_op_num_threads=1)


def programs(ocr: RapidOCR) -> dict[str, Callable[[np.ndarray], Any]]:
    """What rapidocr does to a picture before each of its networks."""
    return {
        "picture": lambda image: reduce_max_side(image)[0],
        "detector": lambda image: ocr.text_det.get_preprocess(max(image.shape[:2]))(image),
        "classifier": ocr.text_cls.resize_norm_img,
        "recogniser": lambda image: ocr.text_rec.resize_norm_img(image, READ),
    }


def differs(program: Callable[[np.ndarray], Any], found: Preprocessing, count: int = 10) -> float:
    """The largest difference of a twin's numbers on noise of random sizes, in levels."""
    draw, worst = np.random.default_rng(7), 0.0
    for _ in range(count):
        height, width = draw.integers(31, 2400, 2)
        image = draw.integers(0, 256, (height, width, 3), np.uint8)
        made = found.pipeline(torch.from_numpy(image).permute(2, 0, 1)[None])[0].numpy()
        real = np.asarray(program(image))
        if real.dtype == np.uint8:  # channels last
            made = made.transpose(1, 2, 0)
        level = 1 if real.dtype == np.uint8 else 1 / 127.5
        worst = max(worst, float(np.abs(real - made).max() / level))
    return worst


def page(text: str, angle: float) -> Tensor:
    """Black text on white in Pillow's own font, turned: (1, H, W), uint8."""
    picture = Image.new("L", SIZE[::-1], "white")
    ink = {"fill": "black", "font": ImageFont.load_default(FONT), "anchor": "mm"}
    ImageDraw.Draw(picture).text((SIZE[1] / 2, SIZE[0] / 2), text, **ink)
    turned = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
    return torch.from_numpy(np.array(turned))[None]


def as_array(image: Tensor) -> np.ndarray:
    """(1, H, W), uint8, as rapidocr takes it: (H, W, 3)."""
    return image[0, ..., None].expand(-1, -1, 3).contiguous().numpy()


def corners(ocr: RapidOCR, image: Tensor) -> np.ndarray | None:
    """The corners (4, 2) of the line that the detector finds; None unless it is one."""
    boxes = ocr.auto_text_det(as_array(image))[0]
    return boxes[0] if boxes is not None and len(boxes) == 1 else None


def crop_of(box: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """The matrix (3, 3) and the size (h, w) of rapidocr's crop."""
    sides = np.linalg.norm(box - np.roll(box, -1, 0), axis=1)
    width, height = int(max(sides[0], sides[2])), int(max(sides[1], sides[3]))
    to = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    return cv2.getPerspectiveTransform(box, to), (height, width)


def exactly(twin: Pipeline, box: np.ndarray) -> Program:
    """The program itself: cv2's cubic warp, then the recogniser's preprocessing."""
    matrix, size = crop_of(box)
    how: dict[str, Any] = {"interpolation": "bicubic", "border": "replicate"}
    crop = partial(wk.warp_perspective, matrix=torch.from_numpy(matrix), size=size, **how)
    return Pipeline(partial(crop, arithmetic="opencv5"), twin)


def by_hand(mode: str, antialias: bool, box: np.ndarray) -> Program:
    """As one would write it with torch alone, on floats."""
    matrix, (height, width) = crop_of(box)
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    points = torch.stack((columns, rows, torch.ones_like(rows)), -1).double()
    points = points @ torch.from_numpy(np.linalg.inv(matrix)).T
    points = points[..., :2] / points[..., 2:]
    grid = (2 * points + 1) / torch.tensor(SIZE[::-1]) - 1
    small = (48, min(int(np.ceil(48 * (width / height))), 320))

    def program(images: Tensor) -> Tensor:
        crop = F.grid_sample(images, grid[None].float(), mode, "border", align_corners=False)
        crop = F.interpolate(crop, small, mode="bilinear", antialias=antialias)
        return F.pad(2 * crop - 1, (0, 320 - small[1]))

    return program


def loops(twin: Pipeline) -> dict[str, Loop]:
    """By name: the program itself, and what one might write in its place."""
    return {
        "rapidocr's own, by warpkit": partial(exactly, twin),
        "grid_sample bicubic, F.interpolate": partial(by_hand, "bicubic", False),
        "grid_sample bilinear, F.interpolate": partial(by_hand, "bilinear", False),
        "grid_sample bilinear, antialias": partial(by_hand, "bilinear", True),
    }


def attack(ocr: RapidOCR, loop: Loop, angle: float, steps: int, every: int = 10) -> Found:
    """Change a page so that rapidocr, with its detector, reads another line.

    The detector looks at the page again after `every` steps: its corners follow the page.
    """
    shown, other = page(SHOWN, angle), page(AIM, angle)
    box = corners(ocr, shown)
    assert box is not None
    start = time.perf_counter()
    image = shown.float() / 255
    levels = image.clone().requires_grad_()
    optimizer = torch.optim.Adam([levels], lr=0.02)
    for step in range(steps):
        if step % every == 0:
            now = corners(ocr, (levels.detach() * 255).round().byte())
            box = box if now is None else now
            program = loop(box)
            with torch.no_grad():
                target = program((other.float() / 255).expand(1, 3, -1, -1))
        near = 0.02 if step < steps * 3 // 4 else 0.001
        seen = program(levels.expand(1, 3, -1, -1))
        loss = (seen - target).square().mean() / 4 + near * (levels - image).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            levels.clamp_(0, 1)
    seconds = time.perf_counter() - start
    made = (levels.detach() * 255).round().byte()
    changed = (made.float() - shown).square().mean().sqrt().item()
    lines = ocr(as_array(made))[0] or []
    score = min((said[2] for said in lines), default=0.0)
    return Found(made, changed, " ".join(said[1] for said in lines), score, seconds)


def apart(ocr: RapidOCR, twin: Pipeline, angle: float) -> float:
    """The largest difference of the loop's numbers from rapidocr's, for one page, in levels."""
    shown = page(SHOWN, angle)
    box = corners(ocr, shown)
    assert box is not None
    (crop,) = ocr.get_crop_img_list(as_array(shown), [box])
    real = ocr.text_rec.resize_norm_img(crop, READ)
    made = exactly(twin, box)(shown.expand(3, -1, -1)[None])[0].numpy()
    return float(np.abs(real - made).max()) * 127.5


def run(
    ocr: RapidOCR, twin: Pipeline, angles: tuple[float, ...], steps: int
) -> dict[float, dict[str, Found]]:
    """By angle and loop: the page that each makes; and with the corners of the first page."""
    found = {}
    for angle in angles:
        found[angle] = {name: attack(ocr, loop, angle, steps) for name, loop in loops(twin).items()}
        fixed = attack(ocr, partial(exactly, twin), angle, steps, every=steps)
        found[angle]["the same, corners of the first page"] = fixed
    return found


def table(found: dict[float, dict[str, Found]]) -> str:
    """A Markdown table with a row per loop and a column per angle; bold where it is misled."""
    head = ["the loop", *(f"{angle:g} degrees" for angle in found)]
    rows = [
        [name, *(told(by[name]) for by in found.values())] for name in next(iter(found.values()))
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def told(found: Found) -> str:
    """What rapidocr reads on a page, bold if it is the aim."""
    text = f"{found.read.split()[-1]} ({found.score:.3f})" if found.read else "nothing"
    return f"{f'**{text}**' if found.read == AIM else text}, {found.changed:.0f}"


def times(ocr: RapidOCR, twin: Pipeline, count: int = 10) -> dict[str, float]:
    """Seconds of one step of each loop without the detector, the least of some, in turn."""
    image = page(SHOWN, 4.0).expand(1, 3, -1, -1) / 255
    box = corners(ocr, page(SHOWN, 4.0))
    assert box is not None
    made = {name: loop(box) for name, loop in loops(twin).items()}
    least = dict.fromkeys(made, float("inf"))
    for _ in range(count):
        for name, program in made.items():
            start = time.perf_counter()
            levels = image.clone().requires_grad_()
            program(levels).square().mean().backward()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def draw(found: dict[float, dict[str, Found]], out: Path) -> None:
    """The pages of the program's own loop, with what rapidocr reads on them."""
    figure = new_figure(12.5, 2.3)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (angle, by_name) in zip(panels, found.items(), strict=True):
        f = next(iter(by_name.values()))
        panel.imshow(f.page[0].numpy(), cmap="gray", vmin=0, vmax=255, interpolation="antialiased")
        title = f"turned by {angle:g} degrees: rapidocr reads {f.read}"
        panel.set_title(title, size=10, color=ACCENT if f.read == AIM else INK)
        panel.set(xticks=[], yticks=[])
        for spine in panel.spines.values():
            spine.set_color(GREY)
    save(out, figure)


def main() -> None:
    """Print all figures, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("read_page.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ocr = engine()
    for name, program in programs(ocr).items():
        found = identify(program)
        print(f"{name}: {found}\n  its twin differs by {differs(program, found):.2g} levels")
    twin = identify(programs(ocr)["recogniser"]).pipeline
    for name, seconds in times(ocr, twin).items():
        print(f"{name}: a step takes {1000 * seconds:.0f} ms")
    for angle in (0.0, 4.0, 10.0):
        print(f"at {angle:g} degrees the loop differs by {apart(ocr, twin, angle):.2g} levels")
    made = run(ocr, twin, (0.0, 4.0, 10.0), options.steps)
    print(table(made))
    draw(made, options.out)


if __name__ == "__main__":
    main()
