"""Find a camera's rotation inside a sphere: python -m examples.find_rotation

A picture of the whole sphere is given, and an 8-bit photograph with noise that was taken inside it.
Gradient descent through `camera.from_sphere` finds the camera's rotation and field of view, from a
guess that is off by tens of degrees: first on small antialiased views, whose gradient reaches far,
then on larger ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

import warpkit as wk
from examples.figures import new_figure, save
from examples.photographs import FOLDER, NAMES
from warpkit import camera
from warpkit.cli.image_files import read_image

SPHERE, PHOTOGRAPH = (256, 512), (144, 192)
FIELD, WIDER = 75.0, 1.1
"""The photographs' field of view in degrees, and the factor by which the guess is wider."""
LEVELS = (((9, 12), 0.04, 80), ((36, 48), 0.01, 60), ((144, 192), 0.001, 60))
"""Sizes of views, the step of the rotation in radians, and the number of steps."""
NOISE = 0.02


class Found(NamedTuple):
    """One search."""

    truth: Tensor
    """The rotation that took the photograph, (3, 3)."""
    guess: Tensor
    rotation: Tensor
    field: float
    """In degrees; FIELD is the photograph's."""


def sphere_of_photographs() -> Tensor:
    """A picture (3, H, W) of the sphere: five photographs around it, on smooth waves of colour."""
    lon = torch.linspace(-math.pi, math.pi, SPHERE[1] + 1)[:-1]
    lat = torch.linspace(-math.pi / 2, math.pi / 2, SPHERE[0])[:, None]
    waves = torch.stack([
        0.5 + 0.3 * (lon + k).sin() * lat.cos() + 0.15 * ((2 + k) * lat).sin() for k in range(3)
    ])  # fmt: skip
    result = waves.clamp(0, 1)
    for k, name in enumerate(NAMES):
        photo = wk.resize(read_image(FOLDER / f"{name}.png").pixels[:3], (160, 160)).float() / 255
        # opacity as a fourth channel: 0 outside the view
        layer = torch.cat((photo.expand(3, -1, -1), torch.ones(1, 160, 160)))
        turn = turned(torch.tensor([0.2 * (-1) ** k, math.tau * k / len(NAMES), 0.0]))
        laid = camera.to_sphere(layer, SPHERE, field_of_view=62.0, rotation=turn, antialias=True)
        result = result * (1 - laid[3]) + laid[:3]
    return result


def turned(vector: Tensor) -> Tensor:
    """The rotation (3, 3) about a vector (3,), by its length in radians."""
    x, y, z = vector.unbind()
    zero = torch.zeros_like(x)
    rows = [torch.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
    return torch.linalg.matrix_exp(torch.stack(rows))


def apart(first: Tensor, second: Tensor) -> float:
    """The angle in degrees between two rotations (3, 3)."""
    cosine = ((first @ second.mT).diagonal().sum() - 1) / 2
    return math.degrees(math.acos(float(cosine.clamp(-1, 1))))


def take(sphere: Tensor, rotation: Tensor, generator: torch.Generator) -> Tensor:
    """Take an 8-bit photograph (3, h, w) with noise in a sphere (3, H, W)."""
    seen = camera.from_sphere(sphere, PHOTOGRAPH, field_of_view=FIELD, rotation=rotation)
    noisy = seen + NOISE * torch.randn(seen.shape, generator=generator)
    return (noisy * 255).round().clamp(0, 255) / 255


def find(sphere: Tensor, photograph: Tensor, guess: Tensor, field: float) -> tuple[Tensor, float]:
    """The rotation (3, 3) and the field of view, in degrees, that show a photograph (3, h, w).

    sphere (3, H, W); guess (3, 3).
    """
    vector = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    width = torch.tensor(math.log(field), dtype=torch.float64, requires_grad=True)
    for size, step, count in LEVELS:
        wanted = F.interpolate(photograph[None], size, mode="area")[0]
        optimizer = torch.optim.Adam([vector, width], lr=step)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, count, step / 20)
        for _ in range(count):
            optimizer.zero_grad()
            turn, field_now = turned(vector) @ guess, width.exp()
            seen = camera.from_sphere(
                sphere, size, field_of_view=field_now, rotation=turn, antialias=True
            )
            (seen - wanted).square().mean().backward()
            optimizer.step()
            decay.step()
    return turned(vector.detach()) @ guess, float(width.detach().exp())


def run(trials: int, off: float = 25.0, seed: int = 0) -> tuple[Tensor, list[Found]]:
    """The sphere (3, H, W), and searches from guesses that are `off` degrees away."""
    generator, sphere, found = torch.Generator().manual_seed(seed), sphere_of_photographs(), []
    for _ in range(trials):
        vectors = torch.randn(2, 3, generator=generator, dtype=torch.float64)
        vectors = vectors / vectors.norm(dim=-1, keepdim=True)
        truth = turned(vectors[0] * torch.tensor([0.4, 3.0, 0.4]))
        guess = turned(vectors[1] * math.radians(off)) @ truth
        photograph = take(sphere, truth, generator)
        found.append(Found(truth, guess, *find(sphere, photograph, guess, FIELD * WIDER)))
    return sphere, found


def table(searches: Sequence[Found]) -> Table:
    """The errors of each guess and of its result."""
    result = Table("photograph", "guess off by", "found to within", "field of view")
    for n, one in enumerate(searches):
        before, after = (apart(one.truth, r) for r in (one.guess, one.rotation))
        result.add_row(str(n + 1), f"{before:.1f}°", f"{after:.3f}°", f"{one.field:.2f}°")
    return result


def draw(path: Path, sphere: Tensor, searches: Sequence[Found]) -> None:
    """The sphere (3, H, W), and for each search the photograph, the guess and the result."""
    figure = new_figure(7.2, 1.9 * len(searches) + 2.4)
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=(2.4, 1.9 * len(searches)))
    above, below = parts.flat
    whole = above.subplots()
    whole.imshow(sphere.permute(1, 2, 0).numpy())
    whole.axis("off")
    for line, one in zip(below.subplots(len(searches), 3, squeeze=False), searches, strict=True):
        views = (
            ("photograph", one.truth, FIELD),
            ("guess", one.guess, FIELD * WIDER),
            ("found", one.rotation, one.field),
        )
        for axes, (title, rotation, field) in zip(line, views, strict=True):
            options = {"field_of_view": field, "rotation": rotation}
            seen = camera.from_sphere(sphere, PHOTOGRAPH, **options)
            axes.imshow(seen.permute(1, 2, 0).numpy())
            axes.set_title(title, size=9)
            axes.axis("off")
    save(path, figure, colours=128)


def main(argv: Sequence[str] | None = None) -> None:
    """Search, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4, help="how many photographs")
    parser.add_argument("--out", type=Path, default=Path("find_rotation.png"))
    options = parser.parse_args(argv)
    sphere, found = run(options.trials)
    Console().print(table(found))
    draw(options.out, sphere, found)


if __name__ == "__main__":
    main()
