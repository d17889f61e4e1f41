"""Where OpenCV's pixels are promised bit for bit, and why not elsewhere: the one list.

docs/opencv-versions.md says the same in words, and more: calls that OpenCV refuses or never ends.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from warpkit.core.environment import installed

VERSIONS = {"4.14": "opencv4", "5.0": "opencv5"}
"""The versions of OpenCV that are reproduced, and the arithmetic that does it."""

PACKAGES = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)


class Guarantee(NamedTuple):
    """Which pixels of a call are OpenCV's own, bit for bit."""

    where: str
    """ "everywhere"; "interior", where no neighbour lies off the image; or "nowhere"."""
    reason: str = ""
    """Why not everywhere."""


def arithmetic_of(version: str) -> str:
    """The arithmetic that is nearest to a version of OpenCV."""
    return "opencv4" if int(version.split(".")[0]) <= 4 else "opencv5"


@cache
def installed_arithmetic() -> str:
    """The arithmetic of the installed OpenCV by its package's version, without importing it."""
    versions = filter(None, map(installed, PACKAGES))
    return arithmetic_of(next(versions, "5"))


def guaranteed(
    version: str,
    *,
    dtype: str,
    channels: int,
    interpolation: str,
    border: str,
) -> Guarantee:
    """What is promised of a call under the arithmetic of OpenCV's `version`.

    >>> call = {"dtype": "uint8", "channels": 3, "interpolation": "bilinear", "border": "wrap"}
    >>> guaranteed("5.0.0", **call).where
    'everywhere'
    """
    if not version.startswith(tuple(f"{known}." for known in VERSIONS)):
        return Guarantee("nowhere", f"OpenCV {version} is none of {', '.join(VERSIONS)}")
    if version.startswith("4."):
        return Guarantee("everywhere")
    vector = dtype in ("uint8", "uint16", "float32") and channels != 2
    if vector and interpolation == "bicubic" and border == "transparent":
        return Guarantee(
            "interior", "bicubic and transparent: undefined in OpenCV 5.0 at the border"
        )
    return Guarantee("everywhere")
