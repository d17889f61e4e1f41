"""OpenCV calls recorded in data/golden, and how to repeat them with warpkit or cv2.

torch is not imported at the top, since scripts/record golden runs where only OpenCV is installed.
Inputs come from a counter, so that they do not depend on any library's random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tests.support import ROOT

GOLDEN = ROOT / "data" / "golden"

INTERPOLATIONS = {"nearest": 0, "bilinear": 1, "bicubic": 2, "lanczos4": 4}
BORDERS = {
    "constant": 0,
    "replicate": 1,
    "reflect": 2,
    "wrap": 3,
    "reflect_101": 4,
    "transparent": 5,
}
DTYPES = ("uint8", "uint16", "int16", "float32", "float64")
VALUES = ((0.0, 0.0, 0.0, 0.0), (10.0, 200.6, 30.0, 77.0))


@dataclass(frozen=True)
class Case:
    """One call."""

    function: str
    dtype: str
    channels: int
    size: tuple[int, int]
    out: tuple[int, int]
    interpolation: str
    border: str
    value: tuple[float, float, float, float] = VALUES[0]
    matrix: tuple[tuple[float, ...], ...] = ()
    inverse: bool = False
    maps: str = "planes"
    seed: int = 0


UNDEFINED = "bicubic and transparent of a vectorised type: not the same at every call"
"""The one exception of OpenCV 5.0: written here once more, so that the package's list cannot grow
without a test that notices."""


def corner(case: Case, version: str) -> str | None:
    """The reason why OpenCV's result is not compared for a case, if there is one."""
    if not version.startswith(("4.14.", "5.0.")):
        return "another version than those that are reproduced"
    vectorised = case.dtype in ("uint8", "uint16", "float32") and case.channels in (1, 3, 4)
    wide = (case.interpolation, case.border) == ("bicubic", "transparent")
    return UNDEFINED if version.startswith("5.0") and vectorised and wide else None


def hangs(case: Case) -> bool:
    """Whether OpenCV 5.0.0 would loop for ever on a case."""
    one = min(case.size) == 1
    return one and case.interpolation == "bicubic" and case.border == "reflect_101"


