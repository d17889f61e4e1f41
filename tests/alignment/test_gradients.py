"""The gradient of an alignment's matrix, compared with finite differences of `align`."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import warpkit as wk
from tests.alignment.test_align import matrix_of, pair
from tests.support.tolerances import TOLERANCE

IMAGES = Path(__file__).parents[2] / "data" / "images"
TIGHT = {"tolerance": 1e-11, "steps": 400}


def noisy(model: str, loss: str) -> tuple[Tensor, Tensor]:
    """A pair with residuals; without residuals, J^T w J alone would give the derivative."""
    moving, fixed = pair(matrix_of(model, (0.6, -0.4)))
    generator = torch.Generator().manual_seed(3)
    fixed = fixed + 0.02 * torch.randn(fixed.shape, generator=generator, dtype=torch.float64)
    return moving, fixed if loss == "ssd" else 0.7 * fixed + 0.2


def weighed(found: wk.Alignment, weights: list[Tensor]) -> Tensor:
    """A weighted sum of every output that has a gradient."""
    answer = (found.matrix, found.gain, found.bias)
    return sum((t * w).sum() for t, w in zip(answer, weights, strict=True))


@pytest.mark.parametrize(
    ("model", "loss"),
    [("translation", "ssd"), ("euclidean", "ecc"), ("affine", "robust"), ("perspective", "ecc")],
)
def test_gradients_agree_with_finite_differences(model, loss):
    images = [image.requires_grad_() for image in noisy(model, loss)]
    options = {"model": model, "loss": loss, **TIGHT}
    found = wk.align(*images, **options)
    generator = torch.Generator().manual_seed(1)

    def draw(like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)

    weights = [draw(t) for t in (found.matrix, found.gain, found.bias)]
    grads = torch.autograd.grad(weighed(found, weights), images)
    start = {"init": found.matrix.detach(), "levels": 1, **options}
    for which in (0, 1):
        direction = draw(images[which])

        def value(step: float) -> float:
            moved = [image.detach() for image in images]
            moved[which] = moved[which] + step * direction  # noqa: B023
            return weighed(wk.align(*moved, **start), weights).item()

        numeric = (value(1e-7) - value(-1e-7)) / 2e-7
        analytic = (grads[which] * direction).sum().item()
        assert analytic == pytest.approx(numeric, rel=TOLERANCE["align gradient"])


SIZE = (96, 128)


def photographs(name: str, model: str) -> tuple[Tensor, Tensor]:
    """A crop of a photograph and a moved copy, with noise of 0.02 and a foreign square."""
    whole = torch.from_numpy(np.array(Image.open(IMAGES / f"{name}.png").convert("L")))
    whole = whole.double()[None] / 255
    top, left = ((side - part) // 2 for side, part in zip(whole.shape[-2:], SIZE, strict=True))
    true = torch.tensor([[1.01, 0.03, 2.3], [-0.03, 1.0, -1.4], [0, 0, 1]], dtype=torch.float64)
    if model == "euclidean":
        true[:2, :2] = torch.tensor(
            [[math.cos(0.03), -math.sin(0.03)], [math.sin(0.03), math.cos(0.03)]]
        )
    if model == "perspective":
        true[2, :2] = torch.tensor([3e-5, -4e-5])
    crop = torch.tensor([[1.0, 0, -left], [0, 1, -top], [0, 0, 1]], dtype=torch.float64)
    fixed = wk.warp_perspective(whole, true @ crop, size=SIZE, interpolation="lanczos4")
    moving = whole[:, top : top + SIZE[0], left : left + SIZE[1]].clone()
    fixed = 0.8 * fixed + 0.1
    generator = torch.Generator().manual_seed(0)
    square = torch.rand(1, 5, 5, generator=generator, dtype=torch.float64)
    square = wk.resize(square, (30, 30), interpolation="bicubic")
    fixed[:, 20:50, 30:60], moving[:, 40:70, 70:100] = square, square
    for image in (moving, fixed):
        image += 0.02 * torch.randn(image.shape, generator=generator, dtype=torch.float64)
    return moving, fixed


@pytest.mark.parametrize(("name", "step"), [("astronaut", 1e-4), ("coffee", 1e-3)])
@pytest.mark.parametrize("model", ["euclidean", "affine", "perspective"])
def test_robust_gradients_depend_on_all_pixels(model, name, step):
    """Through the residuals' median they depended on one pixel, sometimes with the wrong sign.

    The steps change many pixels: 1e-4 of each of one photograph and 1e-3 of the other's, in a
    random direction.
    """
    images = [image.requires_grad_() for image in photographs(name, model)]
    options = {"model": model, "loss": "robust", "tolerance": 1e-9, "steps": 200}
    found = wk.align(*images, **options)
    assert found.converged
    generator = torch.Generator().manual_seed(1)
    half = max(SIZE) / 2  # each entry then moves the corners about equally far
    units = torch.tensor([[half, half, 1], [half, half, 1], [half**2, half**2, half]])
    units = units[: len(found.matrix)].double()
    weight = units * torch.randn(units.shape, generator=generator, dtype=torch.float64)
    grads = torch.autograd.grad((found.matrix * weight).sum(), images)
    start = {"init": found.matrix.detach(), "levels": 1, **options}
    for which, grad in enumerate(grads):
        direction = torch.randn(grad.shape, generator=generator, dtype=grad.dtype)
        # partly along the gradient: a product near 0 could not show an error of 10 %
        direction += grad / grad.norm()
        analytic = (grad * direction).sum().item()
        values = []
        for sign in (-1, 1):
            moved = [image.detach() for image in images]
            moved[which] = moved[which] + sign * step * direction
            values.append((wk.align(*moved, **start).matrix * weight).sum().item())
        numeric = (values[1] - values[0]) / (2 * step)
        assert numeric == pytest.approx(analytic, rel=TOLERANCE["align photographs' gradient"])


@pytest.mark.parametrize("loss", ["ecc", "robust"])
def test_the_gradient_of_an_alignment_on_unsmoothed_images(loss):
    """One image was interpolated from the other, so no residual is left."""
    generator = torch.Generator().manual_seed(2)
    moving = torch.rand(2, 24, 28, generator=generator, dtype=torch.float64)
    true = torch.tensor([[1.02, 0.01, 0.4], [-0.02, 0.99, 0.3]], dtype=torch.float64)
    images = [moving.requires_grad_(), wk.warp_affine(moving.detach(), true).requires_grad_()]
    options = {"loss": loss, **TIGHT}
    found = wk.align(*images, **options)
    assert found.score > 1 - 1e-9
    weights = [
        torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in (found[0], *found[4:])
    ]
    grads = torch.autograd.grad(weighed(found, weights), images)
    start = {"init": found.matrix.detach(), "levels": 1, **options}
    for which, grad in enumerate(grads):
        direction = torch.randn(grad.shape, generator=generator, dtype=grad.dtype)
        values = []
        for step in (-1e-7, 1e-7):
            moved = [image.detach() for image in images]
            moved[which] = moved[which] + step * direction
            values.append(weighed(wk.align(*moved, **start), weights).item())
        numeric = (values[1] - values[0]) / 2e-7
        assert (grad * direction).sum().item() == pytest.approx(
            numeric, rel=TOLERANCE["align gradient"]
        )


def test_the_graph_does_not_grow_with_the_number_of_steps():
    moving, fixed = noisy("affine", "ecc")
    kept = []
    for options in ({"steps": 3, "levels": 1}, {**TIGHT, "init": "search"}):
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, s=saved: s.append(t) or t, lambda t: t
        ):
            matrix = wk.align(moving.requires_grad_(), fixed, **options).matrix
        kept.append(sum(t.numel() for t in saved))
    assert kept[0] == kept[1] < 3 * moving.numel() + 2 * fixed.numel()
    (grad,) = torch.autograd.grad(matrix.sum(), moving, create_graph=True)
    with pytest.raises(RuntimeError, match="align: gradients of the first order only"):
        grad.sum().backward()


def test_float32_gradients_and_zeros_for_pairs_that_do_not_converge():
    moving, fixed = (image.float() for image in noisy("affine", "ecc"))
    images = torch.stack((moving, moving)).requires_grad_()
    others = torch.stack(
        (fixed, torch.rand(fixed.shape, generator=torch.Generator().manual_seed(0)))
    )
    found = wk.align(images, others)
    assert found.converged.tolist() == [True, False]
    assert not found.score.requires_grad
    (grad,) = torch.autograd.grad(found.matrix.sum(), images)
    assert grad.dtype == torch.float32
    assert grad[0].abs().sum() > 0
    assert not grad[1].any()


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # Dynamo reads it
def test_a_compiled_function_calls_align_outside_its_graph():
    """The bits are the same; traced into dozens of graphs, the sums were ordered differently."""

    def shift(moving: Tensor, fixed: Tensor) -> Tensor:
        return wk.align(2 * moving, fixed, model="translation").matrix[0, 2] + 1

    torch._dynamo.reset()
    compiled = torch.compile(shift, backend="eager")
    results = []
    for function in (shift, compiled):
        moving, fixed = (image.requires_grad_() for image in noisy("translation", "ecc"))
        result = function(moving, fixed)
        results.append((result.detach(), *torch.autograd.grad(result, (moving, fixed))))
    assert all(map(torch.equal, *results))
    assert results[0][1].abs().sum() > 0
