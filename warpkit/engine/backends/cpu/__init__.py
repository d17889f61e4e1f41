"""The CPU backend: kernels compiled by Numba, the same results as the reference.

`warps` has the kernels of all warps and the two ways into them, `opencv` those of OpenCV's
arithmetics, `objects` those of objects over images; `runtime` is about compiling, vectors, threads
and memory. What a backend owes is said in the room above.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager
from warpkit.engine.backends.compiled import Operator
from warpkit.engine.backends.inverse import inverse_by
from warpkit.engine.sampling.reference import compute_dtype
from warpkit.engine.sampling.rules import Rule

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
    return _sample(image, inverse.double(), size, outside, rule)


def warp_forward(
    image: Tensor, matrix: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
) -> Tensor:
    """As `reference.warp` by the inverse of `matrix`, of any float type."""
    return _sample(image, matrix, size, outside, rule, forward=True)


def sample(image: Tensor, points: Tensor, outside: Tensor, rule: Rule) -> Tensor:
    """As `reference.sample`."""
    points = points.to(compute_dtype(points.dtype))
    return _sample(image, points, points.shape[-3:-1], outside, rule)


def inverse_map(matrix: Tensor) -> Tensor:
    """As `maps.inverse_map`."""
    from warpkit.engine.backends.cpu.warps.inverse import invert

    return inverse_by(matrix, invert)


def _call(*inputs: Any) -> Tensor:
    from warpkit.engine.backends.cpu.warps import operators

    return operators.call(*inputs)


_followed = Operator(_call)


def _sample(
    image: Tensor,
    where: Tensor,
    size: Sequence[int],
    outside: Tensor,
    rule: Rule,
    *,
    forward: bool = False,
) -> Tensor:
    """forward: `where` is a matrix source -> destination."""
    if image.dtype in (torch.float16, torch.bfloat16):  # the processor computes with neither
        whole = _sample(image.float(), where, size, outside, rule, forward=forward)
        return whole.to(image.dtype)
    if is_eager(image, where, outside):
        from warpkit.engine.backends.cpu.warps import eager as direct

        return direct.call(image, where, size, outside, rule, forward)
    where = inverse_map(where.double()) if forward else where
    if where.shape[-1] == 2:
        return _followed.sample(image, where, outside, rule)
    return _followed.warp(image, where, size, outside, rule)
