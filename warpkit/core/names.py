"""Suggests warpkit's name for a value that another library calls differently."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from numbers import Integral
from typing import NamedTuple


class Names(NamedTuple):
    """Other libraries' names for the values of an argument."""

    prefix: str
    """Of cv2's constants, in small letters."""
    numbers: tuple[str, ...]
    """cv2's constants by their number."""
    here: dict[str, str]
    """warpkit's value by the other name in lower case; also its own names."""


SPLINES = ("cubic_spline", "bspline", "b_spline", "spline", "cspline")
QUINTIC = ("quintic", "quintic_spline")
VALUES = {
    "interpolation": Names(
        "inter_",
        ("nearest", "linear", "cubic", "area", "lanczos4", "linear_exact", "nearest_exact"),
        {
            **{name: f"'{name}'" for name in ("nearest", "bilinear", "bicubic", "lanczos4")},
            **dict.fromkeys(("linear", "linear_exact"), "'bilinear'"),
            "cubic": "'bicubic'",
            "lanczos": "'lanczos4'",
            "nearest_exact": "'nearest'",
            **dict.fromkeys(("area", "box"), "'bilinear' and antialias=True"),
            **dict.fromkeys(SPLINES, "'spline3'"),
            **dict.fromkeys(QUINTIC, "'spline5'"),
        },
    ),
    "resize interpolation": Names(
        "inter_",
        ("nearest", "linear", "cubic", "area", "lanczos4", "linear_exact", "nearest_exact"),
        {
            **{name: f"'{name}'" for name in ("nearest", "bilinear", "hamming", "bicubic")},
            **{name: f"'{name}'" for name in ("area", "box", "lanczos")},
            "linear": "'bilinear'",
            "cubic": "'bicubic'",
            "lanczos4": "'lanczos4'",
            "linear_exact": "'bilinear_exact' with OpenCV's arithmetics",
            "nearest_exact": "'nearest_exact' with OpenCV's arithmetics",
            **dict.fromkeys(("antialias", "lanczos3"), "'lanczos'"),
            **dict.fromkeys(SPLINES, "'spline3'"),
            **dict.fromkeys(QUINTIC, "'spline5'"),
        },
    ),
    "border": Names(
        "border_",
        ("constant", "replicate", "reflect", "wrap", "reflect_101", "transparent"),
        {
            **{name: f"'{name}'" for name in ("constant", "replicate", "reflect", "wrap")},
            **{name: f"'{name}'" for name in ("transparent", "zeros", "border")},
            **dict.fromkeys(("zero", "zero_padding"), "'constant'"),
            **dict.fromkeys(("edge", "nearest", "clamp"), "'replicate'"),
            **dict.fromkeys(("reflect_101", "reflect101", "default", "mirror"), "'reflect_101'"),
            **dict.fromkeys(("symmetric", "grid_mirror"), "'reflect'"),
            "grid_constant": "'constant'",
            **dict.fromkeys(("circular", "periodic", "grid_wrap"), "'wrap'"),
        },
    ),
}
INVERSE = 16
"""cv2.WARP_INVERSE_MAP, which is added to the interpolation's number."""
PILLOW = ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")
"""Pillow's filters by their number; torchvision has the same numbers."""


def suggest(argument: str, value: object, *, numbers: Collection[str] = ("cv2",)) -> str:
    """The suggestion for `value`, in brackets; empty for unknown names.

    numbers: the libraries whose constant a whole number may be, "cv2" and "PIL".
    """
    names = VALUES.get(argument)
    if names is None:
        return ""
    if isinstance(value, Integral) and not isinstance(value, bool | Enum):
        return _of_number(names, argument, int(value), numbers)
    if isinstance(value, Enum):  # torchvision's and Pillow's
        value = value.name
    here = _here(names, value) if isinstance(value, str) else None
    return f" (write {here})" if here else ""


def _here(names: Names, value: str) -> str | None:
    """warpkit's value for another library's name."""
    name = value.lower().replace("-", "_").replace(" ", "_").removeprefix(names.prefix)
    return names.here.get(name)


def _of_number(names: Names, argument: str, number: int, numbers: Collection[str]) -> str:
    """The suggestions for a number of these libraries; one if they mean the same."""
    meanings: dict[str, str] = {}
    if "cv2" in numbers:
        more, own = "", number
        if argument == "interpolation" and INVERSE <= number < 2 * INVERSE:
            own, more = number - INVERSE, " and inverse=True"
        if 0 <= own < len(names.numbers):
            name = names.numbers[own]
            meanings[f"{_here(names, name)}{more}"] = f"cv2.{(names.prefix + name).upper()}"
    if "PIL" in numbers and 0 <= number < len(PILLOW) and (here := _here(names, PILLOW[number])):
        meanings.setdefault(here, f"PIL.Image.{PILLOW[number]}")
    first, *others = [f"{theirs}: write {here}" for here, theirs in meanings.items()] or [""]
    suggestions = ", ".join([first, *(text.replace("write ", "") for text in others)])
    return f" ({suggestions})" if suggestions else ""


INTERPOLATION, BORDER, FILL = ("`interpolation`", "`border`", "`border_value`")
KEYWORDS = {
    **dict.fromkeys(("mode", "resample", "resampling", "interp", "flags", "order"), INTERPOLATION),
    **dict.fromkeys(("padding_mode", "border_mode", "borderMode"), BORDER),
    **dict.fromkeys(("fill", "fill_value", "padding_value", "borderValue", "cval"), FILL),
    **dict.fromkeys(("dsize", "output_size", "output_shape"), "`size`, (H, W)"),
    **dict.fromkeys(("M", "homography", "transform"), "`matrix`"),
    "theta": "`matrix`, in pixels: see from_theta",
    "grid": "`points`, (x, y) in pixels",
    **dict.fromkeys(("src", "img", "input", "images"), "`image`"),
}
"""warpkit's keyword, between the first pair of ` `, by the other name, with a note."""


def suggest_keyword(keyword: str, parameters: Collection[str]) -> str | None:
    """What a keyword must be of a function that has these `parameters`; None if it is unknown."""
    if keyword == "align_corners":
        return "left out: there is none in pixels; to_theta and from_theta take it"
    here = KEYWORDS.get(keyword, "")
    if here == "`image`" and "images" in parameters:
        here = "`images`"
    return f"called {here}" if here and here.split("`")[1] in parameters else None
