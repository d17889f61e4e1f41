"""Warps images by matrices, by point fields, and samples them at lists of points.

The module docstring of `warpkit.geometry` states the conventions. Each function validates its
arguments, selects a backend and calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.caller_warnings import warn_of_lost_gradients
from warpkit.core.mistakes import warn_if_16_bit_numbers, warn_if_16_bits, warn_if_no_pixels
from warpkit.core.sharding import batched
from warpkit.engine.backends import takes_wide
from warpkit.engine.backends.coefficients import coefficients
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions import antialias_points
from warpkit.engine.definitions.antialias import warp as antialiased
from warpkit.engine.definitions.fill import checked_fill, opencv_sum_start
from warpkit.engine.definitions.labels import as_bits, as_labels
from warpkit.engine.definitions.layout import restore_memory_format
from warpkit.engine.definitions.maps import added_to_pixels, inverse_map, output_points
from warpkit.engine.definitions.reference import convert, sum_of_taps, with_gradient_of
from warpkit.engine.definitions.rule_names import parse_rule
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.definitions.splines import is_spline
from warpkit.engine.operators.antialias import MeanWarp, is_one_step, mean_warp
from warpkit.types import (
    Arithmetic,
    BackendName,
    Border,
    ImageGradient,
    MatrixLike,
    NumbersLike,
    PointsLike,
    WarpInterpolation,
)
from warpkit.warp_options import (
    WarpOptions,
    backend_for,
    check_options,
    kept_plan,
    validated_options,
)


@batched(image=3, matrix=2, border_value=1, background=3)
def warp_affine(
    image: Tensor,
    matrix: MatrixLike,
    *,
    size: Sequence[int] | None = None,
    interpolation: WarpInterpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    inverse: bool = False,
    background: Tensor | None = None,
    antialias: bool | int = False,
    image_gradient: ImageGradient = "exact",
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Warp images by affine matrices: cv2.warpAffine on tensors, with gradients.

    Args:
        image: (..., C, H, W); float16, bfloat16, float32 or float64, or uint8, int16 or uint16,
            which are rounded and saturated as OpenCV does and carry no gradient. With "nearest"
            also labels: bool, int8, int32, int64, uint32 and uint64, which are copied unchanged.
        matrix: (..., 2, 3), or (..., 3, 3) with the last row (0, 0, 1); source pixel ->
            destination pixel. Its batch and the image's broadcast; a broadcast image is not copied.
        size: (H, W) of the output; None keeps the image's.
        interpolation: "nearest" (ties to even), "bilinear", "bicubic" (a = -0.75), "lanczos4", or
            "spline3" or "spline5": B-splines of that degree through the pixels, as in SciPy. Their
            filter reads the whole image, once, under the same border, so a NaN may spoil its
            channel; they have no "transparent", no "straight_through" and no OpenCV arithmetic.
        border: "constant", "replicate", "reflect", "reflect_101", "wrap" or "transparent", as in
            OpenCV; "zeros" and "border" are torch's names for constant 0 and replicate. Two names,
            (along y, along x), set a border for each axis, except "transparent": a tap outside
            along an axis with a constant border is `border_value`, whatever the other axis does.
        border_value: a number, a sequence of C, or a tensor (C,) or (B, C). A NaN or infinite value
            makes every pixel that reads it, even with weight 0, NaN or infinite. For integer images
            it is rounded (half to even) and saturated; for labels Python integers are exact.
        inverse: the matrix maps destination -> source already (cv2.WARP_INVERSE_MAP).
        background: (..., C, h, w), visible outside the source with border="transparent".
        antialias: if the map minifies, average the image over the output pixel's unit square mapped
            to the source; otherwise (largest singular value <= 1) nothing changes. True computes
            the number of samples from the matrix: less than one source pixel apart, so that every
            visible pixel gets a gradient, at most 256 per axis (16 for a perspective). An integer
            up to 256 fixes the number per axis, which vmap over matrices and ONNX need.
        image_gradient: "exact", or "straight_through": the same result, but the gradient to the
            image takes every neighbour's weight as 1, even if it is 0 (missing taps get none).
            Biased: it reaches pixels of weight 0; see docs/gradients.md.
        arithmetic: "exact", or OpenCV's pixels bit for bit: "opencv4" (4.14) or "opencv5" (5.0);
            see docs/opencv-versions.md. A singular matrix then samples pixel (0, 0), as in OpenCV.
            It chooses the values alone: the gradient is always that of "exact".
        backend: "auto", or "cpu", "cuda", "grid_sample" or "reference", which is used or raises an
            error.

    Returns:
        (..., C, h, w) of the image's type, channels-last if the image is.

    A pixel whose source point is NaN or at least 2^31 pixels away, as with a singular matrix, is
    `border_value` (the background for transparent), with gradient zero to image and matrix.

    Gradients: all orders, forward and reverse, to image, matrix, border value and background;
    nearest has none to the matrix, and warns if it loses one (not for labels).

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    >>> image = torch.arange(6.0).reshape(1, 2, 3)
    >>> warp_affine(image, [[1, 0, 1], [0, 1, 0]])
    tensor([[[0., 0., 1.],
             [0., 3., 4.]]])
    """
    options = ("warp_affine", (2, 3), size, interpolation, border, border_value, inverse)
    options += (background, antialias, image_gradient, arithmetic, backend)
    return plan.call(_plan_warp, (image, matrix), options)


