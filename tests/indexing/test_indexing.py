"""Values of lookups and assignments: by hand, and float64 numpy loops."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE

EXACT = {"rtol": 0, "atol": 0}
CLOSE = {"rtol": 0, "atol": TOLERANCE["reference float64"]}
POSITIONS = [0.0, 0.3, 1.0, 2.75, 3.0, 4.0, -0.4, -7.0, 4.2, 1e12, float("inf"), -float("inf")]
ROWS = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


def weights_by_hand(position: float, n: int) -> np.ndarray:
    """The weights of one position, from the definition."""
    weights = np.zeros(n)
    position = min(max(position, 0.0), n - 1.0)
    below = int(np.floor(position))
    weights[below] += 1 - (position - below)
    if below + 1 < n:
        weights[below + 1] += position - below
    return weights


def lookup_loop(array: Tensor, positions: Tensor, dim: int) -> Tensor:
    """One lookup at a time; the index's dimensions then replace `dim`."""
    first = np.moveaxis(array.numpy(), dim, 0)
    n = first.shape[0]
    found = [np.tensordot(weights_by_hand(p, n), first, 1) for p in positions.flatten().tolist()]
    result = np.reshape(found, (*positions.shape, *first.shape[1:]))
    k = positions.ndim
    return torch.from_numpy(np.moveaxis(result, range(k), range(dim, dim + k)))


def assign_loop(array: Tensor, weights: list[np.ndarray], values: list[np.ndarray]) -> Tensor:
    """One assignment at a time along the first dimension."""
    result = array.numpy().copy()
    for each, value in zip(weights, values, strict=True):
        each = each.reshape(each.shape + (1,) * (result.ndim - each.ndim))
        result = (1 - each) * result + each * value
    return torch.from_numpy(result)


# The notebook's figures, corrected


def test_linear_weights_are_not_swapped():
    assert wk.indexing.linear_lookup(ROWS, 1.5).item() == 2.5
    assert wk.indexing.linear_lookup(ROWS, 1.25).item() == 2.25  # swapped weights would give 2.75
    assert_close(wk.indexing.soft_one_hot(1.25, 5), torch.tensor([0, 0.75, 0.25, 0, 0]), **EXACT)
    assert_close(wk.indexing.soft_one_hot(2.5, 5), torch.tensor([0, 0, 0.5, 0.5, 0]), **EXACT)


