"""CUDA kernels with extreme maps and indices, and as torch operators; test_warp runs this file."""

from __future__ import annotations

import pytest
import torch

import warpkit as wk
from tests.support.cuda_comparison import DEVICE, check, mark_all, points, quiet_interpreter  # noqa: F401
from tests.support.inputs import affine_matrices, images, noise

LARGE = {
    "beyond float32": [[1e39, 0, 0], [0, 1, 0.5]],
    "a row beyond float32": [[1, 0, 0.5], [1e39, 1, 0]],
    "sums beyond float64": [[1e308, -1e308, 0], [0, 1, 0]],
    "columns of 1e15 pixels": [[1e15, 0, -2e15], [0, 1, 0.5]],
    "nearly a line": [[1, 1, 0], [1, 1 + 1e-6, 0.5]],
    "as large as maps may be": [[1, 0, 2.0**31 - 2], [0, 1, 0]],
    "a shear": [[1, 50, -60], [0, 1, 0.25]],
}


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("name", LARGE)
def test_extreme_maps_agree_with_the_reference(name, interpolation):
    """The gather must not miss an output pixel, nor float32 round the first column's position."""
    rows = torch.tensor(LARGE[name], dtype=torch.float64)

    def warp(image, matrix, **options):
        return wk.warp_affine(image, matrix, inverse=True, **options)

    check(warp, noise(1, 1, 5, 6, dtype=torch.float32), rows, interpolation, "constant")


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2, 3], [4, 5, 6], [7, 8, 9 + 1e-13]],
        [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]],
        [[1e200, 0, 0], [0, 1e200, 0], [0, 0, 1e200]],
        [[1e3, 0, -1e9], [0, 1e3, 0], [1e-4, 0, 1]],
    ],
)
def test_extreme_perspectives_agree_with_the_reference(rows):
    """Determinants whose sign is lost to rounding, or that overflow."""
    rows = torch.tensor(rows, dtype=torch.float64)

    def warp(image, matrix, **options):
        return wk.warp_perspective(image, matrix, inverse=True, **options)

    check(warp, noise(1, 1, 5, 6), rows, "bilinear", "constant")


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_taps_that_a_border_repeats_have_no_slope(interpolation):
    """1e-5 from a horizon, a perspective multiplies what rounding leaves of it."""
    rows = [[1.0, 0.1, 3.0], [0.05, 1.0, 2.0], [0.2, 0.13, 1e-5 - 0.53]]  # at pixel (2, 1)

    def warp(image, matrix, **options):
        return wk.warp_perspective(image, matrix, inverse=True, **options)

    rows = torch.tensor(rows, dtype=torch.float64)
    check(warp, noise(1, 1, 5, 6, dtype=torch.float32), rows, interpolation, "replicate")


@pytest.mark.parametrize(
    ("kind", "border"),
    [
        ("affine", "constant"),
        ("affine", "transparent"),
        ("points", "constant"),
        ("points", "reflect"),
    ],
)
def test_64_bit_indices_give_the_same_results(kind, border, monkeypatch):
    """They serve tensors of 2^31 elements and more."""
    monkeypatch.setattr("warpkit.engine.triton.work.NARROW", 0)
    image = images(torch.float32)["channels-last" if border == "constant" else "odd"][:1]
    if kind == "points":
        check(wk.remap, image, points()[:1], "bilinear", border)
    else:
        check(wk.warp_affine, image, affine_matrices()["batch of turns"][:2], "bilinear", border)


# a warning about opcheck's own copies
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("kind", ["affine", "points"])
def test_operators_pass_opcheck(kind):
    """Schemas, fake implementations and autograd, which torch.compile relies on."""
    # one of each, since opcheck calls them about 15 times
    image = images(torch.float32)["channels-last" if kind == "affine" else "odd"][:1].to(DEVICE)
    turns = affine_matrices()["batch of turns"][:1]
    where = (turns if kind == "affine" else points()[:1]).to(DEVICE)
    outside = torch.zeros(image.shape[-3], 1, 1, device=DEVICE)
    leaves = [t.detach().requires_grad_() for t in (image, where, outside)]
    options = ([3, 4], "bilinear", "constant")
    quick = ("test_schema", "test_faketensor")
    # all cases take 7 s, only on a device: what they add is code that the CPU shares
    whole = {} if kind == "affine" and DEVICE == "cuda" else {"test_utils": quick}
    torch.library.opcheck(torch.ops.warpkit.cuda_sample.default, (*leaves, *options), **whole)
    out = torch.ops.warpkit.cuda_sample(image, where, outside, *options)
    for wanted in ([True, True, True], [True, False, False], [False, True, False]):
        torch.library.opcheck(
            torch.ops.warpkit.cuda_sample_backward.default,
            (torch.rand_like(out), image, where, outside, *options, wanted),
            test_utils=quick,
        )


mark_all(globals())
