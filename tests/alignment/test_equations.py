"""The compiled normal equations, compared with the torch operations that define them."""

from __future__ import annotations

import pytest
import torch

from tests.support.tolerances import TOLERANCE
from warpkit.alignment import equations as module
from warpkit.alignment import robust
from warpkit.alignment.equations import Level, equations, slopes
from warpkit.alignment.models import model_named, step_matrix
from warpkit.engine.backends import select_sums


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [(17, 22), (3, 66), (20, 531)], ids=str)
@pytest.mark.parametrize(("model", "loss"), [("affine", "ecc"), ("perspective", "robust")])
def test_kernels_agree_with_the_torch_operations(dtype, model, loss, size, monkeypatch):
    """For one strip of columns, and for several strips in either pass."""
    generator = torch.Generator().manual_seed(0)
    fixed, moving = (torch.rand(3, 2, *each, generator=generator) for each in (size, (20, 19)))
    masks = [torch.ones(3, 1, *image.shape[-2:]) for image in (fixed, moving)]
    for mask in masks:  # as pyramids make them: the outermost ring is 0
        mask[..., 0] = mask[..., -1] = 0
        mask[..., 0, :] = mask[..., -1, :] = 0
    fixed = fixed.to(dtype)
    level = Level(
        torch.cat((moving, masks[1]), 1).to(dtype), fixed, *slopes(fixed), masks[0].to(dtype)
    )
    tables = model_named(model, torch.device("cpu"))
    numbers = 0.02 * torch.randn(3, len(tables.generators), generator=generator).double()
    to_source = step_matrix(tables, numbers, level.size)
    with torch.no_grad():
        fast = equations(level, to_source, tables, loss)
        monkeypatch.setattr(module, "select_sums", lambda *tensors: None)
        slow = equations(level, to_source, tables, loss)
    tolerance = TOLERANCE["align sums float64" if dtype == torch.float64 else "align sums float32"]
    for name, one, other in zip(fast._fields, fast, slow, strict=True):
        assert one.dtype == torch.float64, name
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance * float(other.abs().max()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_have_the_same_bits_for_any_number_of_threads(dtype):
    images = [torch.rand(2, 3, 130, 600, dtype=dtype) for _ in range(4)]
    weight, gain = torch.rand(2, 1, 130, 600, dtype=dtype), torch.rand(2, 3, 1, 1, dtype=dtype)
    kernels = select_sums(weight)
    assert kernels is not None
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            first = kernels.first_sums(images[0], images[3], weight)
            parts = (images[0], images[1], images[2])
            found.append(
                (first, kernels.second_sums(parts, images[3], weight, gain, gain, 65.0, 4))
            )
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for each in found[1:] for a, b in zip(each, found[0], strict=True))


def test_the_equations_are_the_least_squares_ones():
    """J^T w J and J^T w r with an explicit J whose columns include gain and bias."""
    generator = torch.Generator().manual_seed(1)
    image = torch.rand(1, 1, 12, 15, generator=generator, dtype=torch.float64)
    other = torch.rand(1, 1, 12, 15, generator=generator, dtype=torch.float64)
    weight = torch.zeros(1, 1, 12, 15, dtype=torch.float64)
    weight[..., 1:-1, 1:-1] = torch.rand(10, 13, generator=generator, dtype=torch.float64)
    level = Level(torch.cat((other, torch.ones_like(other)), 1), image, *slopes(image), weight)
    tables = model_named("perspective", torch.device("cpu"))
    eye = torch.eye(3, dtype=torch.float64)[None]
    found = equations(level, eye, tables, "ecc")
    w = weight.flatten()
    design = torch.stack((other.flatten(), torch.ones_like(w)), 1)
    root = w.sqrt()[:, None]
    gain, bias = torch.linalg.lstsq(root * design, root[:, 0] * image.flatten()).solution
    residual = image.flatten() - gain * other.flatten() - bias
    size, step = level.size, 1e-6
    y, x = torch.meshgrid(torch.arange(12.0).double(), torch.arange(15.0).double(), indexing="ij")
    points = torch.stack((x.flatten(), y.flatten(), torch.ones_like(w)))
    columns = []
    gx, gy = ((f + gain * v) / 2 for f, v in zip(slopes(image), slopes(other), strict=True))
    for k in range(len(tables.generators)):
        numbers = torch.zeros(1, len(tables.generators), dtype=torch.float64)
        numbers[0, k] = step
        moved = step_matrix(tables, numbers, size)[0] @ points
        motion = (moved[:2] / moved[2] - points[:2]) / step
        columns.append(gx.flatten() * motion[0] + gy.flatten() * motion[1])
    jacobian = torch.stack(columns, 1)
    rhs = jacobian.T @ (w * residual)
    # a projection removes what gain and bias can explain
    fitted = design @ torch.linalg.lstsq(root * design, root * jacobian).solution
    apart = jacobian - fitted
    hessian = apart.T @ (w[:, None] * apart)
    scale = float(hessian.abs().max())
    torch.testing.assert_close(found.hessian[0], hessian, rtol=0, atol=1e-5 * scale)
    torch.testing.assert_close(found.rhs[0], rhs, rtol=0, atol=1e-5 * float(rhs.abs().max()))
    both = torch.cov(torch.stack((image.flatten(), other.flatten())), aweights=w, correction=0)
    assert float(found.score) == pytest.approx(float(both[0, 1] / (both[0, 0] * both[1, 1]).sqrt()))


def test_gain_and_bias_have_derivatives_at_the_least_deviation():
    """Of equal images the residuals' deviation is held, and has no equation of its own."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(1, 1, 12, 15, generator=generator, dtype=torch.float64)
    fixed, warped = image.clone().requires_grad_(), image.clone().requires_grad_()
    weight = torch.ones(1, 1, 12, 15, dtype=torch.float64)

    def sums_of(weights):
        with_weights = (weights, weights * warped, weights * fixed)
        pairs = (weights * warped.square(), weights * fixed.square(), weights * warped * fixed)
        return torch.stack([part.sum((-1, -2)) for part in (*with_weights, *pairs)], -1)

    images = robust.Images(fixed, warped, weight)
    numbers = [[1.0]], [[0.0]], [robust.LEAST_DEVIATION]
    found = robust.Fit(*(torch.tensor(n, dtype=torch.float64) for n in numbers))
    fit = robust._with_derivatives(images, found, sums_of)
    assert not torch.autograd.grad(fit.deviation.sum(), fixed, retain_graph=True)[0].any()
    # gain = cov(fixed, warped) / var(warped): its derivative by fixed is the centred warped image
    # over its sum of squares
    centred = (image - image.mean()).square().sum()
    (to_fixed,) = torch.autograd.grad(fit.gain.sum(), fixed)
    torch.testing.assert_close(to_fixed, (image - image.mean()) / centred)
