"""Caches validated calls by shape.

A small call takes less time than the checks of its arguments. These depend only on types, shapes,
strides and options. So the first call of each kind is checked, and stores how to make the next one.
All functions share one cache; it keeps no array's numbers or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core.slips import looks_channels_last
from warpkit.core.tracing import is_batch, is_watched, runs_eagerly
from warpkit.engine.sampling.rules import SamplingRule

TENSORS = {Tensor, torch.nn.Parameter}
OPTIONS = {str, bool, int, float, type(None)}
"""Types whose `repr` identifies a value completely: -0.0 is not 0.0, and 1 is not True."""

KEPT = 2048
"""The largest number of cached calls: some 6 KB each. Pictures of 600 sizes, with and without a
gradient, under one or two options, are all found again."""

Key = Hashable | None
"""The key of a call; None if it cannot be cached."""

Prepared = Callable[..., Any]
"""Makes a call with the arrays of its key, in their order."""

_calls: dict[Hashable, Prepared] = {}
_random = Random(0)  # of its own: a caller's seed stays as it is


def key_of(function: str, arrays: tuple[Any, ...], options: tuple[Any, ...]) -> Key:
    """The key of a call; None if more than autograd's tape follows, or if arguments are not plain.

    arrays: tensors on the CPU, or numpy's; options: plain values and tuples of them.
    """
    if not runs_eagerly() or is_watched():
        return None
    parts: list[Hashable] = [function]
    for array in arrays:
        if type(array) in TENSORS:
            if not array.is_cpu or array.layout is not torch.strided:
                return None
            if array.is_neg() or is_batch(array):
                return None
            parts += array.shape, array.stride(), array.dtype, array.requires_grad
        elif type(array) is np.ndarray:
            flags = array.flags
            if not (array.dtype.isnative and flags.aligned):
                return None  # kernels read numbers as they are in memory
            # strides of axes of length 1 are arbitrary, and numpy's flags ignore them
            strides = None if flags.c_contiguous else array.strides
            parts += array.shape, strides, array.dtype, flags.num
        else:
            return None
    for option in options:
        if type(option) not in OPTIONS and not (
            type(option) is tuple and OPTIONS.issuperset(map(type, option))
        ):
            return None
    return *parts, repr(options)


def call(key: Key, *arrays: Any) -> Any:
    """The result of a cached call, or None."""
    if key is None:  # no lookup: torch.compile would recompile when a call is added
        return None
    known = _calls.get(key)
    return None if known is None else known(*arrays)


def keep(key: Key, made: Prepared | None) -> None:
    """Use `made` for calls with this key from now on; nothing happens if either is None."""
    if key is None or made is None:
        return
    if len(_calls) >= KEPT and key not in _calls:
        # at random: in a round of more shapes, the oldest would always be the next that is needed
        _calls.pop(_random.choice(list(_calls)), None)
    _calls[key] = made


def leave(
    key: Key,
    backend: Any,
    image: Tensor,
    mapping: Any,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    look: Callable[..., None] | None = None,
    **options: bool,
) -> None:
    """Store the backend's function for calls with this key, if they need no other warnings.

    Only for a mapping that reaches the kernel as the caller passed it: of anything else, such as
    lists, arrays and integers, a stored call would get the original and not what was made of it.
    look: a check of every call's mapping, such as slips.look_at_points.

    image (..., C, H, W); mapping (..., 2 or 3, 3) or (..., h, w, 2); fill broadcasts to the result.
    """
    if key is None or not hasattr(backend, "prepare") or looks_channels_last(image.shape):
        return
    if not isinstance(mapping, Tensor) or not mapping.is_floating_point():
        return
    labels = not image.is_floating_point() and rule.interpolation == "nearest"
    slopes = image.is_floating_point() and rule.interpolation != "nearest"
    if mapping.requires_grad and not (slopes or labels):
        return
    made = backend.prepare(image, mapping, size, fill, rule, **options)
    if made is None or look is None:
        return keep(key, made)
    function, sides = str(key[0]), image.shape[-2:]  # pyright: ignore

    def again(image: Tensor, points: Tensor) -> Tensor:
        """image (..., C, H, W); points (..., h, w, 2)."""
        look(function, points, sides)
        return made(image, points)

    keep(key, again)
