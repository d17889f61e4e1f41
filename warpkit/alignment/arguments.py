"""Validates the arguments of `align`, and makes pairs of one type."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from numbers import Integral, Real
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.alignment import pyramid
from warpkit.alignment.coarse_to_fine import Options
from warpkit.alignment.models import GENERATORS, MODELS
from warpkit.alignment.pyramid import Pairs
from warpkit.core import checks
from warpkit.core.numbers import check_count
from warpkit.core.tracing import is_transformed
from warpkit.engine.definitions.maps import to_3x3
from warpkit.types import AlignmentLoss

NAME = "align"
LOSSES: tuple[AlignmentLoss, ...] = ("ecc", "ssd", "robust")
SMALLEST = 16
"""The least number of pixels along a side of an image."""

LEAST_SIDE = 8
"""The same for the coarsest level that `levels` requests."""


class Arguments(NamedTuple):
    """The validated arguments of `align`."""

    pairs: Pairs
    """One pair for each entry of the flattened batch."""
    batch: tuple[int, ...]
    to_source: Tensor | None
    """The initial matrices, (N, 3, 3), if given."""
    searches: bool
    options: Options


def check(
    moving: Tensor,
    fixed: Tensor,
    masks: Sequence[Any],
    init: Any,
    model: object,
    loss: object,
    levels: object,
    limits: tuple[object, object],
) -> Arguments:
    """Validates moving (..., C, H, W), fixed (..., C, h, w), their masks, and the other arguments.

    limits: steps and tolerance.
    """
    images = [
        checks.check_image(NAME, argument, image)
        for argument, image in (("moving", moving), ("fixed", fixed))
    ]
    for argument, image in zip(("moving", "fixed"), images, strict=True):
        checks.check_held(NAME, argument, image)
        if min(image.shape[-2:]) < SMALLEST:
            wanted = f"of at least {SMALLEST} pixels a side"
            checks.fail(NAME, argument, wanted, checks.shape_of(image))
        if is_transformed(image):
            wanted = "a tensor outside of vmap and torch.func: values decide the number of steps"
            checks.fail(NAME, argument, wanted, "one inside of them")
    checks.check_device(NAME, "fixed", images[1], images[0].device, "`moving`")
    if images[0].shape[-3] != images[1].shape[-3]:
        got = f"moving {checks.shape_of(images[0])} and fixed {checks.shape_of(images[1])}"
        checks.fail(NAME, "fixed", "of as many channels as `moving`", got)
    model = checks.check_name(NAME, "model", model, MODELS)
    loss = checks.check_name(NAME, "loss", loss, LOSSES)
    steps, tolerance = _limits(*limits)
    sizes = [(image.shape[-2], image.shape[-1]) for image in images]
    count = _levels(levels, sizes)
    shapes = {"moving": images[0].shape[:-3], "fixed": images[1].shape[:-3]}
    batch = checks.broadcast_batch(NAME, **shapes)
    wide = torch.float64 in (images[0].dtype, images[1].dtype)
    dtype = torch.float64 if wide else torch.float32
    flat = [_flat(image.to(dtype), batch) for image in images]
    weights = [
        _mask(argument, mask, image, batch, dtype)
        for argument, mask, image in zip(("moving_mask", "fixed_mask"), masks, images, strict=True)
    ]
    to_source = None
    searches = isinstance(init, str) and init == "search"
    if not searches and init is not None:
        to_source = _start(init, model, batch, images[0].device)
    pairs = Pairs(flat[0], flat[1], weights[0], weights[1])
    options = Options(model, loss, count, steps, tolerance)
    return Arguments(pairs, batch, to_source, searches, options)


def _flat(tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    """Images (..., C, H, W) as dense (N, C, H, W), one for each entry of the batch."""
    whole = tensor.expand(*batch, *tensor.shape[-3:]).reshape(prod(batch), *tensor.shape[-3:])
    return whole.contiguous()


def _mask(
    argument: str, mask: Any, image: Tensor, batch: tuple[int, ...], dtype: torch.dtype
) -> Tensor | None:
    """The mask of image (..., C, H, W) as weights (N, 1, H, W) in [0, 1]."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        checks.fail(NAME, argument, "a tensor or None", type(mask).__name__, TypeError)
    checks.check_device(NAME, argument, mask, image.device)
    checks.check_last(NAME, argument, mask, 1, *image.shape[-2:])
    both = {argument: mask.shape[:-3], "images": batch}
    if checks.broadcast_batch(NAME, **both) != tuple(batch):
        checks.fail(NAME, argument, f"of the batch {tuple(batch)}", checks.shape_of(mask))
    weight = mask.to(dtype) if mask.is_floating_point() else (mask != 0).to(dtype)
    return _flat(weight.detach().nan_to_num(0.0).clamp(0, 1), batch)


def _start(init: Any, model: str, batch: tuple[int, ...], device: torch.device) -> Tensor:
    """The initial matrices moving -> fixed, inverted to to_source (N, 3, 3)."""
    if isinstance(init, str):
        checks.fail(NAME, "init", "None, 'search' or matrices", repr(init))
    matrix = checks.as_float(NAME, "init", init, device, torch.float64).detach().double()
    checks.check_device(NAME, "init", matrix, device)
    projective = any(any(generator[2]) for generator in GENERATORS[model])
    rows = 3 if projective else 2
    if matrix.shape[-2:] != (rows, 3):
        wanted = f"of shape (..., {rows}, 3) for model={model!r}"
        checks.fail(NAME, "init", wanted, checks.shape_of(matrix))
    if checks.broadcast_batch(NAME, init=matrix.shape[:-2], images=batch) != tuple(batch):
        checks.fail(NAME, "init", f"of the batch {tuple(batch)}", checks.shape_of(matrix))
    to_source, failed = torch.linalg.inv_ex(to_3x3(matrix))
    bad = (failed != 0) | ~to_source.flatten(-2).isfinite().all(-1)
    checks.check_values(NAME, "init", bad, "finite and invertible")
    return to_source.expand(*batch, 3, 3).reshape(prod(batch), 3, 3)


def _levels(levels: object, sizes: list[tuple[int, int]]) -> int:
    if levels is None:
        return pyramid.most_levels(*sizes)
    deepest = pyramid.most_levels(*sizes, smallest=LEAST_SIDE)
    wanted = f"None or an integer from 1 to {deepest} for images of these sizes"
    if not isinstance(levels, Integral) or isinstance(levels, bool):
        checks.fail(NAME, "levels", wanted, repr(levels), TypeError)
    count = int(levels)
    if not 1 <= count <= deepest:
        checks.fail(NAME, "levels", wanted, levels)
    return count


def _limits(steps: object, tolerance: object) -> tuple[int, float]:
    count = check_count(NAME, "steps", steps)
    if not isinstance(tolerance, Real) or isinstance(tolerance, bool):
        checks.fail(NAME, "tolerance", "a number above 0", repr(tolerance), TypeError)
    pixels = checks.float64_of(NAME, "tolerance", tolerance)
    if not pixels > 0:
        checks.fail(NAME, "tolerance", "a number above 0", tolerance)
    return count, pixels
