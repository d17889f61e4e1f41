"""cv2's other kinds of maps: fixed-point maps, and polar coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.core.integers import WHOLE_NUMBERS
from warpkit.core.tracing import wants_derivative
from warpkit.engine.arithmetic import opencv_lenses, opencv_polar
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.labels import same_bits
from warpkit.engine.definitions.rounding import saturate16, to_int32
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.geometry.arguments import floats
from warpkit.opencv import door, lens_maps, numbers, sampling
from warpkit.opencv.cameras import as_flag, as_given_maps, as_maps, common_device, map_kind
from warpkit.opencv.constants import (
    WARP_FILL_OUTLIERS,
    WARP_INVERSE_MAP,
    WARP_POLAR_LOG,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import check_picture, finish, has_tensor, planes
from warpkit.opencv.sizes import as_list, as_size, is_empty
from warpkit.opencv.values import as_arithmetic, as_interpolation, resolved
from warpkit.types import FaceArithmetic, Image, ImageLike, NumbersLike, PointsLike

POLAR_FLAGS = WARP_FILL_OUTLIERS | WARP_INVERSE_MAP | WARP_POLAR_LOG


def convertMaps(
    map1: ImageLike,
    map2: ImageLike | None,
    dstmap1type: int,
    dstmap1: ImageLike | None = None,
    dstmap2: ImageLike | None = None,
    nninterpolation: bool = False,
) -> tuple[Any, Any]:
    """cv2.convertMaps: convert maps for `remap` from one kind to another.

    map1 and map2: two (h, w) float32, (h, w, 2) float32 and None, or (h, w, 2) int16 and (h, w)
    uint16; dstmap1type CV_32FC1, CV_32FC2 or CV_16SC2; -1 converts floats to fixed maps and fixed
    maps to pairs. nninterpolation: whole pixels, without a fixed map's 1/32 fractions. Gradients,
    if a map is a tensor and both kinds are floats: all orders.

    >>> convertMaps(np.float32([[[1.25, 2.0]]]), None, -1)
    (array([[[1, 2]]], dtype=int16), array([[8]], dtype=uint16))
    """
    name, outputs = "convertMaps", (dstmap1, dstmap2)
    whole = as_flag(name, "nninterpolation", nninterpolation)
    kind = map_kind(name, "dstmap1type", dstmap1type, ("planes", "pairs", "fixed"))
    default = isinstance(dstmap1type, Integral) and dstmap1type <= 0
    found = plan.call(_plan_conversion, (map1, map2), (kind, default, whole))
    return as_given_maps(found, has_tensor(map1, map2), outputs)


def _plan_conversion(
    keeps: bool, map1: Any, map2: Any, kind: str, default: bool, whole: bool
) -> Plan | Once:
    """The plan of `convertMaps` to a kind; default: whether it was left open."""
    name = "convertMaps"
    first, second, fixed = _pair(name, map1, map2)
    second = None if fixed and whole else second
    if fixed and second is None and not whole:
        checks.fail(name, "map2", "(h, w) uint16 beside (h, w, 2) int16", "None")
    kind = "pairs" if default and fixed else kind
    if not fixed or kind != "fixed":
        values = (first, second) if kind != "fixed" else (first.detach(),)  # integers have none
        if keeps and lens_maps.has_kernel(*values):
            wanted = "whole" if kind == "fixed" and whole else kind
            return lens_maps.conversion_plan(first, second, wanted)
    if fixed:
        points = opencv_lenses.from_fixed_map(first, second)
    else:
        points = (first if second is None else torch.stack((first, second), dim=-1)).float()
    found = None
    if kind == "fixed":
        found = (first, second) if fixed else _fixed(points, whole)
    return Once(as_maps(points, kind, True, (None, None), found))


def _pair(name: str, map1: Any, map2: Any) -> tuple[Tensor, Tensor | None, bool]:
    """Both maps as tensors, and whether they are fixed-point maps."""
    device = common_device(map1, map2)
    first, second = (
        checks.from_array(name, argument, value, device) if isinstance(value, np.ndarray) else value
        for argument, value in (("map1", map1), ("map2", map2))
    )
    if isinstance(second, Tensor) and second.numel() == 0:
        second = None  # cv2's empty Mat
    tensors = [value for value in (first, second) if isinstance(value, Tensor)]
    for value in tensors:
        checks.check_dense(name, "map1, map2", value)
        checks.check_device(name, "map2", value, device, "`map1`")
    if isinstance(second, Tensor) and second.dtype == torch.int16 and second.ndim == 2:
        second = same_bits(second, torch.uint16)  # cv2 reinterprets the bits, too
        tensors = [first, second] if isinstance(first, Tensor) else [second]
    kinds = [(str(value.dtype).removeprefix("torch."), value.ndim) for value in tensors]
    shapes = {tuple(value.shape[:2]) for value in tensors}
    known = [("float32", 3)], [("float32", 2)] * 2, [("int16", 3), ("uint16", 2)], [("int16", 3)]
    good = (
        kinds in known and len(shapes) == 1 and all(v.ndim == 2 or v.shape[2] == 2 for v in tensors)
    )
    if not good or (second is not None and len(tensors) < 2):
        wanted = (
            "two (h, w) float32, (h, w, 2) float32 and None, or (h, w, 2) int16 and (h, w) uint16"
        )
        got = " and ".join(f"{tuple(value.shape)} {value.dtype}" for value in tensors)
        checks.fail(name, "map1, map2", wanted, got or type(map1).__name__)
    return first, second, tensors[0].dtype == torch.int16


def _fixed(points: Tensor, whole: bool) -> tuple[Tensor, Tensor | None]:
    """Float32 points as saturated int16 pixels, and 1/32 parts unless `whole`."""
    points = points.detach()
    if whole:
        return saturate16(to_int32(points)).to(torch.int16), None
    steps = to_int32(points * 32)  # the product in float32
    parts = steps & 31
    table = (parts[..., 1] * 32 + parts[..., 0]).to(torch.uint16)
    return saturate16(steps >> 5).to(torch.int16), table


def warpPolar(
    src: Image,
    dsize: Sequence[int] | None,
    center: PointsLike,
    maxRadius: NumbersLike,
    flags: int,
    dst: Image | None = None,
    *,
    arithmetic: FaceArithmetic = "auto",
) -> Image:
    """cv2.warpPolar: an image in polar coordinates, radius along x and angle along y, or back.

    src (H, W) or (H, W, C); dsize (W, H), in which zeros are replaced so that the circle keeps its
    area; center (x, y) and maxRadius in pixels; flags: an INTER_* value with WARP_POLAR_LINEAR or
    _LOG, WARP_INVERSE_MAP for polar to image, and WARP_FILL_OUTLIERS, without which pixels outside
    are dst's, or 0 if there is no dst (uninitialised in cv2). The pixels are cv2's own; for the
    inverse with WARP_POLAR_LOG, 0.01 % of bytes differ by 1. Gradients, if src is a tensor: to src,
    center and maxRadius.

    >>> warpPolar(np.arange(25.0).reshape(5, 5), (2, 4), (2.0, 2.0), 2.0, 1)
    array([[12., 13.],
           [12., 17.],
           [12., 11.],
           [12.,  7.]])
    """
    dst = dst if dst is None else check_output("warpPolar", "dst", dst, src)
    # numbers beside a picture are no part of the plan
    middle = (center, None)
    if numbers.are_pairs(center) and numbers.are_numbers(maxRadius):
        middle, maxRadius = tuple(map(float, center)), float(maxRadius)  # pyright: ignore
    options = (dsize, flags, resolved(arithmetic))
    return door.call(_plan_polar, (src, *middle, maxRadius, dst), options, dst)


def _plan_polar(
    keeps: bool, src: Any, x: Any, y: Any, maxRadius: Any, dst: Any, *options: Any
) -> Plan | Once:
    """The plan of `warpPolar`; x and y: the centre as two floats, or its argument and None."""
    name, (dsize, flags, arithmetic) = "warpPolar", options
    center = x if y is None else (x, y)
    check_picture(name, "src", src, OPENCV_TYPES)
    source = planes(src)
    interpolation = as_interpolation(name, "flags", flags, POLAR_FLAGS)
    center = floats(name, "center", center, source.device, checks.as_pair)
    radius = floats(name, "maxRadius", maxRadius, source.device)
    for argument, value, shape in (("center", center, (2,)), ("maxRadius", radius, ())):
        if tuple(value.shape) != shape:
            checks.fail(name, argument, f"of shape {shape}", checks.shape_of(value))
    size = _polar_size(name, dsize, radius)
    arithmetic = as_arithmetic(name, arithmetic)
    log, back = bool(flags & WARP_POLAR_LOG), bool(flags & WARP_INVERSE_MAP)
    center, radius = center.double(), radius.double()
    polar = (src.shape[0], src.shape[1])
    border = "constant" if flags & WARP_FILL_OUTLIERS else "transparent"
    rule = SamplingRule(interpolation, border, arithmetic)
    sized = not (is_empty(dsize) or 0 in tuple(dsize))
    plain = keeps and y is not None and sized and door.is_dense(src)
    if plain and not (log and back) and sampling.has_kernel(source, rule):
        return lens_maps.polar_plan(src, size, rule, log, back)

    def field(exact: bool, center: Tensor, radius: Tensor) -> Tensor:
        """The map of the warp; center (2,), (x, y) in pixels; radius ()."""
        if back:
            make = opencv_polar.exact_from_polar if exact else opencv_polar.map_from_polar
            points = make(size, polar, center, radius, log)
            # one more row is above the angles' first
            return points + torch.tensor([0.0, 1.0], dtype=points.dtype, device=points.device)
        make = opencv_polar.exact_to_polar if exact else opencv_polar.map_to_polar
        return make(size, center, radius, log)

    extra: dict[str, Any] = {"made_of": {"center": center, "maxRadius": radius}}
    if arithmetic == "exact":
        points = field(True, center, radius)
    else:
        fixed = center.detach(), radius.detach()
        if not (log and back) and door.runs_kernels(*fixed):
            numbers_of = fixed[0].tolist(), float(fixed[1])
            at = torch.from_numpy(lens_maps.polar_points(size, polar, *numbers_of, log, back))
        else:
            at = field(False, *fixed)
        followed = wants_derivative(source, center, radius)
        points = field(True, center, radius) if followed else at
        extra["values_at"] = at
    if back:  # the angles' first row follows the last
        rows = source.movedim(1, -1)  # in memory order, so that the channels stay contiguous
        source = torch.cat((rows[:, -1:], rows, rows[:, :1]), dim=1).movedim(-1, 1)
    background = None
    if border == "transparent":
        shape = (*size, *src.shape[2:])
        fits = dst is not None and tuple(dst.shape) == shape and dst.dtype == src.dtype
        background = planes(dst) if fits else source.new_zeros((1, source.shape[1], *size))
    result = warp.remap_by(name, source, points, rule, 0.0, background, "auto", **extra)
    return Once(finish(src, None, result))


def _polar_size(name: str, dsize: Any, radius: Tensor) -> tuple[int, int]:
    """dsize (W, H) as (H, W), with zeros replaced as in OpenCV."""
    pair = as_list(name, "dsize", dsize)
    if is_empty(pair):
        checks.check_held(name, "maxRadius", radius)
        reach = float(radius.detach())
        if not 0.5 < reach < checks.MAX_SIDE / math.pi:
            wanted = "from 1 to 2^31 / pi pixels without a size in `dsize`"
            checks.fail(name, "maxRadius", wanted, reach)
        return round(reach * math.pi), round(reach)
    wide = isinstance(pair, Sequence) and len(pair) == 2 and pair[1] == 0
    if wide and isinstance(pair[0], WHOLE_NUMBERS) and 0 < pair[0] < checks.MAX_SIDE:
        return as_size(name, "dsize", (int(pair[0]), round(pair[0] * math.pi)))
    return as_size(name, "dsize", pair)
