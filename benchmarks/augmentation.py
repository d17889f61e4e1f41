"""Chains of geometric transforms, sampled once or each time: python -m benchmarks.augmentation

`Fused`, Compose with warpkit's and with torchvision's transforms (the same draws from the same
seeds), kornia's AugmentationSequential and, if installed, albumentations (own draws from the same
or similar ranges) apply two, three and five transforms to a photograph. Before a way is timed, its
picture is compared with the true one: bicubic interpolation of the photograph in float64 under the
product of the drawn matrices, averaged over SAMPLES x SAMPLES points in each output pixel. `error`
is the root mean square difference in levels of 255, over the pixels that no way cuts off; it
includes the blur of repeated sampling. The ways are timed in turns; times are the least per seed,
averaged over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import kornia.augmentation as K
import torch
import torch.nn.functional as F
import torchvision
from kornia import __version__ as kornia_version
from torch import Tensor
from torchvision.transforms import v2

from benchmarks.harness import about, table
from warpkit import transforms
from warpkit.cli.bench.timing import Turns, in_turns
from warpkit.cli.image_files import read_image
from warpkit.core.environment import installed
from warpkit.transforms import Fused

ROOT = Path(__file__).parents[1]
PHOTOGRAPH = ROOT / "data" / "images" / "coffee.png"
SIDE, SAMPLES, SEEDS, TURNS, BATCH = 160, 5, 3, 4, 8
COUNTS = {2: (0, 4), 3: (0, 1, 4), 5: (0, 1, 2, 3, 4)}
"""Which of the five transforms each case uses."""
MOST_ERROR = 12.0
"""In levels: a way with a larger error has drawn other transforms."""


def pipeline(module: Any) -> list[Any]:
    """The five transforms of warpkit or torchvision; they shrink the photograph by 1.2 to 1.7."""
    smooth = {"interpolation": v2.InterpolationMode.BILINEAR}
    return [
        module.RandomRotation(20, **smooth),
        module.RandomAffine(10, scale=(0.9, 1.1), shear=5, **smooth),
        module.RandomPerspective(0.2, 1.0, **smooth),
        module.RandomHorizontalFlip(),
        module.RandomResizedCrop(SIDE, (0.7, 1.0), **smooth),
    ]


def kornias() -> list[Any]:
    """The same ranges in kornia, whose crop has no antialias."""
    return [
        K.RandomRotation(20.0, p=1.0),
        K.RandomAffine(10.0, scale=(0.9, 1.1), shear=5.0, p=1.0),
        K.RandomPerspective(0.2, p=1.0),
        K.RandomHorizontalFlip(),
        K.RandomResizedCrop((SIDE, SIDE), scale=(0.7, 1.0), p=1.0),
    ]


class Albumentations:
    """The same ranges with cv2 on arrays; the perspective enlarges, the crop has no antialias."""

    def __init__(self, chosen: tuple[int, ...]) -> None:
        import albumentations as A

        steps = (
            A.Rotate((-20, 20), p=1),
            A.Affine(rotate=(-10, 10), scale=(0.9, 1.1), shear=(-5, 5), p=1),
            A.Perspective((0.02, 0.1), p=1),
            A.HorizontalFlip(p=0.5),
            A.RandomResizedCrop((SIDE, SIDE), scale=(0.7, 1.0), p=1),
        )
        self.compose = A.ReplayCompose([steps[k] for k in chosen])
        self.drawn: list[Any] = []
        self.seed: int | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W), one by one; (B, C, SIDE, SIDE)."""
        if self.seed != torch.initial_seed():
            self.seed = torch.initial_seed()
            self.compose.set_random_seed(self.seed)
        outs = [self.compose(image=rows) for rows in images.permute(0, 2, 3, 1).numpy()]
        self.drawn = [out["replay"]["transforms"] for out in outs]
        return torch.stack([torch.from_numpy(out["image"]).movedim(-1, 0) for out in outs])

    def matrices(self) -> Tensor:
        """The matrices of the last draws, (B, 3, 3)."""
        return torch.stack([self._matrix(steps) for steps in self.drawn])

    def _matrix(self, steps: list[Any]) -> Tensor:
        total = torch.eye(3).double()
        for step in steps:
            params, kind = step["params"], step["__class_fullname__"].split(".")[-1]
            if not step["applied"]:
                continue
            height, width = params["shape"][:2]
            matrix = torch.eye(3).double()
            if "matrix" in params:
                matrix = torch.as_tensor(params["matrix"]).double()
            if kind == "Perspective":
                grown = width / params["max_width"], height / params["max_height"], 1.0
                matrix = torch.tensor(grown).double().diag() @ matrix
            elif kind == "HorizontalFlip":
                matrix[0, 0], matrix[0, 2] = -1, width - 1
            elif kind == "RandomResizedCrop":
                x1, y1, x2, y2 = params["crop_coords"]
                for k, (low, high) in enumerate(((x1, x2), (y1, y2))):
                    matrix[k, k] = SIDE / (high - low)
                    matrix[k, 2] = (0.5 - low) * matrix[k, k] - 0.5
            total = matrix @ total
        return total


class Way(NamedTuple):
    """One way to transform images (B, C, H, W), and the matrices of its last draws."""

    call: Callable[[Tensor], Tensor]
    matrices: Callable[[], Tensor] | None
    """(B, 3, 3) after a call; None: the same as Fused's for the seed."""