def test_superposition_lookups_by_hand():
    array = torch.tensor(
        [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    )
    found = wk.indexing.superposition_lookup(array, [0.5, 0.5, 0, 0, 0])
    assert_close(found, torch.tensor([0, 0, 0.5, 0, 0.5]), **EXACT)
    weights = torch.tensor([0.0, 0.1, 0.8, 0.0, 0.1], dtype=torch.float64)
    found = wk.indexing.superposition_lookup(
        torch.tensor([1.0, 2, 3, 5, 4], dtype=torch.float64), weights
    )
    assert_close(found, torch.tensor(3.0, dtype=torch.float64), **CLOSE)


def test_many_indices_give_one_value_each():
    """The notebook summed over the indices instead of the rows, and printed 0, 1, 2, 1.5, 6."""
    index = torch.tensor([1, 2, 3.5, 0, 4])
    array = torch.arange(5.0)
    assert_close(
        wk.indexing.superposition_lookup(array, wk.indexing.soft_one_hot(index, 5)), index, **EXACT
    )
    assert_close(wk.indexing.linear_lookup(array, index), index, **EXACT)


def test_residual_lookups_by_hand():
    value, residual = wk.indexing.residual_lookup(ROWS, 1.5)
    assert (value.item(), residual.item()) == (3.0, -0.5)
    value, residual = wk.indexing.residual_lookup(ROWS, 2.5)
    assert (value.item(), residual.item()) == (3.0, 0.5)  # ties to even


def test_assignments_by_hand():
    array = torch.tensor([[1.0] * 3, [2.0] * 3, [3.0] * 3])
    four = torch.full((3,), 4.0)
    hard = torch.tensor([[1.0] * 3, [4.0] * 3, [3.0] * 3])
    assert_close(wk.indexing.assign(array, 1, four), hard, **EXACT)
    assert_close(wk.indexing.superposition_assign(array, [0.0, 1.0, 0.0], four), hard, **EXACT)
    soft = torch.tensor([[2.5] * 3, [3.0] * 3, [3.0] * 3])
    assert_close(wk.indexing.superposition_assign(array, [0.5, 0.5, 0.0], four), soft, **EXACT)


def test_two_dimensional_lookup_is_a_sum():
    array = torch.tensor([[[i, i * k] for k in (1.0, 11.0, 111.0)] for i in (1.0, 2.0, 3.0)])
    row, column = F.one_hot(torch.tensor(1), 3).float(), F.one_hot(torch.tensor(2), 3).float()
    assert_close(wk.indexing.lookup_2d(array, row, column), array[1, 2], **EXACT)
    assert_close(
        wk.indexing.lookup_2d(-array, row, column), -array[1, 2], **EXACT
    )  # the notebook's maximum is 0
    half = torch.tensor([0.5, 0.5, 0.0])
    mean = array[:2, :2].mean((0, 1))  # the notebook's maximum is a quarter of one entry
    assert_close(wk.indexing.lookup_2d(array, half, half), mean, **EXACT)
    written = array.clone()
    written[1, 2] = torch.tensor([5.0, 555.0])
    assert_close(wk.indexing.assign_2d(array, [5.0, 555.0], row, column), written, **EXACT)


# Comparisons with loops


@pytest.mark.parametrize("shape", [(), (12,), (3, 4), (2, 1, 6), (0,), (2, 0)])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_lookups_match_a_loop(dim: int, shape: tuple[int, ...]):
    array = noise(5, 5, 5, seed=1).transpose(0, 2)
    count = int(np.prod(shape))
    index = torch.tensor((POSITIONS * 2)[:count] if shape else 2.75, dtype=torch.float64)
    index = index.reshape(shape)
    expected = lookup_loop(array, index, dim % 3)
    assert_close(wk.indexing.linear_lookup(array, index, dim=dim), expected, **CLOSE)
    weights = wk.indexing.soft_one_hot(index, 5)
    assert_close(wk.indexing.superposition_lookup(array, weights, dim=dim), expected, **CLOSE)
    nearest = index.clamp(0, 4).round()
    value, residual = wk.indexing.residual_lookup(array, index, dim=dim)
    assert_close(value, lookup_loop(array, nearest, dim % 3), **EXACT)
    assert_close(residual, index.clamp(0, 4) - nearest, **CLOSE)


def test_soft_one_hot_matches_the_definition():
    index = torch.tensor(POSITIONS, dtype=torch.float64).reshape(3, 4)
    for n in (1, 2, 5):
        expected = np.reshape([weights_by_hand(p, n) for p in POSITIONS], (3, 4, n))
        assert_close(wk.indexing.soft_one_hot(index, n), torch.from_numpy(expected), **CLOSE)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_assign_equals_a_loop_of_single_assignments(dim: int):
    """With repeated and neighbouring positions, a later assignment covers an earlier one."""
    array = noise(5, 5, 5, seed=2)
    index = torch.tensor([1.3, 1.6, 0.0, 1.3, 4.0, 9.0, 3.999, -2.0], dtype=torch.float64)
    shape = list(array.movedim(dim, -1).shape)
    values = noise(len(index), *shape[:2], seed=3)
    expected = assign_loop(
        array.movedim(dim, 0), [weights_by_hand(p, 5) for p in index.tolist()], list(values.numpy())
    )
    value = values.movedim(0, dim)
    assert_close(
        wk.indexing.assign(array, index, value, dim=dim).movedim(dim, 0), expected, **CLOSE
    )
    weights = wk.indexing.soft_one_hot(index, 5)
    result = wk.indexing.superposition_assign(array, weights, value, dim=dim)
    assert_close(result.movedim(dim, 0), expected, **CLOSE)


def test_assign_2d_equals_a_loop_of_single_assignments():
    array, row, column = noise(3, 4, 2, seed=4), noise(5, 3, seed=5), noise(5, 4, seed=6)
    values = noise(5, 2, seed=7)
    weights = [np.outer(r, c) for r, c in zip(row.numpy(), column.numpy(), strict=True)]
    expected = assign_loop(array, weights, list(values.numpy()))
    assert_close(wk.indexing.assign_2d(array, values, row, column), expected, **CLOSE)


def test_lookup_2d_broadcasts_the_weights():
    array, row, column = noise(3, 4, 2, seed=4), noise(5, 1, 3, seed=5), noise(6, 4, seed=6)
    expected = torch.from_numpy(np.einsum("jih,kw,hwc->jkc", row, column, array))
    assert_close(wk.indexing.lookup_2d(array, row, column), expected, **CLOSE)
    expected = torch.einsum("h,w,hw->", row[0, 0], column[0], array[..., 0])
    assert_close(wk.indexing.lookup_2d(array[..., 0], row[0, 0], column[0]), expected, **CLOSE)


def test_linear_lookup_equals_sample_pixels_in_one_dimension():
    array, index = noise(6, 4, seed=8), torch.tensor(POSITIONS[:-3], dtype=torch.float64)
    points = torch.stack((index, torch.zeros_like(index)), -1)
    for border in ("replicate", "reflect", "reflect_101", "wrap"):
        pixels = wk.sample_pixels(array.T[:, None], points, border=border)
        assert_close(wk.indexing.linear_lookup(array, index, border=border), pixels.T, **CLOSE)
        weights = wk.indexing.soft_one_hot(index, 6, border=border)
        assert_close(wk.indexing.superposition_lookup(array, weights), pixels.T, **CLOSE)


# Indices


def test_integer_indices_select_rows():
    array = noise(5, 3, seed=9)
    for index in ([0, -1, 3, -5], np.array([4, -2], dtype=np.int32), torch.tensor([[1], [2]]), -3):
        picked = array[torch.as_tensor(index).long()]
        assert_close(wk.indexing.linear_lookup(array, index), picked, **EXACT)
        value, residual = wk.indexing.residual_lookup(array, index)
        assert_close(value, picked, **EXACT)
        assert not residual.any()
        weights = wk.indexing.soft_one_hot(index, 5).double()
        assert_close(wk.indexing.superposition_lookup(array, weights), picked, **EXACT)
    assert_close(
        wk.indexing.linear_lookup(array, [-6, 5]), array[[0, 4]], **EXACT
    )  # clamped beyond the ends
    assert_close(
        wk.indexing.linear_lookup(array, -1.0), array[0], **EXACT
    )  # a position to the left of the start


def test_integers_beyond_float32_stay_exact():
    array = torch.arange(2**24 + 4, dtype=torch.float64)
    assert wk.indexing.linear_lookup(array, [2**24 + 1]).item() == 2**24 + 1


def test_the_last_of_repeated_integer_assignments_counts():
    array = torch.tensor([1.0, float("nan"), 3.0])
    result = wk.indexing.assign(array, [1, 0, 1, -1], [5.0, 6.0, 7.0, 8.0])
    assert_close(result, torch.tensor([6.0, 7.0, 8.0]), **EXACT)  # the NaN is overwritten
    assert_close(array[[0, 2]], torch.tensor([1.0, 3.0]), **EXACT)  # the array is unchanged


def test_nan_reads_nan_and_writes_nothing():
    array, nan = noise(4, 2, seed=10), float("nan")
    assert wk.indexing.linear_lookup(array, [nan, 1.0]).isnan().tolist() == [
        [True] * 2,
        [False] * 2,
    ]
    value, residual = wk.indexing.residual_lookup(array, nan)
    assert value.isnan().all()
    assert residual.isnan()
    assert wk.indexing.soft_one_hot(nan, 3).isnan().all()
    assert_close(wk.indexing.assign(array, [nan], [[1.0, 1.0]]), array, **EXACT)
    assert wk.indexing.linear_lookup(array, [1e10], border="wrap").isnan().all()


def test_empty_index_and_empty_rows():
    array = noise(4, 2, seed=11)
    empty = torch.zeros(0)
    assert wk.indexing.linear_lookup(array, empty, dim=1).shape == (4, 0)
    copy = wk.indexing.assign(array, empty, torch.zeros(0, 2))
    assert_close(copy, array, **EXACT)
    assert copy.data_ptr() != array.data_ptr()
    assert_close(wk.indexing.superposition_assign(array, torch.zeros(0, 4), 1.0), array, **EXACT)
    assert wk.indexing.linear_lookup(torch.zeros(3, 0), [0.5, 1.0]).shape == (2, 0)
    assert wk.indexing.assign(torch.zeros(3, 0), [0.5, 1.0], 1.0).shape == (3, 0)
    assert wk.indexing.lookup_2d(torch.zeros(2, 3, 0), [1, 0], [0, 0, 1]).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_results_have_the_arrays_type(dtype: torch.dtype):
    array, index = noise(5, 3, dtype=dtype, seed=12), torch.tensor([0.25, 3.5], dtype=torch.float64)
    name = {torch.float16: "float16", torch.bfloat16: "bfloat16"}.get(dtype, "reference float32")
    expected = lookup_loop(array.double(), index, 0)
    weights = wk.indexing.soft_one_hot(index, 5)
    for result in (
        wk.indexing.linear_lookup(array, index),
        wk.indexing.superposition_lookup(array, weights),
    ):
        assert result.dtype == dtype
        assert_close(result.double(), expected, rtol=0, atol=TOLERANCE[name])
    for result in (
        wk.indexing.assign(array, index, 1),
        wk.indexing.superposition_assign(array, weights, 1),
        wk.indexing.residual_lookup(array, index)[0],
        wk.indexing.lookup_2d(array, weights, weights[:, :3]),
        wk.indexing.assign_2d(array, 1, weights, weights[:, :3]),
    ):
        assert result.dtype == dtype
    assert wk.indexing.linear_lookup([1, 2], 0.5).dtype == torch.get_default_dtype()
    assert wk.indexing.soft_one_hot(index.to(dtype), 5).dtype == dtype


def test_memory_grows_only_with_the_number_of_indices():
    """A one-hot of 1e6 x 1e6 float32 numbers would be 4 TB."""
    n = 1_000_000
    array = torch.arange(float(n))
    index = torch.arange(n) + 0.5
    assert_close(
        wk.indexing.linear_lookup(array, index)[:3], torch.tensor([0.5, 1.5, 2.5]), **EXACT
    )
    result = wk.indexing.assign(array, torch.arange(n).flip(0), array)
    assert_close(result, array.flip(0), **EXACT)
    result = wk.indexing.assign(array, array.flip(0), array)
    assert_close(result, array.flip(0), **EXACT)


def test_the_examples_in_docs_indexing_run():
    page = ROOT / "docs" / "indexing.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_numbers_beside_a_float64_array_keep_their_digits():
    array = torch.zeros(3, dtype=torch.float64)
    assert wk.indexing.assign(array, 0, 0.1)[0] == 0.1
    assert wk.indexing.superposition_assign(array, [1, 0, 0], 0.1)[0] == 0.1
    assert wk.indexing.linear_lookup(array + torch.arange(3), 0.1) == 0.1
    assert wk.indexing.superposition_lookup(array + 1, [0.1, 0.0, 0.0]) == 0.1
