"""Kernels of lenses, fits and alignments stay within their arrays for any numbers."""

from __future__ import annotations

from tests.support.guarded_memory import survives

PROGRAM = """
import numpy as np, torch
from tests.support.guarded_memory import guard_what_is_made, guarded
import warpkit as wk, warpkit.opencv as cv
from warpkit import camera
from warpkit.engine.backends.cpu import fits, lenses, levels
guard_what_is_made()
torch.manual_seed(0)
bad = torch.tensor([0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 1e300, float("nan"), float("inf")]).double()
pick = lambda *shape: guarded(bad[torch.randint(len(bad), shape)])
for kind in [lenses.Kind(n, False, o) for n in (4, 5, 8, 12, 14) for o in (False, True)] + [
    lenses.Kind(4, True)
]:
    for height, width in ((1, 1), (3, 7), (2, 33)):
        numbers = pick(2, lenses.NUMBERS).numpy()
        lenses.field(numbers, (height, width), kind)
        lenses.field_backward(numbers, pick(2, height, width, 2), kind)
        u, v, reach = pick(2, width), pick(2, width), pick(2, 3).numpy()
        for numbers in (numbers, 0.01 * np.nan_to_num(np.clip(numbers, -1, 1))):
            roots = lenses.solve(numbers, reach, u, v, kind)
            lenses.solve_backward(numbers, roots, (pick(2, width), pick(2, width)), kind)
for n in (4, 5, 33):
    src, dst, weights = pick(3, n, 2), pick(3, n, 2), pick(3, n)
    fits.similarity(src, dst, weights, torch.float64)
    fits.homography(pick(3, 8), src, dst, 30)
    if n == 4:
        fits.four_points(src, dst, torch.float32)
        fits.four_points_backward(src, dst, pick(3, 3, 3), torch.float32)
    lens, k = guarded(torch.eye(3).double()).numpy(), pick(4).numpy()
    for dtype in (np.float32, np.float64):
        points = src.numpy().astype(dtype)
        cv.fisheye.distortPoints(points, lens, k)
        cv.fisheye.undistortPoints(points, lens, k, P=lens)
for size in ((1, 1), (2, 9), (8, 5), (17, 70)):
    for dtype in (torch.float32, torch.float64):
        image = guarded(torch.rand(2, 3, *size, dtype=dtype))
        levels.smooth(image, [0.5, 0.2, 0.05], guarded(torch.empty(2, 4, *size, dtype=dtype)))
        levels.smooth_with_slopes(image, [1.0])
for size in ((16, 17), (33, 40)):
    for model in ("translation", "affine", "perspective"):
        for dtype in (torch.float32, torch.float64):
            images = [guarded(torch.rand(2, 2, *size, dtype=dtype)) for _ in range(2)]
            wk.align(*images, model=model, levels=1, steps=4)
"""


def test_hostile_numbers_stay_inside_the_arrays():
    assert survives(PROGRAM)
