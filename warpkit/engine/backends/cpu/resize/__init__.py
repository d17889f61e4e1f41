"""Resizing by compiled kernels."""

from __future__ import annotations

from torch import Tensor

from warpkit.engine.sampling.resize import ResizeRule


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why the kernels cannot do this."""
    return ["has no kernel yet"]
