"""The resizes of each arithmetic: its interpolations, types, antialias, and errors for others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.choices import (
    ALIGNED,
    OPENCV_FILTERS,
    PILLOW_FILTERS,
    RESIZE_ARITHMETICS,
    SCIPY_FILTERS,
    SPLINE_FILTERS,
    TORCH_FILTERS,
    Filter,
    ResizeArithmetic,
)
from warpkit.core import checks
from warpkit.core.names import suggest
from warpkit.core.tracing import has_tangents, in_transform, wants_gradient
from warpkit.engine.arithmetic.torch_resize import check_floats
from warpkit.engine.definitions.resize import AREA_FILTERS, POINT_FILTERS, ResizeRule

OPENCV: tuple[ResizeArithmetic, ...] = ("opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp")
"""cv2.resize's pixels; _ipp: with Intel's library, which the x86 wheels switch on."""

EXACT_FILTERS: tuple[Filter, ...] = (
    *POINT_FILTERS,
    *(name for name in AREA_FILTERS if name not in POINT_FILTERS),
    *SPLINE_FILTERS,
)

ZOOMS: tuple[ResizeArithmetic, ...] = ("scipy", "skimage")
"""scipy.ndimage.zoom's numbers, and skimage.transform.resize's, which calls it."""

ZOOM_BORDERS = ("reflect_101", "reflect", "wrap", "replicate")

OPENCV_TYPES = (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64)
PILLOW_TYPES = (torch.uint8, torch.uint16, torch.float32)
"""Pillow's modes L, I;16 and F."""
TORCH_TYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)

EXACT_LABELS = (torch.int8, torch.int32)
"""The labels that cv2.INTER_LINEAR_EXACT computes in integers."""

NUMBERED = {"exact": ("cv2", "PIL"), "pillow": ("PIL",), "torchvision": ("PIL",)}
"""The libraries whose numbers of filters an arithmetic's user may give; cv2's for OpenCV's."""

MOVING = ("nearest", "nearest_exact")
"""Interpolations that only move pixels."""


def filters_of(arithmetic: str) -> tuple[Filter, ...]:
    """The interpolations that an arithmetic has."""
    others = {"exact": EXACT_FILTERS, "pillow": PILLOW_FILTERS, "torchvision": TORCH_FILTERS}
    others |= dict.fromkeys(ZOOMS, SCIPY_FILTERS)
    return others.get(arithmetic, OPENCV_FILTERS)


def parse_rule(
    name: str,
    interpolation: object,
    antialias: object,
    arithmetic: object,
    border: object = None,
    aligned: object = None,
    arithmetics: Sequence[ResizeArithmetic] = RESIZE_ARITHMETICS,
) -> ResizeRule:
    """The rule, with all names checked, and what is None decided."""
    arithmetic = checks.check_name(name, "arithmetic", arithmetic, arithmetics)
    filters = filters_of(arithmetic)
    if not isinstance(interpolation, str) or interpolation not in filters:
        wanted = "one of " + ", ".join(map(repr, filters)) + f" with arithmetic={arithmetic!r}"
        numbers = NUMBERED.get(arithmetic, ("cv2",))
        hint = suggest("resize interpolation", interpolation, numbers=numbers)
        hint = hint if any(repr(filter_name) in hint for filter_name in filters) else ""
        checks.fail(name, "interpolation", wanted, f"{interpolation!r:.60}{hint}")
    if antialias is not None:
        checks.check_bool(name, "antialias", antialias)
    antialias = _antialias(name, interpolation, antialias, arithmetic)
    if arithmetic not in ZOOMS:
        for argument, value in (("border", border), ("aligned", aligned)):
            if value is not None:
                wanted = f"None with arithmetic={arithmetic!r}: 'scipy' and 'skimage' have it"
                checks.fail(name, argument, wanted, f"{value!r:.60}")
        return ResizeRule(interpolation, antialias, arithmetic)
    if border is None:
        border = "reflect_101"
    if aligned is None:
        aligned = "corners" if arithmetic == "scipy" else "centers"
    checks.check_name(name, "aligned", aligned, ALIGNED)
    if arithmetic == "skimage" and aligned != "centers":
        wanted = "None or 'centers' with arithmetic='skimage', which has no other positions"
        checks.fail(name, "aligned", wanted, repr(aligned))
    border = checks.check_name(name, "border", border, ZOOM_BORDERS)
    return ResizeRule(interpolation, antialias, arithmetic, border, str(aligned))


