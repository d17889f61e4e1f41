"""Validates arguments; errors name the function, the argument, what was wanted and what it got.

A check raises before any work is done and reads only shapes, types and names. Only `check_values`
reads values, and only if that needs no synchronisation: see there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from warpkit.core.errors import fail as fail
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_channels_last
from warpkit.core.names import suggest
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_readable

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int16, torch.uint16)
"""The image types OpenCV rounds and saturates to; they carry no gradient."""
LABELS = (torch.bool, torch.int8, torch.int32, torch.int64, torch.uint32, torch.uint64)
"""The image types that only nearest takes: it copies them unchanged."""
ARRAYS = (np.ndarray, np.generic)
MAX_SIDE = 2**31
"""Sides of images are below it, as their coordinates are."""
Name = TypeVar("Name", bound=str)
TEXT, LISTS = (str, bytes), (tuple, list)
"""Tuples, since Dynamo cannot trace the `|` of types, before torch 2.10 of any."""


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape as a plain tuple, for messages."""
    return tuple(tensor.shape)


def shape_if_any(value: Any) -> tuple[int, ...]:
    """The shape of a tensor, an array, a number or a nested sequence; () of anything else."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    try:
        return np.shape(value)
    except (RuntimeError, TypeError, ValueError):
        return ()


def kind_of(value: object) -> str:
    """The kind of a wrong argument, for messages; a class by its name."""
    if isinstance(value, type):
        return f"the class {value.__name__} (an instance of it?)"
    return type(value).__name__


def check_name(function: str, argument: str, value: object, names: Collection[Name]) -> Name:
    """`value` must be one of `names`, which the message lists."""
    if not isinstance(value, str) or value not in names:
        hint = suggest(argument, value)
        got = repr(value) + (hint if any(repr(name) in hint for name in names) else "")
        fail(function, argument, "one of " + ", ".join(map(repr, names)), got)
    return value  # pyright: ignore[reportReturnType]


def check_bool(function: str, argument: str, value: object) -> bool:
    """`value` must be True or False, not something that happens to be truthy."""
    if not isinstance(value, bool):
        fail(function, argument, "True or False", repr(value), TypeError)
    return value


def check_size(
    function: str, argument: str, value: object, order: str = "(H, W)"
) -> tuple[int, int]:
    """A size is (H, W), or in another `order`: two integers of at least 1."""
    wanted = f"{order}, two integers of at least 1"
    if isinstance(value, Tensor):  # an image passed as the size would fill the screen
        fail(function, argument, wanted, f"a tensor of shape {shape_of(value)}", TypeError)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = tuple(value)
    if not isinstance(value, Sequence) or isinstance(value, TEXT) or len(value) != 2:
        fail(function, argument, wanted, repr(value), TypeError)
    if not all(isinstance(n, WHOLE_NUMBERS) and not isinstance(n, bool) for n in value):
        fail(function, argument, wanted, repr(value), TypeError)
    height, width = map(plain_integer, value)
    if height < 1 or width < 1:
        fail(function, argument, wanted, repr(value))
    if height >= MAX_SIDE or width >= MAX_SIDE:
        fail(function, argument, f"{order}, two integers below 2^31", f"{value!r:.60}")
    return height, width


def check_image(
    function: str, argument: str, image: object, labels: bool = False, look: bool = True
) -> Tensor:
    """An image is a tensor (..., C, H, W) of a supported type with at least one pixel a side.

    labels: whether the function takes types that only nearest supports; see `check_labels`. look:
        whether to warn about a wrong layout.
    """
    if not isinstance(image, Tensor):
        got = type(image).__name__
        if isinstance(image, np.ndarray):
            got += " (torch.from_numpy, then permute(2, 0, 1) where it is (H, W, C))"
        elif isinstance(image, LISTS):
            got += " (stack them, torch.stack, where they are of one size, or loop)"
        fail(function, argument, "a tensor of shape (..., C, H, W)", got, TypeError)
    check_no_dtensor(function, argument, image)
    if image.dtype not in FLOATS + INTEGERS + LABELS * labels:
        wanted = f"of one of the types {names_of(FLOATS + INTEGERS)}"
        wanted += f", with 'nearest' also {names_of(LABELS)}" * labels
        fail(function, argument, wanted, image.dtype, TypeError)
    check_dense(function, argument, image)
    if image.ndim < 3:
        fail(function, argument, "of shape (..., C, H, W)", shape_of(image))
    if min(image.shape[-3:]) < 1:
        fail(function, argument, "at least one channel and one pixel a side", shape_of(image))
    if look:
        warn_if_channels_last(function, argument, image.shape)
    return image


def check_labels(
    function: str, argument: str, value: object, dtype: torch.dtype | None, wanted: str, fits: bool
) -> None:
    """An argument cannot average labels; `wanted`: the valid value, or None if there is none."""
    if dtype in LABELS and not fits:
        got = type(value).__name__ if isinstance(value, Tensor) else f"{value!r:.60}"
        names = f"for {dtype}: labels have no mean (convert them to floats for one)"
        fail(function, argument, f"{wanted} {names}", got)


def names_of(dtypes: Sequence[torch.dtype]) -> str:
    """The types' names, for messages."""
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)


