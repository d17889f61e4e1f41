"""Trains with every public function, in a mode of torch, after it, or without one.

`python -m tests.support.every_call MODE FILE` writes results and gradients to a file. After
`inference_mode`, in which all objects are made and called before, no tensor from there may be
alive. In `meta`, that is torch's default device.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import warpkit as wk
from tests.support import ROOT, exported_calls, exported_face_calls, exported_pixel_calls
from tests.support.another_device import DRAWS, ELSEWHERE
from tests.support.exported_inputs import IMAGE, MATRIX, SIZE, ExportedCall, floats
from tests.support.forks import python
from warpkit import attacks
from warpkit.alignment.models import MODELS

LAID = (IMAGE, MATRIX)


def rows() -> list[ExportedCall]:
    """All calls."""
    torch.manual_seed(0)
    with torch.inference_mode(False):  # torch's own layers cannot be trained if made inside it
        calls = exported_pixel_calls.calls()
    align: Any = partial(wk.align, steps=2)
    smooth = floats(1, 1, 32, 32)
    turned = attacks.AffineDistribution(angle=(-9, 9), translation=(-1, 1))
    expected = partial(attacks.expectation, distribution=turned, samples=2)
    return [
        *calls,
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
    with torch.inference_mode(False), torch.device("cpu"):
        inputs = [one.tensor(0) for one in row.inputs]
        inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    torch.manual_seed(0)
    return row.call(*inputs), inputs


def trained(row: ExportedCall) -> list[Tensor]:
    """The results of a row, and the gradients of a weighted sum of them to the inputs."""
    result, inputs = called(row)
    total = torch.zeros((), device="cpu")
    for tensor in tensors_of(result):
        if tensor.requires_grad:
            weight = torch.linspace(0.5, 1.5, tensor.numel(), device="cpu").reshape(tensor.shape)
            total = total + (weight * tensor).nansum()
    wanted = [x for x in inputs if x.requires_grad] if total.requires_grad else []
    grads = torch.autograd.grad(total, wanted, allow_unused=True) if wanted else ()
    return [x.detach() for x in (*tensors_of(result), *grads) if x is not None]


def of_inference() -> dict[int, Tensor]:
    """The tensors that are alive and cannot be saved by autograd."""
    gc.collect()
    tensors = [x for x in gc.get_objects() if issubclass(type(x), Tensor)]
    return {id(x): x for x in tensors if x.is_inference()}


def main(mode: str, file: str) -> None:
    """Write the results of all calls by their names, each twice."""
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".*no gradient reaches")
    with torch.inference_mode(mode == "inference_mode"):
        table = rows()
    if mode == "inference_mode":
        objects = of_inference()
        for row in table * 2:
            with torch.inference_mode():
                called(row)
        leftover = [x for key, x in of_inference().items() if key not in objects]
        assert not leftover, [tuple(x.shape) for x in leftover]
    elif mode == "meta":
        torch.set_default_device("meta")
        table = [row for row in table if ELSEWHERE.get(row.function.split(".")[-1]) != DRAWS]
    results = {}
    for row in table:
        print(row.function, row.words, flush=True)
        results[f"{row.function} {row.words}"] = [trained(row), trained(row)]
    torch.save(results, file)


def results_in(mode: str, folder: Path) -> dict[str, list[list[Tensor]]]:
    """What another process writes in a mode."""
    file = folder / f"{mode}.pt"
    command = [*python(), "-m", "tests.support.every_call", mode, str(file)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, (
        f"{process.returncode} at {process.stdout[-60:]}: {process.stderr}"
    )
    return torch.load(file)


def assert_equal(
    results: dict[str, list[list[Tensor]]], truth: dict[str, list[list[Tensor]]]
) -> None:
    """Both results of every call in `found` have the bits of the first in `truth`."""
    assert len(results) > 150
    for name, both in results.items():
        for tensors in both + truth[name][1:]:
            for one, other in zip(tensors, truth[name][0], strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=name)


if __name__ == "__main__":
    main(*sys.argv[1:])