def ways(count: int) -> dict[str, Way]:
    """The ways to do `count` transforms."""
    chosen = COUNTS[count]
    ours, theirs = ([pipeline(m)[k] for k in chosen] for m in (transforms, v2))
    fused = Fused(ours, per_image=True)
    in_turn, of_torchvision = v2.Compose(ours), v2.Compose(theirs)
    # all get float32; torchvision needs about the same time for uint8
    augment = K.AugmentationSequential(*(kornias()[k] for k in chosen), data_keys=["input"])

    def each(transform: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda images: torch.stack([transform(image) for image in images])

    def matrices() -> Tensor:
        by_name = augment.transform_matrix
        assert isinstance(by_name, Tensor)
        return by_name.double()

    by_name = {
        "warpkit": Way(fused, None),
        "warpkit, Compose": Way(each(in_turn), None),
        "torchvision, Compose": Way(each(of_torchvision), None),
        "kornia": Way(augment, matrices),
    }
    if find_spec("albumentations"):
        by_cv2 = Albumentations(chosen)
        by_name["albumentations"] = Way(by_cv2, by_cv2.matrices)
    return by_name


def truth(image: Tensor, matrices: Tensor) -> tuple[Tensor, Tensor]:
    """The true warp of an image (C, H, W) under matrices (B, 3, 3), and the pixels fully inside it.

    (B, C, SIDE, SIDE), float64, and (B, SIDE, SIDE), bool.
    """
    height, width = image.shape[-2:]
    offsets = (torch.arange(SAMPLES).double() + 0.5) / SAMPLES - 0.5
    at = (torch.arange(SIDE)[:, None] + offsets).flatten()
    y, x = torch.meshgrid(at, at, indexing="ij")
    points = torch.stack((x, y, torch.ones_like(x)), -1) @ torch.linalg.inv(matrices).mT[:, None]
    points = points[..., :2] / points[..., 2:]
    inside = ((points > 3) & (points < points.new_tensor([width - 4, height - 4]))).all(-1)
    grid = (2 * points + 1) / points.new_tensor([width, height]) - 1
    many = image.double().expand(len(matrices), -1, -1, -1)
    samples = F.grid_sample(many, grid, "bicubic", "reflection", align_corners=False)
    return F.avg_pool2d(samples, SAMPLES), F.avg_pool2d(inside.double(), SAMPLES) == 1


def errors(count: int, photograph: Tensor) -> dict[str, float]:
    """The error of each way, in levels of 255."""
    # the last channel marks what a way has cut off between two transforms
    image = torch.cat((photograph, torch.ones_like(photograph[:1])))
    total = dict.fromkeys(ways(count), 0.0)
    for seed in range(SEEDS):
        results, masks, true = {}, {}, {}
        for name, way in ways(count).items():
            torch.manual_seed(seed)
            results[name] = way.call(image[None])[0]
            if way.matrices is None:
                fused = Fused([pipeline(transforms)[k] for k in COUNTS[count]])
                torch.manual_seed(seed)
                matrix = fused.map(fused.make_params([image]), image.shape[-2:])[None]
            else:
                matrix = way.matrices()
            expected, inside = truth(photograph, matrix)
            true[name], masks[name] = expected[0], inside[0] & (results[name][3] > 0.999)
        for name in results:
            own = ways(count)[name].matrices is not None
            mask = masks[name] if own else masks["torchvision, Compose"]
            wrong = (results[name][:3].double() - true[name])[:, mask]
            total[name] += 255 * wrong.square().mean().sqrt().item() / SEEDS
    return total


def measure(count: int, batch: int, photograph: Tensor) -> Iterator[dict[str, object]]:
    """A row for each way."""
    wrong = errors(count, photograph)
    if max(wrong.values()) > MOST_ERROR:
        raise AssertionError(f"not the same picture: {wrong}")
    images = photograph.expand(batch, -1, -1, -1).contiguous()
    by_name = ways(count)
    spent = dict.fromkeys(by_name, 0.0)
    for seed in range(SEEDS):

        def seeded(seed: int = seed) -> tuple[Tensor]:
            torch.manual_seed(seed)
            return (images,)

        calls = {name: way.call for name, way in by_name.items()}
        for name, seconds in in_turns(calls, Turns(TURNS), inputs=seeded).items():
            spent[name] += min(seconds) / SEEDS
    for name in by_name:
        yield {
            "transforms": count,
            "images": batch,
            "way": name,
            "ms": f"{1e3 * spent[name]:.1f}",
            "times_warpkit": f"{spent[name] / spent['warpkit']:.2f}",
            "error": f"{wrong[name]:.2f}",
            "turns": TURNS,
        }


def rows(_: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way, number of images and number of transforms."""
    photograph = read_image(PHOTOGRAPH).pixels.float() / 255
    versions = {"torchvision": torchvision.__version__, "kornia": kornia_version}
    versions["albumentations"] = installed("albumentations")
    for batch in (1, BATCH):
        for count in COUNTS:
            for row in measure(count, batch, photograph):
                yield {**row, **versions, **about()}


if __name__ == "__main__":
    table(__doc__, "augmentation", rows, columns=6, threads=1)
