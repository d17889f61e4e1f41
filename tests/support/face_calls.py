"""Random calls of cv2's functions that have compiled kernels, and differences of results.

All types, 1 to 4 channels and sometimes more, views, odd sides, sides of 1. Where the order of
OpenCV's float sums is not reproduced, images hold integers, whose sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

WHOLE = ("uint8", "int16", "uint16", "float32", "float64")
BITS = (*WHOLE, "int8", "int32", "bool")
FLOAT_MAPS = ("CV_32FC1", "CV_32FC2")
RESIZES = ("uint8", "uint16", "int16", "float32", "float64")
Random = np.random.Generator


class FaceCall(NamedTuple):
    """One call of `warpkit.opencv` or cv2."""

    function: str
    args: tuple[Any, ...]
    """Strings are names of the library's constants, whose numbers differ between versions."""
    options: Mapping[str, Any] = MappingProxyType({})
    tolerance: float = 0.0
    """Of the largest value."""


def side(random: Random, most: int = 70) -> int:
    """A random side; 1 and small ones are more frequent."""
    kind = random.integers(0, 8)
    return 1 if kind == 0 else int(random.integers(2, 6 if kind < 3 else most + 1))


def picture(
    random: Random,
    types: tuple[str, ...],
    *,
    least: int = 1,
    most: int = 70,
    channels: tuple[int, ...] = (1, 1, 2, 3, 3, 4),
    fractions: bool = False,
) -> np.ndarray:
    """An image (H, W) or (H, W, C): noise, extremes or ramps; often a view of a larger one."""
    dtype, count = str(random.choice(types)), int(random.choice(channels))
    height, width = (max(least, side(random, most)) for _ in range(2))
    steps = [int(random.integers(1, 3)) for _ in range(2)] if random.random() < 0.3 else [1, 1]
    shape = (height * steps[0], width * steps[1], count)
    if dtype == "bool":
        pixels = random.random(shape) < 0.5
    elif dtype.startswith("float"):
        pixels = random.integers(-999, 1000, shape).astype(dtype)
        if fractions:
            pixels = pixels * dtype_of(dtype)(random.random())
    else:
        limits = np.iinfo(dtype)
        pixels = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
        if random.random() < 0.25:
            pixels = np.where(random.random(shape) < 0.5, limits.min, limits.max).astype(dtype)
    view = pixels[:: steps[0], :: steps[1]]
    if random.random() < 0.15:
        view = view[::-1, ::-1]
    return view[..., 0] if count == 1 else view


def dtype_of(name: str) -> type[np.floating]:
    """The numpy type of a name."""
    return np.float32 if name == "float32" else np.float64


def camera(random: Random, size: tuple[int, int]) -> np.ndarray:
    """A camera matrix for images of a size (w, h)."""
    fx, fy = random.uniform(0.5, 2, 2) * max(size)
    middle = random.uniform(0, size[0]), random.uniform(0, size[1])
    return np.array([[fx, 0, middle[0]], [0, fy, middle[1]], [0, 0, 1]])


def _brown(random: Random) -> np.ndarray | None:
    count = int(random.choice([0, 4, 5, 8, 12]))
    return random.normal(0, 0.05, count) if count else None


def _size(random: Random) -> tuple[int, int]:
    return side(random), side(random)


def _pyr_down(random: Random) -> FaceCall:
    src = picture(random, WHOLE)
    border = 4 if min(src.shape[:2]) < 3 else int(random.choice([1, 2, 3, 4]))
    return FaceCall("pyrDown", (src,), {"borderType": border})


def _pyr_up(random: Random) -> FaceCall:
    return FaceCall("pyrUp", (picture(random, WHOLE, most=40),))


def _border(random: Random) -> FaceCall:
    src, kind = picture(random, BITS[:-1]), int(random.choice([0, 0, 1, 2, 3, 4]))
    sides = [int(n) for n in random.integers(0, 12, 4)]
    value = [float(n) for n in random.integers(0, 256, 4)] if random.random() < 0.5 else None
    return FaceCall("copyMakeBorder", (src, *sides, kind), {"value": value} if value else {})


def _flip(random: Random) -> FaceCall:
    return FaceCall("flip", (picture(random, BITS[:-1], most=150), int(random.integers(-1, 2))))


def _rotate(random: Random) -> FaceCall:
    return FaceCall("rotate", (picture(random, BITS[:-1], most=150), int(random.integers(0, 3))))


def _transpose(random: Random) -> FaceCall:
    return FaceCall("transpose", (picture(random, BITS[:-1], most=150),))


