"""Resizes images, a box of them, or any axes of a tensor, by sampling or averaging."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.choices import AXES_ARITHMETICS
from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_16_bit_numbers, warn_if_relative_boxes
from warpkit.core.sharding import Layout, Shapes, batched, shardable
from warpkit.core.tracing import peel
from warpkit.engine.arithmetic import resize as arithmetics
from warpkit.engine.backends.resizing import BACKENDS, backend_module, select_backend
from warpkit.engine.backends.resizing import resize as resize_with
from warpkit.engine.backends.resizing_axes import resize_axes as resize_along
from warpkit.engine.backends.resizing_axes import within_range
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.labels import as_bits, as_labels
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.resize import Edges, ResizeRule
from warpkit.types import (
    Aligned,
    AxesArithmetic,
    Continuation,
    Filter,
    NumbersLike,
    ResizeArithmetic,
    ResizeBackendName,
)


@batched(image=3, box=1)
def resize(
    image: Tensor,
    size: Sequence[int] | float,
    *,
    interpolation: Filter = "bilinear",
    antialias: bool | None = None,
    box: NumbersLike | None = None,
    arithmetic: ResizeArithmetic = "exact",
    border: Continuation | None = None,
    aligned: Aligned | None = None,
    backend: ResizeBackendName = "auto",
) -> Tensor:
    """Resize images: cv2.resize, PIL.Image.resize or F.interpolate on tensors, with gradients.

    Output pixel i samples (i + 1/2) scale - 1/2, where scale = W / w (along x). Nothing is read
    outside the image: without antialias its border is replicated; with it the weights outside are
    dropped and the rest normalised.

    Args:
        image: (..., C, H, W); float16, bfloat16, float32 or float64, or uint8, int16 or uint16,
            which are rounded half to even and saturated and carry no gradient. With "nearest"
            (and OpenCV's "nearest_exact") labels too: bool, int8, int32, int64, uint32 and uint64.
        size: (h, w) of the output; or an integer, the length of the shorter side, with the longer
            one by the aspect, rounded down, as in torchvision; or a float, the factor of both
            sides, which are rounded half to even as in cv2 (both without a box). If it equals the
            image's and there is no box, the result is the image.
        interpolation: without antialias "nearest" (ties to even), "bilinear", "bicubic" (a = -0.75)
            or "lanczos4", the same numbers as `warp_affine` with the scale's matrix and
            border="replicate", or "spline2" to "spline5", of that degree and through the pixels.
            With antialias "box", "bilinear", "hamming", "bicubic" (a = -0.5) or "lanczos" (3
            lobes), stretched by the scale if the image shrinks, or "area", the mean over each
            output pixel's rectangle, also if the image grows. Other arithmetics have their own
            names.
        antialias: None means True if the arithmetic and the filter support it.
        box: (x1, y1, x2, y2), the part to resize, in edge coordinates inside the image: an integer
            box is the slice [y1:y2, x1:x2]. Taps may leave the box, not the image.
        arithmetic: "exact"; cv2.resize's pixels bit for bit, "opencv4" (4.14) or "opencv5" (5.0)
            with IPP off, "opencv4_ipp" or "opencv5_ipp" as the x86 wheels ship it; these have
            "nearest", "nearest_exact", "bilinear", "bilinear_exact", "bicubic", "area" and
            "lanczos4". "pillow": the installed PIL.Image.resize's pixels (Pillow 13's if none is
            installed), for uint8 (each channel alone), uint16 (mode I;16) and float32 (mode F)
            images, with "nearest", "box", "bilinear", "hamming", "bicubic" and "lanczos".
            "torchvision": torchvision's pixels for tensors, F.interpolate's own, with "nearest",
            "nearest_exact", "area" (means of whole pixels), "bilinear" and "bicubic" (antialiased
            or not, a = -0.5 and -0.75), and "lanczos": for uint8 the integers that torch computes
            on a CPU with AVX2, on every processor; for floats F.interpolate itself.
            "scipy": scipy.ndimage.zoom's numbers at this size, orders 0 to 5 as "nearest",
            "bilinear" and "spline2" to "spline5"; integers round half away from zero. "skimage":
            skimage.transform.resize's with preserve_range=True, of the same orders: without
            antialias=False a Gaussian first, along axes that shrink; at last each image is clamped
            to its own range. Both agree to rounding, and "nearest" takes the same pixels.
        border: how "scipy" and "skimage" continue the image: "reflect_101" (None; their "mirror"
            and "reflect"), "reflect" ("reflect" and "symmetric"), "wrap" ("grid-wrap" and "wrap")
            or "replicate" ("nearest" and "edge").
        aligned: what "scipy" aligns: the "corners", pixels at the ends (None; grid_mode=False), or
            the "centers", the grid of pixels (grid_mode=True; "skimage" has only these).
        backend: "auto", or "cpu" or "reference", which is used or raises an error.

    Returns:
        (..., C, h, w) of the image's type, channels-last if the image is.

    Gradients: all orders, forward and reverse, to the image and the box (none with nearest to the
    box). `arithmetic` chooses the values alone: the gradient is that of "exact" at the same
    arguments. "torchvision" of floats has F.interpolate's, "scipy" and "skimage" have that of their
    own numbers, and interpolations that only move pixels have that of the pixels they show. A NaN
    may spoil its channel under a spline or a Gaussian, else only what reads it.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    F.interpolate(image, size, mode="bilinear", antialias=True) is the default;
    interpolation="area" is cv2.INTER_AREA if the image shrinks.

    >>> image = torch.arange(8.0).reshape(1, 2, 4)
    >>> resize(image, (1, 2), interpolation="area")
    tensor([[[2.5000, 4.5000]]])
    """
    wanted: Any = size
    if isinstance(size, (*WHOLE_NUMBERS, float)) and not isinstance(size, bool):
        wanted = _scale(size, checks.check_image("resize", "image", image, labels=True), box)
    options = ("resize", wanted, interpolation, antialias, box, arithmetic, backend, None)
    return plan.call(_plan_resize, (image,), (*options, border, aligned))


def _other_axes(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """All axes of `resize_axes` but those that it resizes may be sharded."""
    count, axes = len(shapes["array"]), options.get("axes")
    if axes is None and isinstance(options["size"], Sequence):
        axes = range(-len(options["size"]), 0)
    if not isinstance(axes, Sequence) or not all(isinstance(axis, int) for axis in axes):
        axes = range(count)  # an error later
    resized_axes = {axis % count for axis in axes} if count else set()
    labels = tuple(None if axis in resized_axes else axis for axis in range(count))
    return Layout({"array": labels}, (labels,))


@shardable(_other_axes, "array")
def resize_axes(
    array: Tensor,
    size: Sequence[int],
    *,
    axes: Sequence[int] | None = None,
    interpolation: Filter = "bilinear",
    antialias: bool | None = None,
    arithmetic: AxesArithmetic = "exact",
    border: Continuation | None = None,
    aligned: Aligned | None = None,
) -> Tensor:
    """Resize any axes of a tensor: scipy.ndimage.zoom, or skimage's resize, with gradients.

    For volumes (D, H, W), series, or channels: each axis is resized alone, by `resize`'s numbers
    along it; the order of sums may change the last bits.

    Args:
        array: (...), of a type that images of `resize` have, with any number of dimensions.
        size: the new length of each of `axes`, in their order, at least 1.
        axes: the axes to resize, different ones, negative ones from the end; None means the last
            len(size). Others, empty ones too, are carried along.
        interpolation, antialias: as in `resize` under the same arithmetic.
        arithmetic: "exact", "scipy" or "skimage", as in `resize`; "skimage" clamps to the range
            over `axes`, for each entry of the others.
        border, aligned: as in `resize`, for "scipy" and "skimage".

    Returns:
        A dense tensor of the array's type.

    Gradients: all orders, forward and reverse, to the array.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    scipy.ndimage.zoom(array, factors, order=3) is resize_axes(array, size, interpolation="spline3",
    arithmetic="scipy"), with size = round(n * factor) for each axis.

    >>> line = torch.tensor([[0.0, 1.0, 4.0]])
    >>> resize_axes(line, [5], interpolation="spline3", arithmetic="scipy").abs().round(decimals=4)
    tensor([[0.0000, 0.1250, 1.0000, 2.8750, 4.0000]])
    """
    name = "resize_axes"
    if not isinstance(array, Tensor):
        checks.fail(name, "array", "a tensor", checks.kind_of(array), TypeError)
    checks.check_no_dtensor(name, "array", array)
    checks.check_dense(name, "array", array)
    if array.dtype not in checks.FLOATS + checks.INTEGERS + checks.LABELS:
        wanted = f"of one of the types {checks.names_of(checks.FLOATS + checks.INTEGERS)}"
        wanted += f", with 'nearest' also {checks.names_of(checks.LABELS)}"
        checks.fail(name, "array", wanted, array.dtype, TypeError)
    options = (interpolation, antialias, arithmetic, border, aligned, AXES_ARITHMETICS)
    rule = arithmetics.parse_rule(name, *options)
    fits = rule.interpolation == "nearest"
    checks.check_labels(name, "interpolation", interpolation, array.dtype, "'nearest'", fits)
    lengths = _lengths(name, size)
    numbers = _axes(name, axes, len(lengths), array)
    for axis in numbers:
        if array.shape[axis] < 1:
            wanted = "at least one element along `axes`"
            checks.fail(name, "array", wanted, f"shape {checks.shape_of(array)}")
    pairs = list(zip(numbers, lengths, strict=True))
    if all(array.shape[axis] == length for axis, length in pairs):
        return array.clone()
    if 0 in array.shape:
        shape = [dict(pairs).get(axis, length) for axis, length in enumerate(array.shape)]
        return array.new_empty(shape)
    module = select_backend(name, "auto", array, rule)
    values = resize_along(module, array, pairs, rule)
    if rule.arithmetic == "skimage" and rule.interpolation != "nearest":
        values = within_range(values, array, numbers)
    return values


def _lengths(name: str, size: Any) -> list[int]:
    """The new lengths of the axes."""
    wanted = "whole numbers of at least 1, one for each axis"
    if isinstance(size, np.ndarray) and size.ndim == 1:
        size = tuple(size)
    if not isinstance(size, Sequence) or isinstance(size, checks.TEXT) or not size:
        got = checks.kind_of(size) if isinstance(size, Tensor) else f"{size!r:.60}"
        checks.fail(name, "size", wanted, got, TypeError)
    if not all(isinstance(n, WHOLE_NUMBERS) and not isinstance(n, bool) for n in size):
        checks.fail(name, "size", wanted, f"{size!r:.60}", TypeError)
    lengths = [plain_integer(number) for number in size]
    if any(length < 1 or length >= checks.MAX_SIDE for length in lengths):
        checks.fail(name, "size", wanted + " and below 2^31", f"{size!r:.60}")
    return lengths


def _axes(name: str, axes: Any, count: int, array: Tensor) -> list[int]:
    """The axes that are resized, counted from 0; count: the number of lengths."""
    ndim = array.ndim
    if axes is None:
        if count > ndim:
            wanted = f"at most {ndim} numbers for an array of shape {checks.shape_of(array)}"
            checks.fail(name, "size", wanted, f"{count}")
        return list(range(ndim - count, ndim))
    wanted = f"different whole numbers from {-ndim} to {ndim - 1}, the axes of an array of shape "
    wanted += f"{checks.shape_of(array)}"
    if not isinstance(axes, Sequence) or isinstance(axes, checks.TEXT):
        checks.fail(name, "axes", wanted, f"{axes!r:.60}", TypeError)
    if not all(isinstance(a, WHOLE_NUMBERS) and not isinstance(a, bool) for a in axes):
        checks.fail(name, "axes", wanted, f"{axes!r:.60}", TypeError)
    plain = [plain_integer(axis) for axis in axes]
    result = [axis % ndim for axis in plain if -ndim <= axis < ndim]
    if len({*result}) != len(plain):
        checks.fail(name, "axes", wanted, f"{axes!r:.60}")
    if len(plain) != count:
        wanted = f"{len(plain)} numbers, one for each of `axes`, {tuple(plain)}"
        checks.fail(name, "size", wanted, f"{count}")
    return result


def _scale(size: Any, image: Tensor, box: Any) -> tuple[int, int]:
    """(h, w) for a shorter side or a factor of an image (..., C, H, W)."""
    height, width = image.shape[-2:]
    if box is not None:
        checks.fail("resize", "size", "(h, w), two integers, with a box", size)
    if isinstance(size, float):
        sides = [round(side * size) if 0 < size < math.inf else 0 for side in (height, width)]
        if min(sides) < 1:
            wanted = f"a factor that leaves at least one of {height} rows and {width} columns"
            checks.fail("resize", "size", wanted, size)
        return sides[0], sides[1]
    size = plain_integer(size)
    if size < 1:
        checks.fail("resize", "size", "a shorter side of at least 1", size)
    if height <= width:
        return size, size * width // height
    return size * height // width, size


def resize_by(name: str, image: Tensor, *options: Any) -> Tensor:
    """`resize` for another function; options: as in `_plan_resize`."""
    return plan.once(_plan_resize(False, image, name, *options))


def _plan_resize(
    keeps: bool,
    image: Tensor,
    name: str,
    size: Sequence[int],
    interpolation: str,
    antialias: bool | None,
    box: Any,
    arithmetic: str,
    backend: str,
    factors: tuple[float, float] | None,
    border: Any = None,
    aligned: Any = None,
) -> Plan | Once:
    """The plan of `resize`, image (..., C, H, W); factors: cv2.resize's (fy, fx), if it got no
    size."""
    image = checks.check_image(name, "image", image, labels=True)
    rule = arithmetics.parse_rule(name, interpolation, antialias, arithmetic, border, aligned)
    arithmetics.check_image_type(name, image, rule)
    wanted = checks.check_size(name, "size", size)
    backend = checks.check_name(name, "backend", backend, ("auto", *BACKENDS))
    edges = None if box is None else _edges(name, box, image, rule)
    module = select_backend(name, backend, image, rule)
    if edges is None and tuple(image.shape[-2:]) == tuple(wanted):
        return Once(image.clone())
    # a box of shares warns each time
    plain = not image.requires_grad and image.dtype not in checks.LABELS
    if keeps and plain and (box is None or max(box) > 1) and module is backend_module("cpu", rule):
        run = module.kept(image, wanted, rule, edges)
        if run is not None:
            return lambda image: restore_memory_format(run(image), image)
    result = resize_with(module, as_bits(image), wanted, rule, edges, factors)
    return Once(as_labels(restore_memory_format(result, image), image.dtype))


LIBRARIES = {
    "torchvision": "F.interpolate",
    "scipy": "scipy.ndimage.zoom",
    "skimage": "skimage.transform.resize",
}
"""The functions without a box, by their arithmetics; cv2.resize is OpenCV's."""


