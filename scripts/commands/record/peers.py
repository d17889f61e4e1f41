"""Record whose pixels each library computes for data/images: data/parity/peers.csv.

Each library rotates by 33 degrees and resizes to 96 x 72, bilinear, 8 bits. The file holds the
share of values that differ from OpenCV's and Pillow's, and the largest difference in levels.
Rotated pixels count only if all their neighbours lie in the image, because at the edge every
library has its own rule. One Python holds one OpenCV, so warpkit's "opencv4" stands for OpenCV 4:
recorded results of 4.14 prove that it has the same pixels.

    PYTHONPATH=/folder/with/monai:... scripts/record peers

Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Callable
from datetime import date
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import warpkit as wk

ROOT = Path(__file__).parents[3]
ANGLE, SIZE = 33.0, (72, 96)
Array = np.ndarray


def planes(photograph: Array) -> torch.Tensor:
    """(1, 3, H, W), uint8."""
    return torch.from_numpy(photograph).movedim(-1, 0)[None]


def array(result: torch.Tensor | Array) -> Array:
    """An array (H, W, 3), uint8: floats are rounded once, half to even."""
    if isinstance(result, torch.Tensor):
        result = result.reshape(result.shape[-3:]).movedim(0, -1).numpy()
    return np.clip(np.round(result), 0, 255).astype(np.uint8)


def turn(photograph: Array) -> torch.Tensor:
    """(2, 3), float64, source -> destination."""
    angle = torch.tensor(ANGLE, dtype=torch.float64)
    return wk.rotation_matrix(wk.image_center(photograph.shape[:2]), angle)


def turned_by_grid(photograph: Array) -> Array:
    size = photograph.shape[:2]
    theta = wk.to_theta(turn(photograph), size, size).float()
    grid = F.affine_grid(theta[None], [1, 3, *size], align_corners=False)
    return array(F.grid_sample(planes(photograph).float(), grid, align_corners=False))


def turned_by_kornia(photograph: Array) -> Array:
    geometry = import_module("kornia.geometry.transform")
    image, size = planes(photograph).float(), photograph.shape[:2]
    return array(geometry.warp_affine(image, turn(photograph)[None].float(), size))


def turned_by_torchvision(photograph: Array) -> Array:
    functional = import_module("torchvision.transforms.v2.functional")
    mode = import_module("torchvision.transforms").InterpolationMode.BILINEAR
    return array(functional.rotate(planes(photograph), ANGLE, interpolation=mode))


def turned_by_scipy(photograph: Array) -> Array:
    rotate = import_module("scipy.ndimage").rotate
    options = {"reshape": False, "order": 1, "mode": "grid-constant"}
    return array(rotate(photograph.astype(float), ANGLE, **options))


def turned_by_skimage(photograph: Array) -> Array:
    rotate = import_module("skimage.transform").rotate
    return array(rotate(photograph, ANGLE, preserve_range=True))


def turned_by_monai(photograph: Array) -> Array:
    rotate = import_module("monai.transforms").Rotate(-math.radians(ANGLE), padding_mode="zeros")
    return array(rotate(planes(photograph)[0]).as_tensor())


def turned_by_albumentations(photograph: Array) -> Array:
    affine = import_module("albumentations").Affine(rotate=(ANGLE, ANGLE), p=1)
    return affine(image=photograph)["image"]


def turned_by_kornia_rs(photograph: Array) -> Array:
    warp = import_module("kornia_rs").imgproc.warp_affine
    matrix = tuple(turn(photograph).flatten().tolist())
    return np.array(warp(photograph, matrix, photograph.shape[:2], "bilinear"))


def resized_by_kornia_rs(photograph: Array) -> Array:
    # 0.2.0 returns the same bytes with antialias=False.
    return np.array(import_module("kornia_rs").imgproc.resize(photograph, SIZE, "bilinear"))


def resized_by_interpolate(photograph: Array, antialias: bool) -> Array:
    options = {"mode": "bilinear", "antialias": antialias}
    return array(F.interpolate(planes(photograph).float(), SIZE, **options))


def resized_by_kornia(photograph: Array) -> Array:
    resize = import_module("kornia.geometry.transform").resize
    return array(resize(planes(photograph).float(), SIZE))


def resized_by_torchvision(photograph: Array) -> Array:
    functional = import_module("torchvision.transforms.v2.functional")
    return array(functional.resize(planes(photograph), list(SIZE)))


def resized_by_scipy(photograph: Array) -> Array:
    zoom = import_module("scipy.ndimage").zoom
    scales = (*(to / of for to, of in zip(SIZE, photograph.shape[:2], strict=True)), 1)
    return array(zoom(photograph.astype(float), scales, order=1, grid_mode=True, mode="nearest"))


def resized_by_skimage(photograph: Array) -> Array:
    resize = import_module("skimage.transform").resize
    return array(resize(photograph, SIZE, preserve_range=True))


def resized_by_monai(photograph: Array) -> Array:
    resize = import_module("monai.transforms").Resize(SIZE)
    return array(resize(planes(photograph)[0].float()).as_tensor())


def resized_by_albumentations(photograph: Array) -> Array:
    return import_module("albumentations").Resize(*SIZE)(image=photograph)["image"]


def cv2_turned(photograph: Array) -> Array:
    return cv2.warpAffine(photograph, turn(photograph).numpy(), photograph.shape[1::-1])


def warped(arithmetic: str) -> Callable[[Array], Array]:
    """The rotation in one of warpkit's arithmetics."""
    return lambda p: array(wk.warp_affine(planes(p), turn(p), arithmetic=arithmetic))


