"""F.interpolate's pixels, which are torchvision's for tensors: bytes in integers, floats by torch.

For bytes, torch has two passes, along x first, each only if its axis changes, and rounds to bytes
between them. Its weights are integers (`torch_tables`). torch does so on processors with AVX2 or
better; here every device does. (Without AVX2, and on CUDA, torch and torchvision resize floats and
round them.) "area" is the mean of whole pixels in float32, rounded half to even: torchvision's
method, with an interpolation that F.interpolate has only for floats.

Floats are resized by F.interpolate, with its gradient. If torch has no kernel for a 16-bit type,
the image is computed in float32, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.tracing import constant_to_compilers
from warpkit.engine.arithmetic.resize_axes import move
from warpkit.engine.arithmetic.resize_tables import on_device
from warpkit.engine.arithmetic.torch_tables import BITS
from warpkit.engine.definitions.resize import ResizeRule, beside


class Sides(NamedTuple):
    """An axis of a call: its length, and the output's."""

    length: int
    size: int


def unsupported_reasons(image: Tensor, rule: ResizeRule) -> list[str]:
    """The reasons why torch's pixels are not available: none."""
    return []


def resize(
    image: Tensor,
    size: Sequence[int],
    rule: ResizeRule,
    box: None = None,
    factors: None = None,
) -> Tensor:
    """Resizes the image (..., C, H, W) to `size` (h, w) as F.interpolate does."""
    if image.is_floating_point():
        return interpolated(image, size, rule)
    axes = sides(image.shape, size)
    if rule.interpolation.startswith("nearest"):
        kind = shown_kind(image, size, rule)
        return move(image, *(on_device(kind, *axis, device=image.device) for axis in axes))
    if rule.interpolation == "area":
        return interpolated(image.float(), size, rule).round().to(image.dtype)
    for dim, axis in zip((-1, -2), axes, strict=True):
        image = _pass(image, rule, axis, dim)
    return image


def interpolated(image: Tensor, size: Sequence[int], rule: ResizeRule) -> Tensor:
    """Floats (..., C, H, W) by F.interpolate itself."""
    mode = rule.interpolation.replace("_", "-")
    if not has_kernel(mode, rule.antialias, image.dtype, image.device.type):
        return interpolated(image.float(), size, rule).to(image.dtype)
    if image.dtype == torch.float64 and mode != "area":
        because = "in float64, for which onnxruntime has no Resize"
        exports.refuse("resize with arithmetic='torchvision'", because, "convert it to float32")
    shape = (*image.shape[:-2], *(int(s) for s in size))
    if not prod(shape):
        return image.new_empty(shape)
    corners = None if mode in ("area", "nearest", "nearest-exact") else False
    batch = image if image.ndim == 4 else image.reshape(-1, *image.shape[-3:])
    result = F.interpolate(
        batch, list(shape[-2:]), mode=mode, align_corners=corners, antialias=rule.antialias
    )
    return result if image.ndim == 4 else result.reshape(shape)


@constant_to_compilers
def has_kernel(mode: str, antialias: bool, dtype: torch.dtype, device: str) -> bool:
    """Whether this torch's F.interpolate has a kernel.

    If a dispatch mode is active, no kernel can be tried: 16-bit types count as having none.
    """
    if torch._C._len_torch_dispatch_stack():  # pyright: ignore
        return dtype.itemsize > 2
    return _tried(mode, antialias, dtype, device)


@cache
def _tried(mode: str, antialias: bool, dtype: torch.dtype, device: str) -> bool:
    try:
        small = torch.zeros(1, 1, 3, 3, dtype=dtype, device=device)
        F.interpolate(small, (2, 2), mode=mode, antialias=antialias)
    except (ValueError, NotImplementedError, RuntimeError):
        return False
    return True


def check_floats(name: str, image: Tensor, rule: ResizeRule) -> None:
    """Torch must have the filter for floats; it has lanczos since 2.14, on the CPU only."""
    if rule.interpolation != "lanczos" or not image.is_floating_point():
        return
    if not has_kernel("lanczos", True, torch.float32, image.device.type):
        wanted = "uint8 with interpolation='lanczos' and arithmetic='torchvision': F.interpolate of"
        got = f"torch {torch.__version__} has none for floats on {image.device.type}"
        checks.fail(name, "image", f"{wanted} this torch has no other", got, TypeError)


def sides(shape: Sequence[int], size: Sequence[int]) -> tuple[Sides, Sides]:
    """The axes along x and along y; shape (..., H, W)."""
    across, down = (Sides(int(shape[d]), int(size[d])) for d in (-1, -2))
    return across, down


def kind_of(rule: ResizeRule) -> str:
    """The kind of table of an interpolation of bytes."""
    return f"torch_{'antialiased_' if rule.antialias else ''}{rule.interpolation}"


def shown_kind(image: Tensor, size: Sequence[int], rule: ResizeRule) -> str:
    """The kind of table of a nearest interpolation, for an image (..., C, H, W).

    Torch has two kernels, whose "nearest_exact" differ if a pixel's centre is extremely close to an
    edge: on 26 of 66,000 axes of 2 to 259 pixels.
    """
    if rule.interpolation == "nearest" or sum(size) <= 128:
        return kind_of(rule)
    batch = image.flatten(0, -4) if image.ndim > 4 else image
    batch = batch[None] if image.ndim == 3 else batch
    last = image.shape[-3] > 3 and batch.is_contiguous(memory_format=torch.channels_last)
    return kind_of(rule) if last else f"{kind_of(rule)}_fused"


def _pass(image: Tensor, rule: ResizeRule, axis: Sides, dim: int) -> Tensor:
    """One pass of bytes along dimension -1 or -2."""
    if axis.length == axis.size:
        return image
    pixel, weight, inside = on_device(kind_of(rule), *axis, device=image.device)
    weight = weight * inside
    pixels = image.int()
    total = torch.full((), 1 << (BITS - 1), dtype=torch.int32, device=image.device)
    for k in range(pixel.shape[1]):
        total = total + pixels.index_select(dim, pixel[:, k]) * beside(weight[:, k], dim)
    return (total >> BITS).clamp(0, 255).to(torch.uint8)