def check_dense(function: str, argument: str, tensor: Tensor) -> None:
    """Sparse and nested tensors have no strides, which most of torch's functions read."""
    if tensor.layout != torch.strided:
        fail(function, argument, "a dense tensor", tensor.layout, TypeError)


def check_held(function: str, argument: str, tensor: Tensor) -> None:
    """A tensor whose values are read must have some."""
    check_dense(function, argument, tensor)
    if tensor.is_meta:
        fail(function, argument, "a tensor that holds values", "one on the device meta", TypeError)


def check_no_dtensor(function: str, argument: str, tensor: Tensor) -> None:
    """`warpkit.distributed` passes shards on: once it is imported, no DTensor gets here."""
    if type(tensor).__name__ == "DTensor":
        wanted = "a plain tensor, or any after `import warpkit.distributed`"
        fail(function, argument, wanted, "DTensor", TypeError)


def check_matrix_shape(function: str, argument: str, matrix: Tensor, rows: tuple[int, ...]) -> None:
    """A matrix is (..., 2, 3) or (..., 3, 3), with one of `rows`."""
    if matrix.ndim < 2 or matrix.shape[-1] != 3 or matrix.shape[-2] not in rows:
        wanted = " or ".join(f"(..., {r}, 3)" for r in rows)
        fail(function, argument, f"of shape {wanted}", shape_of(matrix))


def check_last(function: str, argument: str, tensor: Tensor, *last: int) -> None:
    """The shape of `tensor` must end in `last`."""
    if tuple(tensor.shape[tensor.ndim - len(last) :]) != last:
        wanted = "(..., " + ", ".join(map(str, last)) + ")"
        fail(function, argument, f"of shape {wanted}", shape_of(tensor))


def as_float(
    function: str,
    argument: str,
    value: Any,
    device: torch.device | None,
    default: torch.dtype | None = None,
) -> Tensor:
    """Numbers, nested sequences and arrays as a real floating tensor.

    Tensors and arrays keep their type, so that a gradient and float64 pass through; Python numbers
    and integers of any kind take `default`, or torch's default type.
    """
    default = default or torch.get_default_dtype()
    if isinstance(value, Tensor):
        check_no_dtensor(function, argument, value)
        tensor = value
    elif isinstance(value, ARRAYS):
        tensor = from_array(function, argument, value, device)
    elif isinstance(value, Real) and not isinstance(value, bool):
        # filled on the device: a copy from the host would synchronise, and end a graph's capture;
        # in float64: torch cannot fill a float32 with 1e300, which `to` makes infinite
        number = float64_of(function, argument, value)
        tensor = torch.full((), number, dtype=torch.float64, device=device).to(default)
    elif isinstance(value, Sequence) and not isinstance(value, TEXT) and len(value) > 0:
        tensor = stack(function, argument, value, device, default)
    else:
        wanted = "a number, a sequence of numbers, an array or a tensor"
        fail(function, argument, wanted, f"{value!r:.60}", TypeError)
    if tensor.dtype == torch.bool or tensor.is_complex():
        fail(function, argument, "real numbers", tensor.dtype, TypeError)
    check_dense(function, argument, tensor)
    if not tensor.is_floating_point():
        return tensor.to(default)
    if tensor.dtype not in FLOATS:  # torch promotes no type of 8 bits
        fail(function, argument, f"of one of the types {names_of(FLOATS)}", tensor.dtype, TypeError)
    return tensor


