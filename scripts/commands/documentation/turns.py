"""A photograph after eight turns by 45 degrees, by each interpolation: docs/images/turns.png."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image

import warpkit as wk

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("bilinear", "bicubic", "lanczos4", "spline3", "spline5")
SIDE, CUT = 256, slice(92, 164)


def turned(image: torch.Tensor, name: str) -> torch.Tensor:
    """The image (3, H, W) after eight turns."""
    eighth = wk.rotation_matrix(wk.image_center((SIDE, SIDE)), 45.0)
    for _ in range(8):
        image = wk.warp_affine(image, eighth, interpolation=name, border="reflect")  # pyright: ignore
    return image


def draw(path: Path) -> None:
    """Draw the figure: the middle of each result, and how far it is from the photograph."""
    array = np.array(Image.open(ROOT / "data" / "images" / "astronaut.png").convert("RGB"))
    photograph = torch.from_numpy(array).movedim(-1, 0)[:, :SIDE, :SIDE].double() / 255
    assert photograph.shape[-2:] == (SIDE, SIDE)
    figure, panels = plt.subplots(1, len(NAMES) + 1, figsize=(12, 2.1), layout="constrained")
    middle = wk.pixel_grid((SIDE, SIDE)).double() - (SIDE - 1) / 2
    inside = middle.norm(dim=-1) < SIDE / 2 - 8
    panels_of = {"the photograph": photograph}
    for name in NAMES:
        result = turned(photograph, name)
        error = (result - photograph)[:, inside].square().mean()
        panels_of[f"{name}: {-10 * float(error.log10()):.1f} dB"] = result
    for panel, (title, picture) in zip(panels, panels_of.items(), strict=True):
        panel.imshow(picture[:, CUT, CUT].clamp(0, 1).movedim(0, -1), interpolation="nearest")
        panel.set_title(title, fontsize=10)
        panel.axis("off")
    figure.savefig(path, dpi=80)
    plt.close(figure)
    with Image.open(path) as file:
        few = file.convert("RGB").quantize(200, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
