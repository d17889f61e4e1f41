"""A patch that survives print, light and the real program: python -m examples.real_patch

A small detector finds a cup of coffee in photographs, one score for each of 4 x 4 cells. A patch on
the cup should hide it, wrapped around a cylinder, seen at a slant, in any light, and through the
program in front of the detector: a JPEG file of any quality, Pillow's resize, 8 bits. The patch is
optimised with all of these in the loop, and again without each of them. The test uses unseen
photographs, views, light and qualities, and Pillow itself.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import warpkit as wk
from examples.figures import new_figure, save
from examples.photographs import FOLDER, NAMES
from warpkit.attacks import (
    AffineDistribution,
    Cylinder,
    PerspectiveDistribution,
    Photometric,
    Pipeline,
    jpeg,
    normalize,
    optimize_patch,
    total_variation,
)
from warpkit.cli.image_files import read_image

SCENE, SEEN, CELL, PATCH = 96, 32, 8, 16
"""Sides in pixels: of a photograph, of the network's input, of one of its cells, of the patch."""
CUP, BATCH, SHARE = "coffee", 8, 0.55
QUALITIES, QUALITY = (20, 60), 30
"""Of the files, both ends included; and of the loop that takes one alone."""
MEAN, STD = (0.45, 0.45, 0.45), (0.25, 0.25, 0.25)

TURNS = {"angle": (-20.0, 20.0), "scale": (0.85, 1.15), "translation": (-3.0, 3.0)}
LIGHT = Photometric(brightness=(-0.15, 0.15), contrast=(0.5, 1.1), gamma=(0.7, 1.4), noise=0.02)


@dataclass(frozen=True)
class Loop:
    """The transforms between patch and network during the optimisation."""

    perspective: bool = True
    light: bool = True
    surface: bool = True
    program: bool = True
    drawn: bool = True
    """Each view has a quality of its own."""

    @property
    def views(self) -> AffineDistribution:
        affine = AffineDistribution(**TURNS)
        return PerspectiveDistribution(corners=(0, 0.2), **TURNS) if self.perspective else affine

    @property
    def photometric(self) -> Photometric | None:
        """The light of each view, and the quality of its file if that is drawn."""
        light = LIGHT if self.light else Photometric()
        if self.program and self.drawn:
            return replace(light, jpeg=QUALITIES)
        return light if self.light else None

    @property
    def steps(self) -> Pipeline | Any:
        """The program's other steps, or the usual substitute."""
        last = normalize(MEAN, STD)
        if self.program:
            files = [] if self.drawn else [jpeg(QUALITY)]
            smaller = partial(wk.resize, size=(SEEN, SEEN), arithmetic="pillow")
            return Pipeline(*files, smaller, last)
        return lambda images: last.function(F.interpolate(images, (SEEN, SEEN), mode="bilinear"))


WORLD = Loop()
LOOPS = {
    "all of it": WORLD,
    "no perspective": replace(WORLD, perspective=False),
    "no light": replace(WORLD, light=False),
    "no surface": replace(WORLD, surface=False),
    "a file of one quality": replace(WORLD, drawn=False),
    "no program": replace(WORLD, program=False),
    "turns and sizes alone": Loop(False, False, False, False),
}
BEND = Cylinder(PATCH / 2.4)


def program(images: Tensor, qualities: Sequence[int] | None = None) -> Tensor:
    """The real program, of 8-bit photographs (N, 3, H, W): a file, Pillow's resize, floats.

    qualities: of the files; None draws them.
    """
    made = []
    if qualities is None:
        low, high = QUALITIES
        qualities = np.random.default_rng(0).integers(low, high + 1, len(images)).tolist()
    for array, quality in zip(images.permute(0, 2, 3, 1).numpy(), qualities, strict=True):
        file = io.BytesIO()
        Image.fromarray(array).save(file, "JPEG", quality=quality)
        small = Image.open(file).resize((SEEN, SEEN), Image.Resampling.BILINEAR)
        made.append((np.asarray(small, np.float32) / 255 - np.float32(MEAN)) / np.float32(STD))
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2)


