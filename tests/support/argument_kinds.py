"""The documented kinds of an argument: views, arrays, lists, integers; and results by their bits.

Every kind holds the numbers of a plain tensor, so that a call with it has a known result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tests.support.hostile_arguments import laid_out


class Kind(NamedTuple):
    """One argument in another form, and contiguous tensors of the same numbers."""

    name: str
    value: Any
    plain: tuple[Tensor, ...]
    """One of them is what the argument is read as: numbers of Python have no type of their own."""


def views(tensor: Tensor) -> Iterator[Kind]:
    """The tensor in other memory layouts; the plain form is contiguous."""
    for layout in ("strided", "transposed", "channels last", "shifted", "expanded"):
        # an expanded batch needs items, and a copy of the first coordinate is no place
        if layout == "expanded" and (tensor.ndim < 3 or len(tensor) < 2):
            continue
        view = laid_out(tensor, layout)
        yield Kind(layout, view, (view.clone(memory_format=torch.contiguous_format),))


def backwards(array: np.ndarray) -> np.ndarray:
    """The same numbers with negative strides along every axis."""
    every = (slice(None, None, -1),) * array.ndim
    return array[every].copy()[every]


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "array": np.copy,
    "backwards": backwards,
    "Fortran's order": np.asfortranarray,
    "every other": lambda a: np.stack((a, a), -1)[..., 0],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read-only": lambda a: np.broadcast_to(a.copy(), a.shape),
}


def arrays(tensor: Tensor) -> Iterator[Kind]:
    """The tensor as numpy arrays in every memory layout and byte order."""
    for name, form in ARRAYS.items() if tensor.ndim else ():
        yield Kind(name, form(tensor.numpy()), (tensor,))


def lists(tensor: Tensor) -> Iterator[Kind]:
    """The tensor as nested lists, and as a list of its rows."""
    read_as = tensor.float(), tensor.double()
    yield Kind("lists", tensor.tolist(), read_as)
    if tensor.ndim > 0:
        yield Kind("tuples", tuple(tensor.tolist()), read_as)
    if tensor.ndim > 1:
        yield Kind("list of tensors", list(tensor.unbind()), (tensor,))
        yield Kind("list of arrays", list(tensor.numpy()), (tensor,))


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def integers(tensor: Tensor) -> Iterator[Kind]:
    """Integers of every type: the numbers that are whole, and three times the others, rounded."""
    whole = torch.where(tensor == tensor.round(), tensor, (tensor * 3).round()).double()
    whole = whole + 0.0  # no integer is -0
    for name in INTEGERS:
        numbers = whole.clamp(min=0) if name.startswith("u") else whole
        array = numbers.numpy().astype(name)
        read_as = numbers.float(), numbers
        yield Kind(f"tensor of {name}", torch.from_numpy(array), read_as)
        if array.itemsize in (1, 8):
            yield Kind(f"array of {name}", array, read_as)
    swapped = whole.numpy().astype(">i4")
    yield Kind("big-endian integers", swapped, (whole.float(), whole))


def parts(result: Any) -> Iterator[Any]:
    """The arrays, tensors and numbers of a result, in their order."""
    if dataclasses.is_dataclass(result):
        result = [getattr(result, field.name) for field in dataclasses.fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        for part in result:
            yield from parts(part)
    else:
        yield result


OF_TORCH_ALONE = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.int8,
    torch.float8_e5m2: torch.int8,
}
"""Types that numpy lacks, and integers of their size."""


def as_array(part: Any) -> np.ndarray:
    """A part of a result as an array of its bits."""
    if isinstance(part, Tensor):
        part = part.detach().cpu().to_dense().resolve_conj()
        if part.dtype in OF_TORCH_ALONE:
            part = part.contiguous().view(OF_TORCH_ALONE[part.dtype])
        part = part.numpy()
    array = np.asarray(part)
    return np.stack((array.real, array.imag)) if array.dtype.kind == "c" else array


def same(one: Any, other: Any) -> bool:
    """Whether two results have the same types, shapes and bits; NaN equals NaN, 0 is not -0."""
    ones, others = list(parts(one)), list(parts(other))
    return len(ones) == len(others) and all(map(_same_part, ones, others))


def _same_part(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.dtype != other.dtype:
        return False
    if isinstance(one, Tensor) and one.is_meta:
        return isinstance(other, Tensor) and other.is_meta and one.shape == other.shape
    if not isinstance(one, Tensor | np.ndarray | np.generic | float):
        return type(one) is type(other) and (callable(one) or bool(one == other))
    one, other = as_array(one), as_array(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    equal = (one == other) & (np.signbit(one) == np.signbit(other))
    return bool((equal | ((one != one) & (other != other))).all())
