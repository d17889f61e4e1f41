"""Validates the fill, the value of missing taps: the border value or the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.shapes import broadcast_shapes
from warpkit.core.tracing import is_transformed
from warpkit.engine.definitions.labels import label_fill, saturated
from warpkit.engine.definitions.reference import compute_dtype, convert
from warpkit.engine.definitions.rounding import to_int32
from warpkit.engine.definitions.rules import SamplingRule, borders_of, is_pair

LARGE = 1e38
"""Numbers of at least this magnitude are infinite in float32, and torch rejects them as fill
values."""


def checked_fill(
    name: str,
    image: Tensor,
    shape: Sequence[int],
    rule: SamplingRule,
    value: Any,
    background: Tensor | None,
) -> Tensor:
    """The value of missing taps, in the type of the computation; for labels, bits.

    OpenCV's arithmetics copy a background's numbers, so for them it stays unchanged.

    image (*I, C, H, W); background broadcasts to the result's `shape`, (*batch, C, h, w).
    """
    value = border_value(name, image, shape, rule, value)
    if rule.border != "transparent":
        if background is not None:
            border = borders_of(rule.border) if is_pair(rule.border) else rule.border
            checks.fail(name, "background", f"None with border={border!r}", "a tensor")
        return value
    wanted = f"a tensor of shape {tuple(shape)} (or broadcasting to it) with border='transparent'"
    if not isinstance(background, Tensor):
        error = ValueError if background is None else TypeError
        checks.fail(name, "background", wanted, f"{background!r:.60}", error)
    checks.check_device(name, "background", background, image.device)
    same = background.ndim >= 3 and tuple(background.shape[-3:]) == tuple(shape[-3:])
    if not same or not _broadcasts(background.shape[:-3], shape[:-3]):
        checks.fail(name, "background", wanted, checks.shape_of(background))
    of_labels = image.dtype in checks.LABELS
    if background.dtype not in checks.FLOATS + checks.INTEGERS + checks.LABELS * of_labels:
        checks.fail(name, "background", "of a type that images have", background.dtype, TypeError)
    checks.check_dense(name, "background", background)
    if of_labels:
        return saturated(background, image.dtype)
    if rule.arithmetic != "exact" and background.dtype == image.dtype:
        return background  # converting bytes to float64 and back would take as long as five warps
    return background.to(compute_dtype(image.dtype))


def opencv_sum_start(
    name: str, image: Tensor, shape: Sequence[int], rule: SamplingRule, value: Any
) -> dict[str, Tensor]:
    """The additional value for OpenCV's arithmetics: the border's value, even with a background."""
    if rule.arithmetic == "exact" or rule.border != "transparent":
        return {}
    return {"border_value": border_value(name, image, shape, rule, value)}


def border_value(
    name: str, image: Tensor, shape: Sequence[int], rule: SamplingRule, value: Any
) -> Tensor:
    """The border's value in the type of the computation: (), or (..., C or 1, 1, 1)."""
    if image.dtype in checks.LABELS:
        value = _label(name, image, shape, rule, value)
        return value[..., None, None] if value.ndim else value
    real = compute_dtype(image.dtype)
    if type(value) in (int, float) and abs(value) < LARGE:  # nearly always; saves 3 us
        value = torch.full((), float(value), dtype=real, device=image.device)
    else:
        # Python numbers become float64, so that a float64 image gets 0.1, not 0.1 in float32
        value = checks.as_float(name, "border_value", value, image.device, torch.float64)
        value = _fitting(name, image, shape, value).to(real)
    if not image.is_floating_point() and not _are_representable(image.dtype, value):
        if rule.arithmetic != "exact":
            value = to_int32(value).to(value.dtype)  # beyond int32, OpenCV uses the lowest number
        value = convert(value, image.dtype).to(value.dtype)
    return value[..., None, None] if value.ndim else value


def _label(
    name: str, image: Tensor, shape: Sequence[int], rule: SamplingRule, value: Any
) -> Tensor:
    """The border's value for labels, as bits: integers are exact, whatever their size."""
    bits = label_fill(value, image.dtype, image.device, rule.arithmetic)
    if bits is not None:
        return _fitting(name, image, shape, bits)
    value = checks.as_exact(name, "border_value", value, image.device)
    if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex():
        value = checks.as_float(name, "border_value", value, image.device, torch.float64)
    checks.check_dense(name, "border_value", value)
    return saturated(_fitting(name, image, shape, value), image.dtype, rule.arithmetic)


def _fitting(name: str, image: Tensor, shape: Sequence[int], value: Tensor) -> Tensor:
    """The border's value, checked: on the image's device, with an allowed shape.

    image (*I, C, H, W); value (), (C,) or (B, C).
    """
    checks.check_device(name, "border_value", value, image.device)
    channels, batch = shape[-3], tuple(shape[:-3])
    fits = value.ndim == 0 or (
        value.shape[-1] in (1, channels) and _broadcasts(value.shape[:-1], batch)
    )
    if not fits:
        wanted = f"a number, of shape ({channels},) or (*batch, {channels}) for the batch {batch}"
        checks.fail(name, "border_value", wanted, f"shape {checks.shape_of(value)}")
    return value


def _are_representable(dtype: torch.dtype, value: Tensor) -> bool:
    """Whether a few numbers are integers within the range of an integer type.

    Rounding and saturating them in a dozen operations would take as long as warping a small image.
    """
    readable = value.device.type == "cpu" and not torch.compiler.is_compiling()
    if not readable or value.numel() > 16 or is_transformed(value):
        return False
    limits = torch.iinfo(dtype)
    numbers = value.flatten().tolist()
    return all(limits.min <= number <= limits.max and number % 1 == 0 for number in numbers)


def _broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether `shape` broadcasts to `target` without making it larger."""
    if not shape:
        return True
    try:
        return tuple(broadcast_shapes(tuple(shape), tuple(target))) == tuple(target)
    except RuntimeError:
        return False
