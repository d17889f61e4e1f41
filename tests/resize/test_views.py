"""Views of images: read in place, with the bits of their copies, whatever their strides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.allocations import allocated
from tests.support.inputs import noise

SIZE = (40, 56)
VIEWS: dict[str, Callable[[torch.dtype], Tensor]] = {
    "one of channels-last": lambda d: noise(270, 330, 3, dtype=d).permute(2, 0, 1),
    "videos of channels-last": lambda d: noise(2, 2, 130, 170, 3, dtype=d).permute(0, 1, 4, 2, 3),
    "columns": lambda d: noise(3, 270, 400, dtype=d)[..., 7:330],
    "columns of channels-last": lambda d: noise(270, 400, 3, dtype=d).permute(2, 0, 1)[..., 9:],
    "every second row": lambda d: noise(2, 3, 300, 250, dtype=d)[..., ::2, :],
    "channels of planes": lambda d: noise(2, 4, 270, 330, dtype=d)[:, :3],
    "one image for many": lambda d: noise(3, 270, 330, dtype=d).expand(3, 3, 270, 330),
}
COPIED: dict[str, Callable[[torch.dtype], Tensor]] = {
    "channels of channels-last": lambda d: noise(2, 70, 90, 4, dtype=d).permute(0, 3, 1, 2)[:, :3],
    "transposed": lambda d: noise(3, 90, 70, dtype=d).mT,
    "transposed channels-last": lambda d: noise(70, 90, 3, dtype=d).permute(2, 1, 0),
    "every second column": lambda d: noise(3, 70, 90, dtype=d)[..., ::2],
}
"""Views whose pixels are apart in a row: their box is copied."""

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


def rearranges(options: dict[str, Any], view: Tensor) -> bool:
    """Whether OpenCV's or IPP's sums depend on the order of memory: planes are then rearranged."""
    arithmetic, name = options.get("arithmetic", ""), options.get("interpolation")
    if view.stride(-3) == 1 or not arithmetic.startswith("opencv") or name in ("nearest", "area"):
        return False
    floats = view.is_floating_point() and (name is not None or arithmetic.endswith("_ipp"))
    return floats or name == "bicubic"


TYPES = (torch.uint8, torch.float32)


def supports(options: dict[str, Any], dtype: torch.dtype) -> bool:
    return options.get("arithmetic") != "torchvision" or dtype == torch.uint8


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", [*VIEWS, *COPIED])
def test_a_view_has_the_bits_of_its_copy(name, dtype):
    view = (VIEWS | COPIED)[name](dtype)
    for options in (o for o in WAYS if supports(o, dtype)):
        wanted = wk.resize(view.contiguous(), SIZE, **options)
        for _ in range(2):
            found = wk.resize(view, SIZE, **options)
            assert torch.equal(found, wanted), options
            assert found.is_contiguous() or view.ndim == 4


@pytest.mark.parametrize("name", [*VIEWS, *COPIED])
def test_a_views_gradient_has_the_bits_of_its_copys(name):
    view = (VIEWS | COPIED)[name](torch.float32)
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
    """A call allocates a few times its result at most, far less than the image."""
    view = VIEWS[name](dtype)
    for options in (o for o in WAYS if supports(o, dtype) and not rearranges(o, view)):
        call = partial(wk.resize, view, SIZE, **options)
        result = call()
        most = 4 * result.numel() * result.itemsize + 20_000
        assert most < view.numel() * view.itemsize or name == "one image for many"
        assert allocated(call) < most, options


def test_the_counter_sees_a_copy():
    view = VIEWS["one of channels-last"](torch.float32)
    assert allocated(view.contiguous) >= view.numel() * 4
    assert allocated(lambda: view.numpy().copy()) >= view.numel() * 4
