"""An antialiased warp as one step of a compiled graph: it reads its number of samples when it runs.

`antialias=True` takes as many samples as the map shrinks the image, so that the steps depend on
numbers which nobody knows while torch traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.core.tracing import exports_to_onnx
from warpkit.engine.binding.operator import Operator, Signature
from warpkit.engine.binding.torch_operators import Schema, register
from warpkit.engine.binding.vjp import vjp
from warpkit.engine.definitions import antialias, antialias_points
from warpkit.engine.definitions.layout import batch_of
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.engine.operators.warp import WARP, Warp


class MeanWarp(NamedTuple):
    """The options of an antialiased warp."""

    size: Sequence[int]
    rule: SamplingRule
    function: str
    """The public function, for errors."""


def is_one_step(samples: bool | int) -> bool:
    """Whether a warp with antialias=`samples` is one operator here: in a graph of torch's own."""
    return samples is True and torch.compiler.is_compiling() and not exports_to_onnx()


def mean_warp(options: MeanWarp, image: Tensor, mapping: Tensor, fill: Tensor) -> Tensor:
    """As `antialias.warp` and `antialias_points.sample` with samples=True, of one backend each for
    a CPU and for CUDA; tensors as of `WARP`."""
    return MEAN_WARP(options, image, mapping, fill, device="any")


def _formula(options: MeanWarp, image: Tensor, mapping: Tensor, fill: Tensor) -> Tensor:
    """As `mean_warp`."""
    size, rule, function = options
    device = "triton" if image.is_cuda else None

    def plain(image: Tensor, mapping: Tensor, fill: Tensor, size: Sequence[int]) -> Tensor:
        """As `WARP`."""
        return WARP(Warp(size, rule), image, mapping, fill, device=device)

    if mapping.shape[-1] == 2:

        def sample(image: Tensor, points: Tensor, fill: Tensor) -> Tensor:
            """As `WARP`."""
            return plain(image, points, fill, points.shape[-3:-1])

        return antialias_points.sample(function, sample, image, mapping, fill, rule, True)
    return antialias.warp(function, plain, image, mapping, (size[0], size[1]), fill, rule, True)


def _forward(options: MeanWarp, *tensors: Tensor) -> tuple[Tensor, None]:
    return _formula(options, *tensors).contiguous(), None


def _backward(
    options: MeanWarp,
    kept: None,
    grads: Sequence[Tensor],
    tensors: Sequence[Tensor],
    wanted: Sequence[bool],
) -> Sequence[Tensor | None]:
    """The gradients of tensors as of `WARP`."""
    with torch.no_grad(), _with_tape():
        return vjp(partial(_formula, options), tensors, grads, wanted)


@contextmanager
def _with_tape() -> Iterator[None]:
    """Lets autograd record in the kernel of a torch operator, behind which torch has left it."""
    keys, without = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for name in ("AutogradCPU", "AutogradCUDA", "AutogradOther", "ADInplaceOrView"):
        without = without.remove(getattr(keys, name))
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), without):
        yield


def _cores(tensors: Sequence[Tensor]) -> tuple[int, int, int]:
    return 3, 3 if tensors[1].shape[-1] == 2 else 2, 3


def _encode(options: MeanWarp) -> list[Any]:
    return [options.size, options.rule.interpolation, options.rule.border, options.function]


def _decode(size: Sequence[int], interpolation: str, border: str, function: str) -> MeanWarp:
    return MeanWarp(size, SamplingRule(interpolation, border), function)


def _fake(options: MeanWarp, image: Tensor, mapping: Tensor, fill: Tensor) -> Tensor:
    """An empty result of `MEAN_WARP`."""
    shape = (*batch_of(image.shape, mapping.shape), image.shape[-3], *options.size)
    return torch.empty(shape, dtype=image.dtype, device=image.device)


def _formats(tensors: Sequence[Tensor]) -> tuple[torch.memory_format, ...]:
    return (torch.contiguous_format,) * len(tensors)


MEAN_WARP = Operator(
    _formula,
    {"any": lambda: SimpleNamespace(forward=_forward, backward=_backward)},
    signature=Signature(_cores, 3, _encode, lambda options, *tensors: None),
)
"""Tensors as of `WARP`."""

SCHEMA = Schema(
    "image where outside",
    "SymInt[] size, str interpolation, str border, str function",
    _decode,
    _fake,
    _formats,
)
register(MEAN_WARP, SCHEMA, "mean_warp", "any", ["CPU", "CUDA"])
