"""The options of warps, validated, and the plans of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from warpkit.core import checks
from warpkit.core.mistakes import looks_channels_last
from warpkit.engine.backends import Backend, named_backend, select_backend
from warpkit.engine.binding.plan import Plan
from warpkit.engine.definitions.antialias import check_antialias
from warpkit.engine.definitions.rule_names import check_nearest
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.splines import is_spline

IMAGE_GRADIENTS = ("exact", "straight_through")


class WarpOptions(NamedTuple):
    """The arguments of a warp that are not tensors, validated once."""

    function: str
    """The public one, for errors."""
    rule: SamplingRule
    size: tuple[int, int]
    inverse: bool
    antialias: bool | int
    image_gradient: str
    backend: Backend


def validated_options(
    name: str,
    image: Tensor,
    rule: SamplingRule,
    size: Sequence[int] | None,
    inverse: bool,
    antialias: bool | int,
    image_gradient: str,
    backend: str,
) -> WarpOptions:
    """The validated options of a warp of `image` (..., C, H, W), and its backend."""
    chosen = backend_for(name, backend, image, rule)
    check_options(name, rule, inverse, antialias, image_gradient)
    checks.check_labels(name, "antialias", antialias, image.dtype, "False", antialias is False)
    if image_gradient != "exact" and not image.is_floating_point():
        wanted = f"'exact' for an image of {image.dtype}, which carries no gradient"
        checks.fail(name, "image_gradient", wanted, repr(image_gradient))
    height, width = image.shape[-2:] if size is None else checks.check_size(name, "size", size)
    return WarpOptions(name, rule, (height, width), inverse, antialias, image_gradient, chosen)


def backend_for(name: str, backend: object, image: Tensor, rule: SamplingRule) -> Backend:
    check_nearest(name, rule, image)
    return select_backend(name, named_backend(name, backend), image, rule)


def check_options(
    name: str, rule: SamplingRule, inverse: object, antialias: object, image_gradient: object
) -> None:
    """Check options that do not depend on the image; layers do so when they are made."""
    checks.check_bool(name, "inverse", inverse)
    check_antialias(name, antialias)
    if antialias is not False and rule.arithmetic != "exact":
        wanted = f"False with arithmetic={rule.arithmetic!r}"
        checks.fail(name, "antialias", wanted, repr(antialias))
    checks.check_name(name, "image_gradient", image_gradient, IMAGE_GRADIENTS)
    if image_gradient != "exact" and is_spline(rule.interpolation):
        wanted = f"'exact' with interpolation={rule.interpolation!r}, whose filter reads all pixels"
        checks.fail(name, "image_gradient", wanted, repr(image_gradient))


def kept_plan(
    backend: Backend,
    image: Tensor,
    mapping: Any,
    size: Sequence[int],
    fill: Tensor,
    rule: SamplingRule,
    **options: bool,
) -> Plan | None:
    """The backend's function for calls like this one, if they need no other warnings.

    Only for a mapping that reaches the kernel as the caller passed it: of anything else, such as
    lists, arrays and integers, a plan would get the original and not what was made of it.

    image (..., C, H, W); mapping (..., 2 or 3, 3) or (..., h, w, 2); fill broadcasts to the result.
    """
    if not hasattr(backend, "prepare") or looks_channels_last(image.shape):
        return None
    if not isinstance(mapping, Tensor) or not mapping.is_floating_point():
        return None
    if image.dtype in checks.LABELS:
        return None
    labels = not image.is_floating_point() and rule.interpolation == "nearest"
    slopes = image.is_floating_point() and rule.interpolation != "nearest"
    if mapping.requires_grad and not (slopes or labels):
        return None
    return backend.prepare(image, mapping, size, fill, rule, **options)  # pyright: ignore
