"""Translates cv2's flags, border types and colours to the core's."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any, get_args

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.opencv.constants import (
    BORDER_CONSTANT,
    BORDER_REFLECT,
    BORDER_REFLECT_101,
    BORDER_REPLICATE,
    BORDER_TRANSPARENT,
    BORDER_WRAP,
    INTER_AREA,
    INTER_CUBIC,
    INTER_LANCZOS4,
    INTER_LINEAR,
    INTER_MAX,
    INTER_NEAREST,
)
from warpkit.types import Arithmetic, FaceArithmetic

INTERPOLATIONS = {
    INTER_NEAREST: "nearest",
    INTER_LINEAR: "bilinear",
    INTER_CUBIC: "bicubic",
    INTER_AREA: "bilinear",  # OpenCV's warps replace it silently
    INTER_LANCZOS4: "lanczos4",
}
BORDERS = {
    BORDER_CONSTANT: "constant",
    BORDER_REPLICATE: "replicate",
    BORDER_REFLECT: "reflect",
    BORDER_WRAP: "wrap",
    BORDER_REFLECT_101: "reflect_101",
    BORDER_TRANSPARENT: "transparent",
}


def as_interpolation(name: str, argument: str, flags: Any, others: int) -> str:
    """The interpolation in a warp's flags, in which `others` may be set, too."""
    known = INTER_MAX | others
    whole = isinstance(flags, Integral) and not isinstance(flags, bool)
    if not whole or flags | known != known or flags & INTER_MAX not in INTERPOLATIONS:
        wanted = "one of INTER_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS4, and WARP_ flags"
        checks.fail(name, argument, wanted, repr(flags))
    return INTERPOLATIONS[int(flags) & INTER_MAX]


def as_border(
    name: str, argument: str, value: Any, names: Collection[str], *, ignored: int = 0
) -> str:
    """The border, one of `names`, of a BORDER_* value; `ignored`: flags that have no effect."""
    found = BORDERS.get(int(value) & ~ignored) if isinstance(value, Integral) else None
    if found is None or found not in names:
        wanted = "one of BORDER_" + ", _".join(border.upper() for border in names)
        checks.fail(name, argument, wanted, repr(value))
    return found


def as_arithmetic(name: str, value: Any) -> Arithmetic:
    """An arithmetic of warps; "auto" is the installed OpenCV's."""
    names: tuple[FaceArithmetic, ...] = get_args(FaceArithmetic)
    arithmetic = checks.check_name(name, "arithmetic", value, names)
    return installed_arithmetic() if arithmetic == "auto" else arithmetic


def as_scalar(name: str, argument: str, value: Any, device: torch.device) -> Tensor:
    """cv2.Scalar: up to four numbers, padded with zeros, (4,); channel c takes c mod 4."""
    value = checks.as_float(name, argument, value, device, torch.float64)
    checks.check_device(name, argument, value, device, "`src`")
    scalar = torch.atleast_1d(value)
    if scalar.ndim != 1 or not 1 <= len(scalar) <= 4:
        got = f"shape {checks.shape_of(value)}"
        checks.fail(name, argument, "a number or up to four", got)
    return torch.cat((scalar, scalar.new_zeros(4 - len(scalar))))


def resolved(arithmetic: Any) -> Any:
    """The arithmetic that "auto" means, on which plans depend."""
    is_auto = isinstance(arithmetic, str) and arithmetic == "auto"
    return installed_arithmetic() if is_auto else arithmetic
