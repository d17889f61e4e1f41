"""Inverses of matrices without torch's operations: a call of `maps.inverse_map` costs 100 us."""

from __future__ import annotations

from itertools import chain
from math import isfinite, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor


def invert(matrix: Tensor, singular: float = nan) -> Tensor:
    """As `maps.inverse_map` of dense float64 matrices (..., 2 or 3, 3), bit for bit."""
    inverse = _one if matrix.ndim == 2 or matrix.shape[:-2].numel() == 1 else _many
    return inverse(matrix, singular)


def _one(matrix: Tensor, singular: float) -> Tensor:
    """In Python's numbers: 4 us."""
    entries = matrix.reshape(-1).tolist()
    found = [nan] * len(entries)
    if all(map(isfinite, entries)) and isfinite(det := _determinant(*entries)):
        if det == 0:
            found = [singular] * len(entries)
        elif isfinite(per := 1 / det):
            found = list(chain(*_rows(per, *entries)))
    # on the CPU, whatever torch's default device is
    return torch.tensor(found, dtype=torch.float64, device=matrix.device).reshape(matrix.shape)


def _many(matrix: Tensor, singular: float) -> Tensor:
    """In numpy's arrays: 30 us and more."""
    m = matrix.numpy()
    entries = np.moveaxis(m.reshape(*m.shape[:-2], 3 * m.shape[-2]), -1, 0)
    with np.errstate(all="ignore"):
        det = _determinant(*entries)
        per = 1 / det
        inverse = np.stack([np.stack(row, -1) for row in _rows(per, *entries)], -2)
    finite = np.isfinite(m).all((-2, -1))
    none = np.where(finite & (det == 0), singular, nan)
    good = finite & np.isfinite(det) & np.isfinite(per)
    return torch.from_numpy(np.where(good[..., None, None], inverse, none[..., None, None]))


def _determinant(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, *last: Any) -> Any:
    """As `maps.determinant`, of numbers or arrays."""
    if not last:
        return a * e - b * d
    g, h, i = last
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _rows(per: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, *last: Any) -> Any:
    """The inverse's rows, from 1 / determinant."""
    if not last:
        k, p, q, r = e * per, b * -per, d * -per, a * per
        return (k, p, -k * c - p * f), (q, r, -q * c - r * f)
    g, h, i = last
    return (
        ((e * i - f * h) * per, (c * h - b * i) * per, (b * f - c * e) * per),
        ((f * g - d * i) * per, (a * i - c * g) * per, (c * d - a * f) * per),
        ((d * h - e * g) * per, (b * g - a * h) * per, (a * e - b * d) * per),
    )
