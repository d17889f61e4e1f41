"""Gradients of lookups and assignments: by hand, finite differences, transforms."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import grad, gradcheck
from torch.testing import assert_close

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE

# forward mode imports torch's decompositions, which warn since torch 2.15
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")

EXACT = {"rtol": 0, "atol": 0}
CLOSE = {"rtol": 0, "atol": TOLERANCE["reference float64"]}
INDEX = torch.tensor([0.3, 2.6, -1.0, 7.0, 3.2, 0.4], dtype=torch.float64)
ROWS = torch.tensor([0, 2, -1, 2])


def leaf(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


# name: function, floating inputs
CASES = {
    "linear_lookup": (wk.indexing.linear_lookup, (noise(5, 3, seed=1), INDEX)),
    "linear_lookup dim=1": (
        lambda a, i: wk.indexing.linear_lookup(a, i, dim=1),
        (noise(2, 4, 3, seed=2), INDEX.reshape(2, 3)),
    ),
    "linear_lookup wrap": (
        lambda a, i: wk.indexing.linear_lookup(a, i, border="wrap"),
        (noise(5, seed=3), INDEX * 3.1),
    ),
    "linear_lookup rows": (lambda a: wk.indexing.linear_lookup(a, ROWS), (noise(5, 3, seed=4),)),
    "soft_one_hot": (lambda i: wk.indexing.soft_one_hot(i, 5), (INDEX,)),
    "superposition_lookup": (
        lambda a, w: wk.indexing.superposition_lookup(a, w, dim=1),
        (noise(2, 4, 3, seed=5), noise(5, 4, seed=6)),
    ),
    "residual_lookup": (wk.indexing.residual_lookup, (noise(5, 3, seed=7), INDEX)),
    "assign": (wk.indexing.assign, (noise(5, 3, seed=8), INDEX, noise(6, 3, seed=9))),
    "assign dim=-1": (
        lambda a, i, v: wk.indexing.assign(a, i, v, dim=-1),
        (noise(2, 4, seed=10), INDEX, noise(2, 6, seed=11)),
    ),
    "assign rows": (
        lambda a, v: wk.indexing.assign(a, ROWS, v),
        (noise(5, 3, seed=12), noise(4, 3, seed=13)),
    ),
    "superposition_assign": (
        wk.indexing.superposition_assign,
        (noise(5, 3, seed=14), noise(4, 5, seed=15), noise(4, 3, seed=16)),
    ),
    "lookup_2d": (
        wk.indexing.lookup_2d,
        (noise(3, 4, 2, seed=17), noise(5, 3, seed=18), noise(5, 4, seed=19)),
    ),
    "assign_2d": (
        wk.indexing.assign_2d,
        (noise(3, 4, 2, seed=20), noise(3, 2, seed=21), noise(3, 3, seed=22), noise(3, 4, seed=23)),
    ),
}
cases = pytest.mark.parametrize("name", CASES)


def call(name: str):
    function, inputs = CASES[name]
    return function, tuple(x.clone().requires_grad_() for x in inputs)


@cases
def test_first_derivatives_in_both_modes_agree_with_differences(name: str):
    function, inputs = call(name)
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)


@cases
def test_second_derivatives_agree_with_differences(name: str):
    function, inputs = call(name)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True)


@cases
def test_vmap_equals_a_loop(name: str):
    function, inputs = CASES[name]
    stacks = [torch.stack((x, 0.9 * x, 1.1 * x)) for x in inputs]
    result = torch.vmap(function)(*stacks)
    for k in range(3):
        one = function(*(stack[k] for stack in stacks))
        pairs = zip(result, one, strict=True) if isinstance(one, tuple) else [(result, one)]
        for batched, single in pairs:
            assert_close(batched[k], single, **CLOSE)


@cases
def test_compile_has_no_graph_breaks(name: str):
    function, inputs = call(name)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    result, expected = compiled(*inputs), function(*inputs)
    assert_close(result, expected, **CLOSE)
    for_result, for_expected = (
        grad(sum(x.square().sum() for x in (r if isinstance(r, tuple) else (r,))), inputs)
        for r in (result, expected)
    )
    assert_close(for_result, for_expected, **CLOSE)


def test_compile_accepts_numbers_and_lists():
    array = noise(5, 3, seed=1)
    for index in (2, -1, 1.25, [0, 3], [0.5, 3.0]):
        compiled = torch.compile(
            lambda a, index=index: wk.indexing.linear_lookup(a, index),
            fullgraph=True,
            backend="aot_eager",
        )
        assert_close(compiled(array), wk.indexing.linear_lookup(array, index), **CLOSE)


# The notebook's figures, corrected


def test_gradients_of_linear_lookups_by_hand():
    array, index = leaf(1, 2, 3, 4, 5), leaf(1.5)
    to_array, to_index = grad(wk.indexing.linear_lookup(array, index).sum(), (array, index))
    assert to_array.tolist() == [0, 0.5, 0.5, 0, 0]
    assert to_index.item() == 1  # the array rises by 1; swapped weights would give -1
    (to_index,) = grad(
        wk.indexing.superposition_lookup(array, wk.indexing.soft_one_hot(index, 5)).sum(), index
    )
    assert to_index.item() == 1
    indices = leaf(1, 2, 3.5, 0, 4)
    weights = wk.indexing.soft_one_hot(indices, 5)
    (to_indices,) = grad(
        wk.indexing.superposition_lookup(torch.arange(5.0), weights).sum(), indices
    )
    # at the last row the index to the right is clamped
    assert to_indices.tolist() == [1, 1, 1, 1, 0]


def test_gradients_of_superpositions_by_hand():
    array, weights = leaf(1, 2, 3, 5, 4), leaf(0, 0.1, 0.8, 0, 0.1)
    to_array, to_weights = grad(wk.indexing.superposition_lookup(array, weights), (array, weights))
    assert_close(to_array, weights.detach(), **EXACT)
    assert_close(to_weights, array.detach(), **EXACT)


def test_gradients_of_residual_lookups_by_hand():
    array, index = leaf(1, 2, 3, 4, 5), leaf(1.5)
    value, residual = wk.indexing.residual_lookup(array, index)
    to_array, to_index = grad(value.sum() + residual.sum(), (array, index))
    assert to_array.tolist() == [0, 0, 1, 0, 0]
    assert to_index.item() == 1
    assert not grad(wk.indexing.residual_lookup(array, index)[0].sum(), index, allow_unused=True)[0]


def test_gradients_of_assignments_by_hand():
    array = torch.tensor([[1.0] * 3, [2.0] * 3, [3.0] * 3], requires_grad=True)
    value = leaf(4, 4, 4)
    keeps = [[1.0] * 3, [0.0] * 3, [1.0] * 3]
    for weights in (leaf(0, 1, 0), leaf(0.5, 0.5, 0)):
        result = wk.indexing.superposition_assign(array, weights, value)
        assert grad(result.sum(), weights)[0].tolist() == [9, 6, 3]
    result = wk.indexing.superposition_assign(array, [0.0, 1.0, 0.0], value) + wk.indexing.assign(
        array, 1, value
    )
    to_array, to_value = grad(result.sum() / 2, (array, value))
    assert to_array.tolist() == keeps
    assert to_value.tolist() == [1, 1, 1]


def test_gradients_in_two_dimensions_by_hand():
    array = torch.tensor([[[i, i * k] for k in (1.0, 11.0, 111.0)] for i in (1.0, 2.0, 3.0)])
    array.requires_grad_()
    row, column, value = leaf(0, 1, 0), leaf(0, 0, 1), leaf(5, 555)
    found = wk.indexing.lookup_2d(array, row, column).sum()
    to_array, to_row, to_column = grad(found, (array, row, column))
    hit = torch.zeros(3, 3, 2)
    hit[1, 2] = 1
    assert_close(to_array, hit, **EXACT)
    # the maximum gave 0, 224, 0 and 0, 0, 224; a sum depends on every row and every column
    assert_close(to_row, array.detach()[:, 2].sum(-1), **EXACT)
    assert_close(to_column, array.detach()[1].sum(-1), **EXACT)
    written = wk.indexing.assign_2d(array, value, row, column).sum()
    to_array, to_value, to_row, to_column = grad(written, (array, value, row, column))
    assert_close(to_array, 1 - hit, **EXACT)
    assert to_value.tolist() == [1, 1]
    assert to_row.tolist() == [448, 336, 224]
    assert to_column.tolist() == [556, 536, 336]


# Ends, whole numbers and NaN


def test_derivative_at_whole_numbers_is_from_the_right():
    array, index = leaf(1, 5, 2, 9), leaf(0, 1, 2, 3)
    (to_index,) = grad(wk.indexing.linear_lookup(array, index).sum(), index)
    assert to_index.tolist() == [4, -3, 7, 0]
    grid = torch.stack((index * (2 / 3) - 1, torch.zeros(4)), -1)[None, None]
    sampled = F.grid_sample(
        array[None, None, None], grid, align_corners=True, padding_mode="border"
    )
    inside = grad(sampled.sum(), index)[0][1:3]
    assert_close(to_index[1:3], inside, rtol=0, atol=TOLERANCE["grid_sample float32"])


def test_derivative_of_an_assignment_at_whole_numbers_is_from_the_right():
    array, index = noise(4, seed=1), torch.tensor([0.0, 1.0, 3.0]).double().requires_grad_()
    for k in range(3):
        result = wk.indexing.assign(array, index[k], 2.0)
        (to_index,) = grad(result @ torch.arange(1.0, 5.0).double(), index)
        row = int(index[k])
        expected = 0.0
        if row < 3:  # (1 - t) stays in the row itself, t goes to the next
            expected = (array[row] - 2) * (row + 1) + (2 - array[row + 1]) * (row + 2)
        assert_close(to_index[k].item(), float(expected), **CLOSE)


@pytest.mark.parametrize("bad", [-3.0, 9.0, 1e20, float("inf"), -float("inf"), float("nan")])
def test_no_gradient_beyond_the_ends(bad: float):
    array, index, value = leaf(1, 5, 2, 9), leaf(bad, 1.25), leaf(3, 4)
    looked = wk.indexing.linear_lookup(array, index) + wk.indexing.residual_lookup(array, index)[1]
    looked = looked + wk.indexing.soft_one_hot(index, 4) @ torch.arange(4.0)
    looked = torch.cat((looked, wk.indexing.assign(array, index, value)))
    to_array, to_index = grad(looked.nan_to_num().sum(), (array, index))
    assert to_index[0] == 0
    assert to_index[1] != 0
    assert to_array.isfinite().all()


def test_nan_index_gives_the_array_no_gradient():
    array, index = leaf(1, 5, 2, 9), leaf(float("nan"))
    for result in (
        wk.indexing.linear_lookup(array, index),
        wk.indexing.residual_lookup(array, index)[0],
    ):
        to_array = grad(result.sum(), array)[0]
        assert to_array.tolist() == [0, 0, 0, 0]


def test_assign_is_the_adjoint_of_the_lookup():
    """<lookup(g), v> and <g, assign(v)> agree if no two assignments overlap."""
    array, index = torch.zeros(8, 3).double(), torch.tensor([0.3, 2.5, 5.0, 6.25]).double()
    value, other = noise(4, 3, seed=1), noise(8, 3, seed=2)
    read = (wk.indexing.linear_lookup(other, index) * value).sum()
    assert_close((wk.indexing.assign(array, index, value) * other).sum(), read, **CLOSE)


def test_gradients_have_the_same_bits_at_every_run():
    """1e5 reads and writes of 50 rows; the gradient of array[index] differs with two threads."""
    generator = torch.Generator().manual_seed(0)
    index = (torch.rand(100_000, generator=generator) * 49).requires_grad_()
    weight = torch.rand(100_000, generator=generator)
    array = torch.rand(50, generator=generator).requires_grad_()
    value = torch.rand(100_000, generator=generator).requires_grad_()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        runs = []
        for _ in range(5):
            read = (wk.indexing.linear_lookup(array, index) * weight).sum()
            read = read + (wk.indexing.residual_lookup(array, index)[0] * weight).sum()
            write = (wk.indexing.assign(array, index, value) ** 2).sum()
            runs.append(grad(read + write, (array, index, value)))
    finally:
        torch.set_num_threads(threads)
    for run in runs[1:]:
        for first, later in zip(runs[0], run, strict=True):
            assert torch.equal(first, later)
