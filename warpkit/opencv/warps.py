"""cv2's warps: translates names and layouts only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.arithmetic.opencv_lenses import from_fixed_map
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.labels import whole_scalar
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.opencv import door, sampling
from warpkit.opencv.constants import (
    BORDER_CONSTANT,
    BORDER_ISOLATED,
    INTER_LINEAR,
    INTER_NEAREST,
    WARP_FILL_OUTLIERS,
    WARP_INVERSE_MAP,
    WARP_RELATIVE_MAP,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import check_picture, device_of, finish, planes
from warpkit.opencv.values import (
    BORDERS,
    as_arithmetic,
    as_border,
    as_interpolation,
    as_scalar,
    resolved,
)
from warpkit.types import FaceArithmetic, Image, ImageLike, MatrixLike, NumbersLike


def warpAffine(
    src: Image,
    M: MatrixLike,
    dsize: Sequence[int] | None,
    dst: Image | float | None = None,
    flags: int | None = INTER_LINEAR,
    borderMode: int | None = BORDER_CONSTANT,
    borderValue: NumbersLike = 0,
    hint: int | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.warpAffine: M (2, 3); dsize (W, H), None or (0, 0) for the source's.

    src (H, W) or (H, W, C). flags: an INTER_* value, with WARP_INVERSE_MAP if M maps destination ->
    source. borderValue: a number, which fills only the first channel, as in cv2, or up to four.
    Gradients, if src is a tensor: those of `warpkit.warp_affine`.

    >>> image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> warpAffine(image, np.array([[1.0, 0, 1], [0, 1, 0]]), (3, 2))
    array([[0, 0, 1],
           [0, 3, 4]], dtype=uint8)
    """
    return _warp("warpAffine", src, M, dsize, dst, flags, borderMode, borderValue, arithmetic)


