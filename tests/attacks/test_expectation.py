"""Distributions and expectations: draws, the order of the views, chunks, and errors."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise, seeded
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import AffineDistribution, expectation

WIDE = AffineDistribution(
    angle=(-30, 30), scale=(0.7, 1.3), shear=(-10, 10), translation=(-2.0, 3.0)
)


def parts(matrices: Tensor, center: tuple[float, float]) -> tuple[Tensor, ...]:
    """Angle, scale, x shear and translation of matrices (n, 2, 3) about `center`."""
    a, b, d, e = matrices[:, :, :2].double().flatten(1).unbind(1)
    scale = (a * a + d * d).sqrt()
    angle = torch.atan2(-d, a)
    # undoing the rotation leaves scale x [[1, tan(shear)], [0, 1]]
    shear = torch.atan((b * angle.cos() - e * angle.sin()) / scale)
    middle = torch.tensor(center, dtype=torch.float64)
    moved = matrices[:, :, :2].double() @ middle + matrices[:, :, 2].double() - middle
    return angle.rad2deg(), scale, shear.rad2deg(), moved


def test_parameters_are_uniform_in_their_ranges():
    matrices = WIDE.sample(4000, size=(21, 31), generator=seeded())
    assert matrices.shape == (4000, 2, 3)
    assert matrices.dtype == torch.get_default_dtype()
    angle, scale, shear, moved = parts(matrices, (15.0, 10.0))
    for values, (low, high) in (
        (angle, WIDE.angle),
        (scale, WIDE.scale),
        (shear, WIDE.shear),
        (moved[:, 0], WIDE.translation),
        (moved[:, 1], WIDE.translation),
    ):
        slack = 1e-4 * (high - low)  # float32 matrices
        assert values.min() >= low - slack
        assert values.max() <= high + slack
        share = (values.sort().values - low) / (high - low)
        uniform = (torch.arange(4000.0) + 0.5) / 4000
        # Kolmogorov-Smirnov: 1.95 / sqrt(4000) is exceeded by chance once in a thousand
        assert (share - uniform).abs().max() < 1.95 / math.sqrt(4000)
    assert torch.corrcoef(moved.T)[0, 1].abs() < 0.06  # x and y are independent


def test_draws_come_from_the_generator():
    one, two = (WIDE.sample(5, size=(4, 4), generator=seeded(3)) for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, WIDE.sample(5, size=(4, 4), generator=seeded(4)))
    torch.manual_seed(7)
    state = torch.get_rng_state()
    first = WIDE.sample(2, size=(4, 4))
    torch.set_rng_state(state)
    assert torch.equal(first, WIDE.sample(2, size=(4, 4)))


def test_views_are_ordered_image_by_image():
    image = noise(2, 3, 5, 6)
    matrices = WIDE.sample(4, size=(5, 6), generator=seeded()).double()
    seen: list[Tensor] = []
    expectation(lambda x: seen.append(x) or x.mean(), image, matrices, border="reflect")
    loop = [wk.warp_affine(one, m, border="reflect") for one in image for m in matrices]
    assert torch.equal(seen[0], torch.stack(loop))


def test_perspective_matrices_are_accepted():
    image, matrix = noise(1, 5, 6), torch.eye(3, dtype=torch.float64)[None].repeat(2, 1, 1)
    matrix[1, 2, 0] = 0.02
    expected = wk.warp_perspective(image, matrix).square().mean()
    got = expectation(lambda x: x.square().mean(), image, matrix)
    torch.testing.assert_close(got, expected, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize("chunk", [1, 3, 4, 7, 100])
@pytest.mark.parametrize("samples", [1, 7])
def test_chunks_change_nothing(chunk: int, samples: int):
    image = noise(2, 3, 6, 7).requires_grad_()
    weight = noise(2, 3, 6, 7, seed=4).requires_grad_()

    def objective(views: Tensor) -> Tensor:
        copies = len(views) // len(image)
        return (views * weight.repeat_interleave(copies, 0)).square().flatten(1).sum(1).mean()

    results = []
    for size in (None, chunk):
        value = expectation(objective, image, WIDE, samples=samples, chunk=size, generator=seeded())
        results.append((value, *torch.autograd.grad(value, (image, weight))))
    for whole, pieces in zip(*results, strict=True):
        torch.testing.assert_close(pieces, whole, rtol=TOLERANCE["pieces"], atol=0)


def test_the_mean_over_a_known_distribution():
    """A ramp of one level per pixel under a uniform shift moves by the mean shift."""
    ramp = torch.arange(40.0, dtype=torch.float64).expand(1, 1, 40, 40)
    moves = AffineDistribution(translation=(1.0, 3.0))
    middle = (Ellipsis, slice(10, 30), slice(10, 30))
    value = expectation(
        lambda x: x[middle].mean(), ramp, moves, samples=4000, chunk=500, generator=seeded()
    )
    # 19.5 - 2; standard error 2 / sqrt(12 x 4000) = 0.009
    assert abs(value.item() - 17.5) < 0.04


def test_memory_depends_on_the_chunk_alone():
    """What a forward pass saves for the backward pass does not grow with the number of chunks."""

    def kept(samples: int) -> int:
        image = noise(1, 3, 16, 16).requires_grad_()
        seen: set[int] = set()
        total = 0

        def pack(x: Tensor) -> Tensor:
            nonlocal total
            if x.untyped_storage().data_ptr() not in seen:
                seen.add(x.untyped_storage().data_ptr())
                total += x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            value = expectation(lambda x: x.square().mean(), image, WIDE, samples=samples, chunk=2)
        assert value.requires_grad
        return total

    views = 3 * 16 * 16 * 8
    assert kept(64) - kept(4) < 60 * views / 10  # matrices and scalars; the views alone would be 60


def test_second_derivatives_and_the_gradient_to_matrices():
    image = noise(1, 1, 4, 5)
    matrices = WIDE.sample(3, size=(4, 5), generator=seeded()).double()
    options = {"interpolation": "bicubic", "border": "replicate"}  # smooth almost everywhere

    def value(image: Tensor, matrices: Tensor, chunk: int | None = 2) -> Tensor:
        return expectation(lambda x: x.pow(3).mean(), image, matrices, chunk=chunk, **options)

    inputs = (image.requires_grad_(), matrices.requires_grad_())
    assert torch.autograd.gradcheck(value, inputs)
    assert gradgradcheck(value, inputs)


def test_without_gradients_nothing_is_saved():
    with torch.no_grad():
        value = expectation(torch.mean, noise(1, 4, 4), WIDE, samples=5, chunk=2)
    assert not value.requires_grad


def test_quantized_views_equal_an_8_bit_files():
    image = (noise(2, 3, 9, 8, seed=5) * 255).round().div(255).float().requires_grad_()
    matrices = WIDE.sample(3, size=(9, 8), generator=seeded())
    seen: list[Tensor] = []
    options = {"border": "constant", "border_value": 0.2}
    value = expectation(
        lambda x: seen.append(x) or x.square().mean(), image, matrices, quantize=True, **options
    )
    file = (image.detach() * 255).round().to(torch.uint8)
    expected = wk.warp_affine(file[:, None], matrices, border_value=51).flatten(0, 1)
    assert torch.equal(seen[0] * 255, expected.float())
    (gradient,) = torch.autograd.grad(value, image)
    plain = wk.warp_affine(image[:, None], matrices, **options).flatten(0, 1)
    (through,) = torch.autograd.grad(plain, image, 2 * seen[0].detach() / seen[0].numel())
    torch.testing.assert_close(gradient, through)


def test_quantized_views_have_the_8_bit_files_border():
    """One value per channel: 127.5 levels round to the even 128; beyond [0, 1] they saturate."""
    image = (noise(1, 3, 9, 8, seed=5) * 255).round().div(255).float()
    away = torch.tensor([[[1.0, 0, 4.5], [0, 1, 0]]])  # with pixels that mix border and image
    colour = torch.tensor([0.5, 1.0, 1.2], requires_grad=True)
    seen: list[Tensor] = []
    value = expectation(
        lambda x: seen.append(x) or x.mean(), image, away, quantize=True, border_value=colour
    )
    levels = (seen[0].detach() * 255).round()[0]
    assert levels[:, :, :4].flatten(1).unique(dim=1).mT.tolist() == [[128, 255, 255]]
    file = (image[0] * 255).round()
    edge = (file[:, :, 0] + torch.tensor([[128.0], [255.0], [255.0]])) / 2
    assert torch.equal(levels[:, :, 4], edge.round())
    # 4.5 of 8 columns, in one channel of 3
    (gradient,) = torch.autograd.grad(value, colour)
    torch.testing.assert_close(gradient, torch.full((3,), 4.5 / 8 / 3))


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ({"angle": (1.0, -1.0)}, ValueError),
        ({"scale": (0.0, 1.0)}, ValueError),
        ({"shear": (0.0, math.inf)}, ValueError),
        ({"translation": (math.nan, 1.0)}, ValueError),
        ({"angle": 3.0}, TypeError),
        ({"angle": (1.0,)}, TypeError),
        ({"angle": ("a", "b")}, TypeError),
    ],
)
def test_ranges_are_checked(part: dict, error: type[Exception]):
    (name,) = part
    start = re.escape(f"AffineDistribution: `{name}` must be ")
    with pytest.raises(error, match=start):
        AffineDistribution(**part)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"samples": 0}, ValueError, "`samples` must be an integer of at least 1, got 0"),
        ({}, TypeError, "`samples` must be an integer of at least 1, got None"),
        ({"samples": 2.0}, TypeError, "`samples` must be an integer of at least 1, got 2.0"),
        ({"samples": 2, "chunk": 0}, ValueError, "`chunk` must be an integer of at least 1, got 0"),
        (
            {"distribution": torch.zeros(0, 2, 3)},
            ValueError,
            (
                "`distribution` must be a distribution, or matrices (samples, 2, 3) or "
                "(samples, 3, 3), at least one, got shape (0, 2, 3)"
            ),
        ),
        (
            {"distribution": torch.eye(2, 3)[None], "samples": 3},
            ValueError,
            "`samples` must be None or 1, the number of the given matrices, got 3",
        ),
        (
            {"image": torch.zeros(4, 4), "samples": 1},
            ValueError,
            "`image` must be of shape (..., C, H, W), got (4, 4)",
        ),
        (
            {"image": torch.zeros(0, 1, 4, 4), "samples": 1},
            ValueError,
            (
                "`image` must be of shape (B, C, H, W) or (C, H, W), with at least one image, "
                "got (0, 1, 4, 4)"
            ),
        ),
        (
            {"objective": lambda x: x.mean((1, 2, 3)), "samples": 2},
            TypeError,
            "`objective` must be a function that returns a scalar tensor, got shape (2,)",
        ),
        (
            {"objective": lambda x: x.mean().item(), "samples": 2},
            TypeError,
            "`objective` must be a function that returns a scalar tensor, got float",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict, error: type[Exception], text: str):
    given = {
        "objective": torch.mean,
        "image": torch.zeros(1, 4, 4),
        "distribution": AffineDistribution(),
        **arguments,
    }
    with pytest.raises(error, match=f"^{re.escape('expectation: ' + text)}$"):
        expectation(**given)
