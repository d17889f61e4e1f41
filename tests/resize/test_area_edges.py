"""The gradient of "area" to the box is right-hand where cell edges are between pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise

ROW = noise(9, seed=3).numpy()


def mean(row: np.ndarray, low: float, high: float) -> float:
    """The mean of a row between two edges, from its integral."""
    integral = np.concatenate(([0.0], row.cumsum()))
    at = np.interp([low, high], np.arange(len(integral)), integral)
    return (at[1] - at[0]) / (high - low)


def slopes(row: np.ndarray, low: float, high: float, size: int) -> np.ndarray:
    """The derivatives of each cell's mean with respect to the box's edges, (size, 2), by hand.

    The derivatives of a mean m over [a, b] are (m - row at a) / (b - a) for a and
    (row at b - m) / (b - a) for b. Between pixels the right one counts, except at the row's end.
    """
    found = []
    for i in range(size):
        shares = i / size, (i + 1) / size
        a, b = (low + share * (high - low) for share in shares)
        by_a = (mean(row, a, b) - row[int(np.floor(a))]) / (b - a)
        by_b = (row[min(int(np.floor(b)), len(row) - 1)] - mean(row, a, b)) / (b - a)
        found.append([sum(d * (1 - s) for d, s in zip((by_a, by_b), shares, strict=True)),
                      sum(d * s for d, s in zip((by_a, by_b), shares, strict=True))])  # fmt: skip
    return np.array(found)


BOXES = [  # whole cells, half cells, one cell, the end of the row, no edge between pixels
    (1, 7, 3),
    (1, 4, 2),
    (2, 8, 1),
    (3, 9, 2),
    (0, 9, 3),
    (1.25, 7.5, 4),
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("low", "high", "size"), BOXES)
def test_slopes_by_hand(low: float, high: float, size: int, axis: int):
    image = torch.from_numpy(np.stack((ROW, ROW[::-1].copy())))[:, None]
    box, shape = [low, 0.0, high, 1.0], (1, size)
    if axis:
        image, box, shape = image.mT, [0.0, low, 1.0, high], (size, 1)
    edges = torch.tensor(box, dtype=torch.float64, requires_grad=True)
    result = wk.resize(image[:, None].contiguous(), shape, interpolation="area", box=edges)
    for row, values in zip((ROW, ROW[::-1]), result.reshape(2, size), strict=True):
        wanted = slopes(row, low, high, size)
        for value, slope in zip(values, wanted, strict=True):
            (got,) = torch.autograd.grad(value, edges, retain_graph=True)
            np.testing.assert_allclose(got[axis::2], slope, rtol=0, atol=1e-13)


def test_slopes_are_derivatives_from_the_right():
    """For all four edges at once, compared with one-sided differences of a weighted sum."""
    image, weight = noise(2, 8, 9), noise(2, 3, 3)

    def total(box):
        return (wk.resize(image, (3, 3), interpolation="area", box=box) * weight).sum()

    box = torch.tensor([1.0, 1.0, 7.0, 7.0], dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(total(box), box)
    for k, step in enumerate(1e-7 * torch.eye(4, dtype=torch.float64)):
        slope = (total(box.detach() + step) - total(box.detach())) / 1e-7
        torch.testing.assert_close(got[k], slope, rtol=0, atol=1e-5)


def test_a_nan_that_only_touches_a_cell_does_not_leak():
    image = noise(1, 1, 9)
    image[..., 7] = torch.nan
    box = torch.tensor([1.0, 0.0, 7.0, 1.0], dtype=torch.float64, requires_grad=True)
    result = wk.resize(image, (1, 3), interpolation="area", box=box)
    plain = wk.resize(image, (1, 3), interpolation="area", box=(1.0, 0.0, 7.0, 1.0))
    assert torch.equal(result, plain)
    (slope,) = torch.autograd.grad(result.sum(), box)
    assert slope[0::2].isfinite().all()
