"""`align` compared with cv2's ECC and kornia's registrator: python -m benchmarks.align

Pairs are crops of photographs (data/images, and scikit-learn's two and scikit-image's where those
are installed), 192 x 256 at most: the moving image is the crop itself, the fixed one the photograph
under a known matrix (lanczos4, averaged where it shrinks), with a gain of 0.8 to 1.2, a bias of up
to 0.1 and noise of 0.01 in both. Motions about the centre: "small" turns up to 3 degrees, scales
within 1.03, shifts of 2 % of the sides; "medium" 15 degrees, 1.25, 5 %; "large" any turn, 0.6 to
1.6, 5 %. The error is the RMS over the fixed image's corners; success is 0.1 pixels, for large
motions 0.5.

cv2 has no similarities and fits affine matrices instead. "ecc pyramid" is findTransformECC over
images halved by pyrDown, coarse to fine, 100 steps each to 1e-6; "ecc multiscale" is
findTransformECCMultiScale with its defaults. kornia has its defaults too (100 iterations at a
learning rate of 1e-3, which it advises to tune); it takes seconds per pair, so it gets only a few.
Milliseconds are CPU time on one thread, so that other load on the machine matters little.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

import warpkit as wk
from warpkit.alignment.models import MODELS
from warpkit.cli.bench.timing import Turns, in_turns
from warpkit.core.environment import processor

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "data" / "benchmarks" / "align.csv"
MOTIONS = {"small": (3.0, 1.03, 0.02), "medium": (15.0, 1.25, 0.05), "large": (180.0, 1.6, 0.05)}
"""The largest rotation in degrees, scale, and shift as a share of the sides."""

RANGES = {
    **{f"turn {turn}": (turn, 1.0, 0.0) for turn in (10, 20, 30, 45, 60, 90, 180)},
    **{f"scale {scale}": (0.0, scale, 0.0) for scale in (1.15, 1.3, 1.5, 1.75, 2.0)},
    **{f"shift {round(100 * shift)} %": (0.0, 1.0, shift) for shift in (0.05, 0.1, 0.2, 0.3)},
}
"""Motions of exactly this size, in either direction: they show how far each method reaches."""

RANGE_PAIRS = 14

HIDDEN = (5, 10, 15, 20, 30)
"""The percentage of the picture that a moving object covers, to test "robust"."""

FEW = 7
"""The number of pairs for kornia."""

MOST, SHARE = (192, 256), 0.75
"""The largest size of a crop, and its share of the photograph's sides."""


class Pair(NamedTuple):
    """Two grey images (1, H, W), float32, and the matrix (3, 3) from the first to the second."""

    photograph: str
    moving: Tensor
    fixed: Tensor
    matrix: Tensor
    moving_mask: Tensor | None = None
    fixed_mask: Tensor | None = None


class Row(NamedTuple):
    """One line of the table."""

    motion: str
    model: str
    condition: str
    method: str
    pairs: int
    success: float
    median_pixels: float
    p90_pixels: float
    cpu_milliseconds: float


def photographs() -> dict[str, Tensor]:
    """Grey photographs (1, H, W), float64 in [0, 1], their longest side at most 512."""
    images = {path.stem: Image.open(path) for path in sorted((ROOT / "data/images").glob("*.png"))}
    try:
        from sklearn.datasets import load_sample_image
    except ImportError:
        pass
    else:
        for name in ("china", "flower"):
            images[name] = Image.fromarray(load_sample_image(f"{name}.jpg"))
    try:
        from skimage import data  # pyright: ignore
    except ImportError:
        pass
    else:
        for name in ("camera", "cat", "moon"):
            images[name] = Image.fromarray(getattr(data, name)())
    pictures = {}
    for name, image in images.items():
        image = image.convert("L")
        image.thumbnail((512, 512), Image.Resampling.LANCZOS)
        pictures[name] = torch.from_numpy(np.array(image)).double()[None] / 255
    return pictures


