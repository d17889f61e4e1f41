"""The CPU backend: kernels compiled by Numba, the same results as the reference.

How a call runs: `op` is the torch operator, `launch` turns tensors into kernel calls, `threads`
shares them out. `forward` and `backward` are the kernels. Both cut the output into tiles; `tile`
finds where one looks (`locate`, `weights`) and copies what it reads into a `window`; `gradient` has
the steps back. `painting` has kernels of its own, for objects over images. `lanes` and `compiler`
are about the machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.autograd import forward_ad

from warpkit.kernels import reference
from warpkit.kernels.inverse import inverse_by
from warpkit.kernels.rules import Rule

HAS_NUMBA = find_spec("numba") is not None


def why_not(image: Tensor, rule: Rule) -> list[str]:
    """The reasons why the kernels cannot do this."""
    if image.device.type != "cpu":
        return [f"needs a CPU tensor, got {image.device}"]
    if not HAS_NUMBA:
        _warn()
        return ["needs Numba: pip install numba"]
    return []


@cache
def _warn() -> None:
    text = "warpkit: Numba is not installed; on the CPU the slow reference is used"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def warp(
    image: Tensor, inverse: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
) -> Tensor:
    """As `reference.warp`."""
    if _forward_mode():
        return reference.warp(image, inverse, size, outside, rule)
    return _sample(image, inverse.double(), size, outside, rule)


def sample(image: Tensor, points: Tensor, outside: Tensor, rule: Rule) -> Tensor:
    """As `reference.sample`."""
    if _forward_mode():
        return reference.sample(image, points, outside, rule)
    points = points.to(reference.compute_dtype(points.dtype))
    return _sample(image, points, points.shape[-3:-1], outside, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`."""
    from warpkit.kernels.cpu.invert import invert

    return inverse_by(matrix, invert)


def _forward_mode() -> bool:
    """Tangents are the reference's business, and so is whatever is differentiated after them."""
    return forward_ad._current_level >= 0


def _sample(
    image: Tensor, where: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
) -> Tensor:
    from warpkit.kernels.cpu import op

    if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
        where = where.detach()
    half = image.dtype in (torch.float16, torch.bfloat16)
    pixels = image.float() if half else image
    result = op.call(pixels, where, outside, size, rule.interpolation, rule.border)
    return result.to(image.dtype) if half else result
