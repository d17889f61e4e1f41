"""Maps and points of `warpkit.opencv` beside cv2's: python -m benchmarks.face_maps

Every row first proves that no value differs (of float64 points: but for cv2's last bits), then
times both in turns on one thread, and prints the least times in ms, their ratio and the aim.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch

import warpkit.opencv as wcv

SIZE = (1920, 1080)
CAMERA = np.array([[1000.0, 0, 960], [0, 1010, 540], [0, 0, 1]])
BROWN = np.array([-0.3, 0.08, 0.001, -0.0005, 0.02])
FISHEYE = np.array([0.05, -0.01, 0.002, -0.001])
LAST_BITS = 1e-13
"""Of float64 points, in parts of the largest: cv2 fuses some products of theirs."""

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
POINTS = RANDOM.random((10_000, 1, 2)) * 1000
SINGLE = POINTS.astype(np.float32)
FEW = POINTS[:68]
TILTED = np.array([[1, 0.1, 3], [0, 1.1, 2], [1e-4, 1e-5, 1]])
FOUR = np.array([[0, 0], [10, 1], [9, 11], [1, 10]], np.float32)
OTHERS = np.array([[1, 0], [12, 1], [9, 14], [1, 9]], np.float32)
MAPS = cv2.initUndistortRectifyMap(CAMERA, BROWN, None, CAMERA, SIZE, cv2.CV_32FC1)
FIXED = cv2.convertMaps(*MAPS, cv2.CV_16SC2)
ROUND = (RANDOM.integers(0, 256, (512, 512, 3), dtype=np.uint8), (512, 512), (256.0, 250.0), 256.0)
SCENE = np.dstack((POINTS - 500, np.full((10_000, 1, 1), 900.0)))
STILL = (np.zeros(3) + 0.1, np.ones(3))

Call = Callable[[Any], Any]

ROWS: dict[str, tuple[float, Call]] = {
    "initUndistortRectifyMap 1080p, float": (
        1.4,
        lambda m: m.initUndistortRectifyMap(CAMERA, BROWN, None, CAMERA, SIZE, cv2.CV_32FC1),
    ),
    "initUndistortRectifyMap 1080p, 16SC2": (
        1.4,
        lambda m: m.initUndistortRectifyMap(CAMERA, BROWN, None, CAMERA, SIZE, cv2.CV_16SC2),
    ),
    "undistort 1080p bytes": (1.4, lambda m: m.undistort(PICTURE, CAMERA, BROWN)),
    "fisheye.initUndistortRectifyMap 1080p": (
        1.4,
        lambda m: m.fisheye.initUndistortRectifyMap(
            CAMERA, FISHEYE, None, CAMERA, SIZE, cv2.CV_32FC1
        ),
    ),
    "fisheye.undistortImage 1080p": (
        1.4,
        lambda m: m.fisheye.undistortImage(PICTURE, CAMERA, FISHEYE, None, CAMERA),
    ),
    "convertMaps 1080p to 16SC2": (2, lambda m: m.convertMaps(*MAPS, cv2.CV_16SC2)),
    "convertMaps 1080p to 32FC1": (2, lambda m: m.convertMaps(*FIXED, cv2.CV_32FC1)),
    "warpPolar 512": (1.4, lambda m: m.warpPolar(*ROUND, 1 + 8)),
    "warpPolar 512, back": (1.4, lambda m: m.warpPolar(*ROUND, 1 + 8 + 16)),
    "undistortPoints 10,000": (2, lambda m: m.undistortPoints(POINTS, CAMERA, BROWN)),
    "undistortPoints 68": (10, lambda m: m.undistortPoints(FEW, CAMERA, BROWN)),
    "fisheye.undistortPoints 10,000": (
        2,
        lambda m: m.fisheye.undistortPoints(POINTS, CAMERA, FISHEYE),
    ),
    "fisheye.distortPoints 10,000": (
        2,
        lambda m: m.fisheye.distortPoints(POINTS / 1000, CAMERA, FISHEYE),
    ),
    "projectPoints 10,000": (2, lambda m: m.projectPoints(SCENE, *STILL, CAMERA, BROWN)[0]),
    "perspectiveTransform 10,000": (3, lambda m: m.perspectiveTransform(POINTS, TILTED)),
    "perspectiveTransform 10,000 float32": (3, lambda m: m.perspectiveTransform(SINGLE, TILTED)),
    "getPerspectiveTransform": (20, lambda m: m.getPerspectiveTransform(FOUR, OTHERS)),
    "getOptimalNewCameraMatrix": (
        20,
        lambda m: m.getOptimalNewCameraMatrix(CAMERA, BROWN, SIZE, 0.5),
    ),
    "cartToPolar 1080p": (2, lambda m: m.cartToPolar(*MAPS)),
}


def prove(name: str, call: Call) -> None:
    """Raise where values differ."""
    found, truth = (each if isinstance(each, tuple) else (each,) for each in map(call, (wcv, cv2)))
    for mine, theirs in zip(found, truth, strict=True):
        if isinstance(mine, np.ndarray) and mine.dtype == np.float64 and mine.size > 9:
            assert np.abs(mine - theirs).max() <= LAST_BITS * np.abs(theirs).max(), name
        else:
            differing = int((np.asarray(mine) != np.asarray(theirs)).sum())
            assert differing == 0, f"{name}: {differing} values differ"


def least(call: Call, seconds: float) -> tuple[float, float]:
    """The least times of both, in ms."""
    times: dict[Any, list[float]] = {wcv: [], cv2: []}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[cv2]) < 5:
        for module, taken in times.items():
            call(module)
            start = time.perf_counter()
            call(module)
            taken.append(time.perf_counter() - start)
    return min(times[wcv]) * 1e3, min(times[cv2]) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("names", nargs="*", help="rows that have one of these in their names")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(options.threads)
    cv2.ipp.setUseIPP(False)  # whose polar angles have other bits
    print(f"{'':40} {'warpkit':>9} {'cv2':>9} {'ratio':>6} {'aim':>5}")
    for name, (aim, call) in ROWS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        prove(name, call)
        ours, theirs = least(call, options.seconds)
        print(f"{name:40} {ours:9.4f} {theirs:9.4f} {ours / theirs:6.2f} {aim:5.1f}", flush=True)


if __name__ == "__main__":
    main()