def _rectangle(random: Random) -> FaceCall:
    src = picture(random, ("uint8", "uint8", "float32"), channels=(1, 3))
    height, width = src.shape[:2]
    center = float(random.uniform(-5, width + 5)), float(random.uniform(-5, height + 5))
    if random.random() < 0.2:
        center = float(round(center[0])), float(round(center[1]))
    floats = {"patchType": 5} if src.dtype == np.uint8 and random.random() < 0.3 else {}
    tolerance = 1e-6 if src.dtype != np.uint8 or floats else 0.0
    return FaceCall("getRectSubPix", (src, _size(random), center), floats, tolerance)


def _resize(random: Random) -> FaceCall:
    kind = int(random.choice([0, 1, 1, 2, 2, 3, 4, 5, 6]))
    src = picture(random, RESIZES, fractions=True)
    if random.random() < 0.25:
        factors = {name: float(random.choice([0.5, 0.25, 1 / 3, 2.0, 0.7, 1.3])) for name in "xy"}
        if min(src.shape[1] * factors["x"], src.shape[0] * factors["y"]) >= 1:
            options = {"fx": factors["x"], "fy": factors["y"], "interpolation": kind}
            return FaceCall("resize", (src, None), options)
    return FaceCall("resize", (src, _size(random)), {"interpolation": kind})