@batched(image=3, matrix=2, border_value=1, background=3)
def warp_perspective(
    image: Tensor,
    matrix: MatrixLike,
    *,
    size: Sequence[int] | None = None,
    interpolation: WarpInterpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    inverse: bool = False,
    background: Tensor | None = None,
    antialias: bool | int = False,
    image_gradient: ImageGradient = "exact",
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Warp images by perspective matrices: cv2.warpPerspective on tensors, with gradients.

    matrix (..., 3, 3), source pixel -> destination pixel; everything else, including errors and
    gradients, as in `warp_affine`. Pixels on the horizon (w = 0) are `border_value`.

    >>> image = torch.arange(6.0).reshape(1, 2, 3)
    >>> warp_perspective(image, [[2, 0, 0], [0, 2, 0], [0, 0, 2]])
    tensor([[[0., 1., 2.],
             [3., 4., 5.]]])
    """
    options = ("warp_perspective", (3,), size, interpolation, border, border_value, inverse)
    options += (background, antialias, image_gradient, arithmetic, backend)
    return plan.call(_plan_warp, (image, matrix), options)


def _plan_warp(
    keeps: bool, image: Tensor, matrix: Any, name: str, rows: tuple[int, ...], *keywords: Any
) -> Plan | Once:
    """The plan of `warp_affine` and `warp_perspective`, whose matrices have `rows` rows.

    image (..., C, H, W); matrix (..., 2 or 3, 3); keywords: theirs, in their order.
    """
    size, interpolation, border, border_value, inverse, background, antialias, *names = keywords
    image_gradient, arithmetic, backend_name = names
    image = checks.check_image(name, "image", image, labels=True)
    rule = parse_rule(name, interpolation, border, arithmetic, splines=True)
    others = (size, inverse, antialias, image_gradient, backend_name)
    options = validated_options(name, image, rule, *others)
    size, backend = options.size, options.backend
    original, matrix = matrix, checks.as_float(name, "matrix", matrix, image.device, torch.float64)
    checks.check_matrix_shape(name, "matrix", matrix, rows)
    if matrix.shape[-2] > rows[0]:
        projective = (matrix[..., 2, :2] != 0).any(-1) | (matrix[..., 2, 2] != 1)
        wanted = "affine, with the last row (0, 0, 1); warp_perspective takes any"
        checks.check_values(name, "matrix", projective, wanted, matrix.detach()[..., 2, :])
        keeps, matrix = False, matrix[..., :2, :]
    checks.check_device(name, "matrix", matrix, image.device)
    if warn_if_16_bit_numbers(name, "matrix", matrix, (image.shape[-2:], size)):
        keeps = False  # the next call warns, too
    warn_of_lost_gradients(name, image, rule.interpolation, matrix=matrix)
    batch = checks.broadcast_batch(name, image=image.shape[:-3], matrix=matrix.shape[:-2])
    shape = (*batch, image.shape[-3], *size)
    fill = checked_fill(name, image, shape, rule, border_value, background)
    more = opencv_sum_start(name, image, shape, rule, border_value)
    bits, by_spline = as_bits(image), is_spline(rule.interpolation)
    direct = antialias is False and image_gradient == "exact" and not by_spline
    if keeps and direct:
        run = kept_plan(backend, image, original, size, fill, rule, forward=not inverse)
        if run is not None:
            return run
    if direct and not inverse:
        result = backend.warp_forward(bits, matrix, size, fill, rule, **more)
    else:
        to_source = matrix.double() if inverse else backend.inverse_map(matrix.double())
        if by_spline:
            filtered = coefficients(backend, image, fill, rule)
            bits, to_source = filtered.image, filtered.matrix(to_source)
        if not inverse and rule.arithmetic != "exact":
            more["values_at"] = inverse_map(matrix.detach().double(), singular=0.0)
        plain = partial(_plain_warp, options, more)
        if antialias is False:
            result = plain(bits, to_source, fill, size)
        elif image_gradient == "exact" and is_one_step(antialias):
            result = mean_warp(MeanWarp(size, rule, name), bits, to_source, fill)
        else:
            wide = None
            if image_gradient == "exact" and takes_wide(backend, bits, to_source, fill):
                wide = partial(_plain_warp, options, more | {"wide": True})
            result = antialiased(name, plain, bits, to_source, size, fill, rule, antialias, wide)
    if by_spline:
        result = convert(result, image.dtype)
    return Once(as_labels(restore_memory_format(result, image), image.dtype))


def _plain_warp(
    options: WarpOptions,
    more: dict[str, Any],
    image: Tensor,
    to_source: Tensor,
    fill: Tensor,
    size: tuple[int, int],
) -> Tensor:
    """One warp of image (..., C, H, W) by to_source (..., 2 or 3, 3); more: OpenCV's arguments."""
    rule, warp = options.rule, options.backend.warp
    if options.image_gradient == "exact":
        return warp(image, to_source, size, fill, rule, **more)
    value = warp(image.detach(), to_source, size, fill, rule, **more)
    points = output_points(to_source.detach(), size)
    # zeros with the image's gradient: sums of its own values could overflow
    zeros = with_gradient_of(torch.zeros_like(image), image)
    nothing = torch.zeros((), dtype=fill.dtype, device=image.device)
    return with_gradient_of(value, sum_of_taps(zeros, points, nothing, rule, weighted=False))


@batched(image=3, points=3, border_value=1, background=3)
def remap(
    image: Tensor,
    points: PointsLike,
    *,
    interpolation: WarpInterpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
    background: Tensor | None = None,
    relative: bool = False,
    antialias: bool | int = False,
    arithmetic: Arithmetic = "exact",
    backend: BackendName = "auto",
) -> Tensor:
    """Sample images at a point field: cv2.remap on tensors, with gradients.

    points (..., h, w, 2), the source pixel (x, y) of every output pixel, or with relative=True
    (cv2.WARP_RELATIVE_MAP) its offset from that pixel, added in float64; image and points broadcast
    over their batches. antialias: if neighbouring points lie more than a pixel apart, average over
    the output pixel's square, mapped by the differences to its neighbours; True takes at most 16
    samples per axis. Returns (..., C, h, w). Everything else as in `warp_affine`; gradients also to
    the points, except nearest's.

    >>> image = torch.arange(6.0).reshape(1, 2, 3)
    >>> remap(image, [[[0.5, 0.0], [2.0, 1.0]]])
    tensor([[[0.5000, 5.0000]]])
    """
    name = "remap"
    options = (interpolation, border, border_value, background, relative, antialias)
    options += (arithmetic, backend)
    return plan.call(_plan_remap, (image, points), (name, *options))


def _plan_remap(keeps: bool, image: Tensor, points: Any, name: str, *keywords: Any) -> Plan | Once:
    """The plan of `remap`: image (..., C, H, W), points (..., h, w, 2), keywords in their order."""
    interpolation, border, border_value, background, relative, antialias, *names = keywords
    arithmetic, backend = names
    image = checks.check_image(name, "image", image, labels=True)
    rule = parse_rule(name, interpolation, border, arithmetic, splines=True)
    checks.check_bool(name, "relative", relative)
    arguments = (name, image, points, rule, border_value, background, backend)
    return plan_sampling(keeps, *arguments, relative=relative, antialias=antialias)


def remap_by(*arguments: Any, **options: Any) -> Tensor:
    """`remap` under a rule, with the other arguments of `plan_sampling`."""
    return plan.once(plan_sampling(False, *arguments, **options))


def plan_sampling(
    keeps: bool,
    name: str,
    image: Tensor,
    points: Any,
    rule: SamplingRule,
    border_value: Any,
    background: Tensor | None,
    backend: str,
    *,
    relative: bool = False,
    antialias: bool | int = False,
    made_of: Mapping[str, Any] | None = None,
    **options: Any,
) -> Plan | Once:
    """The plan of `remap` under a rule; options go to the backend (see `backends.opencv`).

    image (..., C, H, W), whose layout the caller has checked; points (..., h, w, 2), `made_of`
    arguments; background (..., C, h, w).
    """
    argument = ", ".join(made_of or ("points",))
    image = checks.check_image(name, "image", image, labels=True, look=False)
    check_options(name, rule, False, antialias, "exact")
    module = backend_for(name, backend, image, rule)
    original, points = points, checks.as_float(name, argument, points, image.device, torch.float64)
    checks.check_device(name, argument, points, image.device)
    if points.ndim < 3 or points.shape[-1] != 2 or 0 in points.shape[-3:]:
        checks.fail(name, argument, "of shape (..., h, w, 2)", checks.shape_of(points))
    checks.check_labels(name, "antialias", antialias, image.dtype, "False", antialias is False)
    warn_of_lost_gradients(name, image, rule.interpolation, **(made_of or {argument: points}))
    adds = relative and antialias is False and not is_spline(rule.interpolation)
    adding = getattr(module, "sample_offsets", None) if adds else None
    if relative and adding is None:
        points = added_to_pixels(points)
    sample = adding or module.sample  # `adding` does so when it reads
    batch = checks.broadcast_batch(name, image=image.shape[:-3], **{argument: points.shape[:-3]})
    shape = (*batch, image.shape[-3], *points.shape[-3:-1])
    fill = checked_fill(name, image, shape, rule, border_value, background)
    sum_start = opencv_sum_start(name, image, shape, rule, border_value)
    sides, look = image.shape[-2:], not relative and made_of is None
    by_spline = is_spline(rule.interpolation)
    if keeps and antialias is False and not (sum_start or options or by_spline):
        run = kept_plan(module, image, original, shape[-2:], fill, rule, relative=relative)
        if run is not None:
            return partial(_look_and_run, name, sides, run) if look else run
    if look:
        warn_if_no_pixels(name, points, sides)
    bits = as_bits(image)
    if by_spline:
        filtered = coefficients(module, image, fill, rule)
        bits, points = filtered.image, filtered.points(points)
    if is_one_step(antialias):
        result = mean_warp(MeanWarp(shape[-2:], rule, name), bits, points, fill)
    elif antialias is not False:
        plain = partial(sample, rule=rule)
        wide = partial(plain, wide=True) if takes_wide(module, bits, points, fill) else None
        result = antialias_points.sample(name, plain, bits, points, fill, rule, antialias, wide)
    else:
        result = sample(bits, points, fill, rule, **sum_start, **options)
    if by_spline:
        result = convert(result, image.dtype)
    return Once(as_labels(restore_memory_format(result, image), image.dtype))


def _look_and_run(
    name: str, sides: Sequence[int], run: Plan, image: Tensor, points: Tensor
) -> Tensor:
    """A plan that also looks at the points, (..., h, w, 2), of each call."""
    warn_if_no_pixels(name, points, sides)
    return run(image, points)


@batched(image=3, points=2, border_value=1)
def sample_pixels(
    image: Tensor,
    points: PointsLike,
    *,
    interpolation: WarpInterpolation = "bilinear",
    border: Border = "constant",
    border_value: NumbersLike = 0.0,
) -> Tensor:
    """The values of images at lists of points, with gradients to both.

    points (..., N, 2), (x, y) in pixels; image (..., C, H, W). Returns (..., C, N). Rules, errors
    and gradients as in `remap`; border="transparent" has no meaning here and raises an error.

    >>> image = torch.arange(6.0).reshape(1, 2, 3)
    >>> sample_pixels(image, [[0.0, 0.5], [1.25, 0.0]])
    tensor([[1.5000, 1.2500]])
    """
    name = "sample_pixels"
    image = checks.check_image(name, "image", image, labels=True)
    rule = parse_rule(name, interpolation, border, "exact", splines=True)
    module = backend_for(name, "auto", image, rule)
    points = checks.as_float(name, "points", points, image.device, torch.float64)
    if points.ndim < 2 or points.shape[-1] != 2:
        checks.fail(name, "points", "of shape (..., N, 2)", checks.shape_of(points))
    checks.check_device(name, "points", points, image.device)
    warn_if_16_bits(name, "points", points, image.shape[-2:])
    if isinstance(border, str) and border == "transparent":
        wanted = "a border other than 'transparent': a list of points has no background"
        checks.fail(name, "border", wanted, repr(border))
    warn_of_lost_gradients(name, image, rule.interpolation, points=points)
    batch = checks.broadcast_batch(name, image=image.shape[:-3], points=points.shape[:-2])
    shape = (*batch, image.shape[-3], 1, points.shape[-2])
    fill = checked_fill(name, image, shape, rule, border_value, None)
    if points.shape[-2] == 0:
        return image.new_zeros((*batch, image.shape[-3], 0))
    points, bits = points[..., None, :, :], as_bits(image)
    if is_spline(rule.interpolation):
        filtered = coefficients(module, image, fill, rule)
        values = module.sample(filtered.image, filtered.points(points), fill, rule)
        return convert(values, image.dtype)[..., 0, :]
    return as_labels(module.sample(bits, points, fill, rule), image.dtype)[..., 0, :]
