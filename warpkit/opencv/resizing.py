"""cv2.resize: translates names and layouts only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, get_args

from warpkit.core import checks
from warpkit.engine.arithmetic.guarantees import installed_resize_arithmetic
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.backends.resizing import backend_module, select_backend
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.resize import ResizeRule
from warpkit.opencv import door
from warpkit.opencv.constants import (
    INTER_AREA,
    INTER_CUBIC,
    INTER_LANCZOS4,
    INTER_LINEAR,
    INTER_LINEAR_EXACT,
    INTER_NEAREST,
    INTER_NEAREST_EXACT,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import check_picture, finish, planes, shape_like
from warpkit.opencv.sizes import as_list
from warpkit.opencv.warps import Image
from warpkit.resizing import resize_by
from warpkit.types import FaceResizeArithmetic

FILTERS = {
    INTER_NEAREST: "nearest",
    INTER_LINEAR: "bilinear",
    INTER_CUBIC: "bicubic",
    INTER_AREA: "area",
    INTER_LANCZOS4: "lanczos4",
    INTER_LINEAR_EXACT: "bilinear_exact",
    INTER_NEAREST_EXACT: "nearest_exact",
}
ARITHMETICS: tuple[FaceResizeArithmetic, ...] = get_args(FaceResizeArithmetic)


def resize(
    src: Image,
    dsize: Sequence[int] | None,
    dst: Image | float | None = None,
    fx: float | None = 0,
    fy: float | None = 0,
    interpolation: int | None = INTER_LINEAR,
    *,
    arithmetic: FaceResizeArithmetic = "auto",
) -> Image:
    """cv2.resize: src (H, W) or (H, W, C); dsize (W, H), or None and fx, fy.

    With fx and fy the result is round(W fx) x round(H fy) pixels (half to even), and the sampled
    grid follows fx and fy, not the sizes, as in cv2. interpolation: INTER_NEAREST, _LINEAR, _CUBIC,
    _AREA, _LANCZOS4, _LINEAR_EXACT or _NEAREST_EXACT. arithmetic: "auto", the pixels of the
    installed OpenCV, with IPP if its wheel has it; "opencv4", "opencv5" (IPP off:
    cv2.ipp.setUseIPP(False)), "opencv4_ipp", "opencv5_ipp"; or "exact", by the sizes only.
    Gradients, if src is a tensor: those of `warpkit.resize`. INTER_AREA also takes more than 4
    channels, unlike in cv2. Raises ValueError and TypeError with the argument.

    >>> import numpy as np
    >>> image = np.arange(8, dtype=np.uint8).reshape(2, 4)
    >>> resize(image, None, fx=0.5, fy=0.5, interpolation=INTER_AREA)
    array([[3, 5]], dtype=uint8)
    """
    arithmetic = checks.check_name("resize", "arithmetic", arithmetic, ARITHMETICS)
    arithmetic = installed_resize_arithmetic() if arithmetic == "auto" else arithmetic
    dst = dst if dst is None else check_output("resize", "dst", dst, src)
    return door.call(_plan, (src,), (dsize, fx, fy, interpolation, arithmetic), dst)


def _plan(keeps: bool, src: Any, *others: Any) -> Plan | Once:
    """The plan of `resize`; others: its other arguments."""
    dsize, fx, fy, interpolation, arithmetic = others
    name = "resize"
    check_picture(name, "src", src, None)
    interpolation = INTER_LINEAR if interpolation is None else interpolation
    whole = isinstance(interpolation, Integral) and not isinstance(interpolation, bool)
    if not whole or interpolation not in FILTERS:
        wanted = "one of INTER_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS4, _LINEAR_EXACT, "
        checks.fail(name, "interpolation", wanted + "_NEAREST_EXACT", repr(interpolation))
    size, factors = _size(name, dsize, fx, fy, src.shape)
    chosen, antialias = FILTERS[int(interpolation)], None
    if arithmetic == "exact":
        chosen, factors = chosen.removesuffix("_exact"), None
        antialias = None if chosen == "area" else False
    source = planes(src)
    unchanged = size == tuple(src.shape[:2])
    if unchanged and source.dtype in checks.LABELS:
        chosen, antialias = "nearest", None  # a copy, whatever the interpolation
    rule = ResizeRule(chosen, bool(antialias), arithmetic)
    keeps = keeps and not unchanged and arithmetic != "exact" and source.dtype in OPENCV_TYPES
    keeps = keeps and door.is_dense(src) and source.permute(0, 2, 3, 1).is_contiguous()
    if keeps and select_backend(name, "auto", source, rule) is backend_module("cpu", rule):
        from warpkit.engine.cpu.calls import reader
        from warpkit.engine.cpu.resize import launch

        like, channels = launch.given(source), source.shape[1]
        call = launch.known_opencv(like, size, rule, factors)
        if call is not None and (channels == 1 or like.last):  # one pixel counts as planes
            dtype, shape, of = source.numpy().dtype, shape_like(src, size), reader(src)
            return lambda src: launch.result(call, of(src), dtype).reshape(shape)
    given = (size, chosen, antialias, None, arithmetic, "auto", factors)
    return Once(finish(src, None, resize_by(name, source, *given)))


def _size(
    name: str, dsize: Any, fx: Any, fy: Any, shape: Sequence[int]
) -> tuple[tuple[int, int], tuple[float, float] | None]:
    """(h, w); and (fy, fx) if they determined it."""
    dsize = as_list(name, "dsize", dsize)
    empty = dsize is None or (
        isinstance(dsize, Sequence)
        and len(dsize) in (0, 2)
        and all(isinstance(n, Integral) and int(n) >= 0 for n in dsize)
        and (len(dsize) == 0 or 0 in dsize)
    )
    if not empty:
        width, height = checks.check_size(name, "dsize", dsize, "(W, H)")
        return (height, width), None
    made = []
    for argument, factor, length in (("fy", fy, shape[0]), ("fx", fx, shape[1])):
        factor = 0 if factor is None else factor
        known = isinstance(factor, Real) and not isinstance(factor, bool)
        if not known or not 0 < checks.float64_of(name, argument, factor) < math.inf:
            wanted = "a number above 0 if dsize is None or has a 0"
            checks.fail(name, argument, wanted, f"{factor!r:.60}")
        made.append(round(length * float(factor)))
        if not 1 <= made[-1] < checks.MAX_SIDE:
            wanted = f"a factor that gives at least 1 pixel for {length}"
            checks.fail(name, argument, wanted, f"{factor!r:.60}")
    return (made[0], made[1]), (float(fy), float(fx))
