"""JPEG files on tensors, compared with Pillow's files and other formulas: python -m benchmarks.jpeg

Every case first proves that the kernels' values are those of Pillow's file, at all qualities that
are divisible by 5, and that the gradient is the definition's. It then times a call in turns on one
thread; the ratio is the median over the turns of (way / Pillow's file), and times are the
processor's, which other load hardly changes. kornia's and DiffJPEG's files have other values: the
rows say how many are equal, and how far the farthest is away.
"""

from __future__ import annotations

import argparse
import io
import math
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from benchmarks.harness import about, table
from warpkit.attacks import jpeg
from warpkit.cli.bench.timing import Turns, in_turns, ratio
from warpkit.engine.definitions import jpeg as definition
from warpkit.types import Subsampling

ROOT = Path(__file__).parents[1]
QUALITY, SUBSAMPLINGS = 75, ("4:2:0", "4:2:2", "4:4:4")
FORWARD, BACKWARD = "0.35 of Pillow's file", "1.2 of Pillow's file"

Way = Callable[[], Any]


class Case(NamedTuple):
    """Several ways to make the files of the same images; the first is Pillow's."""

    name: str
    aim: str
    ways: dict[str, Way]
    apart: dict[str, tuple[float, float]]
    """The share of equal values, and the largest difference in levels, of other formulas."""


def photograph(name: str) -> Tensor:
    """A photograph of data/images (3, H, W), bytes."""
    array = np.array(Image.open(ROOT / "data" / "images" / f"{name}.png").convert("RGB"))
    return torch.from_numpy(array).permute(2, 0, 1).contiguous()


def pictures() -> dict[str, Tensor]:
    """Batches (N, 3, H, W): crops of photographs; photographs beside each other; one enlarged."""
    names = ("astronaut", "coffee", "rocket")
    astronaut, coffee, _ = photographs = [photograph(name) for name in names]
    crops = [photographs[n][..., x : x + 256] for n in (1, 2) for x in (0, 64, 128)]
    batch = torch.stack([astronaut, photograph("brick")[:, :256, :256], *crops])
    row = torch.cat([*photographs, *(picture.flip(2) for picture in photographs)], 2)[..., :1920]
    wide = torch.cat([row, row.flip(1)] * 3, 1)[:, :1080]
    smooth = F.interpolate(coffee[None].float(), (1080, 1920), mode="bicubic").round()
    return {
        "8 x 3 x 256 x 256": batch,
        "1 x 3 x 1080 x 1920": wide[None].contiguous(),
        "1 x 3 x 1080 x 1920, enlarged": smooth.clamp(0, 255).byte(),
    }


def by_pillow(images: list[Image.Image], quality: int, subsampling: str) -> list[np.ndarray]:
    """The arrays (H, W, 3) of the images' files."""
    arrays = []
    for image in images:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality, subsampling=subsampling)
        arrays.append(np.asarray(Image.open(file)))
    return arrays


def tables(quality: int) -> tuple[Tensor, Tensor]:
    """DiffJPEG's steps, (row, column): transposed, scaled, and not rounded."""
    factor = (5000 / quality if quality < 50 else 200 - 2 * quality) / 100
    both = torch.tensor((definition.BRIGHTNESS, definition.COLOUR)).float() * factor
    brightness, colour = both.reshape(2, 8, 8).mT
    return brightness, colour


def by_diffjpeg(images: Tensor, quality: int) -> Tensor:
    """The formula of DiffJPEG (Shin and Song, 2017), for sides that are multiples of 16.

    Floats throughout, "4:2:0" by means and repetition, and round(x) + (x - round(x))^3.
    """
    to_planes = torch.tensor(
        [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
    )
    to_rgb = torch.tensor([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])
    planes = torch.einsum("dc,nchw->ndhw", to_planes, images * 255)
    small, large = F.avg_pool2d(planes[:, 1:], 2), planes[:, :1] - 128
    steps = tables(quality)
    brightness = through_blocks(large, steps[0]) + 128
    colours = through_blocks(small, steps[1]).repeat_interleave(2, 2).repeat_interleave(2, 3)
    rgb = torch.einsum("dc,nchw->ndhw", to_rgb, torch.cat((brightness, colours), 1))
    return rgb.clamp(0, 255) / 255


def through_blocks(planes: Tensor, steps: Tensor) -> Tensor:
    """Planes (N, P, H, W) with rounded coefficients."""
    place = torch.arange(8).double()
    cosines = (torch.outer(place, 2 * place + 1) * (math.pi / 16)).cos() / 2
    cosines[0] /= math.sqrt(2)
    cosines = cosines.float()
    blocks = planes.unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).transpose(3, 4)
    quotients = cosines @ blocks @ cosines.T / steps
    whole = quotients.round()
    rounded = (whole + (quotients - whole) ** 3) * steps
    back = cosines.T @ rounded @ cosines
    return back.transpose(3, 4).flatten(4).flatten(2, 3)


