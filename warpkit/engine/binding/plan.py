"""Plans: what depends on the kind of a call alone, made once for all calls of the kind.

A small call takes less time than the checks of its arguments. These depend only on types, shapes,
strides and options. So a plan is made for the first call of each kind, and runs it as all others.
All functions share one cache; it keeps no array's numbers or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit.core.tracing import is_batch, is_watched, runs_eagerly

Plan = Callable[..., Any]
"""Makes a call with arrays of its kind."""


class Once(NamedTuple):
    """The result of a call that has no plan."""

    result: Any


Make = Callable[..., Plan | Once]
"""Checks the arguments of a call, and makes its plan, or the result if no plan would serve others.

Its first argument says whether a plan is kept; if not, it returns the result.
"""

C_CONTIGUOUS, ALIGNED = 0x1, 0x100
"""numpy's flags of arrays, in one number."""

TENSORS = {Tensor, torch.nn.Parameter}
OPTIONS = {str, bool, int, float, type(None)}
"""Types whose `repr` identifies a value completely: -0.0 is not 0.0, and 1 is not True."""

KEPT = 2048
"""The largest number of plans: some 6 KB each. Pictures of 600 sizes, with and without a gradient,
under one or two options, are all found again."""

_plans: dict[Hashable, Plan] = {}
_random = Random(0)  # of its own: a caller's seed stays as it is


def call(make: Make, arrays: tuple[Any, ...], options: tuple[Any, ...], width: int = 0) -> Any:
    """The result of a call, by the plan of its kind, which `make` makes for the first one.

    width: one plan serves lists of points of all lengths, the first array (..., width), if dense.
    """
    kind = kind_of(make, arrays, options, width)
    if kind is None:  # no look-up: torch.compile would recompile when a plan is added
        return once(make(False, *arrays, *options))
    plan = _plans.get(kind)
    if plan is None:
        made = make(True, *arrays, *options)
        if isinstance(made, Once):
            return made.result
        if len(_plans) >= KEPT:
            # at random: in a round of more kinds, the oldest would always be the next to be needed
            _plans.pop(_random.choice(list(_plans)), None)
        plan = _plans[kind] = made
    return plan(*arrays)


def _is_list(array: Any, width: int) -> bool:
    """Whether an array is dense, of shape (..., width)."""
    if type(array) in TENSORS:
        return array.shape[-1:] == (width,) and array.is_contiguous()
    return type(array) is np.ndarray and array.shape[-1:] == (width,) and array.flags.c_contiguous


def once(made: Plan | Once) -> Any:
    """The result that a `Make` returns without a plan."""
    assert isinstance(made, Once)
    return made.result


def kind_of(
    make: Make, arrays: tuple[Any, ...], options: tuple[Any, ...], width: int = 0
) -> tuple[Hashable, ...] | None:
    """All that a plan depends on; None if more than autograd's tape follows, or if arguments are
    not plain.

    arrays: tensors on the CPU, numpy's, numbers, or None; options: plain values and tuples of them;
    width: as of `call`.
    """
    if not runs_eagerly() or is_watched():
        return None
    parts: list[Hashable] = [make]
    for array in arrays:
        if type(array) in TENSORS:
            if not array.is_cpu or array.layout is not torch.strided:
                return None
            if array.is_neg() or is_batch(array):
                return None
            parts += array.shape, array.stride(), array.dtype, array.requires_grad
        elif type(array) is np.ndarray:
            flags, dtype = array.flags.num, array.dtype
            if not (flags & ALIGNED and dtype.isnative):
                return None  # kernels read numbers as they are in memory
            # strides of axes of length 1 are arbitrary, and numpy's flags ignore them
            strides = None if flags & C_CONTIGUOUS else array.strides
            parts += array.shape, strides, dtype, flags
        elif array is None or type(array) is float or type(array) is int:
            parts.append(type(array))
        else:
            return None
    if width and _is_list(arrays[0], width):
        # for its shape and strides; 0 and 1 stay apart: an axis of length 1 may be no list
        parts[1:3] = (*(min(length, 2) for length in arrays[0].shape[:-1]), width), None
    for option in options:
        if type(option) not in OPTIONS and not (
            type(option) is tuple and OPTIONS.issuperset(map(type, option))
        ):
            return None
    if options:
        parts.append(repr(options))
    return tuple(parts)
