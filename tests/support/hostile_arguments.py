"""Valid and invalid arguments of every kind, for the fuzz tests."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

IMAGES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.uint8, torch.int16, torch.uint16)
OTHERS = (torch.bool, torch.int8, torch.int32, torch.int64, torch.uint32, torch.uint64)
OTHERS += (torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2)
KINDS = ("noise",) * 9 + ("grad",) * 6 + ("whole", "huge", "huge", "meta")
HUGE = (float("nan"), float("inf"), -float("inf"), 1e30, -1e300, 2.0**31, 1e-300, 0.0)
LAYOUTS = ("plain", "plain", "expanded", "strided", "transposed", "channels last", "shifted")

WRONG: tuple[Any, ...] = (
    *(None, "", "bilinear", b"x", "1", True, False, 0, -1, 1.5, 1j, 10**400, 2**70, -(2**63)),
    *HUGE,
    *([], (), [[]], [1, [2, 3]], [[1, 2], [3]], ["a"], [None], (0, 0), (1, -1), (2, "b"), (3, 2)),
    *({}, {"a": 1}, {1, 2}, object(), int, len, range(2), slice(1), Ellipsis, NotImplemented),
    *(np.float32(1.5), np.int64(2), np.bool_(True), np.array(None), np.array(["a", "b"])),
    *(np.zeros((2, 3), complex), np.zeros(2, "datetime64[s]"), np.zeros(0), np.eye(3)[::-1]),
    *(np.zeros((2, 3), ">f4"), np.ma.masked_array([1.0, 2.0], [True, False]), np.float16(1)),
    *(torch.float32, torch.device("cpu"), torch.Size([2, 3]), torch.nn.Identity()),
)
with warnings.catch_warnings():  # about its beta state
    warnings.simplefilter("ignore", UserWarning)
    CSR = torch.eye(3).to_sparse_csr()
MADE = ("sparse", "sparse csr", "meta", "scalar", "empty", "bool", "complex", "float8", "parameter")


def make(kind: str) -> torch.Tensor:
    """Tensors that no function expects, new ones for every call."""
    eye = torch.eye(3)
    kinds = {
        "sparse": eye.to_sparse,
        "sparse csr": lambda: CSR.clone(),
        "meta": lambda: eye.to("meta"),
        "scalar": lambda: torch.tensor(1.5),
        "empty": lambda: torch.zeros(0, 3, 0),
        "bool": lambda: eye.bool(),
        "complex": lambda: eye.to(torch.complex64),
        "float8": lambda: eye.to(torch.float8_e5m2),
        "parameter": lambda: torch.nn.Parameter(eye[:2]),
    }
    return kinds[kind]()


wrong = st.one_of(st.sampled_from(WRONG), st.sampled_from(MADE).map(make))
"""Anything but what is asked for."""


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The tensor in another memory layout; "expanded" also changes its values."""
    if tensor.numel() == 0 or tensor.ndim == 0:
        return tensor
    if layout == "expanded":
        return tensor[:1].expand(tensor.shape)
    if layout == "strided":
        return torch.stack((tensor, tensor), dim=-1)[..., 0]
    if layout == "transposed" and tensor.ndim > 1:
        return tensor.mT.contiguous().mT
    if layout == "channels last" and tensor.ndim > 2:
        return tensor.movedim(-3, -1).contiguous().movedim(-1, -3)
    if layout == "shifted":
        return torch.cat((tensor.flatten()[:1], tensor.flatten()))[1:].view(tensor.shape)
    return tensor