def _maps(random: Random, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    scale = float(random.choice([1, 50, 3e4, 1e6]))
    x, y = (random.normal(0, scale, size[::-1]).astype(np.float32) for _ in range(2))
    return (np.round(x * 32) / 32, y) if random.random() < 0.3 else (x, y)


def _convert(random: Random) -> FaceCall:
    x, y = _maps(random, _size(random))
    kind = int(random.integers(0, 4))
    if kind == 0:
        fixed = random.integers(-(2**15), 2**15, (*x.shape, 2)).astype(np.int16)
        parts = random.integers(0, 1024, x.shape).astype(np.uint16)
        return FaceCall("convertMaps", (fixed, parts, str(random.choice(FLOAT_MAPS))))
    maps = (x, y) if kind == 1 else (np.dstack((x, y)), None)
    whole = bool(random.integers(0, 2))
    return FaceCall("convertMaps", (*maps, "CV_16SC2"), {"nninterpolation": whole})


def _lens_map(random: Random) -> FaceCall:
    size = _size(random)
    matrix, kind = camera(random, size), str(random.choice((*FLOAT_MAPS, "CV_16SC2")))
    view = None if random.random() < 0.2 else camera(random, size)
    args = (matrix, _brown(random), None, view, size, kind)
    return FaceCall("initUndistortRectifyMap", args)


def _fisheye_map(random: Random) -> FaceCall:
    size = _size(random)
    args = (camera(random, size), random.normal(0, 0.05, 4), np.eye(3), camera(random, size), size)
    kind = str(random.choice(("CV_32FC1", "CV_16SC2")))
    return FaceCall("fisheye.initUndistortRectifyMap", (*args, kind))


def _undistort(random: Random) -> FaceCall:
    src = picture(random, WHOLE, channels=(1, 3, 4))
    size = src.shape[1], src.shape[0]
    view = {} if random.random() < 0.5 else {"newCameraMatrix": camera(random, size)}
    return FaceCall("undistort", (src, camera(random, size), _brown(random)), view)


def _fisheye_image(random: Random) -> FaceCall:
    src = picture(random, WHOLE, channels=(1, 3, 4))
    size = src.shape[1], src.shape[0]
    args = (src, camera(random, size), random.normal(0, 0.05, 4))
    return FaceCall("fisheye.undistortImage", args, {"Knew": camera(random, size)})


def _polar(random: Random) -> FaceCall:
    src = picture(random, ("uint8", "float32"), least=2, channels=(1, 3, 4))
    height, width = src.shape[:2]
    flags = 8 + int(random.choice([0, 1])) + 16 * int(random.integers(0, 2))
    flags += 256 * int(random.integers(0, 2) and not flags & 16)
    center = float(random.uniform(0, width)), float(random.uniform(0, height))
    radius = float(random.uniform(2, max(src.shape[:2])))
    size = tuple(max(2, n) for n in _size(random))
    return FaceCall("warpPolar", (src, size, center, radius, flags))


def _vectors(random: Random) -> tuple[np.ndarray, np.ndarray]:
    dtype, shape = dtype_of(str(random.choice(["float32", "float64"]))), (side(random, 300),)
    shape = (side(random), *shape) if random.random() < 0.7 else (*shape, 1)
    scale = 10.0 ** random.integers(-5, 6)
    pair = [(random.normal(0, 1, shape) * scale).astype(dtype) for _ in range(2)]
    return (pair[0], pair[1]) if random.random() < 0.7 else (pair[0].round(), pair[1].round())


def _to_polar(random: Random) -> FaceCall:
    return FaceCall("cartToPolar", (*_vectors(random), None, None, bool(random.integers(0, 2))))


def _from_polar(random: Random) -> FaceCall:
    degrees = bool(random.integers(0, 2))
    length, angle = _vectors(random)
    angle = angle % 360 if degrees else angle % 6.5
    length = None if random.random() < 0.2 else length
    return FaceCall("polarToCart", (length, angle, None, None, degrees))


def _transform(random: Random) -> FaceCall:
    channels = int(random.choice([1, 2, 2, 3, 3, 3, 4, 4, 5]))
    src = picture(random, WHOLE, channels=(channels,), fractions=True)
    rows = channels if random.random() < 0.7 else int(random.integers(1, 5))
    matrix = random.normal(0, 1, (rows, channels + int(random.integers(0, 2))))
    if random.random() < 0.2:
        matrix = np.eye(rows, matrix.shape[1]) * random.normal()
    if matrix.shape[1] > channels:
        matrix[:, -1] *= random.choice([1.0, 100.0, 30000.0])
    if random.random() < 0.2:
        matrix = matrix.astype(np.float32)
    # cv2's loop over five and more numbers has another order
    return FaceCall("transform", (src, matrix), {}, 1e-6 if channels > 4 else 0.0)


def _matrix_call(random: Random) -> FaceCall:
    kind, scale = int(random.integers(0, 5)), 10.0 ** random.integers(-1, 4)
    if kind < 2:
        n = 3 + kind
        src, dst = ((random.normal(0, 1, (n, 2)) * scale).astype(np.float32) for _ in range(2))
        return FaceCall(("getAffineTransform", "getPerspectiveTransform")[kind], (src, dst))
    x, y, w, h = (float(n) for n in np.abs(random.normal(0, scale, 4)))
    angle = float(random.choice([0.0, 90.0, 45.0, random.normal() * 100]))
    if kind == 2:
        return FaceCall("getRotationMatrix2D", ((x, y), angle, w / scale))
    if kind == 3:
        return FaceCall("boxPoints", (((x, y), (w, h), angle),))
    dtype = dtype_of(str(random.choice(["float32", "float64"])))
    return FaceCall("invertAffineTransform", (random.normal(0, 1, (2, 3)).astype(dtype),))


CALLS: dict[str, Callable[[Random], FaceCall]] = {
    "pyrDown": _pyr_down,
    "pyrUp": _pyr_up,
    "copyMakeBorder": _border,
    "flip": _flip,
    "rotate": _rotate,
    "transpose": _transpose,
    "getRectSubPix": _rectangle,
    "resize": _resize,
    "convertMaps": _convert,
    "initUndistortRectifyMap": _lens_map,
    "fisheye.initUndistortRectifyMap": _fisheye_map,
    "undistort": _undistort,
    "fisheye.undistortImage": _fisheye_image,
    "warpPolar": _polar,
    "cartToPolar": _to_polar,
    "polarToCart": _from_polar,
    "transform": _transform,
    "matrices": _matrix_call,
}


def answers(library: Any, call: FaceCall) -> list[np.ndarray]:
    """A library's results: one array or several; none if it rejects the call."""
    function = library
    for part in call.function.split("."):
        function = getattr(function, part)
    args = (getattr(library, arg) if isinstance(arg, str) else arg for arg in call.args)
    result = function(*args, **call.options)
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part) for part in parts if part is not None]


def has_known_bits(call: FaceCall) -> bool:
    """Whether IPP's resize is reproduced bit by bit: not if fx and fy do not match the size."""
    if call.function != "resize" or "fx" not in call.options:
        return True
    (height, width), (fx, fy) = call.args[0].shape[:2], (call.options["fx"], call.options["fy"])
    return width * fx == round(width * fx) and height * fy == round(height * fy)


def differing(call: FaceCall, ours: list[np.ndarray], theirs: list[np.ndarray]) -> tuple[int, int]:
    """The number of differing values, and of all values; NaN equals NaN."""
    wrong = count = 0
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype, f"{call.function}: {one.dtype}, not {other.dtype}"
        assert one.shape == other.shape, f"{call.function}: {one.shape}, not {other.shape}"
        same = (one == other) | ((one != one) & (other != other))
        if call.tolerance:
            a, b = one.astype(np.float64), other.astype(np.float64)
            same |= np.abs(a - b) <= call.tolerance * max(1.0, float(np.abs(b).max()))
        wrong, count = wrong + int((~same).sum()), count + same.size
    return wrong, count
