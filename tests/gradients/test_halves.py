"""float16 and bfloat16 images under torch's transforms and compiler: float32's numbers, rounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise

AFFINE = torch.tensor([[0.9, 0.1, 1.0], [-0.1, 1.1, -0.5]], dtype=torch.float64)
PERSPECTIVE = torch.cat([AFFINE, torch.tensor([[1e-3, 0.0, 1.0]], dtype=torch.float64)])
CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "affine": lambda x: wk.warp_affine(x, AFFINE),
    "bicubic": lambda x: wk.warp_affine(x, AFFINE, interpolation="bicubic"),
    "perspective": lambda x: wk.warp_perspective(x, PERSPECTIVE, border="reflect"),
    "spline": lambda x: wk.warp_affine(x, AFFINE, interpolation="spline3"),
    "resize": lambda x: wk.resize(x, (9, 11)),
    "resize, not antialiased": lambda x: wk.resize(x, (9, 11), antialias=False),
    "torchvision": lambda x: wk.resize(x, (9, 11), arithmetic="torchvision"),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_halves_under_transforms_are_float32_rounded(
    name: str, dtype: torch.dtype, fresh_compiler: object
):
    call = CALLS[name]
    image, push = (noise(2, 3, 20, 24, dtype=torch.float32, seed=n).to(dtype) for n in (0, 1))

    def total(x: Tensor) -> Tensor:
        return call(x).float().square().sum()

    def results(x: Tensor, tangent: Tensor, run: Callable[[Tensor], Tensor]) -> list[Tensor]:
        value, moved = torch.func.jvp(call, (x,), (tangent,))
        grad, batched = torch.func.grad(total), torch.vmap(torch.func.grad(total))
        return [value, moved, run(x), torch.vmap(call)(x), grad(x), batched(x)]

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    wanted = results(image.float(), push.float(), call)
    for got, exact in zip(results(image, push, compiled), wanted, strict=True):
        assert got.dtype == dtype
        room = 6 * torch.finfo(dtype).eps * max(1.0, float(exact.abs().max()))
        torch.testing.assert_close(got.float(), exact, atol=room, rtol=0)