@st.composite
def tensors(
    draw: st.DrawFn,
    shape: Sequence[int],
    dtypes: Sequence[torch.dtype] = (torch.float32, torch.float64),
    low: float = 0.0,
    high: float = 1.0,
    wild: bool = True,
) -> torch.Tensor:
    """Noise of any type and memory layout, some of it huge, on the CPU or the meta device."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    values = torch.rand(tuple(shape), generator=generator, dtype=torch.float64) * (high - low) + low
    kind = draw(st.sampled_from(KINDS))
    if kind == "whole":
        values = values.round()
    if kind == "huge" and wild and values.numel():
        place = draw(st.integers(0, values.numel() - 1))
        values.view(-1)[place] = draw(st.sampled_from(HUGE))
    rare = wild and draw(st.integers(0, 24)) == 24
    dtype = draw(st.sampled_from(OTHERS if rare else tuple(dtypes)))
    if not (dtype.is_floating_point or dtype.is_complex):
        values = values.nan_to_num(0, 100, 0).clamp(-100, 100) * (100 if high == 1 else 1)
    tensor = laid_out(values.to(dtype), draw(st.sampled_from(LAYOUTS)))
    if kind == "meta" and wild:
        return tensor.to("meta")
    if kind == "grad" and dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        tensor.requires_grad_()
    return tensor


batches = st.sampled_from(((), (), (), (1,), (2,), (2,), (2,), (2, 1), (1, 2), (0,), (3,)))
sides = st.sampled_from((1, 2, 3, 4, 5, 6, 8, 1, 2, 3, 4, 5, 6, 8, 0))


@st.composite
def images(draw: st.DrawFn, dims: Sequence[int] = (3, 4, 5)) -> torch.Tensor:
    """(..., C, H, W) of any type."""
    batch = draw(batches.filter(lambda b: len(b) + 3 in dims))
    channels = draw(st.sampled_from((1, 2, 3, 3, 3, 4, 9, 1, 2, 3, 3, 3, 4, 9, 0)))
    shape = (*batch, channels, draw(sides), draw(sides))
    return draw(tensors(shape, (*IMAGES, *WHOLE)))


@st.composite
def matrices(draw: st.DrawFn, rows: Sequence[int] = (2, 3), batch: Any = None) -> torch.Tensor:
    """Near the identity, with shifts of some pixels; some singular or not finite."""
    own = draw(batches) if batch is None else batch
    r = draw(st.sampled_from(tuple(rows)))
    noise = draw(tensors((*own, r, 3), (torch.float32, torch.float64), -0.5, 0.5))
    if not noise.is_floating_point() or noise.dtype.itemsize < 4 or noise.device.type == "meta":
        return noise
    base = torch.eye(r, 3, dtype=noise.dtype) * draw(st.sampled_from((1.0, 1.0, 0.3, 3.0, 0.0)))
    scale = torch.ones(r, 3, dtype=noise.dtype)
    scale[:2, 2] = 4.0
    if r == 3:
        scale[2] = 0.0 if draw(st.booleans()) else 0.02
        base[2, 2] = 1.0
    return base + noise.detach() * scale if draw(st.booleans()) else base + noise * scale


@st.composite
def points(draw: st.DrawFn, *shape: int) -> torch.Tensor:
    """Points (..., *shape, 2) in and around an image."""
    return draw(tensors((*draw(batches), *shape, 2), low=-3.0, high=9.0))


@st.composite
def boxes(draw: st.DrawFn, count: int) -> torch.Tensor:
    """(N, 4), most of them with x1 < x2 and y1 < y2."""
    corner = draw(tensors((count, 2), low=-3.0, high=6.0, wild=False)).detach()
    side = draw(tensors((count, 2), low=0.3, high=6.0))
    if not side.is_floating_point() or side.dtype.itemsize < 4 or side.device.type == "meta":
        return side
    return torch.cat((corner, corner + side.detach()), dim=1)


numbers = st.one_of(
    st.floats(-90, 90, width=32),
    st.sampled_from(HUGE),
    batches.flatmap(lambda b: tensors(b, high=30.0)),
)
pairs = st.one_of(
    st.tuples(st.floats(-9, 9, width=32), st.floats(-9, 9, width=32)),
    batches.flatmap(lambda b: tensors((*b, 2))),
)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
