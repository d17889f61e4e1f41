"""Resizes images as Pillow and torchvision do for image processors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.pictures import carry
from warpkit.attacks.processors.sizes import Options, Size
from warpkit.core import checks, tracing
from warpkit.engine.arithmetic.torch_resize import has_kernel
from warpkit.resizing import resize
from warpkit.types import Filter, ResizeArithmetic

FILTERS: tuple[Filter, ...] = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Filters, indexed by Pillow's numbers."""


def filter_name(options: Options, number: int | None = None) -> Filter:
    """The name of a configuration's filter, or of another Pillow number."""
    number = options.get("resample") if number is None else number
    name = FILTERS[2 if number is None else number]
    if options["library"] == "torchvision" and name in ("box", "hamming"):
        wanted = "one of 'nearest', 'lanczos', 'bilinear', 'bicubic' with torchvision, which has no"
        checks.fail("from_processor", "resample", f"{wanted} other", repr(name))
    return name


def resample(
    picture: Tensor,
    size: Size,
    options: Options,
    number: int | None = None,
    gap: float | None = None,
) -> Tensor:
    """Resizes (N, C, H, W) with the configuration's library; an equal size changes nothing.

    gap: Pillow's reducing_gap: the picture is first reduced by whole numbers.
    """
    name, before = filter_name(options, number), (picture.shape[-2], picture.shape[-1])
    if min(size) < 1:
        wanted = "such that no side becomes 0"
        checks.fail("from_processor", "images", wanted, f"{before}, which becomes {size}")
    if options.get("aligned"):  # corners are aligned, on floats, for either library
        return as_on_cpu(partial(F.interpolate, size=size, mode=name, align_corners=True), picture)
    if size == before:
        return picture
    if options["library"] == "torchvision":
        return resample_tensor(picture, size, name, options)
    if 0 in before:  # a crop of size 0, which Pillow enlarges to black
        return picture.new_zeros((*picture.shape[:-2], *size))
    box, factors = None, (1, 1)
    if gap is not None and name != "nearest":
        factors = tuple(int(old / new / gap) or 1 for old, new in zip(before, size, strict=True))
    if factors != (1, 1):
        picture = reduced(picture, factors)
        box = (0.0, 0.0, before[1] / factors[1], before[0] / factors[0])
    return resize(picture, size, interpolation=name, box=box, arithmetic="pillow")


def resample_tensor(picture: Tensor, size: Size, name: Filter, options: Options) -> Tensor:
    """Resizes a tensor (N, C, H, W) as torchvision does."""
    if name == "nearest":
        name = options.get("nearest", "nearest_exact")
        return resize(picture, size, interpolation=name, arithmetic="torchvision")
    antialias = options.get("antialias", True)
    floats = picture.is_floating_point()
    whose: ResizeArithmetic = "torchvision"
    if name == "lanczos" and floats and not has_kernel(name, True, torch.float32, "cpu"):
        whose = "exact"  # before torch 2.14: the gradient of the same filter
    resized = partial(resize, size=size, interpolation=name, antialias=antialias, arithmetic=whose)
    return as_on_cpu(resized, picture) if floats else resized(picture)


def as_on_cpu(function: Callable[[Tensor], Tensor], floats: Tensor) -> Tensor:
    """A resize of floats (N, C, H, W): on other devices the CPU's value, with its own gradient.

    torch's kernels of other devices round elsewhere, which is a level of 8 bits at times.
    """
    if floats.device.type == "cpu" or not tracing.is_eager(floats):
        return function(floats)
    value = function(floats.detach().cpu()).to(floats.device)
    return carry(value, function(floats)) if tracing.wants_gradient(floats) else value


def reduced(picture: Tensor, factors: tuple[int, ...]) -> Tensor:
    """PIL.Image.reduce of (N, C, H, W): means of blocks, smaller ones at the end."""
    sums = picture if picture.is_floating_point() else picture.to(torch.int64)
    counts = torch.ones(picture.shape[-2:], dtype=torch.int64, device=picture.device)
    for dim, factor in zip((-2, -1), factors, strict=True):
        rest = -sums.shape[dim] % factor
        ends = (0, rest) if dim == -1 else (0, 0, 0, rest)
        sums, counts = (
            F.pad(part, ends).unflatten(dim, (-1, factor)).sum(dim) for part in (sums, counts)
        )
    if sums.is_floating_point():
        return sums / counts
    # Pillow divides by multiplying with a truncated multiplier
    return ((sums + counts // 2) * ((1 << 24) // counts) >> 24).to(torch.uint8)


def mirrored(picture: Tensor, firsts: Size, lasts: Size, twice: bool) -> Tensor:
    """(N, C, H, W) with reflected pixels before and after; `twice`: the edge's own is repeated."""
    for dim, first, last in zip((-2, -1), firsts, lasts, strict=True):
        side = picture.shape[dim]
        period = 2 * side if twice else max(2 * side - 2, 1)
        at = torch.arange(-first, side + last, device=picture.device) % period
        at = torch.minimum(at, (2 * side - 1 if twice else 2 * side - 2) - at)
        picture = picture.index_select(dim, at)
    return picture