def make_pair(
    name: str, photograph: Tensor, motion: str, model: str, noise: float, draw: Callable[..., float]
) -> Pair:
    """One pair; draw() is uniform in -1 ... 1."""
    height, width = photograph.shape[-2:]
    h, w = min(MOST[0], int(height * SHARE)), min(MOST[1], int(width * SHARE))
    y, x = (height - h) // 2, (width - w) // 2
    turn, scale, shift = (MOTIONS | RANGES)[motion]
    free = MODELS.index(model)

    def move() -> float:
        return math.copysign(1.0, draw()) if motion in RANGES else draw()

    center = ((w - 1) / 2, (h - 1) / 2)
    parts: dict[str, Any] = {
        "angle": move() * turn * (free >= 1),
        "scale": scale ** (move() * (free >= 2)),
        "shear": move() * min(turn / 5, 3.0) * (free >= 3),
        "translation": (move() * shift * w, move() * shift * h),
    }
    parts = {key: torch.tensor(value, dtype=torch.float64) for key, value in parts.items()}
    matrix = wk.affine_matrix(**parts, center=center)
    last = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    matrix = torch.cat((matrix, last))
    if model == "perspective":
        tilt = torch.eye(3, dtype=torch.float64)
        most = 0.02 if motion == "small" else 0.06
        tilt[2, :2] = torch.tensor((draw() * most * 2 / w, draw() * most * 2 / h))
        to_center = torch.eye(3, dtype=torch.float64)
        to_center[:2, 2] = -torch.tensor(center, dtype=torch.float64)
        matrix = torch.linalg.inv(to_center) @ tilt @ to_center @ matrix
    crop = torch.eye(3, dtype=torch.float64)
    crop[:2, 2] = torch.tensor((-x, -y), dtype=torch.float64)
    options = {"size": (h, w), "interpolation": "lanczos4", "antialias": parts["scale"] < 0.97}
    options["antialias"] = bool(options["antialias"])
    fixed = wk.warp_perspective(photograph, matrix @ crop, **options)
    fixed = fixed * (1 + 0.2 * draw()) + 0.05 + 0.05 * draw()
    images = []
    for image in (photograph[:, y : y + h, x : x + w], fixed):
        seed = int((draw() + 1) * 2**30)
        generator = torch.Generator().manual_seed(seed)
        grains = torch.randn(image.shape, generator=generator, dtype=torch.float64)
        images.append((image + noise * grains).float())
    return Pair(name, images[0], images[1], matrix)


def make_pairs(motion: str, model: str, count: int, condition: str) -> list[Pair]:
    """`count` pairs from all photographs in turn, with a fixed seed."""
    generator = torch.Generator().manual_seed(11)

    def draw() -> float:
        return 2 * torch.rand((), generator=generator, dtype=torch.float64).item() - 1

    photos = photographs()
    names = sorted(photos)
    noise = 0.05 if condition == "noise 0.05" else 0.01
    pairs = [
        make_pair(name, photos[name], motion, model, noise, draw)
        for name in (names[k % len(names)] for k in range(count))
    ]
    if not condition.startswith("object"):
        return pairs
    share = int(condition.split()[1]) / 100 if condition.endswith("%") else None
    return [with_object(pair, draw, condition == "object masked", share) for pair in pairs]


def with_object(
    pair: Pair, draw: Callable[[], float], masked: bool, share: float | None = None
) -> Pair:
    """Add a textured square with its own motion: a share of the picture, or a third high."""
    height, width = pair.moving.shape[-2:]
    side = height // 3 if share is None else min(round((share * height * width) ** 0.5), height)
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    texture = 0.5 + 0.4 * torch.sin(0.4 * x + 0.3 * y) * torch.cos(0.25 * y - 0.2 * x)
    images, masks = [], []
    for image in (pair.moving, pair.fixed):
        height, width = image.shape[-2:]
        top = int((height - side) * (draw() + 1) / 2)
        left = int((width - side) * (draw() + 1) / 2)
        image, mask = image.clone(), torch.ones_like(image)
        image[:, top : top + side, left : left + side] = texture
        mask[:, top : top + side, left : left + side] = 0
        images.append(image)
        masks.append(mask if masked else None)
    return Pair(pair.photograph, images[0], images[1], pair.matrix, masks[0], masks[1])


def by_warpkit(loss: str, init: str | None) -> Callable[[Pair, str], Tensor]:
    """`align` with these options, for one pair."""

    def method(pair: Pair, model: str) -> Tensor:
        masks = {"moving_mask": pair.moving_mask, "fixed_mask": pair.fixed_mask}
        return wk.align(pair.moving, pair.fixed, model=model, loss=loss, init=init, **masks).matrix

    return method


def cv2_motion(model: str) -> int:
    """OpenCV's code of the motion; it has no similarity."""
    names = {"similarity": "AFFINE", "perspective": "HOMOGRAPHY"}
    return getattr(cv2, f"MOTION_{names.get(model, model.upper())}")


def cv2_images(pair: Pair) -> list[np.ndarray]:
    """Template and input, in 0 ... 255."""
    return [255 * image[0].numpy() for image in (pair.fixed, pair.moving)]


