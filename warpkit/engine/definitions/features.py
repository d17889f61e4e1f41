"""Validates features: pictures of any number of channels that are compared with others."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import warn_if_channels_last
from warpkit.engine.definitions.rule_names import parse_rule

PICTURE, VIEWS = "(..., C, H, W)", "(..., V, C, H, W)"
"""The shapes of features."""


def as_features(name: str, argument: str, value: Any, shape: str, empty: bool = False) -> Tensor:
    """Features of a floating type and of a shape, `PICTURE` or `VIEWS`.

    empty: whether they may be without pixels.
    """
    if not isinstance(value, Tensor):
        checks.fail(name, argument, f"a tensor of shape {shape}", checks.kind_of(value), TypeError)
    checks.check_no_dtensor(name, argument, value)
    if value.dtype not in checks.FLOATS:
        wanted = f"of one of the types {checks.names_of(checks.FLOATS)}"
        checks.fail(name, argument, wanted, value.dtype, TypeError)
    checks.check_dense(name, argument, value)
    core = shape.count(",")
    if value.ndim < core:
        checks.fail(name, argument, f"of shape {shape}", checks.shape_of(value))
    last = value.shape[-core:]
    if 0 in (last[:-2] if empty else last):
        parts = "a channel" if empty else "a channel and a pixel"
        parts = f"a view, {parts}" if shape == VIEWS else parts
        checks.fail(name, argument, f"of shape {shape} with at least {parts}", tuple(value.shape))
    warn_if_channels_last(name, argument, value.shape)
    return value


def check_alike(name: str, argument: str, value: Tensor, owner: str, other: Tensor) -> None:
    """Two tensors (..., C, H, W) must have one device, type and number of channels."""
    checks.check_device(name, argument, value, other.device, f"`{owner}`")
    if value.dtype != other.dtype:
        wanted = f"of the type of `{owner}`, {other.dtype}"
        checks.fail(name, argument, wanted, value.dtype, TypeError)
    if value.shape[-3] != other.shape[-3]:
        wanted = f"of as many channels as `{owner}`, {other.shape[-3]}"
        checks.fail(name, argument, wanted, checks.shape_of(value))


def named_border(name: str, border: object) -> str:
    """The border of a rule, without a background."""
    if border == "transparent":
        wanted = "a border other than 'transparent': features have no background"
        checks.fail(name, "border", wanted, repr(border))
    return parse_rule(name, "bilinear", border, "exact").border