class Cups(Dataset[tuple[Tensor, Tensor]]):
    """Photographs (3, SCENE, SCENE) with the cup somewhere, and its box (4,), or zeros for none."""

    def __init__(self, count: int, seed: int, empty: float = 0.0) -> None:
        generator = torch.Generator().manual_seed(seed)
        rand = partial(torch.rand, generator=generator)
        photographs = [read_image(FOLDER / f"{n}.png").pixels for n in NAMES if n != CUP]
        photographs = [pixels[:3].expand(3, -1, -1).float() / 255 for pixels in photographs]
        cup = read_image(FOLDER / f"{CUP}.png").pixels.float() / 255
        cup = wk.resize(cup, (64, 64))
        scenes = []
        for i in range(count):
            whole = photographs[i % len(photographs)]
            side = SCENE * (0.8 + 0.8 * rand(()))
            side = side.clamp(max=min(whole.shape[-2:]))
            corner = rand(2) * (torch.tensor([whole.shape[2], whole.shape[1]]) - side)
            box = torch.cat((corner, corner + side))
            scenes.append(wk.crop_patches(whole, box[None], None, (SCENE, SCENE))[0])
        side = SCENE * (0.35 + 0.2 * rand(count, 1))
        corner = rand(count, 2) * (SCENE - side)
        self.boxes = torch.cat((corner, corner + side), dim=1)
        moves = PerspectiveDistribution(corners=(0, 0.1), angle=(-15, 15))
        placed = wk.compose(
            moves.sample(count, size=(64, 64), generator=generator),
            wk.box_to_matrix(self.boxes, (64, 64)),
        )
        shown = rand(count) >= empty
        cups = LIGHT.apply(cup.expand(count, -1, -1, -1), LIGHT.sample(count, generator=generator))
        index = torch.arange(count)
        painted = wk.paste_patches(torch.stack(scenes), cups, placed, index, opacity=shown.float())
        self.images = wk.quantize(painted.clamp(0, 1))
        self.boxes = self.boxes * shown[:, None]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.images[index], self.boxes[index]


def patch_boxes(boxes: Tensor) -> Tensor:
    """The patch's boxes on cups (N, 4): in the centre, with SHARE of their sides."""
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) * SHARE / 2
    return torch.cat((middle - half, middle + half), dim=1)