def by_ecc_pyramid(pair: Pair, model: str) -> Tensor:
    """cv2.findTransformECC, coarse to fine."""
    motion = cv2_motion(model)
    rows = 3 if model == "perspective" else 2
    levels = [cv2_images(pair)]
    while min(levels[-1][0].shape) >= 32:
        levels.append([cv2.pyrDown(image) for image in levels[-1]])
    matrix = np.eye(3)
    for number in range(len(levels) - 1, -1, -1):
        # pyrDown keeps pixel 0 where it is
        scale = np.diag((2.0**number, 2.0**number, 1.0))
        start = (np.linalg.inv(scale) @ matrix @ scale)[:rows].astype(np.float32)
        criteria = (3, 100, 1e-6)
        _, warp = cv2.findTransformECC(*levels[number], start, motion, criteria, None, 5)
        full = np.vstack((warp, (0, 0, 1))) if rows == 2 else warp
        matrix = scale @ full @ np.linalg.inv(scale)
    return torch.linalg.inv(torch.from_numpy(matrix))


def by_ecc_multiscale(pair: Pair, model: str) -> Tensor:
    """cv2.findTransformECCMultiScale."""
    params = cv2.ECCParameters()
    params.motionType = cv2_motion(model)
    start = np.eye(3 if model == "perspective" else 2, 3, dtype=np.float32)
    _, matrix = cv2.findTransformECCMultiScale(*cv2_images(pair), start, params)
    full = matrix if len(matrix) == 3 else np.vstack((matrix, (0, 0, 1)))
    return torch.linalg.inv(torch.from_numpy(full.astype(np.float64)))


def by_kornia(pair: Pair, model: str) -> Tensor:
    """kornia.geometry.ImageRegistrator, homographies or similarities in normalised units."""
    from kornia.geometry import ImageRegistrator

    name = "homography" if model in ("affine", "perspective") else "similarity"
    matrix = ImageRegistrator(name).register(pair.moving[None], pair.fixed[None])[0]
    (height, width), (h, w) = pair.moving.shape[-2:], pair.fixed.shape[-2:]
    # fixed -> moving: of a grid from -1 to 1 at the corner pixels' centres, which is then sampled
    # with -1 and 1 at the image's edges
    grid = torch.tensor([[2 / (w - 1), 0, -1], [0, 2 / (h - 1), -1], [0, 0, 1]])
    pixels = [[width / 2, 0, (width - 1) / 2], [0, height / 2, (height - 1) / 2], [0, 0, 1]]
    return torch.linalg.inv((torch.tensor(pixels) @ matrix.detach() @ grid).double())


def by_skimage(pair: Pair, model: str) -> Tensor:
    """skimage.registration.phase_cross_correlation, to a hundredth of a pixel; shifts alone."""
    from skimage.registration import phase_cross_correlation  # pyright: ignore

    images = pair.fixed[0].numpy(), pair.moving[0].numpy()
    y, x = phase_cross_correlation(*images, upsample_factor=100)[0]
    return torch.tensor([[1.0, 0.0, x], [0.0, 1.0, y]], dtype=torch.float64)


def corner_rms(matrix: Tensor, true: Tensor, size: tuple[int, int]) -> float:
    """Pixels, over the corners of an image of `size`; matrix (2 or 3, 3), true (3, 3)."""
    height, width = size
    corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
    points = torch.tensor(corners, dtype=torch.float64)
    apart = wk.transform_points(matrix, points) - wk.transform_points(true, points)
    return apart.square().sum(-1).mean().sqrt().item()


def measured(
    motion: str, model: str, condition: str, method: str, run: Callable, pairs: list[Pair]
) -> Row:
    """One method on all pairs; an exception is a failure, infinitely far."""
    errors, seconds = [], []
    for pair in pairs:
        begin = time.process_time()
        try:
            matrix = run(pair, model)
            size = (pair.moving.shape[-2], pair.moving.shape[-1])
            error = corner_rms(matrix, pair.matrix, size)
        except (cv2.error, RuntimeError, ValueError, np.linalg.LinAlgError):
            error = float("inf")
        seconds.append(time.process_time() - begin)
        errors.append(float("inf") if math.isnan(error) else error)
    limit = 0.1 if motion in ("small", "medium") else 0.5
    errors.sort()
    success = sum(error <= limit for error in errors) / len(errors)
    p90 = errors[int(0.9 * (len(errors) - 1))]
    middle, time_ms = statistics.median(errors), 1000 * statistics.median(seconds)
    return Row(motion, model, condition, method, len(pairs), success, middle, p90, time_ms)


