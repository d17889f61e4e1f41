"""Where the face's arrays become tensors, and results what came in; also cv2's output arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_no_output
from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Make, Once, Plan


def call(make: Make, arrays: tuple[Any, ...], options: tuple[Any, ...], dst: Any = None) -> Any:
    """The result of a call by its plan, as the first array came in, perhaps written to `dst`.

    Plans take arrays and tensors as they are: kernels read the numbers of both at their address.
    They are made of tensors, which share the memory of arrays, as is everything without a plan.
    """
    result = plan.call(make, arrays, options)
    if isinstance(arrays[0], Tensor):
        return result if isinstance(result, Tensor) else torch.from_numpy(result)
    return result if dst is None else written(dst, result)


def numbers(
    make: Make, arrays: tuple[Any, ...], options: tuple[Any, ...], *outputs: Any, width: int = 0
) -> Any:
    """The result of a call by its plan, or several, each beside its own output.

    width: of the points in the first array, of which there may be any number. The results are
    tensors if one is among arrays and options, else arrays, perhaps written to outputs.
    """
    result, given = plan.call(make, arrays, options, width), False
    for value in (*arrays, *options):
        given = given or isinstance(value, Tensor)
    if len(outputs) == 1:
        return as_given(given, result, outputs[0])
    return tuple(map(as_given, repeat(given), result, outputs))


def as_given(given: bool, result: Any, output: Any = None) -> Any:
    """A tensor if one was `given`, otherwise an array, written to `output` if that fits."""
    if given:
        return result if isinstance(result, Tensor) else torch.from_numpy(result)
    if isinstance(result, Tensor):
        result = np.ascontiguousarray(result.detach().numpy())
    return result if output is None else written(output, result)


def planned(
    keeps: bool, make: Callable[..., Plan], arrays: tuple[Any, ...], tensors: tuple[Any, ...]
) -> Plan | Once:
    """The plan that `make` returns for a call's arrays, if it `keeps` one and kernels read these.

    Otherwise the result of the same numbers as tensors, of which None may be some.
    """
    first = tensors[0]
    if keeps and is_plain(*arrays) and (first is None or has_type_of(arrays[0], first)):
        return make(*arrays)
    fixed = [None if tensor is None else tensor.detach() for tensor in tensors]
    return Once(make(*fixed)(*fixed))


def has_type_of(array: Any, tensor: Tensor) -> bool:
    """Whether an array or a tensor has the type of a tensor, which was made of it."""
    return as_array(array).dtype == as_array(tensor).dtype


def runs_kernels(*tensors: Tensor | None) -> bool:
    """Whether the library computes of these: numbers on the CPU, whose derivatives nobody wants."""
    given = [tensor for tensor in tensors if tensor is not None]
    if not has_library() or any(tensor.device.type != "cpu" for tensor in given):
        return False
    return is_eager(*given) and not wants_gradient(*given)


def has_library() -> bool:
    """Whether the native library is there; it computes nothing that torch traces."""
    return not torch.compiler.is_compiling() and _has_library()


@cache
def _has_library() -> bool:
    from warpkit.engine.cpu.native_library import LIBRARY

    return LIBRARY is not None


def as_array(value: Any) -> np.ndarray:
    """An array, or a tensor as one."""
    return value.detach().numpy() if isinstance(value, Tensor) else value


def is_plain(*values: Any) -> bool:
    """Whether numpy reads the numbers of all: no tensor on autograd's tape or of bfloat16."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    return not any(tensor.requires_grad or tensor.dtype == torch.bfloat16 for tensor in tensors)


def is_dense(*arrays: Any) -> bool:
    """The same of tensors of any strides and of dense arrays, which kernels read in place."""
    return is_plain(*arrays) and all(
        array.flags.c_contiguous for array in arrays if isinstance(array, np.ndarray)
    )


def check_output(name: str, argument: str, value: Any, src: Any) -> Any:
    """An array or tensor, as `src`, or None; numbers and tuples are ignored, as in cv2."""
    if value is None:
        return None
    if isinstance(value, int | float | complex | tuple):
        warn_if_no_output(name, argument, value)
        return None
    kind = Tensor if isinstance(src, Tensor) else np.ndarray
    if not isinstance(value, kind):
        checks.fail(name, argument, f"a {kind.__name__}", type(value).__name__, TypeError)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        checks.fail(name, argument, "an array that can be written to", "a read-only one")
    return value


def written(output: Any, result: np.ndarray) -> np.ndarray:
    """`output`, an array or None, holding the result if it has its shape and type; otherwise the
    result.
    """
    if output is None or output.dtype != result.dtype:
        return result
    planar = output.shape[2:] == (1,) and output.shape[:2] == result.shape
    if output.shape != result.shape and not planar:
        return result
    output[...] = result.reshape(output.shape)
    return output
