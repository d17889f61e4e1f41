"""Makes tensors that outlive a call, such as tables in caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def lasting(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose tensors any later call may use.

    Autograd cannot save what was made inside torch.inference_mode(). So whatever makes tensors that
    are kept is decorated with this, below its cache.
    """

    @wraps(function)
    def made(*args: P.args, **options: P.kwargs) -> R:
        if not torch.is_inference_mode_enabled():
            return function(*args, **options)
        with torch.inference_mode(False):
            return function(*args, **options)

    return made
