"""Inverses of matrices, and their gradient, without torch's operations: they cost 100 us each."""

from __future__ import annotations

from itertools import chain
from math import isfinite, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor


def invert(matrix: Tensor, singular: float = nan) -> Tensor:
    """As `maps.inverse_map` of float matrices (..., 2 or 3, 3) in float64, bit for bit."""
    invert_all = _one if matrix.ndim == 2 or matrix.shape[:-2].numel() == 1 else _many
    return torch.from_numpy(invert_all(matrix.detach(), singular))


def _one(matrix: Tensor, singular: float) -> np.ndarray:
    """In Python's numbers: 3 us."""
    entries = matrix.reshape(-1).tolist()
    found = [nan] * len(entries)
    if all(map(isfinite, entries)) and isfinite(det := _determinant(*entries)):
        if det == 0:
            found = [singular] * len(entries)
        elif isfinite(per := 1 / det):
            found = list(chain(*_rows(per, *entries)))
    return np.array(found).reshape(matrix.shape)


def _many(matrix: Tensor, singular: float) -> np.ndarray:
    """In numpy's arrays: 20 us and more."""
    m = matrix.double().numpy()
    entries = np.moveaxis(m.reshape(*m.shape[:-2], 3 * m.shape[-2]), -1, 0)
    to_source = np.empty(m.shape)
    with np.errstate(all="ignore"):
        det = _determinant(*entries)
        per = 1 / det
        for r, row in enumerate(_rows(per, *entries)):
            for c, entry in enumerate(row):
                to_source[..., r, c] = entry
    finite = np.isfinite(m).all((-2, -1))
    good = finite & np.isfinite(det) & np.isfinite(per)
    if not good.all():
        none = np.where(finite & (det == 0), singular, nan)
        to_source = np.where(good[..., None, None], to_source, none[..., None, None])
    return to_source


def inverse_vjp_numpy(to_source: Tensor, grad: np.ndarray) -> np.ndarray:
    """As `inverse.inverse_vjp`, bit for bit."""
    pulled = _vjp_one if to_source.ndim == 2 or to_source.shape[:-2].numel() == 1 else _vjp_many
    return pulled(to_source, grad).reshape(to_source.shape)


def _vjp_one(to_source: Tensor, grad: np.ndarray) -> np.ndarray:
    """In Python's numbers: 6 us.

    to_source and grad (..., 2 or 3, 3) of one matrix.
    """
    n, g = to_source.reshape(-1, 3).tolist(), grad.reshape(-1, 3).tolist()
    entries = list(chain(*n))
    det, largest = _determinant(*entries), max(map(abs, entries))
    square = largest * largest
    steady = all(map(isfinite, entries)) and isfinite(det * det + square * square)
    return -np.array(_vjp_rows(n if steady else [(0.0, 0.0, 0.0)] * len(n), g))


def _vjp_many(to_source: Tensor, grad: np.ndarray) -> np.ndarray:
    """In numpy's arrays: 50 us and more.

    to_source and grad (..., 2 or 3, 3).
    """
    both = to_source.numpy(), grad
    n, g = (np.moveaxis(m.reshape(-1, *m.shape[-2:]), 0, -1) for m in both)
    with np.errstate(all="ignore"):
        det, largest = _determinant(*chain(*n)), np.abs(n).max((0, 1))
        square = largest * largest
        steady = np.isfinite(det * det + square * square)
        return -np.moveaxis(np.array(_vjp_rows(np.where(steady, n, 0.0), g)), -1, 0)


def _vjp_rows(n: Any, g: Any) -> list[list[Any]]:
    """N' G N' by the rows of N and G, of numbers or arrays."""
    whole = [*n, (0.0, 0.0, 1.0)][:3]
    right = [*_products(g, whole), (0.0, 0.0, 0.0)][:3]
    return _products(list(zip(*whole, strict=True))[: len(n)], list(zip(*right, strict=True)))


def _products(a: Any, b: Any) -> list[list[Any]]:
    """Every row of `a` times every row of `b`."""
    return [[x * p + y * q + z * r for p, q, r in b] for x, y, z in a]


def _determinant(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, *third_row: Any) -> Any:
    """As `maps.determinant`, of numbers or arrays."""
    if not third_row:
        return a * e - b * d
    g, h, i = third_row
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _rows(per: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, *third_row: Any) -> Any:
    """The inverse's rows, from 1 / determinant."""
    if not third_row:
        k, p, q, r = e * per, b * -per, d * -per, a * per
        return (k, p, -k * c - p * f), (q, r, -q * c - r * f)
    g, h, i = third_row
    return (
        ((e * i - f * h) * per, (c * h - b * i) * per, (b * f - c * e) * per),
        ((f * g - d * i) * per, (a * i - c * g) * per, (c * d - a * f) * per),
        ((d * h - e * g) * per, (b * g - a * h) * per, (a * e - b * d) * per),
    )
