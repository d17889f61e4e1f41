"""Compare random calls of the `warpkit.opencv` functions that have kernels of their own with cv2.

    scripts/compare face --calls 10000                 # every function
    scripts/compare face resize undistort --seed 5     # some
    scripts/compare face --calls 10000 --ipp           # resize with IPP, as in OpenCV's wheels

Prints one line per function: calls, calls that OpenCV rejects, values, and values that differ. The
first calls that differ are printed with their seeds: `--seed S --calls 1` repeats one.
"""

import argparse
import sys
import time

import cv2
import numpy as np
import torch

import warpkit.opencv as ours
from tests.support.face_calls import CALLS, answers, differing, has_known_bits


def compare(
    name: str, first: int, count: int, seconds: float, ipp: bool
) -> tuple[int, int, int, int]:
    """The numbers of calls, of calls that cv2 rejected, of values, and of values that differ."""
    number = refused = values = wrong = 0
    stop = time.monotonic() + seconds
    for seed in range(first, first + count):
        if time.monotonic() > stop:
            break
        call = CALLS[name](np.random.default_rng(seed))
        if ipp and not has_known_bits(call):
            continue
        number += 1
        try:
            theirs = answers(cv2, call)
        except cv2.error:
            refused += 1
            continue
        apart, of = differing(call, answers(ours, call), theirs)
        if apart and wrong < 3 * of:
            shape, dtype = np.shape(call.args[0]), getattr(call.args[0], "dtype", None)
            print(f"  {name}, seed {seed}: {apart} of {of} differ; {shape} {dtype} {call.options}")
        values, wrong = values + of, wrong + apart
    return number, refused, values, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=", ".join(CALLS))
    parser.add_argument("--calls", type=int, default=500, help="number of calls of each function")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first call")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit for each function")
    parser.add_argument("--ipp", action="store_true", help="leave OpenCV's IPP on")
    options = parser.parse_args()
    if unknown := set(options.functions) - set(CALLS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    cv2.ipp.setUseIPP(options.ipp)
    if not options.ipp:
        from warpkit.opencv import resizing

        resizing.installed_resize_arithmetic = ours.installed_arithmetic
    print(f"OpenCV {cv2.__version__}, seeds {options.seed} to {options.seed + options.calls - 1}")
    print(f"{'':34} {'calls':>7} {'refused':>8} {'values':>11} {'differing':>9}")
    differ = 0
    for name in options.functions or CALLS:
        counts = compare(name, options.seed, options.calls, options.seconds, options.ipp)
        print(f"{name:34} {counts[0]:7} {counts[1]:8} {counts[2]:11} {counts[3]:9}", flush=True)
        differ += counts[3]
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
