"""Images that cannot be aligned: converged=False, a finite matrix, and no error."""

from __future__ import annotations

import re

import pytest
import torch

import warpkit as wk
from tests.alignment.test_align import FIXED, MOVING, matrix_of, pair

HIDDEN = torch.zeros(1, *MOVING)
"""A mask of no pixel."""


def broken() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of images, keyed by what is wrong with them."""
    moving, fixed = pair(matrix_of("affine"))
    spot = moving.clone()
    spot[0, 20, 30] = torch.nan
    generator = torch.Generator().manual_seed(0)
    noise = [
        torch.rand(1, *size, generator=generator, dtype=torch.float64) for size in (MOVING, FIXED)
    ]
    return {
        "unrelated": (moving, pair(matrix_of("affine"), seed=7)[1]),
        "noise": (noise[0], noise[1]),
        "constant": (moving, 0 * fixed + 0.3),
        "both constant": (0 * moving, 0 * fixed),
        "a NaN": (spot, fixed),
        "all NaN": (moving, fixed * torch.nan),
        "infinite": (moving, torch.where(fixed > 0.5, torch.inf, fixed)),
        "negative": (moving, -fixed),
    }


@pytest.mark.parametrize(
    ("model", "loss", "init"),
    [("affine", "ecc", None), ("perspective", "ecc", "search"), ("similarity", "robust", None)],
)
def test_bad_pairs_are_marked_as_not_converged(model, loss, init):
    pairs = broken()
    good = pair(matrix_of("translation"))
    moving, fixed = (torch.stack(images) for images in zip(*pairs.values(), good, strict=True))
    found = wk.align(moving, fixed, model=model, loss=loss, init=init)
    assert found.matrix.isfinite().all()
    assert found.score.isfinite().all()
    converged = dict(zip((*pairs, "good"), found.converged.tolist(), strict=True))
    assert converged == {**dict.fromkeys(pairs, False), "good": True}


@pytest.mark.parametrize(
    "options",
    [
        {"moving_mask": HIDDEN},
        {"moving_mask": HIDDEN, "init": "search"},
        {"init": [[1.0, 0, 500], [0, 1, 0]]},
        {"init": [[1e-9, 0, 0], [0, 1, 0]]},
    ],
    ids=["masked", "masked search", "no overlap", "one column"],
)
def test_masked_pairs_and_pairs_without_overlap_do_not_converge(options):
    found = wk.align(*pair(matrix_of("translation")), **options)
    assert not found.converged
    assert found.matrix.isfinite().all()


def test_too_few_steps_return_the_best_matrix_so_far():
    moving, fixed = pair(matrix_of("translation"))
    short = wk.align(moving, fixed, model="translation", steps=1, levels=1, init=torch.eye(2, 3))
    assert not short.converged
    assert short.steps == 1
    assert 0.5 < short.matrix[0, 2] < 4


SMALL = torch.zeros(1, 16, 16)
ERRORS = [
    ({"model": "rigid"}, "`model` must be one of 'translation', 'euclidean', 'similarity', 'affine', 'perspective', got 'rigid'"),
    ({"loss": "l2"}, "`loss` must be one of 'ecc', 'ssd', 'robust', got 'l2'"),
    ({"moving": torch.zeros(1, 15, 40)}, "`moving` must be of at least 16 pixels a side, got (1, 15, 40)"),
    ({"fixed": torch.zeros(3, 16, 16)}, "`fixed` must be of as many channels as `moving`, got moving (1, 16, 16) and fixed (3, 16, 16)"),
    ({"fixed": torch.zeros(2, 1, 16, 16), "moving": torch.zeros(3, 1, 16, 16)}, "the batch dimensions of `moving` and `fixed` must broadcast, got moving (3,), fixed (2,)"),
    ({"fixed_mask": torch.ones(1, 16, 15)}, "`fixed_mask` must be of shape (..., 1, 16, 16), got (1, 16, 15)"),
    ({"fixed_mask": torch.ones(2, 1, 16, 16)}, "`fixed_mask` must be of the batch (), got (2, 1, 16, 16)"),
    ({"init": torch.eye(3)}, "`init` must be of shape (..., 2, 3) for model='affine', got (3, 3)"),
    ({"init": torch.eye(2, 3), "model": "perspective"}, "`init` must be of shape (..., 3, 3) for model='perspective', got (2, 3)"),
    ({"init": "wide"}, "`init` must be None, 'search' or matrices, got 'wide'"),
    ({"init": torch.zeros(2, 3)}, "`init` must be finite and invertible, got a degenerate one"),
    ({"levels": 3}, "`levels` must be None or an integer from 1 to 2 for images of these sizes, got 3"),
    ({"steps": 0}, "`steps` must be an integer of at least 1, got 0"),
    ({"tolerance": 0.0}, "`tolerance` must be a number above 0, got 0.0"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), ERRORS)
def test_errors(options, said):
    with pytest.raises(ValueError, match="^align: " + re.escape(said) + "$"):
        wk.align(**{"moving": SMALL, "fixed": SMALL, **options})


def test_vmap_is_refused():
    with pytest.raises(ValueError, match=r"^align: `moving` must be a tensor outside of vmap"):
        torch.vmap(lambda image: wk.align(image, SMALL).matrix)(SMALL[None])
