"""Calls that came before: of plain 8-bit arrays, checked once, and made again without the checks.

A warp of 224 x 224 takes OpenCV 0.2 ms, and to look at its arguments took as long. What is looked
at is the same for calls of equal shapes and options: so the first one is checked and leaves what
the next one is made by. Nothing of an array's values or memory is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch

from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv import takes_float_path
from warpkit.engine.backends import select_backend
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.opencv.constants import WARP_INVERSE_MAP
from warpkit.opencv.layout import planes

KEPT = 256
"""Calls, at most."""

KnownWarp = Callable[[np.ndarray, np.ndarray], np.ndarray]

_calls: dict[Hashable, KnownWarp] = {}


def key_of(name: str, src: Any, matrix: Any, dsize: Any, options: tuple[Any, ...]) -> Hashable:
    """What a call of plain arrays is known by; None for others.

    options: flags, borderMode, borderValue and arithmetic, with no `dst`.
    """
    if type(src) is not np.ndarray or type(matrix) is not np.ndarray:
        return None
    if src.dtype != np.uint8 or matrix.dtype != np.float64 or type(dsize) is not tuple:
        return None
    if not (src.flags.c_contiguous and matrix.flags.c_contiguous):
        return None
    flags, border, value, arithmetic = options
    numbers = value if type(value) is tuple else (value,)
    kinds = {type(flags), type(border), *map(type, dsize)}
    if kinds != {int} or not {type(n) for n in numbers} <= {int, float}:
        return None
    if arithmetic == "auto":
        arithmetic = installed_arithmetic()
    elif type(arithmetic) is not str:
        return None
    return name, src.shape, matrix.shape, dsize, flags, border, numbers, arithmetic


def call(key: Hashable, src: np.ndarray, matrix: np.ndarray) -> np.ndarray | None:
    """The result (h, w) or (h, w, C), or None where no such call came before.

    src (H, W) or (H, W, C); matrix (2 or 3, 3).
    """
    known = _calls.get(key) if key is not None else None
    return None if known is None else known(src, matrix)


def leave(
    key: Hashable, src: np.ndarray, matrix: np.ndarray, flags: int, options: dict[str, Any]
) -> None:
    """What the next call of this key is made by, if kernels serve it; all arguments are checked.

    src (H, W) or (H, W, C); matrix (2 or 3, 3); options: the core's.
    """
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    if key is None or rule.arithmetic == "exact" or rule.border == "transparent":
        return
    from warpkit.engine.backends.cpu import opencv as by_kernels

    image = planes(src)
    if select_backend("warpkit.opencv", "auto", image, rule) is not by_kernels:
        return
    from warpkit.engine.backends.cpu.inverse import invert
    from warpkit.engine.backends.cpu.opencv import launch

    size = key[3][::-1] if key[3] != (0, 0) else src.shape[:2]  # pyright: ignore
    fill = torch.as_tensor(options["border_value"], dtype=torch.float64).reshape(-1, 1, 1)
    mapping = torch.from_numpy(matrix)
    fixed = not takes_float_path(image, rule)
    made = launch.prepare(image, mapping, fill, size, rule, fixed)
    shape = (*size, *src.shape[2:]) if src.shape[2:] != (1,) else size
    turned = bool(flags & WARP_INVERSE_MAP)

    def again(src: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """src (H, W) or (H, W, C); matrix (2 or 3, 3)."""
        to_source = matrix if turned else invert(torch.from_numpy(matrix), singular=0.0).numpy()
        return launch.result(made, src.reshape(-1), to_source.reshape(-1)).reshape(shape)

    if len(_calls) >= KEPT:
        _calls.clear()
    _calls[key] = again
