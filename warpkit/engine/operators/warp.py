"""A warp: images at the positions of a matrix or of points, and a value outside of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core.environment import TRITON_INTERPRETED
from warpkit.engine.binding.operator import GradientOptions, Operator, Signature
from warpkit.engine.binding.torch_operators import Schema, register
from warpkit.engine.binding.vjp import blank
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.layout import batch_of, layout_of
from warpkit.engine.definitions.maps import added_to_pixels
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators import native, triton
from warpkit.engine.operators.inverse import inverse_map


class Warp(NamedTuple):
    """The options of a warp."""

    size: Sequence[int]
    rule: SamplingRule
    forward: bool = False
    """The mapping is a matrix source -> destination, of any float type."""
    relative: bool = False
    """The mapping is offsets of points from their pixel, added in float64."""
    wide: bool = False
    """The result is not rounded to the image's type."""


def _is_plain(options: Warp) -> bool:
    """Whether the schema has these options. Dynamo of torch 2.7 slices no named tuple."""
    return not (options.forward or options.relative or options.wide)


def splat(image: Tensor, points: Tensor, options: Warp, device: str | None = None) -> Tensor:
    """As `reference.splat`, by the gradient of a warp to its image.

    image (*I, C, H, W); points or offsets (*P, H, W, 2), pixels; options: of the result.
    """
    if options.rule.interpolation == "nearest":  # it has no slope, and autograd should report that
        points = points.detach()
    batch = batch_of(image.shape, points.shape)
    target = image.new_zeros(()).expand(*batch, image.shape[-3], *options.size)
    tensors = image.expand(*batch, *image.shape[-3:]), target, points, image.new_zeros(())
    to_image = options._replace(size=list(image.shape[-2:]))
    call = GradientOptions(to_image, None, (True, False, False), 1)
    return WARP.gradient(call, *tensors, device=device)[0]


def _formula(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> Tensor:
    """As `reference.warp` and `reference.sample`."""
    plain = _plain(options, image, mapping, fill)
    if plain is not None:
        return WARP(plain[0], *plain[1])
    if mapping.shape[-1] == 2:
        return reference.sample(image, mapping, fill, options.rule)
    return reference.warp(image, mapping, options.size, fill, options.rule)


def _plain(
    options: Warp, image: Tensor, mapping: Tensor, fill: Tensor
) -> tuple[Warp, tuple[Tensor, Tensor, Tensor]] | None:
    """The same warp by a matrix destination -> source, or by points, in the type that it rounds to;
    None if it is.

    Tensors as of `WARP`.
    """
    if _is_plain(options):
        return None
    if options.forward:
        mapping = inverse_map(mapping.double())
    if options.relative:
        mapping = added_to_pixels(mapping)
    if options.wide:
        image = image.to(reference.compute_dtype(image.dtype))
    return Warp(options.size, options.rule), (image, mapping, fill)


def _encode(options: Warp) -> list[Any] | None:
    """The options as in the schema, which has no others."""
    if not _is_plain(options):
        return None
    return [options.size, options.rule.interpolation, options.rule.border]


def _decode(size: Sequence[int], *rule_names: str) -> Warp:
    return Warp(size, SamplingRule(*rule_names))


def _cores(tensors: Sequence[Tensor]) -> tuple[int, int, int]:
    return 3, 3 if tensors[1].shape[-1] == 2 else 2, 3


def _fake(options: Warp, image: Tensor, mapping: Tensor, fill: Tensor) -> Tensor:
    """An empty result of `WARP`."""
    shape = (*batch_of(image.shape, mapping.shape), image.shape[-3], *options.size)
    layout = layout_of(image) if len(shape) == 4 else torch.contiguous_format
    return torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)


def _formats(tensors: Sequence[Tensor]) -> tuple[torch.memory_format, ...]:
    return layout_of(tensors[0]), torch.contiguous_format, torch.contiguous_format


def _saved(tensors: Sequence[Tensor], wanted: Sequence[bool]) -> Sequence[Tensor]:
    """Only the mapping's gradient needs the image's pixels."""
    image, mapping, fill = tensors
    return image if wanted[1] else blank(image), mapping, fill


WARP = Operator(
    _formula,
    {"cpu": native("warps"), "triton": triton("warps")},
    signature=Signature(_cores, 3, _encode, _plain),
    saved=_saved,
    later=lambda options: (1,) if options.forward else (),  # the kernels keep the inverse
    linear=(0, 2),
)
"""image (*I, C, H, W); mapping (*M, 2 or 3, 3), float64, or points (*P, h, w, 2); fill,
which broadcasts to the result (*batch, C, h, w)."""

# all names in the schema are part of exported graphs and must not change
SCHEMA = Schema(
    "image where outside", "SymInt[] size, str interpolation, str border", _decode, _fake, _formats
)
register(WARP, SCHEMA, "cpu_sample", "cpu", ["CPU"])
register(WARP, SCHEMA, "cuda_sample", "triton", ["CUDA", "CPU"] if TRITON_INTERPRETED else ["CUDA"])
