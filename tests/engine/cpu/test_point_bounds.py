"""Kernels of lenses, fits and alignments stay within their arrays for any numbers."""

from __future__ import annotations

from tests.support.guarded_memory import survives

PROGRAM = """
import numpy as np, torch
from tests.support.guarded_memory import guard_what_is_made, guarded
import warpkit as wk, warpkit.opencv as cv
from warpkit import camera
from warpkit.engine.cpu import fits, four_points, levels, similarity
from warpkit.engine.cpu import lens_fields, lens_inverses
from warpkit.engine.operators.lens_field import Field
guard_what_is_made()
torch.manual_seed(0)
bad = torch.tensor([0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 1e300, float("nan"), float("inf")]).double()
pick = lambda *shape: guarded(bad[torch.randint(len(bad), shape)])
every = (True,) * 4
for model, n in [*(("brown", n) for n in (4, 5, 8, 12, 14)), ("fisheye", 4)]:
    for height, width in ((1, 1), (3, 7), (2, 33)):
        for opencv in (False, True):
            options = Field(model, (height, width), opencv)
            tensors = pick(2, 4 + n), pick(2, 3, 3)
            _, rows = lens_fields.forward(options, *tensors)
            grad = pick(2, height, width, 2)
            lens_fields.backward(options, rows, (grad,), tensors, every)
        for k in (pick(2, 1, n), guarded(0.01 * pick(2, 1, n).clamp(-1, 1).nan_to_num())):
            tensors = k, pick(2, width), pick(2, width), pick(2, 1, 3)
            _, roots = lens_inverses.forward(model, *tensors)
            grads = pick(2, width), pick(2, width)
            lens_inverses.backward(model, roots, grads, tensors, every)
for n in (4, 5, 33):
    src, dst, weights = pick(3, n, 2), pick(3, n, 2), pick(3, n)
    similarity.forward(torch.float64, src, dst, weights)
    fits.homography(pick(3, 8), src, dst, 30)
    if n == 4:
        four_points.forward(torch.float32, src, dst)
        four_points.backward(torch.float32, None, (pick(3, 3, 3),), (src, dst), every)
    lens, k = guarded(torch.eye(3).double()).numpy(), pick(4).numpy()
    for dtype in (np.float32, np.float64):
        points = src.numpy().astype(dtype)
        cv.fisheye.distortPoints(points, lens, k)
        cv.fisheye.undistortPoints(points, lens, k, P=lens)
for size in ((1, 1), (2, 9), (8, 5), (17, 70)):
    for dtype in (torch.float32, torch.float64):
        image = guarded(torch.rand(2, 3, *size, dtype=dtype))
        hostile = pick(2, 3, *size).to(dtype)
        weights, units = pick(2, 1, *size).to(dtype), (pick(2, 3).to(dtype), pick(2).to(dtype))
        for values in (image, hostile):
            levels.statistics(values)
            for taps in ((), (1.0,), (0.5, 0.2, 0.05)):
                levels.level(values, taps, slopes=True, half=True)
                levels.level(values, taps, weights, units, half=True)
for size in ((16, 17), (33, 40)):
    for model in ("translation", "affine", "perspective"):
        for dtype in (torch.float32, torch.float64):
            images = [guarded(torch.rand(2, 2, *size, dtype=dtype)) for _ in range(2)]
            wk.align(*images, model=model, levels=1, steps=4)
"""


def test_hostile_numbers_stay_inside_the_arrays():
    assert survives(PROGRAM)
