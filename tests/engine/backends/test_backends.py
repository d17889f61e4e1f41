"""The interface of a backend, and the path from a call to its kernels."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import warpkit as wk
from warpkit.engine.backends import (
    BACKENDS,
    OPENCV,
    Backend,
    backend_module,
    opencv_backend,
)

DUTIES = [name for name in vars(Backend) if not name.startswith("_")]
PACKAGE = Path(wk.__file__).parent


@pytest.mark.parametrize(
    ("select", "name"),
    [*((backend_module, n) for n in BACKENDS), *((opencv_backend, n) for n in OPENCV)],
)
def test_a_backend_has_all_functions_of_the_interface(select, name):
    if name == "cuda":
        pytest.importorskip("triton")
    assert len(DUTIES) == 5
    for duty in DUTIES:
        assert callable(getattr(select(name), duty)), duty


class Mode(TorchDispatchMode):
    """A dispatch mode, under which kernels run as torch operators."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_few_python_frames_lead_from_a_warp_to_the_launch(monkeypatch):
    from warpkit.engine.cpu import launch

    forward, stacks = launch.forward, []

    def spy(*inputs, **options):
        stacks.append([f for f in traceback.extract_stack() if PACKAGE in Path(f.filename).parents])
        return forward(*inputs, **options)

    monkeypatch.setattr(launch, "forward", spy)
    image, matrix = torch.rand(1, 3, 5, 6), torch.eye(2, 3)
    expected = wk.warp_affine(image, matrix.tolist())  # a list has no plan
    with Mode():
        assert torch.equal(wk.warp_affine(image, matrix), expected)
    assert len(stacks) == 2
    # with a mode the call is a torch operator, of the inverse matrix
    for stack, most in zip(stacks, (8, 12), strict=True):
        names = [frame.name for frame in stack]
        between = names[len(names) - names[::-1].index("warp_affine") :]
        assert len(between) <= most, between


class Turned(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return wk.warp_affine(image, torch.eye(2, 3))


def test_no_backend_restricts_a_dynamic_width(monkeypatch):
    """Without the native library, the other backends judge an export's image."""
    from warpkit.engine import cpu

    monkeypatch.setattr(cpu, "unsupported_reasons", lambda image, rule: ["has no library"])
    sizes = {3: torch.export.Dim("width", min=2)}
    exported = torch.export.export(Turned(), (torch.zeros(1, 2, 6, 9),), dynamic_shapes=(sizes,))
    assert exported.module()(torch.zeros(1, 2, 6, 40)).shape == (1, 2, 6, 40)
