"""cv2's polar maps of plain arrays and numbers, and images sampled at them, without tensors.

Each function returns None if an argument is not plain or not valid; its caller then continues with
tensors, or raises the error. The bits are the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from warpkit.core.lasting import lasting
from warpkit.core.tracing import runs_eagerly
from warpkit.engine.arithmetic import opencv_polar
from warpkit.engine.arithmetic.opencv import TYPES
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.opencv import plain_calls, sampling
from warpkit.opencv.layout import planes
from warpkit.opencv.plain_matrices import number, pair

TYPES_OF_ARRAYS = {torch.empty(0, dtype=dtype, device="cpu").numpy().dtype for dtype in TYPES}

# -- polar pictures --


@lru_cache(maxsize=16)
@lasting
def _rings(size: tuple[int, int], radius: float, log: bool) -> tuple[np.ndarray, ...]:
    """The cosines, the sines and the distances that `map_to_polar` of `plain_calls` needs."""
    rho, angles = opencv_polar.rings(
        size, torch.tensor(radius, dtype=torch.float64, device="cpu"), log
    )
    parts = angles.cos()[:, 0], angles.sin()[:, 0], rho.float().double()
    return tuple(part.numpy() for part in parts)


def polar_map(
    size: tuple[int, int],
    polar: tuple[int, int],
    center: Any,
    radius: Any,
    log: bool,
    back: bool,
) -> np.ndarray | None:
    """The source positions of cv2.warpPolar, (h, w, 2), float32.

    back: from polar coordinates, in a picture with one more row on top. None for this with `log`,
    because the logarithms must be torch's.
    """
    known, middle, reach = plain_calls.kernels(), pair(center), number(radius)
    if known is None or middle is None or reach is None or (back and log):
        return None
    if not back:
        return known.polar_map(np.array(middle), *_rings(size, reach, log))
    per = reach / polar[1], 2 * math.pi / polar[0]
    return known.map_from_polar(size, polar[0], np.array(middle), *per)


# -- images at maps --


def can_sample(src: Any) -> bool:
    """Whether `sampled` takes such an array."""
    good = type(src) is np.ndarray and src.dtype in TYPES_OF_ARRAYS and src.flags.c_contiguous
    if not good or src.ndim not in (2, 3) or 0 in src.shape or src.shape[2:] == (1,):
        return False
    return runs_eagerly() and plain_calls.kernels() is not None


def sampled(
    src: np.ndarray, points: np.ndarray, interpolation: str, arithmetic: str
) -> np.ndarray | None:
    """An array (H, W) or (H, W, C) at points (h, w, 2), float32, with 0 outside the image."""
    if arithmetic == "exact" or not can_sample(src):
        return None
    sample = _sampler(src.shape, src.dtype.str, points.shape[:2], interpolation, arithmetic)
    return None if sample is None else sample(src, points)


@lru_cache(maxsize=128)
def _sampler(
    shape: tuple[int, ...], dtype: str, size: tuple[int, int], interpolation: str, arithmetic: str
) -> Any:
    """A sampler of arrays of a shape and type at points (*size, 2); None if unsupported."""
    src, points = np.empty(shape, dtype), np.empty((*size, 2), np.float32)
    image, rule = planes(src), SamplingRule(interpolation, "constant", arithmetic)
    if not sampling.has_kernel(image, rule):
        return None
    return sampling.sampler(
        (src, points, None), image, torch.from_numpy(points), None, size, rule, 0
    )
