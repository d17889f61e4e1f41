"""cv2's maps of plain arrays and numbers, and images sampled at them, without tensors.

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
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.opencv import plain_calls, sampling
from warpkit.opencv.cameras import is_nothing
from warpkit.opencv.layout import planes
from warpkit.opencv.plain_calls import NUMBERS, brown_lens, fisheye_lens
from warpkit.opencv.plain_matrices import number, pair

SINGLE, PIXEL = np.dtype(np.float32), np.dtype(np.int16)
TYPES_OF_ARRAYS = {torch.empty(0, dtype=dtype, device="cpu").numpy().dtype for dtype in TYPES}

Maps = tuple[np.ndarray, np.ndarray | None]


def lens_map(
    model: str, camera: Any, k: Any, turn: Any, view: Any, size: tuple[int, int], kind: str
) -> Maps | None:
    """A map of a kind, as from `plain_calls.lens_map`, for a lens without tilt.

    view: the new camera's matrix; turn: None, or a rotation before it, (3, 3).
    """
    known = plain_calls.kernels()
    lens = None if known is None else _lens(model, camera, k)
    if known is None or lens is None or any(lens.tilt):
        return None
    if type(view) is not np.ndarray or view.dtype not in NUMBERS or view.shape[0] != 3:
        return None
    if view.shape not in ((3, 3), (3, 4)):
        return None
    matrix = view[:, :3].astype(np.float64)
    if turn is not None:
        if type(turn) is not np.ndarray or turn.dtype not in NUMBERS or turn.shape != (3, 3):
            return None
        product = torch.from_numpy(matrix) @ torch.from_numpy(turn.astype(np.float64))
        matrix = product.numpy()  # numpy's product may round differently
    from warpkit.engine.backends.cpu.inverse import invert_numbers

    return known.lens_map(lens, invert_numbers(matrix).ravel().tolist(), size, kind)


def _lens(model: str, camera: Any, k: Any) -> Any:
    if type(camera) is not np.ndarray or not (is_nothing(k) or type(k) is np.ndarray):
        return None
    if model == "brown":
        return brown_lens(camera, k)
    return fisheye_lens(camera, np.zeros(4) if is_nothing(k) else k)


def converted(map1: Any, map2: Any, kind: str, whole: bool) -> Maps | None:
    """cv2.convertMaps of floats to any kind, or of fixed maps to floats; whole: no 1/32 parts."""
    known = plain_calls.kernels()
    arrays = [value for value in (map1, map2) if value is not None]
    if known is None or any(type(value) is not np.ndarray for value in arrays):
        return None
    kinds = [(value.dtype, value.ndim) for value in arrays]
    fixed = kinds[:1] == [(PIXEL, 3)]
    good = kinds in ([(SINGLE, 2)] * 2, [(SINGLE, 3)], [(PIXEL, 3), (np.dtype(np.uint16), 2)])
    if not good or arrays[0].shape[2:] not in ((), (2,)) or (fixed and (kind == "fixed" or whole)):
        return None
    if map1 is None or 0 in map1.shape or (len(arrays) > 1 and map2.shape != map1.shape[:2]):
        return None
    return known.converted_map(map1, map2, "whole" if kind == "fixed" and whole else kind)


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


def sampled(src: Any, maps: Maps, interpolation: str, arithmetic: str) -> np.ndarray | None:
    """An array (H, W) or (H, W, C) sampled by maps of any kind, with 0 outside the image."""
    if arithmetic == "exact" or not can_sample(src):
        return None
    first, second = (None if part is None else np.ascontiguousarray(part) for part in maps)
    assert first is not None
    if 0 in first.shape:
        return None
    shapes = src.shape, src.dtype.str, first.shape, first.dtype.str, second is not None
    sample = _sampler(*shapes, interpolation, arithmetic)
    return None if sample is None else sample(src, first, second)


@lru_cache(maxsize=128)
def _sampler(
    shape: tuple[int, ...],
    dtype: str,
    of_map: tuple[int, ...],
    map_dtype: str,
    has_second: bool,
    interpolation: str,
    arithmetic: str,
) -> Any:
    """A sampler of arrays of these shapes and types; None if unsupported."""

    src = np.broadcast_to(np.zeros((), dtype), shape).copy()
    image, rule = planes(src), SamplingRule(interpolation, "constant", arithmetic)
    if not sampling.has_kernel(image, rule):
        return None
    pixels = map_dtype == PIXEL.str
    points, second = torch.from_numpy(np.empty(of_map, map_dtype)), None
    if has_second:
        second = torch.from_numpy(np.empty(of_map[:2], np.int16 if pixels else SINGLE))
    return sampling.sampler(
        (src, src, src if has_second else None),
        image,
        points,
        second,
        (of_map[0], of_map[1]),
        rule,
        0,
    )
