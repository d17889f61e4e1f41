"""The gradient of the matrix, that of the solution, against finite differences of `align`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.alignment.test_align import matrix_of, pair
from tests.support.tolerances import TOLERANCE

TIGHT = {"tolerance": 1e-11, "steps": 400}


def noisy(model: str, loss: str) -> tuple[Tensor, Tensor]:
    """A pair with residuals: without any, J^T w J alone would be the derivative."""
    moving, fixed = pair(matrix_of(model, (0.6, -0.4)))
    generator = torch.Generator().manual_seed(3)
    fixed = fixed + 0.02 * torch.randn(fixed.shape, generator=generator, dtype=torch.float64)
    return moving, fixed if loss == "ssd" else 0.7 * fixed + 0.2


@pytest.mark.parametrize(
    ("model", "loss"),
    [("translation", "ssd"), ("euclidean", "ecc"), ("affine", "robust"), ("perspective", "ecc")],
)
def test_finite_differences(model, loss):
    images = [image.requires_grad_() for image in noisy(model, loss)]
    options = {"model": model, "loss": loss, **TIGHT}
    found = wk.align(*images, **options)
    generator = torch.Generator().manual_seed(1)

    def draw(like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)

    weight = draw(found.matrix)
    grads = torch.autograd.grad((found.matrix * weight).sum(), images)
    start = {"init": found.matrix.detach(), "levels": 1, **options}
    for which in (0, 1):
        direction = draw(images[which])

        def value(step: float) -> float:
            moved = [image.detach() for image in images]
            moved[which] = moved[which] + step * direction  # noqa: B023
            return (wk.align(*moved, **start).matrix * weight).sum().item()

        numeric = (value(1e-7) - value(-1e-7)) / 2e-7
        analytic = (grads[which] * direction).sum().item()
        assert analytic == pytest.approx(numeric, rel=TOLERANCE["align gradient"])


def test_the_graph_does_not_grow_with_the_steps():
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


def test_float32_and_pairs_that_have_none():
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


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # Dynamo looks at it
def test_a_compiled_function_calls_it_as_it_is():
    """To the last bit: in pieces, of which there were dozens, it was another sum."""

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
