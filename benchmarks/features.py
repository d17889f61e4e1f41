"""`align` beside matched features, and after them, and ECC: python -m benchmarks.features

The pairs and errors of `benchmarks.align`: medium perspectives, and large similarities. Features
are OpenCV's ORB (2,000, mutual nearest by Hamming distance) and SIFT (nearest that are less than
0.75 of the second nearest), with a similarity or a perspective by RANSAC at 3 pixels. "SIFT, then
align" starts `align` at SIFT's matrix.
"""

from __future__ import annotations

import csv
import time
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor

import warpkit as wk
from benchmarks.align import (
    ROOT,
    Pair,
    Row,
    by_ecc_multiscale,
    by_ecc_pyramid,
    by_warpkit,
    make_pairs,
    measured,
)
from warpkit.core.environment import processor

ROWS = ROOT / "data" / "benchmarks" / "align_features.csv"
CASES = (("medium", "perspective"), ("large", "similarity"))
CONDITION = "gain, bias, noise 0.01"


def matches(kind: str, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of the moving and of the fixed image that show the same, (N, 2) each."""
    detector = cv2.SIFT_create() if kind == "SIFT" else cv2.ORB_create(2000)
    images = [
        np.clip(255 * image[0].numpy(), 0, 255).astype(np.uint8)
        for image in (pair.moving, pair.fixed)
    ]
    (one, of_one), (other, of_other) = (detector.detectAndCompute(image, None) for image in images)
    if of_one is None or of_other is None:
        raise ValueError("no features")
    if kind == "SIFT":
        two = [m for m in cv2.BFMatcher().knnMatch(of_one, of_other, 2) if len(m) == 2]
        pairs = [near for near, far in two if near.distance < 0.75 * far.distance]
    else:
        pairs = list(cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(of_one, of_other))
    if len(pairs) < 4:
        raise ValueError("too few matches")
    places = [one[m.queryIdx].pt for m in pairs], [other[m.trainIdx].pt for m in pairs]
    return np.array(places[0]), np.array(places[1])


def by_features(kind: str, pair: Pair, model: str) -> Tensor:
    """The matrix of matched features."""
    source, target = matches(kind, pair)
    if model == "perspective":
        matrix, _ = cv2.findHomography(source, target, cv2.RANSAC, 3.0)
    else:
        matrix, _ = cv2.estimateAffinePartial2D(source, target)
    if matrix is None:
        raise ValueError("no matrix")
    return torch.from_numpy(matrix)


def by_features_then_align(pair: Pair, model: str) -> Tensor:
    """`align` from the matrix of SIFT features."""
    start = by_features("SIFT", pair, model)
    return wk.align(pair.moving, pair.fixed, model=model, init=start).matrix


METHODS = {
    "warpkit": by_warpkit("ecc", None),
    "warpkit search": by_warpkit("ecc", "search"),
    "cv2 ORB": partial(by_features, "ORB"),
    "cv2 SIFT": partial(by_features, "SIFT"),
    "cv2 SIFT, then warpkit": by_features_then_align,
    "cv2 ECC, pyramid": by_ecc_pyramid,
}
if hasattr(cv2, "findTransformECCMultiScale"):
    METHODS["cv2 ECC, MultiScale"] = by_ecc_multiscale


def rows(count: int = 28) -> list[Row]:
    """Every method on `count` pairs of each case."""
    result = []
    for motion, model in CASES:
        pairs = make_pairs(motion, model, count, CONDITION)
        for name, run in METHODS.items():
            cv2.setRNGSeed(0)
            result.append(measured(motion, model, CONDITION, name, run, pairs))
    return result


def write(path: Path, rows: list[Row]) -> None:
    """The file, with the machine and the versions."""
    machine = (processor(), torch.__version__, cv2.__version__, wk.__version__)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Row._fields, "processor", "torch", "opencv", "warpkit", "date"))
        for row in rows:
            numbers = [f"{v:.4g}" if isinstance(v, float) else v for v in row]
            writer.writerow((*numbers, *machine, time.strftime("%Y-%m-%d")))


if __name__ == "__main__":
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    measurements = rows()
    for each in measurements:
        print(*(f"{v:.4g}" if isinstance(v, float) else v for v in each), sep=", ")
    write(ROWS, measurements)
