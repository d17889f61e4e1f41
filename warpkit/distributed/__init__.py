"""Makes every function on tensors accept DTensors that are sharded along the batch.

Each process computes its own shard by calling the function on it. Nothing is gathered, and the
forward pass sends nothing. The result is a DTensor, equal to the result of one process for the
whole tensors.

The rules:

- Dimensions of the batch, of objects and of rows to look up may be `Shard`; all may be `Replicate`.
  Dimensions that must be whole (channels, height, width, the rows of an array) and `Partial` raise
  an error that says what to redistribute.
- All DTensors of a call use one mesh, of any number of dimensions. If the processes do not divide a
  batch evenly, it is split as by `torch.chunk`; a process may have none.
- A tensor that is no DTensor, an array or a sequence must be the same on every process, as with
  `Replicate`. Along a sharded dimension, each process uses its part of replicated tensors.
- The gradient of a replicated tensor is summed over the processes, so all have the same whole
  gradient, also for a tensor that is no DTensor. It has the placements of the tensor.
- `image_index` counts the images of the whole batch. Objects are sharded along with their images,
  each on the process of its image; or they are replicated, and each process uses those of its
  images. `crop_patches` also takes sharded objects of replicated images.

Reverse mode gives gradients of all orders, through `collectives`. Forward mode and vmap do not
support DTensors; torch.compile breaks the graph around a call with one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from inspect import Parameter
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard

from warpkit.core import checks
from warpkit.core.public import listing
from warpkit.core.sharding import DimLabels, Shardable, register
from warpkit.distributed.collectives import KeepInGraph, ShardToDTensor, Whole

__all__: list[str] = []  # importing the package does it all
__dir__ = listing(__all__)

Dims = tuple[int, ...]
"""Dimensions of the mesh."""


def dispatch(shardable: Shardable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function, on its shards if there is a DTensor."""
    if any(map(_has_shards, args)) or any(map(_has_shards, kwargs.values())):
        return _on_shards(shardable, args, kwargs)
    return shardable.function(*args, **kwargs)


def _has_shards(value: Any) -> bool:
    if isinstance(value, checks.LISTS):
        return any(isinstance(item, DTensor) for item in value)
    return isinstance(value, DTensor)