def float64_of(function: str, argument: str, value: Real | float) -> float:
    """A number as Python holds it, if it can."""
    try:
        return float(value)
    except OverflowError:
        fail(function, argument, "a number that float64 holds", f"{value!r:.20}...")


def as_exact(function: str, argument: str, value: Any, device: torch.device | None) -> Any:
    """Integers and booleans as a tensor of their own type; anything else unchanged."""
    if isinstance(value, ARRAYS):
        return from_array(function, argument, value, device)
    if isinstance(value, WHOLE_NUMBERS):
        if not isinstance(value, torch.SymInt) and not -(2**63) <= int(value) < 2**63:
            fail(function, argument, "integers of 64 bits", f"{value!r:.40}")
        return torch.as_tensor(value, device=device)
    if isinstance(value, Sequence) and len(value) > 0 and not isinstance(value, TEXT):
        items = [as_exact(function, argument, item, device) for item in value]
        exact = [i for i in items if isinstance(i, Tensor) and not i.is_floating_point()]
        if len(exact) == len(items) and len({item.shape for item in exact}) == 1:
            return torch.stack(exact)
    return value


def array_dtype(value: np.ndarray | np.generic) -> torch.dtype | None:
    """torch's type for an array's type, of either byte order; None if torch has none."""
    if torch.compiler.is_compiling():  # Dynamo has no types, flags or strides of arrays
        return torch.as_tensor(value, device="cpu").dtype
    return _named_dtype(value.dtype)


@cache
def _named_dtype(dtype: np.dtype) -> torch.dtype | None:
    namesake = getattr(torch, dtype.name, None)
    return namesake if isinstance(namesake, torch.dtype) else None


def from_array(
    function: str, argument: str, value: np.ndarray | np.generic, device: torch.device | None
) -> Tensor:
    """An array as a tensor: a view, or a copy if torch cannot share the memory.

    That is the case if it is read-only, not aligned, in non-native byte order, or has negative or
    uneven strides. A dense array gives a dense tensor, whatever its strides along axes of length 1.
    """
    if array_dtype(value) is None:
        fail(function, argument, "of a number type that torch has", value.dtype, TypeError)
    if torch.compiler.is_compiling():
        return torch.as_tensor(value, device=device)
    array = np.asarray(value)
    if 1 in array.shape and array.flags.c_contiguous:
        array = array.reshape(-1).reshape(array.shape)
    even = all(s >= 0 and s % array.itemsize == 0 for s in array.strides)
    if not (even and array.flags.behaved and array.dtype.isnative):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    return torch.as_tensor(array, device=device)


def as_pair(
    function: str,
    argument: str,
    value: Any,
    device: torch.device | None,
    default: torch.dtype | None = None,
) -> Tensor:
    """An (x, y) pair as a tensor (..., 2); x and y of a tuple may be batches."""
    if (
        isinstance(value, LISTS)
        and len(value) == 2
        and not any(isinstance(item, LISTS) for item in value)
    ):
        x, y = same_type(function, argument, value, device, default)
        broadcast_batch(f"{function}: `{argument}`", x=x.shape, y=y.shape)
        return torch.stack(torch.broadcast_tensors(x, y), dim=-1)
    tensor = as_float(function, argument, value, device, default)
    if tensor.ndim == 0 or tensor.shape[-1] != 2:
        fail(function, argument, "(x, y) or of shape (..., 2)", shape_of(tensor))
    return tensor