def resized(arithmetic: str, **options: object) -> Callable[[Array], Array]:
    """The resize in one of warpkit's arithmetics."""
    return lambda p: array(wk.resize(planes(p), SIZE, arithmetic=arithmetic, **options))  # pyright: ignore[reportArgumentType]


def pillow_turned(photograph: Array) -> Array:
    return np.array(Image.fromarray(photograph).rotate(ANGLE, Image.Resampling.BILINEAR))


def pillow_resized(photograph: Array) -> Array:
    size = (SIZE[1], SIZE[0])
    return np.array(Image.fromarray(photograph).resize(size, Image.Resampling.BILINEAR))


WAYS = {
    "turn": {
        "warpkit, exact": ("torch", warped("exact")),
        "warpkit, opencv5": ("torch", warped("opencv5")),
        "warpkit, opencv4": ("torch", warped("opencv4")),
        "OpenCV": ("cv2", cv2_turned),
        "albumentations": ("albumentations", turned_by_albumentations),
        "Pillow": ("PIL", pillow_turned),
        "grid_sample": ("torch", turned_by_grid),
        "torchvision": ("torchvision", turned_by_torchvision),
        "kornia": ("kornia", turned_by_kornia),
        "kornia-rs": ("kornia_rs", turned_by_kornia_rs),
        "MONAI": ("monai", turned_by_monai),
        "scikit-image": ("skimage", turned_by_skimage),
        "SciPy": ("scipy", turned_by_scipy),
    },
    "resize": {
        "warpkit, exact": ("torch", resized("exact")),
        "warpkit, opencv5": ("torch", resized("opencv5")),
        "warpkit, opencv5, area": ("torch", resized("opencv5", interpolation="area")),
        "warpkit, pillow": ("torch", resized("pillow")),
        "OpenCV": ("cv2", lambda p: cv2.resize(p, SIZE[::-1])),
        "OpenCV, INTER_AREA": ("cv2", lambda p: cv2.resize(p, SIZE[::-1], interpolation=3)),
        "albumentations": ("albumentations", resized_by_albumentations),
        "Pillow": ("PIL", pillow_resized),
        "F.interpolate": ("torch", lambda p: resized_by_interpolate(p, False)),
        "F.interpolate, antialias": ("torch", lambda p: resized_by_interpolate(p, True)),
        "torchvision": ("torchvision", resized_by_torchvision),
        "kornia": ("kornia", resized_by_kornia),
        "kornia-rs": ("kornia_rs", resized_by_kornia_rs),
        "MONAI": ("monai", resized_by_monai),
        "scikit-image": ("skimage", resized_by_skimage),
        "SciPy": ("scipy", resized_by_scipy),
    },
}
TRUTHS = {
    "turn": {"opencv5": warped("opencv5"), "opencv4": warped("opencv4"), "pillow": pillow_turned},
    "resize": {
        "opencv": lambda p: cv2.resize(p, SIZE[::-1]),
        "opencv_area": lambda p: cv2.resize(p, SIZE[::-1], interpolation=cv2.INTER_AREA),
        "pillow": pillow_resized,
    },
}
DISTRIBUTIONS: dict[str, str] = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "kornia_rs": "kornia-rs",
}


def version_of(name: str) -> str:
    """The version of this checkout, or of an installed library."""
    return wk.__version__ if name == "warpkit" else version(DISTRIBUTIONS.get(name, name))


def inside(photograph: Array) -> Array:
    """The rotated pixels (H, W) whose neighbours all lie in the image."""
    ones = torch.ones(1, *photograph.shape[:2], dtype=torch.float64)
    return wk.warp_affine(ones, turn(photograph))[0].numpy() > 1 - 1e-9


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    photographs = []
    for path in sorted((ROOT / "data/images").iterdir()):
        with Image.open(path) as file:
            photographs.append(np.array(file.convert("RGB")))
    lines = []
    for work, ways in WAYS.items():
        counts = [np.ones(SIZE, bool)] * len(photographs)
        if work == "turn":
            counts = [inside(photograph) for photograph in photographs]
        truths = {
            name: [truth(photograph) for photograph in photographs]
            for name, truth in TRUTHS[work].items()
        }
        for name, (module, way) in ways.items():
            if find_spec(module) is None:
                continue
            line: dict[str, object] = {"work": work, "way": name}
            results = [way(photograph) for photograph in photographs]
            for truth, wanted in truths.items():
                apart = np.concatenate(
                    [
                        np.abs(a.astype(int) - b)[c].ravel()
                        for a, b, c in zip(results, wanted, counts, strict=True)
                    ]
                )
                line[truth] = f"{(apart > 0).mean():.4f}"
                line[f"{truth}_levels"] = int(apart.max())
            distribution = "warpkit" if name.startswith("warpkit") else module
            line["version"] = version_of(distribution)
            lines.append(line | {"date": date.today().isoformat()})
            print(line)
    path = ROOT / "data/parity/peers.csv"
    names = dict.fromkeys(name for line in lines for name in line)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(names), restval="-", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