def _on_shards(shardable: Shardable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function on the shards of this process, and make DTensors of the results."""
    call = shardable.signature.bind(*args, **kwargs)
    call.apply_defaults()
    tensors_of = _tensors_of(shardable, call.arguments)
    if not any(isinstance(value, DTensor) for value in tensors_of.values()):
        return shardable.function(
            *args, **kwargs
        )  # a tensor at an unexpected place; the function rejects it
    split = Split(shardable, tensors_of, call.arguments)
    local, joined = split.localize()
    for argument in shardable.tensors:
        if argument in tensors_of:
            call.arguments[argument] = local[argument]
        elif isinstance(call.arguments[argument], tuple):  # *matrices
            items = enumerate(call.arguments[argument])
            call.arguments[argument] = tuple(local[f"{argument}[{i}]"] for i, _ in items)
    result = shardable.function(*call.args, **call.kwargs)
    if isinstance(result, tuple):
        return tuple(split.join(r, s, joined) for r, s in zip(result, split.results, strict=True))
    return split.join(result, split.results[0], joined)


def _tensors_of(shardable: Shardable, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that may be tensors; those of `*matrices` are separate."""
    tensors_of = {}
    for argument in shardable.tensors:
        value = arguments[argument]
        if shardable.signature.parameters[argument].kind is Parameter.VAR_POSITIONAL:
            tensors_of.update({f"{argument}[{i}]": item for i, item in enumerate(value)})
        elif value is not None:
            tensors_of[argument] = value
    for argument, value in tensors_of.items():
        if isinstance(value, checks.LISTS) and any(isinstance(v, Tensor) and v.ndim for v in value):
            wanted = "one tensor in a call with DTensors"
            checks.fail(
                shardable.function.__name__, argument, wanted, "a sequence of tensors", TypeError
            )
    return tensors_of


class Split:
    """The part of a call's tensors that belongs to this process."""

    def __init__(
        self, shardable: Shardable, tensors_of: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self.name = shardable.function.__name__
        self.tensors_of = tensors_of
        self.shapes = {
            argument: checks.shape_if_any(value) for argument, value in tensors_of.items()
        }
        self.labels, self.results = shardable.rule(self.shapes, options)
        self.sizes = self._measure()
        """The length of each label's dimensions, if it is not broadcast."""
        self.placed = {a: value for a, value in tensors_of.items() if isinstance(value, DTensor)}
        self.first = next(iter(self.placed))
        self.mesh = self.placed[self.first].device_mesh
        self.sharded: dict[Hashable, Dims] = {}
        """The mesh dimensions over which each label is sharded."""
        for argument, value in self.placed.items():
            self._place(argument, value)
        self.active = sorted({m for dims in self.sharded.values() for m in dims})
        self._check()

    def _measure(self) -> dict[Hashable, int]:
        sizes: dict[Hashable, int] = {}
        for argument, shape in self.shapes.items():
            for label, length in zip(self.labels[argument], shape, strict=True):
                if sizes.get(label, 1) == 1:
                    sizes[label] = length
        return sizes

    def _place(self, argument: str, value: DTensor) -> None:
        """Note along which dimensions a DTensor is sharded, or reject it."""
        if value.device_mesh != self.mesh:
            wanted = f"on the mesh of `{self.first}`, {self.mesh}"
            checks.fail(self.name, argument, wanted, value.device_mesh)
        dims_of: dict[Hashable, Dims] = {}
        for m, placement in enumerate(value.placements):
            if type(placement) is Shard and self._splits(argument, placement.dim):
                label = self.labels[argument][placement.dim]
                dims_of[label] = (*dims_of.get(label, ()), m)
            elif type(placement) is not Replicate:
                self._refuse(argument)
        for label, dims in dims_of.items():
            if self.sharded.setdefault(label, dims) != dims:
                where = f"dimensions {self.sharded[label]} of the mesh, as other arguments are"
                self._refuse(argument, f"sharded over the {where}")

    def _splits(self, argument: str, dim: int) -> bool:
        """Whether a dimension has a label and is not broadcast."""
        label = self.labels[argument][dim]
        return label is not None and self.shapes[argument][dim] == self.sizes[label]

    def _refuse(self, argument: str, wanted: str = "") -> NoReturn:
        """Raise an error that says how a DTensor may be placed."""
        value = self.placed[argument]
        if not wanted:
            free = [f"Shard({d})" for d in range(value.ndim) if self._splits(argument, d)]
            wanted = f"redistributed to {' or '.join([*free, 'Replicate()'])}"
        got = f"{value.placements} of shape {self.shapes[argument]}"
        checks.fail(self.name, argument, wanted, got)

    def _check(self) -> None:
        """Labels on one mesh dimension must belong together, and the lengths of one label must
        agree."""
        for m in self.active:
            labels = {label for label, dims in self.sharded.items() if m in dims}
            sharded = {label for labels in self.results for label in labels} & labels
            if not sharded or (len(labels) > 1 and labels != {"image", "object"}):
                self._refuse_together(m, labels)
        images, objects = (set(self.sharded.get(label, ())) for label in ("image", "object"))
        if objects and not images <= objects:
            self._refuse_together(min(images - objects), {"image"})
        for argument, shape in self.shapes.items():
            for d, label in enumerate(self.labels[argument]):
                if label in self.sharded and shape[d] not in (1, self.sizes[label]):
                    wanted = f"{self.sizes[label]} long in dimension {d}, as what is sharded is"
                    checks.fail(self.name, argument, wanted, shape)

    def _refuse_together(self, m: int, labels: set[Hashable]) -> NoReturn:
        """Raise an error about placements on one mesh dimension that do not go together."""
        if labels == {"image"}:
            argument, wanted = "boxes", "Shard(0) where `images` are: each on its image's process"
        elif labels == {"object"}:
            argument, wanted = "images", "Shard(0) where the objects are, or these Replicate()"
        else:
            argument = next(a for a, v in self.placed.items() if v.placements[m] != Replicate())
            wanted = f"the only argument that is sharded over dimension {m} of the mesh"
        value = self.tensors_of[argument]
        got = value.placements if isinstance(value, DTensor) else "a tensor without placements"
        checks.fail(self.name, argument, wanted, got)

    def range(self, label: Hashable) -> tuple[int, int]:
        """The start and the length of this process's part of a label, split as by torch.chunk."""
        first, count = 0, self.sizes[label]
        for m in self.sharded[label]:
            each = math.ceil(count / self.mesh.size(m))
            skip = min(count, each * self.mesh.get_local_rank(m))
            first, count = first + skip, min(each, count - skip)
        return first, count

    def localize(self) -> tuple[dict[str, Any], tuple[Tensor, ...]]:
        """The arguments on this process, and tensors that must be in the graph in any case."""
        local = {argument: self._local(argument) for argument in self.tensors_of}
        summed, groups = {}, []
        for argument, value in local.items():
            over = [m for m in self.active if m not in self._dims(argument)]
            if over and isinstance(value, Tensor) and value.requires_grad:
                summed[argument] = value
                groups.append(tuple(self.mesh.get_group(m) for m in over))
        if not torch.is_grad_enabled():
            summed.clear()
        if summed:
            summed = dict(zip(summed, Whole.apply(groups, *summed.values()), strict=True))
            local.update(summed)
        empty = [v for v in local.values() if isinstance(v, Tensor) and v.numel() == 0]
        joined = (*summed.values(), *(v for v in empty if v.requires_grad))
        local = {argument: self._own_part(argument, value) for argument, value in local.items()}
        if "image" in self.sharded:
            self._own_objects(local)
        return local, joined

    def _dims(self, argument: str, dim: int | None = None) -> set[int]:
        """The mesh dimensions over which an argument is sharded, along one dimension or any."""
        if argument not in self.placed:
            return set()
        placements = enumerate(self.placed[argument].placements)
        return {m for m, p in placements if type(p) is Shard and dim in (None, p.dim)}

    def _local(self, argument: str) -> Any:
        """This process's shard, or a value that is the same everywhere."""
        value = self.tensors_of[argument]
        if isinstance(value, DTensor):
            value = value.to_local()
            # pending data arrives with the first operation that is no view
            return value if type(value) is Tensor else value.clone()
        if isinstance(value, checks.ARRAYS):
            device = self.placed[self.first].to_local().device
            return checks.from_array(self.name, argument, value, device)
        return value

    def _own_part(self, argument: str, value: Any) -> Any:
        """The part of a whole tensor that belongs to this process."""
        for d, label in enumerate(self.labels[argument]):
            if label not in self.sharded or not self._splits(argument, d):
                continue
            first, count = self.range(label)
            self._check_tensor(argument, value)
            if not self._dims(argument, d):
                value = value.narrow(d, first, count)
            elif value.shape[d] != count:
                wanted = f"split as torch.chunk does, {count} of {self.sizes[label]} here"
                checks.fail(self.name, argument, wanted, value.shape[d])
        return value

    def _own_objects(self, local: dict[str, Any]) -> None:
        """The objects of this process's images, counted from the first of these."""
        if "image_index" not in local:
            wanted = "given where the images are sharded, the number of each in the whole batch"
            checks.fail(self.name, "image_index", wanted, None)
        first, count = self.range("image")
        index = local["image_index"]
        if not isinstance(index, Tensor):
            index = torch.as_tensor(index, device=local["images"].device)
        low, high = (first, first + count) if "object" in self.sharded else (0, self.sizes["image"])
        whose = "images of its process" if "object" in self.sharded else "number of images"
        bad = (index < low) | (index >= high)
        checks.check_values(
            self.name, "image_index", bad, f"in [{low}, {high}), the {whose}", index
        )
        if not index.is_floating_point():
            local["image_index"] = index.long() - first
        if "object" in self.sharded:
            return
        rows = ((index >= first) & (index < first + count)).nonzero()[:, 0]
        for argument, labels in self.labels.items():
            if "object" in labels:
                self._check_tensor(argument, local[argument])
                local[argument] = local[argument][rows]

    def _check_tensor(self, argument: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            wanted = "a tensor or an array where it is split over processes"
            checks.fail(self.name, argument, wanted, type(value).__name__, TypeError)

    def join(self, result: Tensor, labels: DimLabels, joined: tuple[Tensor, ...]) -> DTensor:
        """A local result as a DTensor.

        result (...): computed by this process; joined: scalars, each in the graph of a shard.
        """
        if joined and result.is_floating_point():
            result = KeepInGraph.apply(result, *joined)
        placements: list[Any] = [Replicate()] * self.mesh.ndim
        shape = list(result.shape)
        for d, label in enumerate(labels):
            for m in self.sharded.get(label, ()):
                placements[m] = Shard(d)
                shape[d] = self.sizes[label]
            if label in self.sharded and result.shape[d] != self.range(label)[1]:
                wanted = f"{self.range(label)[1]} long in dimension {d} on this process"
                checks.fail(self.name, "result", wanted, checks.shape_of(result))
        others = [m for m in self.active if type(placements[m]) is Replicate]
        owned = all(self.mesh.get_local_rank(m) == 0 for m in others)
        return ShardToDTensor.apply(result, self.mesh, placements, shape, owned)


register(dispatch)
