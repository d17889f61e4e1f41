"""The settings in which OpenCV's pixels are guaranteed bit for bit, and why others are not.

docs/opencv-versions.md describes the same, and also calls that OpenCV rejects or never finishes.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple, cast

from warpkit.core.environment import installed
from warpkit.engine.arithmetic.processor import X86_64, machine
from warpkit.types import Arithmetic, FaceResizeArithmetic

VERSIONS = {"4.14": "opencv4", "5.0": "opencv5"}
"""The versions of OpenCV that are reproduced, and their arithmetics."""

PACKAGES = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)


class Guarantee(NamedTuple):
    """Which pixels of a call are OpenCV's own, bit for bit."""

    where: str
    """ "everywhere"; "interior", if all neighbours are inside the image; or "nowhere"."""
    reason: str = ""
    """Why it is not everywhere."""


def arithmetic_of(version: str) -> Arithmetic:
    """The arithmetic that is nearest to a version of OpenCV."""
    return "opencv4" if int(version.split(".")[0]) <= 4 else "opencv5"


@cache
def installed_arithmetic() -> Arithmetic:
    """The arithmetic of the installed OpenCV by its package's version, without importing it."""
    versions = filter(None, map(installed, PACKAGES))
    return arithmetic_of(next(versions, "5"))


def of_another_processor(kind: str | None = None, library: str = "OpenCV") -> str:
    """Why nothing is guaranteed for a library's build for another processor; None: for this
    machine's."""
    kind = machine() if kind is None else kind
    if kind in X86_64:
        return ""
    return f"the pixels are those of {library} on x86-64; its {kind} build has others"


def guaranteed(
    version: str,
    *,
    dtype: str,
    channels: int,
    interpolation: str,
    border: str,
    processor: str | None = None,
) -> Guarantee:
    """The guarantee for a call in the arithmetic of OpenCV's `version`.

    processor: the kind for which this OpenCV was built, such as "x86_64"; None: this machine's, as
    for the installed one. warpkit's own pixels are equal on all processors.

    >>> call = {"dtype": "uint8", "channels": 3, "interpolation": "bilinear", "border": "wrap"}
    >>> guaranteed("5.0.0", processor="x86_64", **call).where
    'everywhere'
    >>> guaranteed("5.0.0", processor="aarch64", **call).where
    'nowhere'
    """
    if not version.startswith(tuple(f"{prefix}." for prefix in VERSIONS)):
        return Guarantee("nowhere", f"OpenCV {version} is none of {', '.join(VERSIONS)}")
    if reason := of_another_processor(processor):
        return Guarantee("nowhere", reason)
    if version.startswith("4."):
        return Guarantee("everywhere")
    vector = dtype in ("uint8", "uint16", "float32") and channels != 2
    if vector and interpolation == "bicubic" and border == "transparent":
        return Guarantee(
            "interior", "bicubic and transparent: undefined in OpenCV 5.0 at the border"
        )
    return Guarantee("everywhere")


INEXACT_IPP = (
    "fx and fy do not make the size, and IPP's warp computes it: in 16-bit and float bilinear and "
    "bicubic, and uint8 bicubic, up to 0.3 % of integers are off by 1, and last bits of floats"
)
OTHER_PROCESSORS = (
    "IPP chooses its code by the processor, and what it has for AVX-512 and AVX2 is reproduced; "
    "with SSE alone last bits of floats differ, and 16-bit integers by 1"
)


def guaranteed_resize(
    arithmetic: str,
    *,
    interpolation: str,
    channels: int,
    dtype: str,
    fits: bool = True,
    processor: str | None = None,
) -> Guarantee:
    """The guarantee for `resize` in an arithmetic, on a processor with AVX-512 or AVX2.

    fits: the size is given, or equals the image's times fx and fy, to 1e-10. processor: as in
    `guaranteed`; Pillow's bytes are equal on all of them, but not its single floats and 16 bits.
    All calls that cv2.resize, Pillow and F.interpolate accept are guaranteed, except those that
    IPP's warp computes; see also OTHER_PROCESSORS. Torch's bytes are those with AVX2, except in
    results that are one pixel wide. Some calls have no counterpart: cv2.resize rejects "area" with
    more than 4 channels and a scale that is no whole number, and "nearest_exact" of OpenCV 4 reads
    outside images with a side of 32,768 pixels or more.

    >>> call = {"interpolation": "bicubic", "channels": 3, "dtype": "uint8"}
    >>> guaranteed_resize("opencv5", processor="x86_64", **call).where
    'everywhere'
    """
    if arithmetic == "torchvision":
        others = "torch resizes bytes as floats where it has no AVX2"
        x86 = dtype != "uint8" or not of_another_processor(processor)
        return Guarantee("everywhere") if x86 else Guarantee("nowhere", others)
    library = "Pillow" if arithmetic == "pillow" else "OpenCV"
    reason = of_another_processor(processor, library)
    if reason and not (library == "Pillow" and dtype == "uint8"):
        return Guarantee("nowhere", reason)
    asked = channels in (1, 3, 4) and (
        (interpolation in ("bilinear", "bilinear_exact") and dtype != "uint8")
        or (interpolation == "bicubic" and dtype != "float64")
    )
    if arithmetic.endswith("_ipp") and asked and not fits:
        return Guarantee("nowhere", INEXACT_IPP)
    return Guarantee("everywhere")


@cache
def installed_resize_arithmetic() -> FaceResizeArithmetic:
    """As `installed_arithmetic`, with IPP if OpenCV's wheel includes it and switches it on."""
    x86 = machine() in (*X86_64, "i686")
    off = os.environ.get("OPENCV_IPP", "").lower() == "disabled"
    return cast(FaceResizeArithmetic, installed_arithmetic() + "_ipp" * (x86 and not off))