def noise(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """White noise over the whole range of integers, over [0, 255) for floats (splitmix64)."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) + np.uint64(seed << 32)
    z = z * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))).reshape(shape)
    if np.issubdtype(dtype, np.integer):
        return z.astype(f"uint{8 * np.dtype(dtype).itemsize}").view(dtype)
    return ((z >> np.uint64(11)) * 2.0**-53 * 255).astype(dtype)


def inputs(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The image (H, W, C), and the destination (h, w, C) for a transparent border."""
    image = noise((*case.size, case.channels), case.dtype, case.seed)
    below = noise((*case.out, case.channels), case.dtype, case.seed + 1)
    if case.interpolation == "bicubic" and case.dtype == "float64":
        # as recorded: integers, which OpenCV 5.0.0 cannot truncate near the border
        image, below = np.floor(image), np.floor(below)
    return image, below


def field(case: Case) -> np.ndarray:
    """The points (h, w, 2) of a remap, float32; multiples of 1/32 for a fixed-point map."""
    x, y = np.meshgrid(np.arange(case.out[1]), np.arange(case.out[0]))
    stir = noise((2, *case.out), "float64", case.seed + 2) / 85
    points = np.stack([x * 0.9 + y * 0.1 - 1 + stir[0], y * 0.9 - x * 0.1 + 3 + stir[1]], -1)
    if case.maps == "fixed":
        points = np.floor(points * 32) / 32
    return points.astype(np.float32)


def call_cv2(cv2: Any, case: Case) -> np.ndarray:
    """OpenCV's result, (h, w, C)."""
    image, below = inputs(case)
    options = {
        "dst": below.copy(),
        "borderMode": BORDERS[case.border],
        "borderValue": case.value,
    }
    flags = INTERPOLATIONS[case.interpolation]
    if case.function == "remap":
        maps = _maps(field(case), case.maps)
        result = cv2.remap(image, *maps, flags, **options)
    else:
        function = getattr(
            cv2, {"affine": "warpAffine", "perspective": "warpPerspective"}[case.function]
        )
        flags |= 16 if case.inverse else 0
        result = function(image, np.array(case.matrix), case.out[::-1], flags=flags, **options)
    return result.reshape(*case.out, case.channels)


def _maps(points: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    if kind == "planes":
        return points[..., 0].copy(), points[..., 1].copy()
    if kind == "pairs":
        return points, None
    fixed = (points * 32).astype(np.int64)
    parts = (fixed[..., 1] & 31) * 32 + (fixed[..., 0] & 31)
    return (fixed >> 5).astype(np.int16), parts.astype(np.uint16)


def call_warpkit(case: Case, arithmetic: str, device: str = "cpu") -> np.ndarray:
    """warpkit's result, (h, w, C)."""
    import torch

    import warpkit as wk
    from warpkit.warp import SamplingRule, remap_by

    image, below = (torch.from_numpy(a).movedim(-1, 0).to(device) for a in inputs(case))
    background = below if case.border == "transparent" else None
    value = np.array([case.value[k % 4] for k in range(case.channels)])
    value = torch.from_numpy(value).to(device)
    if case.function == "remap":
        points = torch.from_numpy(field(case)).to(device)
        rule = SamplingRule(case.interpolation, case.border, arithmetic)
        fixed = {"fixed_map": True} if case.maps == "fixed" else {}
        result = remap_by("remap", image, points, rule, value, background, "auto", **fixed)
    else:
        function = {"affine": wk.warp_affine, "perspective": wk.warp_perspective}[case.function]
        result = function(
            image,
            torch.tensor(case.matrix, dtype=torch.float64, device=device),
            size=case.out,
            interpolation=case.interpolation,
            border=case.border,
            border_value=value,
            inverse=case.inverse,
            background=background,
            arithmetic=arithmetic,
        )
    return result.movedim(0, -1).cpu().numpy()


def matrices(height: int, width: int) -> dict[str, tuple[tuple[float, ...], ...]]:
    """The matrices of a case, source -> destination or the inverse."""
    return {
        "turn": ((1.051, 0.327, -2.17), (-0.327, 1.051, 4.36)),
        "quarter": ((0.0, 1.0, 0.0), (-1.0, 0.0, width - 1.0)),
        "shrink": ((0.31, 0.05, 1.0), (-0.02, 0.27, 2.0)),
        "grow": ((3.0, 0.0, -width / 2), (0.0, 3.0, -height / 2)),
        "shear": ((1.0, 0.3, -2.0), (0.1, 1.0, 1.5)),
        "mirror": ((-1.0, 0.0, width - 1.0), (0.0, 1.0, 0.0)),
        "whole": ((1.0, 0.0, 3.0), (0.0, 1.0, -2.0)),
        "part": ((1.0, 0.0, 0.37), (0.0, 1.0, -1.61)),
        "half": ((1.0, 0.0, 0.5), (0.0, 1.0, 0.5)),
        "singular": ((1.0, 2.0, 3.0), (2.0, 4.0, 1.0)),
        "far": ((1.0, 0.0, 4e5), (0.0, 1.0, -4e5)),
    }


PERSPECTIVES = (
    ((1.051, 0.327, -2.17), (-0.327, 1.051, 4.36), (0.004, -0.003, 1.0)),
    ((1.0, 0.3, -2.0), (0.1, 1.0, 1.5), (-0.002, 0.005, 1.1)),
)


@lru_cache
def cases() -> tuple[Case, ...]:
    """The recorded cases: every type, interpolation and border, with a few channels and sizes."""
    result: list[Case] = []

    def add(**options: Any) -> None:
        case = Case(seed=7 * len(result) + 1, **options)
        if not hangs(case):
            result.append(case)

    for n, (dtype, channels, interpolation, border) in enumerate(
        (d, c, i, b) for d in DTYPES for c in (1, 3, 4) for i in INTERPOLATIONS for b in BORDERS
    ):
        size = ((1, 1), (1, 7), (5, 1))[n // 9 % 3] if n % 9 == 0 else (7, 18)
        size = (11, 37) if channels == 1 and n % 9 else size
        names = list(matrices(*size))[: -1 if border in ("reflect", "reflect_101") else None]
        k = n + n // 6 + n // 24  # not in step with any option
        add(
            function="affine",
            dtype=dtype,
            channels=channels,
            size=size,
            out=size if k % 4 else (size[0] + 1, size[1] + 8),
            interpolation=interpolation,
            border=border,
            value=_value(k, dtype, interpolation),
            matrix=matrices(*size)[names[k % len(names)]],
            inverse=k % 3 == 0,
        )
    for n, (dtype, channels, interpolation, border) in enumerate(
        (d, c, i, b)
        for d in DTYPES
        for c in (1, 3)
        for i in INTERPOLATIONS
        for b in ("constant", "replicate", "reflect_101", "transparent")
    ):
        k = n + n // 4 + n // 16
        common = {
            "dtype": dtype,
            "channels": channels,
            "size": (11, 29) if channels == 1 else (9, 14),
            "interpolation": interpolation,
            "border": border,
            "value": _value(k // 2, dtype, interpolation),
        }
        if k % 2:
            maps = ("planes", "pairs", "fixed")[k // 2 % 3]
            add(function="remap", out=(8, 19 if k % 4 == 1 else 24), maps=maps, **common)
        else:
            matrix = PERSPECTIVES[k // 2 % 2]
            add(function="perspective", out=(9, 22), matrix=matrix, inverse=k % 3 == 0, **common)
    rows = ((1.02, 0.05, 5.3), (-0.03, 1.01, -2.2), (0.0004, -0.0003, 1.0))
    for dtype in ("uint16", "int16", "float32"):  # rows with several blocks of columns
        wide = {"dtype": dtype, "channels": 1, "interpolation": "bilinear", "border": "replicate"}
        add(function="affine", size=(20, 150), out=(33, 140), matrix=rows[:2], **wide)
        add(function="perspective", size=(20, 150), out=(33, 140), matrix=rows, **wide)
    add(function="remap", size=(110, 140), out=(129, 135), **wide)
    for channels in (1, 4):  # blocks of columns that are partly outside
        add(
            function="affine",
            dtype="float32",
            channels=channels,
            size=(9, 11),
            out=(12, 61),
            interpolation="bicubic",
            border="constant",
            value=VALUES[1],
            matrix=((1.051, 0.327, 16.17), (-0.327, 1.051, 8.36)),
        )
    return (*result, *_two_channels(len(result)))


def _two_channels(start: int) -> list[Case]:
    """Two and five channels, which have their own kernels in OpenCV 5."""
    return [
        Case(
            function="affine",
            dtype=dtype,
            channels=channels,
            size=(7, 18),
            out=(7, 18),
            interpolation=interpolation,
            border=border,
            value=_value(channels, dtype, interpolation),
            matrix=matrices(7, 18)["turn"],
            seed=7 * (start + 1),
        )
        for dtype in DTYPES
        for channels in (2, 5)
        for interpolation in INTERPOLATIONS
        for border in ("constant", "transparent")
        if channels < 5 or interpolation in ("nearest", "bilinear")
    ]


def _value(n: int, dtype: str, interpolation: str) -> tuple[float, float, float, float]:
    a, b, c, d = VALUES[n % 2]
    whole = dtype == "float64" and interpolation == "bicubic"  # see `inputs`
    return (a, float(int(b)) if whole else b, c, d)


def vector_case(case: Case) -> bool:
    """Whether OpenCV 4.14's last bits depend on the width of vector registers."""
    vector = case.channels == 1 and case.dtype in ("uint16", "int16", "float32")
    return vector and case.interpolation == "bilinear"


def assert_same_arrays(
    ours: np.ndarray | None, theirs: np.ndarray | None, case: object = None
) -> None:
    """Check that shapes, types and numbers are equal, NaN included; or that both are None.

    case: names the call of a loop in the error.
    """
    assert (ours is None) == (theirs is None), case
    if ours is not None and theirs is not None:
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), case
        assert np.array_equal(ours, theirs, equal_nan=True), case