def _edges(name: str, box: Any, image: Tensor, rule: ResizeRule) -> tuple[Edges, Edges]:
    """The box's edges along x and along y; as plain numbers if it needs no gradient."""
    if rule.arithmetic not in ("exact", "pillow"):
        library = LIBRARIES.get(rule.arithmetic, "cv2.resize")
        wanted = f"None with arithmetic={rule.arithmetic!r}: {library} has none (image[..., "
        checks.fail(name, "box", wanted + "y1:y2, x1:x2] is a slice)", f"{box!r:.60}")
    height, width = image.shape[-2:]
    wanted = f"(x1, y1, x2, y2) with 0 <= x1 < x2 <= {width} and 0 <= y1 < y2 <= {height}"
    if isinstance(box, checks.LISTS) and len(box) == 4 and all(map(_is_number, box)):
        x1, y1, x2, y2 = (checks.float64_of(name, "box", n) for n in box)
        if not (0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height):
            checks.fail(name, "box", wanted, f"({x1:g}, {y1:g}, {x2:g}, {y2:g})")
        if max(x2, y2) <= 1:
            numbers = torch.tensor((x1, y1, x2, y2), dtype=torch.float64, device="cpu")
            warn_if_relative_boxes(name, numbers, (height, width), "box")
        return Edges(x1, x2, x2 - x1), Edges(y1, y2, y2 - y1)
    box = checks.as_float(name, "box", box, image.device, torch.float64)
    if tuple(box.shape) != (4,):
        checks.fail(name, "box", "(x1, y1, x2, y2), of shape (4,)", checks.shape_of(box))
    checks.check_device(name, "box", box, image.device)
    warn_of_lost_gradients(name, image, rule.interpolation, box=box)
    x1, y1, x2, y2 = box.double().unbind(-1)
    good = (x1 >= 0) & (y1 >= 0) & (x1 < x2) & (y1 < y2) & (x2 <= width) & (y2 <= height)
    checks.check_values(name, "box", ~good, wanted, box.detach())
    warn_if_relative_boxes(name, box, (height, width), "box")
    warn_if_16_bit_numbers(name, "box", box, ((height, width),))
    values = peel(box)
    if values is None or values.is_meta:
        if rule.arithmetic == "pillow":
            wanted = "four numbers, or a tensor that holds values, with arithmetic='pillow'"
            checks.fail(name, "box", wanted, "one under vmap, torch.compile, export or on meta")
        values = None
    if values is None or (values.device.type != "cpu" and rule.arithmetic == "exact"):
        # if values cannot be read: at most as long as the image, and NaN for an invalid box
        x1, y1, x2, y2 = (torch.where(good, edge, torch.nan) for edge in (x1, y1, x2, y2))
        return Edges(x1, x2, width), Edges(y1, y2, height)
    u1, v1, u2, v2 = (edge.item() for edge in values.detach().double().unbind(-1))
    along_x, along_y = Edges(u1, u2, u2 - u1), Edges(v1, v2, v2 - v1)
    if not arithmetics.box_has_gradient(box, rule):
        return along_x, along_y
    return Edges(x1, x2, along_x.longest), Edges(y1, y2, along_y.longest)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
