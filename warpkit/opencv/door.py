"""Where the face's arrays become tensors, and results what came in; also cv2's output arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_no_output
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Make


def call(make: Make, arrays: tuple[Any, ...], options: tuple[Any, ...], dst: Any = None) -> Any:
    """The result of a call by its plan, as the first array came in, perhaps written to `dst`.

    Plans take arrays and tensors as they are: kernels read the numbers of both at their address.
    They are made of tensors, which share the memory of arrays, as is everything without a plan.
    """
    result = plan.call(make, arrays, options)
    if isinstance(arrays[0], Tensor):
        return result if isinstance(result, Tensor) else torch.from_numpy(result)
    return result if dst is None else written(dst, result)


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
