"""Warps of plain 8-bit arrays, checked once and then made from what lies in their memory.

A warp of 224 x 224 takes OpenCV 0.2 ms, and to look at its arguments took as long.
`engine.backends.prepared` finds what the first call of a kind has left here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.arithmetic.opencv import takes_float_path
from warpkit.engine.backends import prepared, select_backend
from warpkit.engine.sampling.rules import SamplingRule
from warpkit.opencv.constants import WARP_INVERSE_MAP
from warpkit.opencv.layout import planes


def key_of(name: str, src: Any, matrix: Any, *options: Any) -> prepared.Key:
    """What a call of plain arrays is known by; None for others.

    options: dsize, dst, flags, borderMode, borderValue and arithmetic.
    """
    if type(src) is not np.ndarray or type(matrix) is not np.ndarray:
        return None
    if options[-1] == "auto":
        options += (installed_arithmetic(),)
    return prepared.key_of(name, (src, matrix), options)


def leave(
    key: prepared.Key,
    src: np.ndarray,
    matrix: np.ndarray,
    size: tuple[int, int],
    flags: int,
    options: dict[str, Any],
) -> None:
    """What the next call of this key is made by, if kernels serve it; all arguments are checked.

    src (H, W) or (H, W, C); matrix (2 or 3, 3); options: the core's.
    """
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    if key is None or rule.arithmetic == "exact" or rule.border == "transparent":
        return
    if src.dtype != np.uint8 or matrix.dtype != np.float64:
        return
    if not (src.flags.c_contiguous and matrix.flags.c_contiguous):
        return
    from warpkit.engine.backends.cpu import opencv as by_kernels

    image = planes(src)
    if select_backend("warpkit.opencv", "auto", image, rule) is not by_kernels:
        return
    from warpkit.engine.backends.cpu.inverse import invert
    from warpkit.engine.backends.cpu.opencv import launch

    fill = torch.as_tensor(options["border_value"], dtype=torch.float64).reshape(-1, 1, 1)
    fixed = not takes_float_path(image, rule)
    made = launch.prepare(image, torch.from_numpy(matrix.copy()), fill, size, rule, fixed)
    shape = (*size, *src.shape[2:]) if src.shape[2:] != (1,) else size
    turned = bool(flags & WARP_INVERSE_MAP)

    def again(src: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """src (H, W) or (H, W, C); matrix (2 or 3, 3)."""
        if not turned:
            matrix = invert(torch.from_numpy(matrix), singular_to_zero=True).numpy()
        return launch.result(made, src.reshape(-1), matrix.reshape(-1)).reshape(shape)

    prepared.keep(key, again)
