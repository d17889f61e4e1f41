"""Invalid input to lookups and assignments: one clear error each."""

from __future__ import annotations

import re

import pytest
import torch

import warpkit as wk

ROWS = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])

ERRORS = [
    (
        lambda: wk.indexing.linear_lookup(ROWS, torch.tensor([True, False])),
        TypeError,
        (
            "linear_lookup: `index` must be integers or floating positions (torch.where and "
            "array[mask] take masks), got booleans"
        ),
    ),
    (
        lambda: wk.indexing.assign(ROWS, True, 1.0),
        TypeError,
        (
            "assign: `index` must be integers or floating positions (torch.where and "
            "array[mask] take masks), got booleans"
        ),
    ),
    (
        lambda: wk.indexing.linear_lookup(ROWS, torch.tensor(1j)),
        TypeError,
        "linear_lookup: `index` must be real numbers, got torch.complex64",
    ),
    (
        lambda: wk.indexing.linear_lookup(ROWS, 0.5, dim=1),
        ValueError,
        "linear_lookup: `dim` must be an integer from -1 to 0 for 1 dimensions, got 1",
    ),
    (
        lambda: wk.indexing.assign(ROWS, 0, 1.0, dim=0.0),
        TypeError,
        "assign: `dim` must be an integer from -1 to 0 for 1 dimensions, got 0.0",
    ),
    (
        lambda: wk.indexing.linear_lookup(torch.zeros(2, 0), 0.5, dim=1),
        ValueError,
        "linear_lookup: `array` must be at least one row long along dim 1, got (2, 0)",
    ),
    (
        lambda: wk.indexing.linear_lookup(3.0, 0.5),
        ValueError,
        "linear_lookup: `array` must be of at least one dimension, got a number",
    ),
    (
        lambda: wk.indexing.linear_lookup(ROWS, 0.5, border="constant"),
        ValueError,
        (
            "linear_lookup: `border` must be a border that continues the array ('replicate', "
            "'reflect', 'reflect_101', 'wrap'), got 'constant'"
        ),
    ),
    (
        lambda: wk.indexing.soft_one_hot(0.5, 0),
        ValueError,
        "soft_one_hot: `length` must be an integer of at least 1, got 0",
    ),
    (
        lambda: wk.indexing.soft_one_hot(0.5, 2.0),
        TypeError,
        "soft_one_hot: `length` must be an integer of at least 1, got 2.0",
    ),
    (
        lambda: wk.indexing.superposition_lookup(torch.zeros(3, 4), torch.zeros(2, 3), dim=1),
        ValueError,
        (
            "superposition_lookup: `weights` must be of shape (..., 4), for the 4 rows of `array` "
            "along dim 1, got (2, 3)"
        ),
    ),
    (
        lambda: wk.indexing.lookup_2d(torch.zeros(3, 4), torch.zeros(3), torch.zeros(3)),
        ValueError,
        (
            "lookup_2d: `column_weights` must be of shape (..., 4), for the 4 rows of `array` "
            "along dim 1, got (3,)"
        ),
    ),
    (
        lambda: wk.indexing.lookup_2d(torch.zeros(3, 4), torch.zeros(2, 3), torch.zeros(5, 4)),
        ValueError,
        (
            "lookup_2d: the batch dimensions of `row_weights` and `column_weights` must broadcast, "
            "got row_weights (2,), column_weights (5,)"
        ),
    ),
    (
        lambda: wk.indexing.assign_2d(ROWS, 1.0, ROWS, ROWS),
        ValueError,
        "assign_2d: `array` must be of shape (H, W, ...), not empty, got (5,)",
    ),
    (
        lambda: wk.indexing.assign(torch.zeros(3, 4), [0, 1], torch.zeros(3, 4)),
        ValueError,
        (
            "assign: `value` must be of shape (2, 4), what the index reads, or broadcasting to it, "
            "got (3, 4)"
        ),
    ),
    (
        lambda: wk.indexing.linear_lookup(ROWS, torch.zeros(2, device="meta")),
        ValueError,
        "linear_lookup: `index` must be on cpu, where `array` is, got meta",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()
