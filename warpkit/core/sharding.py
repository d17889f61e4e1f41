"""Declares, with a decorator, how the arguments of a function may be sharded over processes.

A rule gives every dimension of every tensor a label, or None if it must be whole on each process.
Dimensions with the same label are sharded together. `warpkit.distributed` applies the rules; until
it is imported they cost one comparison per call, and torch's DTensor is not loaded.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import torch

from warpkit.core.errors import end_at
from warpkit.core.names import suggest_keyword

P = ParamSpec("P")
R = TypeVar("R")
DimLabels = tuple[Hashable, ...]
Shapes = Mapping[str, tuple[int, ...]]


class Layout(NamedTuple):
    """The labels of a call."""

    arguments: dict[str, DimLabels]
    results: tuple[DimLabels, ...]
    """Of each result's first dimensions; the others are whole."""


ShardingRule = Callable[[Shapes, Mapping[str, Any]], Layout]
"""From the shapes of the tensors and all arguments of a call."""


class Shardable(NamedTuple):
    """A function, the names of its tensors, and its rule."""

    function: Callable[..., Any]
    signature: inspect.Signature
    tensors: tuple[str, ...]
    rule: ShardingRule


Handler = Callable[[Shardable, tuple[Any, ...], dict[str, Any]], Any]
_handler: Handler | None = None


def register(handler: Handler) -> None:
    """From now on, `handler` handles every call of a shardable function."""
    global _handler
    _handler = handler


