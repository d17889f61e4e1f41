"""A face that a published detector misses: python -m examples.hide_face

MTCNN (facenet-pytorch) shrinks a file to a pyramid of sizes by F.interpolate's "area", means. A
perturbation of the file is optimised through this resize or through another one in its place; the
real program then says whether it finds the face. The photograph is NASA's, in the public domain.
Its packages are those of scripts/test published.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from facenet_pytorch import MTCNN
from PIL import Image
from torch import Tensor

import warpkit as wk
from examples.figures import ACCENT, INK, new_figure, save
from warpkit.attacks import AffineDistribution, optimize_perturbation

PHOTOGRAPH = Path(__file__).parents[1] / "data" / "images" / "astronaut.png"
POSES = AffineDistribution(angle=(-15, 15), scale=(0.85, 1.15), translation=(-10, 10))

Resize = Callable[[Tensor, tuple[int, int]], Tensor]
RESIZES: dict[str, Resize] = {
    "the program's own, by warpkit": lambda images, size: wk.resize(
        images, size, interpolation="area", arithmetic="torchvision"
    ),
    "exact areas": lambda images, size: wk.resize(images, size, interpolation="area"),
    "F.interpolate, antialias": lambda images, size: F.interpolate(
        images, size, mode="bilinear", antialias=True
    ),
    "F.interpolate": lambda images, size: F.interpolate(images, size, mode="bilinear"),
}
"""The resize in the loop, of floats from 0 to 255; the first has MTCNN's own numbers."""


class Found(NamedTuple):
    """A perturbed file, and how well it hides the face."""

    image: Tensor
    """(1, 3, H, W), uint8."""
    loop: float
    """The highest probability of a face anywhere in the pyramid, by the loop's own resize."""
    real: float
    """The same by the program's."""
    score: float | None
    """The program's final score of the face; None if it finds none."""
    seconds: float


def detector() -> MTCNN:
    """The published detector, with its defaults."""
    found = MTCNN(keep_all=True)
    for weights in found.parameters():
        weights.requires_grad_(False)
    return found


def photograph() -> Tensor:
    """(1, 3, 256, 256) in [0, 1]."""
    pixels = np.array(Image.open(PHOTOGRAPH).convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255


def pyramid(model: MTCNN, size: tuple[int, int]) -> list[tuple[int, int]]:
    """The sizes of MTCNN's pyramid for a file of this size (h, w)."""
    scale, sizes = 12 / model.min_face_size, []
    while min(size) * scale >= 12:
        sizes.append((int(size[0] * scale + 1), int(size[1] * scale + 1)))
        scale *= model.factor
    return sizes


def probabilities(model: MTCNN, resize: Resize, images: Tensor) -> list[Tensor]:
    """The first network's map of faces (N, h, w) at each size, for images in [0, 1]."""
    levels = images * 255
    sizes = pyramid(model, (images.shape[-2], images.shape[-1]))
    return [model.pnet((resize(levels, size) - 127.5) / 128)[1][:, 1] for size in sizes]


def highest(model: MTCNN, resize: Resize, image: Tensor) -> float:
    """The highest probability of a face, for one file (1, 3, H, W), uint8."""
    with torch.no_grad():
        return max(map(float, (p.max() for p in probabilities(model, resize, image / 255))))


def program(model: MTCNN, image: Tensor) -> float | None:
    """The real program on a file (1, 3, H, W), uint8: its best score, None without a face."""
    file = Image.fromarray(image[0].permute(1, 2, 0).contiguous().numpy())
    scores = model.detect(file)[1]
    return None if scores[0] is None else float(max(scores))


def hide(
    model: MTCNN,
    name: str,
    epsilon: int = 12,
    steps: int = 40,
    poses: AffineDistribution | None = None,
) -> Found:
    """Perturb the photograph by at most `epsilon` levels, through one resize, to hide its face."""
    resize = RESIZES[name]

    def objective(images: Tensor) -> Tensor:
        maps = probabilities(model, resize, images)
        # the term stays finite where a probability rounds to 1
        return sum(-(1 - p + 1e-7).log().sum((1, 2)) for p in maps).mean()

    start = time.perf_counter()
    image, draw = photograph(), torch.Generator().manual_seed(0)
    how = {"epsilon": epsilon / 255, "steps": steps, "generator": draw}
    if poses is not None:
        how["samples"] = 4
    found = optimize_perturbation(objective, image, poses, **how)
    seconds = time.perf_counter() - start
    file = (found.image * 255).round().byte()
    own = next(iter(RESIZES.values()))
    scores = highest(model, resize, file), highest(model, own, file)
    return Found(file, *scores, program(model, file), seconds)


def hidden_under_poses(model: MTCNN, image: Tensor, count: int) -> float:
    """The share of unseen poses in which the program finds no face."""
    draw = torch.Generator().manual_seed(1)
    matrices = POSES.sample(count, size=image.shape[-2:], generator=draw)
    views = wk.warp_affine(image[0], matrices, arithmetic="opencv5")
    return sum(program(model, view[None]) is None for view in views) / count


def run(model: MTCNN, levels: tuple[int, ...] = (4, 8, 12), steps: int = 40) -> dict[int, dict]:
    """By the bound in levels: what each loop finds, by its name."""
    return {level: {name: hide(model, name, level, steps) for name in RESIZES} for level in levels}


def table(found: dict[int, dict[str, Found]]) -> str:
    """A Markdown table with a row for each bound and loop; bold where no face is found."""
    head = ["at most", "the loop's resize", "the loop says", "the program's own", "it finds", "s"]
    rows = [
        [f"{level} levels", name, f"{f.loop:.2f}", f"{f.real:.2f}", told(f), f"{f.seconds:.1f}"]
        for level, by_name in found.items()
        for name, f in by_name.items()
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def told(found: Found) -> str:
    """What the program finds."""
    return "**no face**" if found.score is None else f"the face ({found.score:.3f})"


def draw(found: dict[str, Found], out: Path) -> None:
    """The photograph and each perturbed file, with what the program finds."""
    original = (photograph() * 255).byte()
    shows = {"the photograph": (original, "the face", INK)}
    for name, f in found.items():
        seen = (f.image, "no face", ACCENT) if f.score is None else (f.image, "the face", INK)
        shows[name] = seen
    figure = new_figure(12.5, 2.9)
    for panel, (name, (image, seen, colour)) in zip(
        figure.subplots(1, len(shows)), shows.items(), strict=True
    ):
        panel.imshow(image[0].permute(1, 2, 0).numpy(), interpolation="antialiased")
        panel.set_title(name, size=10, color=INK)
        panel.set_xlabel(f"MTCNN finds {seen}", size=10, color=colour)
        panel.set(xticks=[], yticks=[])
    save(out, figure, 128)


def main() -> None:
    """Print all figures, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--poses", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("hide_face.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = detector()
    found = run(model, steps=options.steps)
    print(table(found), flush=True)
    draw(found[12], options.out)
    if options.poses:
        original = (photograph() * 255).byte()
        share = hidden_under_poses(model, original, options.poses)
        print(f"no face in poses of the photograph: {share:.0%}", flush=True)
        for name in RESIZES:
            plain = hidden_under_poses(model, found[12][name].image, options.poses)
            posed = hide(model, name, 12, options.steps, POSES)
            share = hidden_under_poses(model, posed.image, options.poses)
            print(f"{name}: no face in {plain:.0%} of the poses, {share:.0%} if optimised for them")


if __name__ == "__main__":
    main()
