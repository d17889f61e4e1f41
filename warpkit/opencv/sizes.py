"""cv2's sizes: (W, H) as sequences, arrays or tensors, or None if the function computes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from warpkit.core import checks


def as_list(name: str, argument: str, value: Any) -> Any:
    """Arrays and tensors as lists; everything else unchanged."""
    if isinstance(value, Tensor):
        checks.check_held(name, argument, value)
    return value.tolist() if isinstance(value, (np.ndarray, Tensor)) else value


def as_size(name: str, argument: str, value: Any) -> tuple[int, int]:
    """cv2's (W, H) as (H, W)."""
    width, height = checks.check_size(name, argument, as_list(name, argument, value), "(W, H)")
    return height, width


def is_empty(value: Any) -> bool:
    """Whether the function chooses the size: None, empty, or zeros."""
    return value is None or (isinstance(value, Sequence) and tuple(value) in ((), (0, 0)))
