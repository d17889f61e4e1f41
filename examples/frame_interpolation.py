"""A frame between two photographs, from a known flow: python -m examples.frame_interpolation

A disc cut from one photograph flies over another, which rotates and grows behind it. The first and
last frames and the flow between them are given. Both are splatted half way and blended; each fills
the other's holes. The true frame, which no method sees, gives the score: the PSNR in decibels, of
the whole frame and around the disc.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import warpkit as wk
from examples.figures import INK, new_figure, save
from warpkit import flow
from warpkit.cli.demo.work import small
from warpkit.cli.image_files import read_image

FOLDER = Path(__file__).parents[1] / "data" / "images"
OUT = Path("docs/images/frame-interpolation.png")
START, END = (60.0, 90.0), (168.0, 118.0)
"""The disc's centre in both frames."""
METHODS = {
    "cross-fade": "no motion at all",
    "average": "pixels that collide are averaged",
    "softmax": "where pixels collide, the nearer one wins",
}


class Scene(NamedTuple):
    """The moving scene at times 0 to 1."""

    background: Tensor
    """(3, H, W)."""
    disc: Tensor
    """(3, d, d)."""
    mask: Tensor
    """(1, d, d)."""

    @property
    def size(self) -> tuple[int, int]:
        return self.background.shape[-2], self.background.shape[-1]

    def camera(self, time: float) -> Tensor:
        """The matrix (2, 3) of the background: frame 0 -> frame at `time`."""
        return wk.rotation_matrix(wk.image_center(self.size), 8.0 * time, 1 + 0.12 * time).double()

    def place(self, time: float) -> Tensor:
        """The matrix (2, 3) of the disc: its pixels -> frame at `time`."""
        (x0, y0), (x1, y1), half = START, END, (self.disc.shape[-1] - 1) / 2
        x, y = x0 + time * (x1 - x0) - half, y0 + time * (y1 - y0) - half
        return torch.tensor([[1.0, 0, x], [0, 1, y]], dtype=torch.float64)

    def frame(self, time: float) -> Tensor:
        """The frame at `time`, (3, H, W)."""
        behind = wk.warp_affine(self.background, self.camera(time), border="reflect")
        return wk.paste_patches(behind, self.disc, self.place(time)[None], None, mask=self.mask)

    def nearness(self, time: float) -> Tensor:
        """1 on the disc and 0 elsewhere, (1, H, W)."""
        disc = wk.warp_affine(self.mask, self.place(time), size=self.size)
        return (disc > 0.5).to(disc.dtype)

    def motion(self, start: float, end: float) -> Tensor:
        """The flow from `start` to `end`: (H, W, 2), in pixels."""
        moves = [
            wk.compose(wk.invert(matrix(start)), matrix(end))
            for matrix in (self.camera, self.place)
        ]
        behind, disc = (flow.from_matrix(move, self.size, inverse=True) for move in moves)
        return torch.where(self.nearness(start).movedim(0, -1) > 0, disc, behind)


def scene(side: int = 256) -> Scene:
    """The scene, with photographs whose longest side is `side` pixels."""
    background, other = (small(read_image(FOLDER / f"{n}.png").pixels, side)
                         for n in ("coffee", "astronaut"))  # fmt: skip
    place = torch.arange(64) - 31.5
    mask = (30 - torch.hypot(place[:, None], place)).clamp(0, 1)[None]
    return Scene(background, other[:, 8 : 8 + 64, 80 : 80 + 64].contiguous(), mask)


def between(scene: Scene, time: float, method: str) -> tuple[Tensor, Tensor]:
    """The frame (3, H, W) at `time` from those at 0 and 1, and its holes (1, H, W)."""
    frames = [scene.frame(end) for end in (0.0, 1.0)]
    shares = [1 - time, time]
    if method == "cross-fade":
        blend = sum(share * frame for share, frame in zip(shares, frames, strict=True))
        return torch.as_tensor(blend), torch.zeros(1, *scene.size)
    total, weight = torch.zeros(3, *scene.size), torch.zeros(1, *scene.size)
    for end, frame, share in zip((0.0, 1.0), frames, shares, strict=True):
        part = time if end == 0 else 1 - time
        options = {"weights": scene.nearness(end), "temperature": 0.05}
        # the whole motion of each frame is known; `time` is `part` of it away
        carried = flow.splat(
            frame, part * scene.motion(end, 1 - end), mode=method,
            **(options if method == "softmax" else {}),
        )  # fmt: skip
        seen = share * (carried.weight > 0.3)
        total, weight = total + seen * carried.image, weight + seen
    fade = between(scene, time, "cross-fade")[0]
    return torch.where(weight > 0, total / weight.clamp(min=1e-6), fade), (weight == 0).float()


def decibels(image: Tensor, truth: Tensor, where: Tensor) -> float:
    """The peak signal-to-noise ratio over the pixels `where` (1, H, W)."""
    error = ((image - truth).square() * where).sum() / (3 * where.sum())
    return float(-10 * error.log10())


def run(side: int = 256, time: float = 0.5) -> tuple[dict[str, tuple[float, float]], Scene]:
    """For each method the decibels of the whole frame, and of the disc and its surroundings."""
    made = scene(side)
    truth = made.frame(time)
    disc = torch.nn.functional.max_pool2d(made.nearness(time)[None], 25, 1, 12)[0]
    found = {}
    for method in METHODS:
        image = between(made, time, method)[0]
        found[method] = decibels(image, truth, torch.ones_like(disc)), decibels(image, truth, disc)
    return found, made


def table(found: dict[str, tuple[float, float]]) -> Table:
    """The decibels."""
    made = Table("method", "what it does", "whole frame, dB", "disc and around, dB")
    for method, (whole, disc) in found.items():
        made.add_row(method, METHODS[method], f"{whole:.1f}", f"{disc:.1f}")
    return made


def draw(path: Path, made: Scene, time: float = 0.5) -> None:
    """Both frames, the truth, and each method's result; holes are red."""
    panels = {
        "frame 0": made.frame(0),
        "frame 1": made.frame(1),
        "the frame between": made.frame(time),
    }
    for method in METHODS:
        image, holes = between(made, time, method)
        red = torch.tensor([0.9, 0.1, 0.2])[:, None, None]
        panels[method] = image * (1 - holes) + red * holes
    figure = new_figure(9.6, 5.0)
    for panel, (name, image) in zip(figure.subplots(2, 3).flat, panels.items(), strict=True):
        panel.imshow(image.clamp(0, 1).movedim(0, -1).numpy())
        panel.set_title(name, size=10, color=INK)
        panel.set_axis_off()
    save(path, figure, colours=64)


def main() -> None:
    """Compare, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found, made = run(options.side)
    Console().print(table(found))
    draw(options.out, made)


if __name__ == "__main__":
    main()
