"""A resize, which is linear: its gradient is a resize by the transposed taps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.engine.binding.operator import Linear, Signature
from warpkit.engine.binding.torch_operators import Schema, register
from warpkit.engine.binding.vjp import blank, vjp
from warpkit.engine.definitions import resize as reference
from warpkit.engine.definitions.layout import layout_of
from warpkit.engine.definitions.resize import Edges, ResizeRule
from warpkit.engine.operators import native


class Resize(NamedTuple):
    """The options of a resize."""

    size: Sequence[int]
    rule: ResizeRule
    box: tuple[Edges, Edges] | None
    """The part of the image along x and y, in numbers."""
    adjoint: bool = False
    """The gradient of a resize of images of `size`, from that of its result."""


def _formula(options: Resize, image: Tensor) -> Tensor:
    size, rule, box, adjoint = options
    if not adjoint:
        return reference.resize(image, size, rule, box)
    at = blank(image).new_zeros(()).expand(*image.shape[:-2], *size)
    small = image.shape[-2:]
    (found,) = vjp(lambda x: reference.resize(x, small, rule, box), [at], [image], [True])
    assert found is not None
    return found


def _transposed(options: Resize, image: Tensor) -> Resize:
    size = list(image.shape[-2:])
    return Resize(size, options.rule, options.box, adjoint=not options.adjoint)


def _encode(options: Resize) -> list[Any]:
    """The options as in the schema, with all names of another library's rule in one."""
    size, rule, box, adjoint = options
    ends = [float(end) for edges in box or () for end in (edges.low, edges.high)]
    interpolation, antialias, *names = rule
    plain = rule.arithmetic == "exact"
    words = interpolation if plain else ":".join((interpolation, *names))
    return [list(size), words, antialias, ends, adjoint]


def _decode(
    size: Sequence[int], interpolation: str, antialias: bool, ends: Sequence[float], adjoint: bool
) -> Resize:
    box = None
    if ends:
        x1, x2, y1, y2 = ends
        box = Edges(x1, x2, x2 - x1), Edges(y1, y2, y2 - y1)
    interpolation, *names = interpolation.split(":")
    return Resize(size, ResizeRule(interpolation, antialias, *names), box, adjoint)


def _fake(options: Resize, image: Tensor) -> Tensor:
    shape, layout = (*image.shape[:-2], *options.size), layout_of(image)
    return torch.empty(shape, dtype=image.dtype, device=image.device, memory_format=layout)


RESIZE = Linear(
    _formula,
    {"cpu": native("resize.launch")},
    _transposed,
    Signature(lambda tensors: (3,), 3, _encode, lambda options, image: None),
)
"""image (..., C, H, W): (..., C, h, w)."""

# all names in the schema are part of exported graphs and must not change
OPTIONS = "SymInt[] size, str interpolation, bool antialias, float[] box, bool adjoint"
SCHEMA = Schema("image", OPTIONS, _decode, _fake, lambda tensors: (layout_of(tensors[0]),))
register(RESIZE, SCHEMA, "cpu_resize", "cpu", ["CPU"])