def prove(images: Tensor, subsampling: Subsampling) -> None:
    """The kernels' values are Pillow's, and their gradient is the definition's."""
    pillow = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
    for quality in (1, *range(5, 101, 5)):
        expected_files = torch.from_numpy(np.stack(by_pillow(pillow, quality, subsampling)))
        result = jpeg(quality, subsampling=subsampling)(images)
        assert torch.equal(result, expected_files.permute(0, 3, 1, 2)), quality
    floats = (images[:1, :, :512, :512].float() / 255).requires_grad_()
    push = torch.randn(floats.shape, generator=torch.Generator().manual_seed(0))
    (result,) = torch.autograd.grad(
        jpeg(QUALITY, subsampling=subsampling).function(floats), floats, push
    )
    qualities = torch.tensor([QUALITY], dtype=torch.int32)
    expected = definition.gradient(floats, qualities, subsampling, push)
    assert (result - expected).abs().max() < 4e-6 * expected.abs().max()


def cases() -> Iterator[Case]:
    """Forward for bytes, and forward with the gradient for float32."""
    from kornia.enhance import jpeg_codec_differentiable

    for name, images in pictures().items():
        floats = (images.float() / 255).requires_grad_()
        push = torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
        pillow = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
        qualities = torch.full((len(images),), float(QUALITY))

        def by_kornia(images: Tensor, qualities: Tensor = qualities) -> Tensor:
            return jpeg_codec_differentiable(images, qualities)

        def by_formula(images: Tensor) -> Tensor:
            return by_diffjpeg(images, QUALITY)

        for subsampling in SUBSAMPLINGS:
            prove(images, subsampling)
            step = jpeg(QUALITY, subsampling=subsampling)
            others = {"kornia": by_kornia, "DiffJPEG": by_formula} if subsampling == "4:2:0" else {}
            if images.shape[2] % 16:
                others.pop("DiffJPEG", None)

            def differentiated(
                function: Callable[[Tensor], Tensor], floats: Tensor = floats, push: Tensor = push
            ) -> Tensor:
                return torch.autograd.grad(function(floats), floats, push)[0]

            def file(images: list[Image.Image] = pillow, s: str = subsampling) -> Any:
                return by_pillow(images, QUALITY, s)

            apart = {}
            for way, function in others.items():
                levels = (function(floats.detach()) * 255).round()
                far = (levels - step(images).float()).abs()
                apart[way] = float((far == 0).float().mean()), float(far.max())
            inputs, values = images, floats.detach()
            ways: dict[str, Way] = {"Pillow's file": file}
            ways["warpkit"] = lambda step=step, inputs=inputs: step(inputs)
            ways["warpkit, float32"] = lambda step=step, values=values: step.function(values)
            for way, function in others.items():
                ways[way] = lambda function=function, values=values: function(values)
            yield Case(f"{name}, {subsampling}", FORWARD, ways, apart)
            ways = {"Pillow's file": file}
            for way, function in {"warpkit": step.function, **others}.items():
                ways[way] = lambda function=function, run=differentiated: run(function)
            aim = BACKWARD if "256" in name else ""
            yield Case(f"{name}, {subsampling}, gradient", aim, ways, apart)


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    packages = {name: version(name) for name in ("pillow", "kornia")}
    for case in cases():
        turns = Turns(seconds=options.seconds, at_least=5, clock=time.process_time, rotate=True)
        seconds_of = in_turns(case.ways, turns)
        pillow = seconds_of["Pillow's file"]
        for name, seconds in seconds_of.items():
            equal, levels = case.apart.get(name, (1.0, 0.0))
            row = {"case": case.name, "way": name, "ms": f"{1e3 * statistics.median(seconds):.4g}"}
            row |= {"least_ms": f"{1e3 * min(seconds):.4g}"}
            row |= {"times_pillow": f"{ratio(seconds, pillow):.2f}"}
            row |= {"times_warpkit": f"{ratio(seconds, seconds_of['warpkit']):.2f}"}
            row |= {"turns": str(len(seconds))}
            row |= {"equal": f"{equal:.3f}", "levels_apart": f"{levels:.0f}"}
            yield row | {"aim": case.aim, **about(), **packages, "noise": options.noise}


if __name__ == "__main__":
    table(__doc__, "jpeg", rows, columns=9, seconds=10.0, noise="")
