"""`attacks.Pipeline` compared with the same steps by hand: python -m benchmarks.pipelines

Forward and backward. Every case first proves that warpkit and by hand agree in every value and, to
1e-5, in the gradient; `F.interpolate` of the floats is the program that no one runs, within two
levels of it. Then the ways are timed as `harness` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks import harness
from benchmarks.harness import Case
from warpkit.attacks import Pipeline
from warpkit.gradients import straight_through

PYRAMID = (64, 96, 128, 160, 192, 224)

Way = Callable[[Tensor], list[Tensor]]


def resize(side: int) -> Callable[[Tensor], Tensor]:
    """Pillow's bilinear resize to a square."""
    return partial(wk.resize, size=(side, side), arithmetic="pillow")


def by_hand(images: Tensor, sides: tuple[int, ...]) -> list[Tensor]:
    """The integers of the 8-bit image, with the gradient of the same resize of the floats."""
    with torch.no_grad():
        levels = (images * 255).round().clamp(0, 255).to(torch.uint8)
        values = [resize(side)(levels) / 255 for side in sides]
    pairs = zip(values, sides, strict=True)
    return [straight_through(value, resize(side)(images)) for value, side in pairs]


def interpolated(images: Tensor) -> list[Tensor]:
    return [F.interpolate(images, (224, 224), mode="bilinear", antialias=True)]


def cases() -> Iterator[Case]:
    images = torch.rand(8, 3, 480, 640, generator=torch.Generator().manual_seed(0))
    one = Pipeline(resize(224))
    ways: dict[str, Way] = {
        "warpkit": lambda x: [one(x)],
        "by hand": lambda x: by_hand(x, (224,)),
        "F.interpolate": interpolated,
    }
    yield proved("Pillow's resize of 8 x 3 x 480 x 640 to 224", images, ways)
    ends = Pipeline({side: resize(side) for side in PYRAMID})
    single = [Pipeline(resize(side)) for side in PYRAMID]
    ways = {
        "warpkit": lambda x: list(ends(x).values()),
        "a Pipeline for each": lambda x: [each(x) for each in single],
        "by hand": lambda x: by_hand(x, PYRAMID),
    }
    yield proved("Pillow's resize of 8 x 3 x 480 x 640 to six sizes", images, ways)


def run(way: Way, images: Tensor) -> tuple[list[Tensor], Tensor]:
    """Forward and backward."""
    images = images.detach().requires_grad_()
    results = way(images)
    grads = [torch.linspace(-1, 1, x.numel()).reshape(x.shape) for x in results]
    (grad,) = torch.autograd.grad(results, images, grads)
    return [x.detach() for x in results], grad


def proved(name: str, images: Tensor, ways: dict[str, Way]) -> Case:
    """The case of images (N, 3, H, W), if its ways agree."""
    values, grad = run(ways["warpkit"], images)
    for other, way in ways.items():
        results, other_grad = run(way, images)
        for value, result in zip(values, results, strict=True):
            assert_close(result, value, rtol=0, atol=2 / 255 if other == "F.interpolate" else 0)
        assert_close(other_grad, grad, rtol=0, atol=1e-5)
    return Case(name, {other: partial(run, way, images) for other, way in ways.items()}, "1/1.2")


if __name__ == "__main__":
    harness.main(__doc__, "pipelines", cases, seconds=8.0)
