"""Trains with every public function, with or without earlier calls inside torch.inference_mode().

`python -m tests.support.kept_tensors [first] FILE` writes results and gradients to a file. With
`first`, all objects are made and called inside inference mode before, and no tensor from there may
be alive afterwards.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import warpkit as wk
from tests.support import exported_calls, exported_face_calls, exported_pixel_calls
from tests.support.exported_inputs import IMAGE, MATRIX, SIZE, ExportedCall, floats
from warpkit import attacks
from warpkit.alignment.models import MODELS

LAID = (IMAGE, MATRIX)


def rows() -> list[ExportedCall]:
    """All calls."""
    torch.manual_seed(0)
    with torch.inference_mode(False):  # torch's own layers cannot be trained if made inside it
        found = exported_pixel_calls.calls()
    align: Any = partial(wk.align, steps=2)
    smooth = floats(1, 1, 32, 32)
    turned = attacks.AffineDistribution(angle=(-9, 9), translation=(-1, 1))
    expected = partial(attacks.expectation, distribution=turned, samples=2)
    return [
        *found,
        # torch has no gradient of its function's floor_divide
        *(row for row in exported_calls.calls() if row.function != "attacks.on_uint8"),
        *exported_face_calls.calls(),
        *(
            ExportedCall("align", model, partial(align, model=model), (smooth, smooth))
            for model in MODELS
        ),
        ExportedCall("attacks.expectation", "", lambda x: expected(torch.mean, x), (IMAGE,)),
        ExportedCall("attacks.jpeg", "floats", attacks.jpeg(), (IMAGE,)),
        ExportedCall(
            "resize", "reference", partial(wk.resize, size=SIZE, backend="reference"), (IMAGE,)
        ),
        ExportedCall("warp_affine", "0.3", partial(wk.warp_affine, border_value=0.3), LAID),
    ]


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors and arrays in a result, as tensors."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, np.ndarray):
        yield torch.from_numpy(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_of(item)


def called(row: ExportedCall) -> tuple[Any, list[Tensor]]:
    """The result of a row, and its inputs, of which floats want a gradient."""
    with torch.inference_mode(False):
        given = [one.tensor(0) for one in row.given]
        given = [x.requires_grad_() if x.is_floating_point() else x for x in given]
    torch.manual_seed(0)
    return row.call(*given), given


def trained(row: ExportedCall) -> list[Tensor]:
    """The results of a row, and the gradients of a weighted sum of them to the inputs."""
    result, given = called(row)
    total = torch.zeros(())
    for made in tensors_of(result):
        if made.requires_grad:
            weight = torch.linspace(0.5, 1.5, made.numel()).reshape(made.shape)
            total = total + (weight * made).nansum()
    wanted = [x for x in given if x.requires_grad] if total.requires_grad else []
    grads = torch.autograd.grad(total, wanted, allow_unused=True) if wanted else ()
    return [x.detach() for x in (*tensors_of(result), *grads) if x is not None]


def of_inference() -> dict[int, Tensor]:
    """The tensors that are alive and cannot be saved by autograd."""
    gc.collect()
    tensors = [x for x in gc.get_objects() if issubclass(type(x), Tensor)]
    return {id(x): x for x in tensors if x.is_inference()}


def main(first: bool, file: str) -> None:
    """Write the results of all calls by their names, each twice."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".*no gradient reaches")
    with torch.inference_mode(first):
        table = rows()
    if first:
        objects = of_inference()
        for row in table * 2:
            with torch.inference_mode():
                called(row)
        kept = [x for key, x in of_inference().items() if key not in objects]
        assert not kept, [tuple(x.shape) for x in kept]
    found = {f"{row.function} {row.words}": [trained(row), trained(row)] for row in table}
    torch.save(found, file)


if __name__ == "__main__":
    main("first" in sys.argv, sys.argv[-1])
