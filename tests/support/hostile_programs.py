"""Programs that equal a known resize on most pictures but not on all, for `identify`.

None of them may be identified. Each is `resized`, a plain cv2.resize, except as its name says."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from PIL import Image

SIDE = 96
Function = Callable[[np.ndarray], np.ndarray]


def resized(x: np.ndarray, how: int = cv2.INTER_LINEAR) -> np.ndarray:
    """(H, W, 3) uint8, resized to 96 x 96."""
    return cv2.resize(x, (SIDE, SIDE), interpolation=how)


def _one_up(x: np.ndarray, *place: int) -> np.ndarray:
    """Raise one value of the result by a level, or all values if no place is named."""
    y = resized(x).copy()
    y[place] ^= 1
    return y


def _one_channel(x: np.ndarray) -> np.ndarray:
    y = resized(x).copy()
    y[..., 2] = resized(x, cv2.INTER_AREA)[..., 2]
    return y


def _thumbnail_first(x: np.ndarray, longest: int) -> np.ndarray:
    image = Image.fromarray(x)
    image.thumbnail((longest, longest))
    return resized(np.asarray(image))


def _brightened(x: np.ndarray) -> np.ndarray:
    return resized(np.minimum(x.astype(int) * 2, 255).astype(np.uint8))


def _stretched(x: np.ndarray) -> np.ndarray:
    low, high = int(x.min()), int(x.max())
    return resized(((x.astype(float) - low) * 255 / (high - low)).astype(np.uint8))


def _missing(x: np.ndarray) -> np.ndarray:
    y = resized(x).astype(np.float32)
    y[y == 77] = np.nan
    return y


def _where(condition: Callable[[np.ndarray], bool], other: Function) -> Function:
    """`other` on images for which the condition holds, `resized` on the rest."""
    return lambda x: other(x) if condition(x) else resized(x)


def _area(x: np.ndarray) -> np.ndarray:
    return resized(x, cv2.INTER_AREA)


def _cubic(x: np.ndarray) -> np.ndarray:
    return resized(x, cv2.INTER_CUBIC)


def _short(x: np.ndarray) -> int:
    return min(x.shape[:2])


def _long(x: np.ndarray) -> int:
    return max(x.shape[:2])


def _varied(x: np.ndarray) -> bool:
    """Whether an image has more than one level; uniform images show levels and must be right."""
    return bool(x.std() > 0)


def _has_no_colours(x: np.ndarray) -> bool:
    return _varied(x) and bool((x == x[..., :1]).all())


PROGRAMS: dict[str, Function] = {
    "one value by one level": lambda x: _one_up(x, 50, 40, 1),
    "the last value by one level": lambda x: _one_up(x, -1, -1, -1),
    "one channel by another filter": _one_channel,
    "odd sides": _where(lambda x: x.shape[0] % 2 == x.shape[1] % 2 == 1, _one_up),
    "even sides": _where(lambda x: x.shape[0] % 2 == x.shape[1] % 2 == 0, _one_up),
    "sides of multiples of 16": _where(lambda x: not x.shape[0] % 16 + x.shape[1] % 16, _area),
    "whole scales": _where(lambda x: not x.shape[0] % SIDE + x.shape[1] % SIDE, _area),
    "the size that is wanted": _where(lambda x: x.shape[:2] == (SIDE, SIDE), _one_up),
    "scales from 3 to 4": _where(lambda x: 3 * SIDE < _short(x) < 4 * SIDE, _area),
    "scales above 4": _where(lambda x: _short(x) > 4 * SIDE, _area),
    "scales above 6": _where(lambda x: _short(x) > 6 * SIDE, _area),
    "one scale above 6": _where(lambda x: _long(x) > 6 * SIDE, _area),
    "scales below 1": _where(lambda x: _long(x) < SIDE, _cubic),
    "scales below 1 / 3": _where(lambda x: _long(x) < SIDE / 3, _cubic),
    "first at most 1024": lambda x: _thumbnail_first(x, 1024),
    "first at most 4096": lambda x: _thumbnail_first(x, 4096),
    "tall ones turned": _where(lambda x: x.shape[0] > 4.5 * x.shape[1], lambda x: resized(x[::-1])),
    "long ones cut": lambda x: resized(x[: 5 * _short(x), : 5 * _short(x)]),
    "dark ones brightened": _where(lambda x: 0 < x.mean() < 50, _brightened),
    "pale ones darkened": _where(lambda x: 205 < x.mean() < 255, lambda x: resized(x) // 2),
    "weak contrast stretched": _where(lambda x: 0 < np.ptp(x) < 100, _stretched),
    "those without colours blurred": _where(
        _has_no_colours, lambda x: resized(cv2.blur(x, (3, 3)))
    ),
    "black and white ones": _where(
        lambda x: _varied(x) and bool(np.isin(x, (0, 255)).all()),
        lambda x: resized(x, cv2.INTER_NEAREST),
    ),
    "a level that is not finite": _missing,
}
"""By what is done otherwise, or on which pictures."""

BY_PILLOW = {
    name: lambda x, gap=gap: np.asarray(
        Image.fromarray(x).resize((SIDE, SIDE), Image.Resampling.BICUBIC, reducing_gap=gap)
    )
    for name, gap in {"reducing gap 2": 2.0, "reducing gap 3": 3.0}.items()
}
"""Pillow's own: it reduces by boxes first, above scales of 4 and of 6."""
