"""The gradient to the image: selects the kernel, splits the work, and launches it."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from warpkit.engine.definitions.layout import cycle, sum_to
from warpkit.engine.triton.gather import gather_kernel
from warpkit.engine.triton.gather_affine import gather_affine_kernel
from warpkit.engine.triton.scatter import collect_kernel, scatter_kernel
from warpkit.engine.triton.work import CudaLaunch, block, launch, tiles_of

PROGRAMS = 4096
"""Programs that fill a device several times; if there are fewer source tiles, maps are split,
too."""

BLOCK = 1024
"""Values per program of `collect_kernel`."""


class ImageReaders(NamedTuple):
    """The items that contribute to an image's gradient: those n with n // div % mod equal to its
    index."""

    image_batch: tuple[int, ...]
    div: int
    mod: int

    def maps(self, call: CudaLaunch) -> dict[str, Any]:
        """The kernels' arguments."""
        return {**call.maps, "image_div": self.div, "image_mod": self.mod}


def _readers_of(call: CudaLaunch, image: Tensor) -> ImageReaders:
    found = cycle(image.shape[:-3], call.batch)
    if found is None:  # one gradient per item, summed by torch
        return ImageReaders(call.batch, 1, call.items)
    return ImageReaders(tuple(image.shape[:-3]), *found)


def _empty(call: CudaLaunch, count: int, dtype: torch.dtype) -> Tensor:
    """`count` gradients in the kernels' layout."""
    shape = (count, call.sizes["channels"], call.sizes["height"], call.sizes["width"])
    layout = torch.channels_last if call.channels_last else torch.contiguous_format
    return torch.empty(shape, dtype=dtype, device=call.image.device, memory_format=layout)


def gather(call: CudaLaunch, grad: Tensor, image: Tensor) -> Tensor:
    """A gather; if few images have many maps, these are split into parts, added in order.

    grad (*batch, C, h, w), that of the result; image (*I, C, H, W).
    """
    image_readers = _readers_of(call, image)
    channel_block = min(4, triton.next_power_of_2(image.shape[-3]))
    shape = {"CHANNEL_BLOCK": channel_block, "PIXELS": max(128, 512 // channel_block)}
    tiles, groups = (
        tiles_of(image.shape[-2:], shape["PIXELS"]),
        triton.cdiv(image.shape[-3], channel_block),
    )
    programs, readers = image_readers.mod * tiles * groups, call.items // image_readers.mod
    splits = max(1, min(readers, PROGRAMS // programs))
    total = _empty(call, image_readers.mod * splits, image.dtype if splits == 1 else call.real)
    borders = ("BORDER_Y", "BORDER_X")
    switches = {name: value for name, value in call.switches.items() if name not in borders}
    affine = switches["KIND"] == 2 and switches["TAPS"] > 1
    launch(
        gather_affine_kernel if affine else gather_kernel, programs * splits,
        grad, call.mapping, total,
        **call.sizes, **image_readers.maps(call), **switches, **shape,
        tiles=tiles, groups=groups, splits=splits, readers=readers,
    )  # fmt: skip
    if splits > 1:
        total = total.unflatten(0, (image_readers.mod, splits)).sum(1)
    return _finish(total, image_readers, image)


def scatter(call: CudaLaunch, grad: Tensor, image: Tensor) -> Tensor:
    """A scatter in fixed point.

    grad (*batch, C, h, w), that of the result; image (*I, C, H, W).
    """
    image_readers = _readers_of(call, image)
    total = _empty(call, image_readers.mod, image.dtype)
    rests = call.real == torch.float64
    counts = torch.zeros((1 + rests, total.numel()), dtype=torch.int64, device=image.device)
    scale = _scales(grad, image_readers)
    # no sum of remainders, each at most 1, reaches 2^62
    terms = call.items // image_readers.mod * prod(grad.shape[-2:]) * call.switches["TAPS"] ** 2
    rest_scale = 2.0 ** (61 - terms.bit_length())
    shape = block(call)
    tiles = tiles_of(grad.shape[-2:], shape["PIXELS"])
    launch(
        scatter_kernel, call.items * tiles, grad, call.mapping, scale, counts[0], counts[-1],
        **call.sizes, **image_readers.maps(call), **call.switches, **shape,
        tiles=tiles, rest_scale=rest_scale,
    )  # fmt: skip
    launch(
        collect_kernel, triton.cdiv(total.numel(), BLOCK), counts[0], counts[-1], scale, total,
        values=total.numel(), area=prod(image.shape[-2:]), rest_scale=rest_scale,
        channels=image.shape[-3], REAL=call.switches["REAL"], LAST=call.channels_last, BLOCK=BLOCK,
    )  # fmt: skip
    return _finish(total, image_readers, image)


def _finish(total: Tensor, image_readers: ImageReaders, image: Tensor) -> Tensor:
    """Sums from one entry per image to the image's own batch.

    total (N, C, H, W); image (*I, C, H, W).
    """
    if tuple(total.shape[:1]) != image_readers.image_batch:
        total = total.reshape(*image_readers.image_batch, *image.shape[-3:])
    return sum_to(total, image)


def _scales(grad: Tensor, image_readers: ImageReaders) -> Tensor:
    """The power of 2 that scales the gradient of every channel of every image.

    It is NaN if the gradient is not finite, so the channel's gradient becomes NaN.
    """
    # a sum in float64 would first convert the gradient: 8 bytes a value
    largest = torch.linalg.vector_norm(grad, torch.inf, dim=(-2, -1))
    total = largest.double() * prod(grad.shape[-2:])
    total = total.reshape(-1, image_readers.mod, image_readers.div, grad.shape[-3]).sum((0, 2))
    exponent = torch.frexp(total).exponent
    scale = torch.exp2((57 - exponent.double()).clamp(max=900))
    return torch.where(total.isfinite(), scale, torch.nan)
