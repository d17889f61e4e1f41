"""The three collectives of gradients between processes.

Each is differentiable to any order. Collectives run only in the backward pass, and in the same
order on all processes: with `KeepInGraph`, a process with an empty shard takes part, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup, all_reduce
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement

Groups = tuple[ProcessGroup, ...]


class Whole(Function):
    """Tensors that are equal on all processes of their groups; their gradients are summed."""

    @staticmethod
    def forward(ctx: Any, groups: Sequence[Groups], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.groups = groups
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *map(AllReduceSum.apply, gradients, ctx.groups)


class AllReduceSum(Function):
    """The sum over the processes of groups, equal on each of them."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, groups: Groups) -> Tensor:
        total = part.clone(memory_format=torch.contiguous_format)
        for group in groups:
            all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore
        return gradient, None


class KeepInGraph(Function):
    """`result`, with `tensors` in its graph and in its gradient's, as zeros if they are unused."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:  # pyright: ignore
        tensors = ctx.saved_tensors
        zero = torch.stack([t.flatten()[:0].sum() for t in (gradient, *tensors)]).sum()
        return gradient, *(torch.zeros_like(t) + zero.to(t.dtype) for t in tensors)


class ShardToDTensor(Function):
    """A shard as a DTensor, whose gradient is a shard again.

    If several processes have the same result, only one of them (`owned`) receives its gradient,
    because the gradients of the inputs are summed over all processes.
    """

    @staticmethod
    def forward(
        ctx: Any,
        shard: Tensor,
        mesh: DeviceMesh,
        placements: Sequence[Placement],
        shape: Sequence[int],
        owned: bool,
    ) -> DTensor:
        ctx.mesh, ctx.placements, ctx.owned = mesh, placements, owned
        size, stride = torch.Size(shape), dense_stride(shape, shard)
        return DTensor.from_local(
            shard, mesh, placements, run_check=False, shape=size, stride=stride
        )

    @staticmethod
    def backward(ctx: Any, gradient: DTensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        local = gradient.redistribute(ctx.mesh, ctx.placements).to_local()
        return local if ctx.owned else torch.zeros_like(local), None, None, None, None


def dense_stride(shape: Sequence[int], shard: Tensor) -> tuple[int, ...]:
    """The stride of a dense tensor whose dimensions have the same order in memory as those of
    `shard`.

    The stride of a dimension of length 1 is arbitrary: it is placed outside those after it.
    """
    order: list[int] = []
    for d in reversed(range(len(shape))):
        order.insert(0, shard.stride(d) if shard.shape[d] > 1 else max(order, default=1))
    stride, step = [0] * len(shape), 1
    for d in sorted(range(len(shape)), key=lambda d: (order[d], -d)):
        stride[d] = step
        step *= max(shape[d], 1)
    return tuple(stride)
