"""Properties of any warp: identity, shifts, linearity, and round trips."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import warpkit as wk
from tests.support.inputs import RULES, affine_matrices, images, noise
from tests.support.tolerances import TOLERANCE

SIZE = (6, 5)
small = st.integers(1, 9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(h=small, w=small, rule=st.sampled_from(RULES), seed=st.integers(0, 2**31))
def test_the_identity_changes_nothing(h, w, rule, seed):
    image = noise(1, 2, h, w, dtype=torch.float32, seed=seed)
    background = torch.zeros(2, h, w) if rule[1] == "transparent" else None
    out = wk.warp_affine(
        image, torch.eye(2, 3), interpolation=rule[0], border=rule[1], background=background
    )
    torch.testing.assert_close(out, image, rtol=0, atol=TOLERANCE["reference float32"])
    if rule[0] != "lanczos4":  # its weights sum to 1 only up to rounding
        assert torch.equal(out, image)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    h=small,
    w=small,
    dx=st.integers(-12, 12),
    dy=st.integers(-12, 12),
    interpolation=st.sampled_from(["nearest", "bilinear", "bicubic"]),
)
def test_a_whole_shift_is_exact(h, w, dx, dy, interpolation):
    image = noise(1, 2, h, w, dtype=torch.float32)
    matrix = torch.tensor([[1.0, 0, dx], [0, 1, dy]])
    out = wk.warp_affine(image, matrix, interpolation=interpolation, border="wrap")
    assert torch.equal(out, image.roll((dy, dx), (-2, -1)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(a=st.floats(-3, 3), b=st.floats(-3, 3), rule=st.sampled_from(RULES))
def test_a_warp_is_linear_in_image_border_and_background(a, b, rule):
    x, y = images()["odd"], noise(2, 3, 7, 9, seed=31)
    u, v = noise(2, 3, *SIZE, seed=32), noise(2, 3, *SIZE, seed=33)
    matrix = affine_matrices()["batch of turns"]

    def warp(image, background, value):
        background = background if rule[1] == "transparent" else None
        return wk.warp_affine(
            image,
            matrix,
            size=SIZE,
            interpolation=rule[0],
            border=rule[1],
            border_value=value,
            background=background,
        )

    mixed = warp(a * x + b * y, a * u + b * v, a * 0.5 + b * 0.25)
    apart = a * warp(x, u, 0.5) + b * warp(y, v, 0.25)
    torch.testing.assert_close(mixed, apart, rtol=0, atol=10 * TOLERANCE["reference float64"])


@pytest.mark.parametrize("angle", [17.0, 90.0, -123.0])
def test_a_warp_and_its_inverse_restore_a_smooth_image(angle):
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    image = (torch.sin(x / 9) * torch.cos(y / 7)).double()[None]
    matrix = wk.rotation_matrix((31.5, 31.5), angle).double()
    there = wk.warp_affine(image, matrix, interpolation="bicubic")
    back = wk.warp_affine(there, wk.invert(matrix), interpolation="bicubic")
    middle = (slice(None), slice(20, 44), slice(20, 44))
    assert (back - image)[middle].abs().max() < TOLERANCE["there and back"]