def _antialias(name: str, interpolation: str, wanted: object, arithmetic: str) -> bool:
    """The meaning of None, and an error if True or False is impossible."""
    if arithmetic in OPENCV:
        if wanted:
            choices = f"None or False with arithmetic={arithmetic!r}: cv2.resize has no antialias "
            checks.fail(name, "antialias", choices + "(its 'area' takes means by itself)", "True")
        return False
    if arithmetic == "scipy":
        if wanted:
            choices = "None or False with arithmetic='scipy': zoom has no antialias ('skimage' has)"
            checks.fail(name, "antialias", choices, "True")
        return False
    if arithmetic == "skimage" and interpolation != "nearest":
        return wanted is not False
    if interpolation in _PLAIN[arithmetic]:
        if wanted:
            choices = (
                f"None or False with interpolation={interpolation!r}, which has no antialias: "
            )
            filters = _FILTERED[arithmetic]
            checks.fail(
                name, "antialias", choices + ", ".join(map(repr, filters)) + " have", "True"
            )
        return False
    if wanted is False and (arithmetic == "pillow" or interpolation not in POINT_FILTERS):
        choices = (
            f"None or True with interpolation={interpolation!r} and arithmetic={arithmetic!r}, "
        )
        checks.fail(name, "antialias", choices + "which has no other way", "False")
    return wanted is not False


_PLAIN = {
    "exact": ("nearest", "lanczos4", *SPLINE_FILTERS),
    "skimage": ("nearest",),
    "pillow": ("nearest",),
    "torchvision": ("nearest", "nearest_exact", "area"),
}
"""Interpolations without antialias; torch's area is always a mean."""

_FILTERED = {
    "exact": AREA_FILTERS,
    "skimage": SCIPY_FILTERS[1:],
    "pillow": PILLOW_FILTERS[1:],
    "torchvision": ("bilinear", "bicubic", "lanczos"),
}


def check_image_type(name: str, image: Tensor, rule: ResizeRule) -> None:
    """The library must support the image's type, and the installed torch the filter for floats."""
    value, moving = rule.interpolation, rule.interpolation in MOVING
    if rule.arithmetic in OPENCV and value == "bilinear_exact" and image.dtype in EXACT_LABELS:
        return
    one = rule.arithmetic in ("exact", "pillow", *ZOOMS)
    wanted = " or ".join(map(repr, MOVING[: 1 if one else 2]))
    checks.check_labels(name, "interpolation", value, image.dtype, wanted, moving)
    if rule.arithmetic in ("exact", *ZOOMS) or image.dtype in checks.LABELS:
        return
    others = {"pillow": ("Pillow", PILLOW_TYPES), "torchvision": ("F.interpolate", TORCH_TYPES)}
    library, types = others.get(rule.arithmetic, ("cv2.resize", OPENCV_TYPES))
    if image.dtype not in types and not (library == "F.interpolate" and moving):
        names = checks.names_of(types)
        wanted = f"of one of the types {names} with arithmetic={rule.arithmetic!r}: "
        checks.fail(name, "image", f"{wanted}{library} has no other", image.dtype, TypeError)
    if rule.arithmetic == "torchvision":
        check_floats(name, image, rule)


def has_own_gradient(rule: ResizeRule) -> bool:
    """Whether the values are differentiable themselves: moved pixels, and all of F.interpolate,
    SciPy's zoom and scikit-image's resize.

    The gradient of every other arithmetic is that of "exact".
    """
    return rule.arithmetic in ("torchvision", *ZOOMS) or rule.interpolation in MOVING


def exact_rule(rule: ResizeRule) -> ResizeRule:
    """The rule of "exact" at the same arguments."""
    interpolation = rule.interpolation.removesuffix("_exact")
    return ResizeRule(interpolation, rule.antialias or interpolation == "area")


def box_has_gradient(box: Tensor, rule: ResizeRule) -> bool:
    """Whether the box needs a gradient that exists."""
    if rule.interpolation == "nearest":
        return False
    return wants_gradient(box) or has_tangents() or in_transform()
