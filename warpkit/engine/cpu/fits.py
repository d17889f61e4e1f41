"""Fits matrices to points by native/matrices/fits.cpp: torch operations take 300 us per call."""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor

from warpkit.engine.cpu.calls import Family, address, launch

FITS = Family("fits")


def homography(entries: Tensor, src: Tensor, dst: Tensor, steps: int) -> Tensor:
    """Eight entries (B, 8) after minimising the squared distances: see `opencv.homography`.

    src and dst (B, N, 2), float64, centred at 0 and with coordinates near 1.
    """
    found, limits = entries.clone(memory_format=torch.contiguous_format), np.array([float(steps)])
    arrays = {"src": src.contiguous(), "dst": dst.contiguous(), "matrix": found}
    run("homography", src.shape[1], arrays, limits)
    return found


def flat(tensor: Tensor, batch: tuple[int, ...], core: int) -> Tensor:
    """A tensor (..., core dimensions), broadcast to one flat batch; dense."""
    whole = tensor.expand(*batch, *tensor.shape[tensor.ndim - core :])
    return whole.reshape(prod(batch), *whole.shape[whole.ndim - core :]).contiguous()


def fitted(
    task: str,
    batch: tuple[int, ...],
    shape: tuple[int, int],
    count: int,
    arrays: dict[str, Tensor],
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Matrices (*batch, *shape), and whether each is the only one, from flat points (B, N, 2)."""
    matrix = torch.empty((prod(batch), *shape), dtype=torch.float64, device="cpu")
    good = torch.empty(prod(batch), dtype=torch.long, device="cpu")
    run(task, count, arrays | {"matrix": matrix, "good": good}, limits_of(dtype))
    return matrix.view(*batch, *shape), (good != 0).view(batch)


def limits_of(dtype: torch.dtype) -> np.ndarray:
    """The resolution of the caller's type, and its largest number."""
    known = torch.finfo(dtype)
    return np.array((known.eps, known.max))


def run(task: str, count: int, arrays: dict[str, Tensor], limits: np.ndarray) -> None:
    """A task for dense arrays; count: the points of an item."""
    items = len(arrays["src"])
    numbers = {name: address(tensor) for name, tensor in arrays.items()}
    numbers |= {"count": count, "limits": limits.ctypes.data}
    launch(FITS.block(task, numbers), 0, items, items * count * 16)