def shardable(rule: ShardingRule, *tensors: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare how the arguments named in `tensors` may be sharded."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        declared = Shardable(function, inspect.signature(function), tensors, rule)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                if _handler is None:
                    return function(*args, **kwargs)
                return _handler(declared, args, kwargs)
            except (TypeError, ValueError) as error:
                if torch.compiler.is_compiling():
                    raise
                if isinstance(error, TypeError):
                    text = _named_elsewhere(declared, kwargs) or _too_many(declared, args)
                    if text is not None:
                        raise TypeError(text) from None
                end_at(function, error)
                raise

        # torch.compile counts what it compiled by code object, and refuses a ninth: each its own.
        code = cast(types.FunctionType, call).__code__
        cast(types.FunctionType, call).__code__ = code.replace(co_name=function.__name__)
        return call

    return decorate


def _named_elsewhere(shardable: Shardable, kwargs: Mapping[str, Any]) -> str | None:
    """The message about a keyword that the function has under another name."""
    names = shardable.signature.parameters
    for keyword, value in kwargs.items():
        if keyword not in names and (wanted := suggest_keyword(keyword, names)):
            message = f"`{keyword}` must be {wanted}, got {keyword}={value!r:.60}"
            return f"{shardable.function.__name__}: {message}"
    return None


def _too_many(shardable: Shardable, args: Sequence[Any]) -> str | None:
    """What to say about an argument that must be named and is not."""
    kinds = {name: p.kind for name, p in shardable.signature.parameters.items()}
    places = [name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY]
    keywords = [name for name in kinds if name not in places]
    if (
        len(args) <= len(places)
        or not keywords
        or inspect.Parameter.VAR_POSITIONAL in kinds.values()
    ):
        return None
    first = keywords[0]
    message = f"`{first}` and what follows it must be named, as in {first}=..."
    return f"{shardable.function.__name__}: {message}, got {len(args)} without a name"


def batched(results: int = 1, /, **cores: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Batch dimensions may be sharded, which broadcast; `cores` says how many follow them.

    `results` is how many tensors the function returns, all of that batch. The label of a batch
    dimension is its place from the last one, -1, -2, ...
    """

    def rule(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
        return batch_layout(shapes, cores, results)

    return shardable(rule, *cores)


def batch_layout(shapes: Shapes, cores: Mapping[str, int], results: int = 1) -> Layout:
    """The layout of `batched` tensors of these shapes."""
    labels = {a: _batch(len(s), cores[a.partition("[")[0]]) for a, s in shapes.items()}
    batch = max((len(s) - s.count(None) for s in labels.values()), default=0)
    return Layout(labels, (tuple(range(-batch, 0)),) * results)


def _batch(ndim: int, core: int) -> DimLabels:
    core = min(ndim, core)
    return (*range(core - ndim, 0), *(None,) * core)


def objects(result: str, **cores: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Images may be sharded along their batch, and objects along theirs; `result` is one of both.

    `cores` says how many dimensions one object's value has: with fewer it is one for all objects.
    """

    def rule(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
        labels: dict[str, DimLabels] = {}
        for argument, shape in shapes.items():
            name = argument.partition("[")[0]  # of a list's items, images[0], ...
            label = "image" if name == "images" else "object"
            core = 3 if name == "images" else cores[name]
            first = (label,) * (len(shape) > core)
            labels[argument] = first + (None,) * (len(shape) - len(first))
        images = labels.get("images", (None,))  # a list's have no batch
        return Layout(labels, (images[:1] if result == "image" else (result,),))

    return shardable(rule, "images", *cores)


def reads_rows(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """array (*A, n, *B) at an index I or weights (*I, n): (*A, *I, *B); n must be whole."""
    before, after = _around(shapes, options)
    index = _index(shapes)
    at = index if "index" in shapes else (*index, None)
    every = {"array": (*before, None, *after), "index": at, "weights": at}
    labels = {argument: every[argument] for argument in shapes}
    return Layout(labels, ((*before, *index, *after), index))


def writes_rows(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """`reads_rows` with a value to write; the index must be whole, since its order counts."""
    before, after = _around(shapes, options)
    count = len(_index(shapes))
    array = (*before, None, *after)
    labels: dict[str, DimLabels] = {argument: (None,) * len(s) for argument, s in shapes.items()}
    labels["array"] = array
    labels["value"] = _last((*before, *(None,) * count, *after), len(shapes["value"]))
    return Layout(labels, (array,))


def weighs_positions(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """index I: (*I, length)."""
    index = _index(shapes)
    return Layout({"index": index}, (index,))


def reads_2d(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """array (H, W, *B) with weights (*I, H) and (*I, W), which broadcast: (*I, *B)."""
    rest = tuple(("array", d) for d in range(2, len(shapes["array"])))
    labels: dict[str, DimLabels] = {"array": (*_whole(shapes["array"]), *rest)}
    for argument in ("row_weights", "column_weights"):
        labels[argument] = _batch(len(shapes[argument]), 1)
    index = max(len(labels["row_weights"]), len(labels["column_weights"])) - 1
    return Layout(labels, ((*range(-index, 0), *rest),))


def writes_2d(shapes: Shapes, options: Mapping[str, Any]) -> Layout:
    """`reads_2d` with a value (*I, *B) to write; the weights must be whole."""
    rest = tuple(("array", d) for d in range(2, len(shapes["array"])))
    labels: dict[str, DimLabels] = {argument: (None,) * len(s) for argument, s in shapes.items()}
    labels["array"] = (*_whole(shapes["array"]), *rest)
    index = max(len(shapes["row_weights"]), len(shapes["column_weights"])) - 1
    labels["value"] = _last((*(None,) * index, *rest), len(shapes["value"]))
    return Layout(labels, (labels["array"],))


def _whole(shape: tuple[int, ...]) -> DimLabels:
    return (None,) * min(len(shape), 2)


def _around(shapes: Shapes, options: Mapping[str, Any]) -> tuple[DimLabels, DimLabels]:
    """The labels of the array's dimensions before and after `dim`."""
    ndim = len(shapes["array"])
    dim = options["dim"]
    dim = int(dim) % ndim if isinstance(dim, Integral) and ndim else 0  # checked later
    labels = tuple(("array", d) for d in range(ndim))
    return labels[:dim], labels[dim + 1 :]


def _index(shapes: Shapes) -> DimLabels:
    """The labels of the index's own dimensions."""
    count = len(shapes["index"]) if "index" in shapes else len(shapes["weights"]) - 1
    return tuple(("index", d) for d in range(count))


def _last(labels: DimLabels, count: int) -> DimLabels:
    """The labels of a tensor that broadcasts to one with `labels`."""
    return labels[max(0, len(labels) - count) :]
