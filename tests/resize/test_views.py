"""Views of images: read in place, with the bits of their copies, whatever their strides."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

import warpkit as wk
from tests.support.allocations import allocated
from tests.support.inputs import noise
from tests.support.views import TYPES, VIEWS, rows

SIZE = (40, 56)
HEIGHT, WIDTH = 271, 391
WAYS: list[dict[str, Any]] = [
    {},
    {"antialias": False},
    {"interpolation": "nearest"},
    {"interpolation": "bicubic", "antialias": False},
    *({"arithmetic": a} for a in ("opencv4", "opencv5", "opencv5_ipp", "pillow")),
    *(
        {"arithmetic": a, "interpolation": n}
        for a in ("opencv4", "opencv5_ipp")
        for n in ("nearest", "bicubic", "area", "lanczos4")
    ),
    {"arithmetic": "pillow", "interpolation": "lanczos"},
    {"arithmetic": "torchvision", "antialias": True},
]


def supports(options: dict[str, Any], dtype: torch.dtype) -> bool:
    """Whether the arithmetic has the type, and computes it itself."""
    if not dtype.is_floating_point or "arithmetic" not in options:
        return True
    return dtype == torch.float32 and options["arithmetic"] != "torchvision"


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_bits_of_its_copy(name, dtype):
    view = VIEWS[name](rows(HEIGHT, WIDTH, dtype))
    for options in (o for o in WAYS if supports(o, dtype)):
        wanted = wk.resize(view.contiguous(), SIZE, **options)
        for _ in range(2):
            found = wk.resize(view, SIZE, **options)
            assert torch.equal(found, wanted), options
            assert found.is_contiguous() or view.ndim == 4


@pytest.mark.parametrize("name", VIEWS)
def test_a_views_gradient_has_the_bits_of_its_copys(name):
    view = VIEWS[name](rows(HEIGHT, WIDTH, torch.float32))
    pushed = noise(*view.shape[:-2], *SIZE, seed=3, dtype=torch.float32)
    for options in ({}, {"interpolation": "bicubic", "antialias": False}):
        slopes = []
        for image in (view, view.contiguous(), view):
            leaf = image.detach().requires_grad_()
            slopes += torch.autograd.grad(wk.resize(leaf, SIZE, **options), leaf, pushed)
        assert slopes[0].any()
        assert torch.equal(slopes[0], slopes[1])
        assert torch.equal(slopes[0], slopes[2])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_not_copied(name, dtype):
    """A call allocates a few times its result at most (of halves in float32), and no image."""
    view = VIEWS[name](rows(HEIGHT, WIDTH, dtype))
    for options in (o for o in WAYS if supports(o, dtype)):
        call = partial(wk.resize, view, SIZE, **options)
        result = call()
        most = 4 * result.numel() * max(result.itemsize, 4 * dtype.is_floating_point) + 20_000
        assert most < view.numel() * view.itemsize
        assert allocated(call) < most, options


def test_the_counter_sees_a_copy():
    view = VIEWS["rows of pixels"](rows(HEIGHT, WIDTH, torch.float32))
    assert allocated(view.contiguous) >= view.numel() * 4
    assert allocated(lambda: view.numpy().copy()) >= view.numel() * 4
