"""cv2's functions that move or sum whole pixels, ours beside cv2's: python -m benchmarks.pictures

Every row first proves that no value differs, then times both in turns, one thread each unless
--threads says otherwise. The ratio is of the least times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch

import warpkit.opencv as ours

HD, VGA = (1080, 1920), (480, 640)
Call = Callable[[Any], np.ndarray]
"""One call, of `ours` or of cv2."""


def pictures(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers, of which any order of sums is exact."""
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


def calls() -> dict[str, Call]:
    """What is timed."""
    hd, vga = pictures("uint8", (*HD, 3)), pictures("uint8", (*VGA, 3))
    grey, floats = pictures("uint8", HD), pictures("float32", HD)
    colours, small = pictures("float32", (*HD, 3)), pictures("uint8", (32, 32, 3))
    return {
        "pyrDown 1080p x 3 uint8": lambda m: m.pyrDown(hd),
        "pyrDown 1080p uint8": lambda m: m.pyrDown(grey),
        "pyrDown 1080p float32": lambda m: m.pyrDown(floats),
        "pyrDown 1080p x 3 float32": lambda m: m.pyrDown(colours),
        "pyrDown 32 x 32 x 3 uint8": lambda m: m.pyrDown(small),
        "pyrUp 640 x 480 x 3 uint8": lambda m: m.pyrUp(vga),
        "copyMakeBorder 1080p x 3 reflect_101": lambda m: m.copyMakeBorder(hd, 8, 8, 8, 8, 4),
        "copyMakeBorder 640 x 480 x 3 constant": lambda m: m.copyMakeBorder(vga, 8, 8, 8, 8, 0),
        "rotate 1080p x 3": lambda m: m.rotate(hd, 0),
        "rotate 1080p x 3 by 180": lambda m: m.rotate(hd, 1),
        "rotate 1080p": lambda m: m.rotate(grey, 0),
        "transpose 1080p x 3": lambda m: m.transpose(hd),
        "transpose 1080p float32": lambda m: m.transpose(floats),
        "flip 1080p x 3 left to right": lambda m: m.flip(hd, 1),
        "flip 1080p x 3 upside down": lambda m: m.flip(hd, 0),
        "hconcat 640 x 480 x 3, two": lambda m: m.hconcat([vga, vga]),
        "vconcat 640 x 480 x 3, two": lambda m: m.vconcat([vga, vga]),
        "getRectSubPix 224 x 224 x 3": lambda m: m.getRectSubPix(vga, (224, 224), (300.3, 200.7)),
    }


def measure(call: Call, seconds: float) -> tuple[float, float]:
    """The least seconds of ours and of cv2's, after a proof that they agree."""
    assert np.array_equal(call(ours), call(cv2))
    times: tuple[list[float], list[float]] = ([], [])
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[0]) < 5:
        for module, taken in zip((ours, cv2), times, strict=True):
            start = time.perf_counter()
            call(module)
            taken.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    parser.add_argument("--only", default="", help="part of a row's name")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(options.threads)
    cv2.ipp.setUseIPP(False)
    print(f"{'':38} {'ms':>8} {'cv2':>8} {'ratio':>6}")
    for name, call in calls().items():
        if options.only not in name:
            continue
        one, other = measure(call, options.seconds)
        print(f"{name:38} {one * 1e3:8.3f} {other * 1e3:8.3f} {one / other:6.2f}", flush=True)


if __name__ == "__main__":
    main()
