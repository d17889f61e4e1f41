"""torchvision's geometric transforms that cannot be fused: a warning names the equivalent."""

from __future__ import annotations

from typing import Any

from torchvision import transforms as v1
from torchvision.transforms import v2

from warpkit.core.caller_warnings import warn
from warpkit.transforms.crops import CROPS
from warpkit.transforms.runs import GEOMETRIC

TWINS = tuple(kind.__name__ for kind in GEOMETRIC)
ALONE = (
    "FiveCrop",
    "RandomIoUCrop",
    "RandomResize",
    "RandomShortestSize",
    "RandomZoomOut",
    "ScaleJitter",
    "TenCrop",
)
"""Those without an equivalent in `warpkit.transforms`."""


def _advice() -> dict[type, str]:
    """torchvision's classes, of both generations, and their replacements."""
    advice: dict[type, str] = {}
    for module in (v1, v2):
        for name in TWINS:
            text = f"; warpkit.transforms.{name} takes the same arguments and is"
            advice[getattr(module, name)] = text
        for name in ALONE:
            if hasattr(module, name):
                advice[getattr(module, name)] = ": the transforms before and after it are two runs"
    for kind in CROPS:
        old = getattr(v1, kind.__name__)
        advice[old] = f"; torchvision.transforms.v2.{kind.__name__} takes the same arguments and is"
    return advice


ADVICE = _advice()


def warn_if_not_fusible(place: int, transform: Any) -> None:
    """Warn about a geometric torchvision transform that ends a run, probably by accident."""
    kind = next((kind for kind in type(transform).__mro__ if kind in ADVICE), None)
    if kind is None or isinstance(transform, GEOMETRIC):
        return
    method = "transform" if issubclass(kind, v2.Transform) else "forward"
    if getattr(type(transform), method) is getattr(kind, method):  # else it does something else
        text = f"Fused: transforms[{place}] is torchvision's {kind.__name__}, which is not fused"
        warn(text + ADVICE[kind])