def all_rows(count: int, only: str, method: str) -> Iterator[Row]:
    """Every row whose "motion model condition" contains `only`, and its method's name `method`."""
    usual, kinds = ("gain, bias, noise 0.01",), ("similarity", "affine", "perspective")
    cases = [(m, model, c) for m in ("small", "medium") for model in MODELS for c in usual]
    cases += [("large", model, usual[0]) for model in kinds]
    cases += [("small", "affine", c) for c in ("noise 0.05", "object", "object masked")]
    cases += [("small", "affine", f"object {share} %") for share in HIDDEN]
    for motion, model, condition in cases:
        if only not in f"{motion} {model} {condition}":
            continue
        pairs = make_pairs(motion, model, count, condition)
        init = "search" if motion == "large" else None
        methods: dict[str, Callable] = {"warpkit": by_warpkit("ecc", init)}
        if condition.startswith("object") and condition != "object masked":
            methods["warpkit robust"] = by_warpkit("robust", None)
        methods["cv2 ecc pyramid"] = by_ecc_pyramid
        if hasattr(cv2, "findTransformECCMultiScale"):
            methods["cv2 ecc multiscale"] = by_ecc_multiscale
        if model == "translation" and find_spec("skimage"):
            methods["skimage phase correlation"] = by_skimage
        for name, run in methods.items():
            if method in name:
                yield measured(motion, model, condition, name, run, pairs)
        if (model, condition) == ("similarity", usual[0]) and method in "kornia":
            try:
                by_kornia(pairs[0], model)
            except ImportError:
                continue
            yield measured(motion, model, condition, "kornia", by_kornia, pairs[:FEW])


def range_rows(only: str) -> Iterator[Row]:
    """The range of each method: similarities of growing size."""
    methods: dict[str, Callable] = {
        "warpkit": by_warpkit("ecc", None),
        "warpkit search": by_warpkit("ecc", "search"),
        "cv2 ecc pyramid": by_ecc_pyramid,
    }
    if hasattr(cv2, "findTransformECCMultiScale"):
        methods["cv2 ecc multiscale"] = by_ecc_multiscale
    condition = "gain, bias, noise 0.01"
    for motion in RANGES:
        if only not in f"{motion} similarity {condition}":
            continue
        pairs = make_pairs(motion, "similarity", RANGE_PAIRS, condition)
        for name, run in methods.items():
            yield measured(motion, "similarity", condition, name, run, pairs)


def speed_rows() -> Iterator[Row]:
    """Milliseconds per pair in batches of 1 and 64: small affine motions of 192 x 256 pixels."""
    pairs = [p for p in make_pairs("small", "affine", 112, "") if p.moving.shape[-2:] == MOST][:64]
    moving, fixed = (torch.stack([getattr(p, n) for p in pairs]) for n in ("moving", "fixed"))

    def timed(run: Callable[[], object], count: int, turns: int) -> float:
        how = Turns(turns, clock=time.process_time)
        return 1000 * min(in_turns({"": run}, how)[""]) / count

    def one_by_one() -> None:
        for pair in pairs[:16]:
            by_warpkit("ecc", None)(pair, "affine")

    def by_cv2() -> None:
        for pair in pairs[:16]:
            with suppress(cv2.error):
                by_ecc_pyramid(pair, "affine")

    nan = float("nan")
    for name, run, count in (
        ("warpkit, batch 1", one_by_one, 16),
        ("warpkit, batch 64", lambda: wk.align(moving, fixed), 64),
        ("cv2 ecc pyramid", by_cv2, 16),
    ):
        spent = timed(run, count, 3)
        yield Row("small", "affine", "speed, 1 thread", name, count, nan, nan, nan, spent)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=56)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--method", default="", help="methods whose name contains this")
    parser.add_argument("--ranges", action="store_true", help="only the range of each method")
    parser.add_argument("--out", type=Path, default=ROWS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    rows = []
    parts = [range_rows(options.only)]
    if options.method:
        parts = [all_rows(options.pairs, options.only, options.method)]
    elif not options.ranges:
        parts = [all_rows(options.pairs, options.only, ""), *parts, speed_rows()]
    for row in chain(*parts):
        rows.append(row)
        print(*(f"{v:.4g}" if isinstance(v, float) else v for v in row), sep=", ", flush=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Row._fields, "processor", "torch", "opencv", "warpkit", "date"))
        machine = (processor(), torch.__version__, cv2.__version__, wk.__version__)
        today = time.strftime("%Y-%m-%d")
        for row in rows:
            numbers = [f"{v:.4g}" if isinstance(v, float) else v for v in row]
            writer.writerow((*numbers, *machine, today))


if __name__ == "__main__":
    main()