def stack(
    function: str,
    argument: str,
    items: Sequence[Any],
    device: torch.device | None,
    default: torch.dtype | None,
) -> Tensor:
    """The items of a sequence as one float tensor; all must be of one shape."""
    tensors = same_type(function, argument, items, device, default)
    if any(tensor.shape != tensors[0].shape for tensor in tensors):
        got = "items of the shapes " + ", ".join(str(shape_of(t)) for t in tensors)
        fail(function, argument, "a regular array", got)
    return torch.stack(tensors)


def same_type(
    function: str,
    argument: str,
    items: Sequence[Any],
    device: torch.device | None,
    default: torch.dtype | None,
) -> list[Tensor]:
    """The items as float tensors of one type, on one device: None is that of the first tensor."""
    device = device or result_kind(*items)[0]
    tensors = [as_float(function, argument, item, device, default) for item in items]
    for tensor in tensors:
        check_device(function, argument, tensor, tensors[0].device, "its first item")
    dtype = common_dtype(*tensors)
    return [tensor.to(dtype) for tensor in tensors]


def result_kind(*values: Any) -> tuple[torch.device | None, torch.dtype]:
    """The device and the type of a result computed from arguments.

    The device is the first tensor's, or None; the type is torch's promotion of all, with numbers
    and integers counted as torch's default type, whatever the type of the computation.
    """
    device, dtype = None, None
    for value in values:
        device_of, dtype_of = None, None
        if isinstance(value, Tensor):
            device_of, dtype_of = value.device, value.dtype
        elif isinstance(value, ARRAYS):
            dtype_of = array_dtype(value)
        elif isinstance(value, Sequence) and not isinstance(value, TEXT):
            device_of, dtype_of = result_kind(*value)
        if dtype_of not in FLOATS:
            dtype_of = torch.get_default_dtype()
        device = device_of if device is None else device
        dtype = dtype_of if dtype is None else torch.promote_types(dtype, dtype_of)
    return device, dtype or torch.get_default_dtype()


def common_dtype(*tensors: Tensor) -> torch.dtype:
    """The type that torch's promotion gives to all of them."""
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def check_device(
    function: str, argument: str, tensor: Tensor, device: torch.device, owner: str = "the image"
) -> None:
    """All tensors of a call must be on one device, that of `owner`; nothing is moved silently."""
    if tensor.device != device:
        fail(function, argument, f"on {device}, where {owner} is", tensor.device)


def broadcast_batch(function: str, **shapes: Sequence[int]) -> tuple[int, ...]:
    """The common batch shape of the named arguments, or an error that names all of them."""
    first, *others = map(tuple, shapes.values())
    if all(other in (first, ()) for other in others):  # nearly always; saves 10 us
        return first
    try:
        return tuple(broadcast_shapes(first, *others))
    except RuntimeError:
        wanted = " and ".join(f"`{name}`" for name in shapes)
        got = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(
            f"{function}: the batch dimensions of {wanted} must broadcast, got {got}"
        ) from None


def check_values(
    function: str, argument: str, bad: Tensor, wanted: str, values: Tensor | None = None
) -> None:
    """Raise an error about the first item where `bad` is true; only on the CPU, outside transforms.

    The message shows the item of `values`, if they are given.

    Reading a value from an accelerator would synchronise, and a traced or vmapped tensor has no
    value to read: the result of the bad item is NaN instead.
    """
    if is_readable(bad) and bool(bad.any()):
        at_index = tuple(bad.nonzero()[0].tolist())
        if values is not None:
            at = f" at {at_index[0] if len(at_index) == 1 else at_index}" if at_index else ""
            fail(function, argument, wanted, f"{values[at_index].tolist()}{at}")
        got = f"a degenerate one at {at_index} of the batch" if at_index else "a degenerate one"
        fail(function, argument, wanted, got)