def collate(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """The input of `optimize_patch`: images, the patch's boxes, and the image of each."""
    images, boxes = (torch.stack(part) for part in zip(*items, strict=True))
    return images, patch_boxes(boxes), torch.arange(len(images))


def detector(seed: int, count: int = 320, steps: int = 250) -> nn.Sequential:
    """Train three convolutions to scores (N, 1, 4, 4), in seconds on separate scenes."""
    data = Cups(count, seed=1000 + seed, empty=0.3)
    generator = torch.Generator().manual_seed(seed)
    # the detector learns that random covers do not hide a cup
    covers = torch.rand(len(data), 3, 4, 4, generator=generator)
    boxes = patch_boxes(
        data.boxes + (data.boxes.sum(1, keepdim=True) == 0) * torch.tensor([20.0, 20, 60, 60])
    )
    scenes = wk.paste_patches(
        data.images,
        covers,
        wk.box_to_matrix(boxes, (4, 4)),
        torch.arange(len(data)),
        opacity=(torch.arange(len(data)) % 4 == 0).float(),
    )
    seen = program((scenes * 255).round().byte())
    cells = torch.arange(SEEN // CELL) * (SCENE / SEEN * CELL) + SCENE / SEEN * CELL / 2
    middle = (data.boxes[:, :2] + data.boxes[:, 2:]) / 2
    near = (middle[:, :, None] - cells).abs() < SCENE / SEEN * CELL * 0.75
    wanted = (near[:, 1, :, None] & near[:, 0, None, :])[:, None] & (data.boxes.sum(1) > 0)[
        :, None, None, None
    ]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for before, after in ((3, 16), (16, 24), (24, 32)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        model = nn.Sequential(
            *layers, nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        weight = torch.tensor(6.0)
        for _ in range(steps):
            rows = torch.randint(len(data), (40,))
            optimizer.zero_grad()
            scores = model(seen[rows])
            loss = F.binary_cross_entropy_with_logits(
                scores, wanted[rows].float(), pos_weight=weight
            )
            loss.backward()
            optimizer.step()
    return model.eval().requires_grad_(False)


def score(model: nn.Module, seen: Tensor) -> Tensor:
    """Scores (N,), above 0 if a cup is found."""
    return model(seen).amax((1, 2, 3))


def search(model: nn.Module, data: Cups, loop: Loop, steps: int, seed: int) -> Tensor:
    """A patch (3, PATCH, PATCH) that hides the cup, found through a loop."""

    def objective(views: Tensor, *, patch: Tensor) -> Tensor:
        return F.softplus(score(model, views) + 1).mean() + 0.1 * total_variation(patch)

    generator = torch.Generator().manual_seed(seed)
    return optimize_patch(
        objective,
        DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate),
        None,
        None,
        patch_size=(PATCH, PATCH),
        distribution=loop.views,
        photometric=loop.photometric,
        pipeline=loop.steps,
        surface=BEND if loop.surface else None,
        steps=steps,
        samples=1,
        step_size=0.08,
        quantize=True,
        start=torch.rand(3, PATCH, PATCH, generator=generator),  # a grey start ends in poor optima
        generator=generator,
    ).patch


def photographed(data: Cups, patch: Tensor, seed: int) -> Tensor:
    """Unseen 8-bit photographs of cups with a patch (3, PATCH, PATCH) on each."""
    generator, count = torch.Generator().manual_seed(seed), len(data)
    boxes = patch_boxes(data.boxes).double()
    distribution = WORLD.views
    assert isinstance(distribution, PerspectiveDistribution)
    corners, moves = distribution.sample_parts(count, size=(PATCH, PATCH), generator=generator)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2 - 0.5 - (PATCH - 1) / 2
    there, back = (wk.affine_matrix(translation=by) for by in (middle, -middle))
    placed = wk.compose(
        corners.double(), wk.box_to_matrix(boxes, (PATCH, PATCH)), back, moves.double(), there
    )
    patches = LIGHT(patch.expand(count, -1, -1, -1), generator=generator)
    bend = BEND.flow((PATCH, PATCH))
    scenes = wk.paste_patches(data.images, patches, placed, torch.arange(count), flow=bend)
    return (LIGHT(scenes, generator=generator) * 255).round().byte()


def run(count: int, steps: int, seeds: int) -> tuple[dict[str, list[float]], dict[str, Tensor]]:
    """How often each loop's patch hides a detected cup, by seed; and the last scenes."""
    rates: dict[str, list[float]] = {"a grey patch": [], **{loop: [] for loop in LOOPS}}
    scenes: dict[str, Tensor] = {}
    for seed in range(seeds):
        model = detector(seed)
        training, unseen = Cups(count, seed=seed), Cups(count, seed=100 + seed)
        found = score(model, program((unseen.images * 255).round().byte())) > 0
        for name in rates:
            patch = torch.full((3, PATCH, PATCH), 0.5)
            if name in LOOPS:
                patch = search(model, training, LOOPS[name], steps, seed)
            scenes[name] = photographed(unseen, patch, seed=200 + seed)
            hidden = score(model, program(scenes[name])) <= 0
            rates[name].append((hidden & found).sum().item() / found.sum().item())
            print(f"seed {seed}, {name}: {rates[name][-1]:.0%} of {int(found.sum())}", flush=True)
    return rates, scenes


def table(rates: dict[str, list[float]]) -> Table:
    """One row for each loop."""
    result = Table(title="cups that are hidden, on unseen photographs, through the real program")
    for name in (
        "the patch was found with",
        "hidden, over the seeds",
        "less than all of it, in pairs",
    ):
        result.add_column(name)
    for loop, values in rates.items():
        less = [best - value for best, value in zip(rates["all of it"], values, strict=True)]
        result.add_row(loop, *map(spread, (values, less)))
    return result


def spread(values: list[float]) -> str:
    """Mean, standard deviation and range, in per cent."""
    deviation = stdev(values) if len(values) > 1 else 0.0
    ends = f"{min(values):.0%} to {max(values):.0%}"
    return f"{mean(values):.0%} ± {deviation:.0%} ({ends})"


def draw(path: Path, scenes: dict[str, Tensor]) -> None:
    """Four photographs with the patch of each loop."""
    figure = new_figure(1.9 * len(scenes) * 0.72, 4.2)
    parts = figure.subplots(3, len(scenes))
    for column, (name, images) in zip(parts.T, scenes.items(), strict=True):
        column[0].set_title(name, size=8)
        for axes, image in zip(column, images, strict=False):
            axes.imshow(image.permute(1, 2, 0).numpy())
            axes.axis("off")
    save(path, figure, colours=96)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, search, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--count", type=int, default=96, help="photographs to learn and to judge by"
    )
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("real_patch.png"))
    options = parser.parse_args(argv)
    rates, scenes = run(options.count, options.steps, options.seeds)
    Console().print(table(rates))
    draw(options.out, scenes)


if __name__ == "__main__":
    main()
