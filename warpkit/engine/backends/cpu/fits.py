"""Fits matrices to points in the native library: torch's operations take 300 us per call."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.backends.cpu import calls

FITS = calls.Family("fits")
FIELDS = FITS.fields


@lru_cache(maxsize=64)
def _block(task: str, count: int) -> np.ndarray:
    return FITS.block(task, {"count": count})


@lru_cache(maxsize=16)
def _limits(dtype: torch.dtype) -> np.ndarray:
    """The resolution of the caller's type, and its largest number."""
    known = torch.finfo(dtype)
    return np.array((known.eps, known.max))


def four_points(src: Tensor, dst: Tensor, dtype: torch.dtype) -> tuple[Tensor, bool]:
    """Perspectives (B, 3, 3) of points (B, 4, 2), float64, and whether all items have a unique
    one."""
    found = torch.empty((len(src), 3, 3), dtype=torch.float64, device="cpu")
    return found, _fitted("four_points", {"src": src, "dst": dst, "matrix": found}, dtype)


def four_points_backward(
    src: Tensor, dst: Tensor, grad: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The gradients of both point lists (B, 4, 2) from that of their matrices, (B, 3, 3)."""
    src, dst, grad = src.contiguous(), dst.contiguous(), grad.contiguous()
    to_src, to_dst = torch.empty_like(src), torch.empty_like(dst)
    arrays = {"src": src, "dst": dst, "grad": grad, "grad_src": to_src, "grad_dst": to_dst}
    _run("four_points_backward", arrays, _limits(dtype))
    return to_src, to_dst


def similarity(
    src: Tensor, dst: Tensor, weights: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, bool]:
    """Similarities (B, 2, 3) of points (B, N, 2), float64, and whether all items have one."""
    found = torch.empty((len(src), 2, 3), dtype=torch.float64, device="cpu")
    arrays = {"src": src, "dst": dst, "matrix": found}
    arrays |= {} if weights is None else {"weights": weights.contiguous()}
    return found, _fitted("similarity", arrays, dtype)


def homography(entries: Tensor, src: Tensor, dst: Tensor, steps: int) -> Tensor:
    """Eight entries (B, 8) after minimising the squared distances: see `opencv.homography`.

    src and dst (B, N, 2), float64, centred at 0 and with coordinates near 1.
    """
    found, limits = entries.clone(memory_format=torch.contiguous_format), np.array([float(steps)])
    arrays = {"src": src.contiguous(), "dst": dst.contiguous(), "matrix": found}
    _run("homography", arrays, limits)
    return found


def _fitted(task: str, arrays: dict[str, Tensor], dtype: torch.dtype) -> bool:
    good = torch.empty(len(arrays["src"]), dtype=torch.long, device="cpu")
    arrays |= {name: arrays[name].contiguous() for name in ("src", "dst")}
    _run(task, arrays | {"good": good}, _limits(dtype))
    return bool(good.all())


def _run(task: str, arrays: dict[str, Tensor], limits: np.ndarray) -> None:
    items, count = arrays["src"].shape[:2]
    numbers = _block(task, count).copy()
    for name, tensor in arrays.items():
        numbers[FIELDS[name]] = tensor.data_ptr()
    numbers[FIELDS["limits"]] = limits.ctypes.data
    calls.launch(numbers, 0, items, items * count * 16)