def warpPerspective(
    src: Image,
    M: MatrixLike,
    dsize: Sequence[int] | None,
    dst: Image | float | None = None,
    flags: int | None = INTER_LINEAR,
    borderMode: int | None = BORDER_CONSTANT,
    borderValue: NumbersLike = 0,
    hint: int | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.warpPerspective: M (3, 3); everything else as in `warpAffine`.

    >>> image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> warpPerspective(image, np.diag([2.0, 2.0, 2.0]), (3, 2))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    return _warp("warpPerspective", src, M, dsize, dst, flags, borderMode, borderValue, arithmetic)


def remap(
    src: Image,
    map1: ImageLike,
    map2: ImageLike | None,
    interpolation: int | None,
    dst: Image | float | None = None,
    borderMode: int | None = BORDER_CONSTANT,
    borderValue: NumbersLike = 0,
    hint: int | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.remap: two float maps (h, w), or one (h, w, 2) and None, or cv2.convertMaps's integers.

    The integers are (h, w, 2) int16 and (h, w) uint16 or None. WARP_RELATIVE_MAP may be added to
    `interpolation`: the maps then hold offsets from each output pixel. Gradients to src and maps.

    >>> image = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> remap(image, np.float32([[0.5, 2]]), np.float32([[0, 1]]), INTER_LINEAR)
    array([[0.5, 5. ]], dtype=float32)
    """
    name = "remap"
    dst = dst if dst is None else check_output(name, "dst", dst, src)
    options = (name, interpolation, borderMode, borderValue, resolved(arithmetic))
    return door.call(_plan_remap, (src, map1, map2, dst), options, dst)


def _plan_remap(
    keeps: bool, src: Any, map1: Any, map2: Any, dst: Any, name: str, *others: Any
) -> Plan | Once:
    """The plan of `remap`; others: its other arguments, in their order."""
    interpolation, borderMode, borderValue, arithmetic = others
    interpolation = INTER_NEAREST if interpolation is None else interpolation
    options = _options(name, src, dst, interpolation, borderMode, borderValue, arithmetic)
    if interpolation & WARP_INVERSE_MAP:
        checks.fail(name, "interpolation", "without WARP_INVERSE_MAP", interpolation)
    first, second = _maps(name, map1, map2, src)
    height, width = first.shape[:2]
    background = _background(name, src, dst, (height, width), options["border"])
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    image, value = planes(src), options["border_value"]
    relative = bool(interpolation & WARP_RELATIVE_MAP)
    keeps = keeps and not relative and _are_read((map1, map2), (first, second))
    if keeps and door.is_dense(src, map1, map2) and sampling.has_kernel(image, rule):
        return sampling.maps_plan((src, map1, map2), image, first, second, rule, value)
    points = _points(first, second)
    if relative:
        points = points + pixel_points((height, width), points.dtype, points.device)
    fixed = first.dtype == torch.int16 and second is not None
    extra: dict[str, Any] = {"fixed_map": True} if fixed and rule.arithmetic != "exact" else {}
    result = warp.remap_by(name, image, points, rule, value, background, "auto", **extra)
    return Once(finish(src, None, result))


def _are_read(given: tuple[Any, Any], maps: tuple[Tensor, Tensor | None]) -> bool:
    """Whether kernels read maps, (h, w, 2) or (h, w), (h, w) or None, as they were given."""
    kinds = {type(part) for part in given if part is not None}
    for before, after in zip(given, maps, strict=True):
        if (before is None) != (after is None):
            return False
        if after is not None and (before.shape != after.shape or not after.is_contiguous()):
            return False
    types = [part.dtype for part in maps if part is not None]
    return len(kinds) == 1 and (types[0] == torch.int16 or set(types) == {torch.float32})


WARPS: dict[str, Callable[..., Tensor]] = {
    "warpAffine": warp.warp_affine,
    "warpPerspective": warp.warp_perspective,
}


def _warp(name: str, src: Any, M: Any, *options: Any) -> Any:
    """The function of a name; options: dsize, dst, flags, borderMode, borderValue, arithmetic."""
    dsize, dst, *others, arithmetic = options
    dst = dst if dst is None else check_output(name, "dst", dst, src)
    return door.call(_plan_warp, (src, M, dst), (name, dsize, *others, resolved(arithmetic)), dst)


def _plan_warp(
    keeps: bool, src: Any, M: Any, dst: Any, name: str, dsize: Any, *others: Any
) -> Plan | Once:
    """The plan of a function; others: its other arguments, in their order."""
    flags, border_mode, border_value, arithmetic = others
    flags = INTER_LINEAR if flags is None else flags
    options = _options(name, src, dst, flags, border_mode, border_value, arithmetic)
    matrix = _matrix(name, M, src, 2 if name == "warpAffine" else 3)
    size = _size(name, dsize, src)
    background = _background(name, src, dst, size, options["border"])
    image, inverse = planes(src), bool(flags & WARP_INVERSE_MAP)
    rule = SamplingRule(options["interpolation"], options["border"], options["arithmetic"])
    if keeps and door.is_dense(src) and door.is_plain(M) and sampling.has_kernel(image, rule):
        value = options["border_value"]
        return sampling.warp_plan((src, M), image, matrix, size, rule, value, inverse)
    result = WARPS[name](
        image, matrix, size=size, inverse=inverse, background=background, **options
    )
    return Once(finish(src, None, result))


def _options(
    name: str,
    src: Any,
    dst: Any,
    flags: int,
    border_mode: int | None,
    border_value: Any,
    arithmetic: str,
) -> dict[str, Any]:
    """The core's options for flags, borderMode, borderValue and arithmetic."""
    arithmetic = as_arithmetic(name, arithmetic)
    types = checks.FLOATS + checks.INTEGERS if arithmetic == "exact" else OPENCV_TYPES
    check_picture(name, "src", src, types + checks.LABELS, f" with arithmetic={arithmetic!r}")
    dtype = src.dtype if isinstance(src, Tensor) else checks.array_dtype(src)
    for argument, image in (("src", src), ("dst", dst)):
        if isinstance(image, Tensor):
            checks.check_dense(name, argument, image)
            checks.check_device(name, argument, image, device_of(src), "`src`")
    argument = "interpolation" if name == "remap" else "flags"
    others = WARP_FILL_OUTLIERS | WARP_INVERSE_MAP
    others |= WARP_RELATIVE_MAP if name == "remap" else 0
    interpolation = as_interpolation(name, argument, flags, others)
    checks.check_labels(name, argument, flags, dtype, "INTER_NEAREST", interpolation == "nearest")
    border_mode = BORDER_CONSTANT if border_mode is None else border_mode
    # no warp reads beyond its image
    border = as_border(name, "borderMode", border_mode, BORDERS.values(), ignored=BORDER_ISOLATED)
    return {
        "interpolation": interpolation,
        "border": border,
        "border_value": _scalar(name, border_value, src, dtype),
        "arithmetic": arithmetic,
    }


def _scalar(name: str, value: Any, src: Any, dtype: Any) -> Tensor | list[int]:
    """cv2.Scalar: up to four numbers, padded with zeros; channel c takes number c mod 4."""
    channels = src.shape[2] if src.ndim == 3 else 1
    value = 0 if value is None else value
    if dtype in checks.LABELS and (whole := whole_scalar(value, channels)):  # exact beyond 2^53
        return whole
    if isinstance(value, (int, float)):  # by far the most common, in one operation
        number = checks.float64_of(name, "borderValue", value)  # pyright: ignore
        first = [number if c % 4 == 0 else 0.0 for c in range(channels)]
        return torch.tensor(first, dtype=torch.float64, device=device_of(src))
    four = as_scalar(name, "borderValue", value, device_of(src))
    return four[torch.arange(channels, device=four.device) % 4]


def _size(name: str, dsize: Any, src: Any) -> tuple[int, int]:
    """dsize (W, H) as (H, W)."""
    if isinstance(dsize, Tensor):
        checks.check_device(name, "dsize", dsize, torch.device("cpu"), "a size")
        checks.check_dense(name, "dsize", dsize)
    pair = dsize.tolist() if isinstance(dsize, (np.ndarray, Tensor)) else dsize
    if pair is None or (isinstance(pair, Sequence) and tuple(pair) == (0, 0)):
        return src.shape[0], src.shape[1]
    width, height = checks.check_size(name, "dsize", pair, "(W, H)")
    return height, width


def _matrix(name: str, matrix: Any, src: Any, rows: int) -> Tensor:
    matrix = checks.as_float(name, "M", matrix, device_of(src), torch.float64)
    if tuple(matrix.shape) != (rows, 3):
        checks.fail(name, "M", f"of shape ({rows}, 3)", tuple(matrix.shape))
    checks.check_device(name, "M", matrix, device_of(src), "`src`")
    return matrix


def _points(first: Tensor, second: Tensor | None) -> Tensor:
    """Maps as points (h, w, 2); first and second as `_maps` returns them."""
    if first.dtype == torch.int16:
        return from_fixed_map(first, second)
    return first if second is None else torch.stack((first, second), dim=-1)


def _maps(name: str, map1: Any, map2: Any, src: Any) -> tuple[Tensor, Tensor | None]:
    """The validated maps: points (h, w, 2) and None, two (h, w), or pixels (h, w, 2) and parts.

    Pixels, int16, and their 1/32 parts (h, w) or None, come from convertMaps. With parts, OpenCV 5
    computes as OpenCV 4 does.
    """
    map1 = _map(name, "map1", map1, src)
    absent = map2 is None or (isinstance(map2, tuple) and not map2)
    map2 = None if absent else _map(name, "map2", map2, src)
    if map2 is not None and map2.numel() == 0:
        map2 = None  # cv2's empty Mat
    if map2 is not None and map2.dtype == torch.int16 and map2.ndim == 3:
        map1, map2 = map2, map1  # cv2 takes the pixels and their parts in either order
    shape = tuple(map1.shape)
    pair = map1.ndim == 3 and shape[2] == 2
    if pair and map1.dtype == torch.int16 and map2 is None:
        return map1, None
    table = map2 is not None and map2.dtype in (torch.int16, torch.uint16)
    if pair and map1.dtype == torch.int16 and table and tuple(map2.shape) == shape[:2]:  # pyright: ignore
        return map1, map2
    if pair and map2 is None and map1.is_floating_point():
        return map1, None
    planar = map2 is not None and map1.ndim == 2 and tuple(map2.shape) == shape
    if planar and map1.is_floating_point() and map2.is_floating_point():  # pyright: ignore
        return map1, map2
    wanted = "two (h, w) of floats, (h, w, 2) of floats and None, or convertMaps's (h, w, 2) int16"
    wanted += " with (h, w) uint16 or None"
    second = "None" if map2 is None else f"{tuple(map2.shape)} {map2.dtype}"
    return checks.fail(name, "map1, map2", wanted, f"{shape} {map1.dtype} and {second}")


def _map(name: str, argument: str, value: Any, src: Any) -> Tensor:
    """One map, (h, w, 1) as (h, w), in its own type: convertMaps's integers are not coordinates."""
    if isinstance(value, np.ndarray):
        value = checks.from_array(name, argument, value, device_of(src))
    elif not isinstance(value, Tensor) or value.is_floating_point():
        value = checks.as_float(name, argument, value, device_of(src))
    checks.check_dense(name, argument, value)
    checks.check_device(name, argument, value, device_of(src), "`src`")
    return value[..., 0] if value.ndim == 3 and value.shape[2] == 1 else value


def _background(name: str, src: Any, dst: Any, size: tuple[int, int], border: str) -> Tensor | None:
    if border != "transparent":
        return None
    shape = (*size, *src.shape[2:])
    wanted = f"of shape {shape} and the type of src with BORDER_TRANSPARENT"
    if dst is None:
        checks.fail(name, "dst", wanted, "None")
    if tuple(dst.shape) != shape or dst.dtype != src.dtype:
        checks.fail(name, "dst", wanted, f"{tuple(dst.shape)} {dst.dtype}")
    return planes(dst)
