"""cv2's output arguments, `dst` and `iM`."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from warpkit.core import checks
from warpkit.core.slips import look_at_output


def check_output(name: str, argument: str, value: Any, src: Any) -> Any:
    """An array or tensor, as `src`, or None; numbers and tuples are ignored, as in cv2."""
    if value is None:
        return None
    if isinstance(value, int | float | complex | tuple):
        look_at_output(name, argument, value)
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
    if output is None or output.shape != result.shape or output.dtype != result.dtype:
        return result
    output[...] = result
    return output
