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
SHRINKING = torch.tensor([[0.4, 0.1, 1.0], [-0.1, 0.5, 1.5]], dtype=torch.float64)
POINTS = 18 * noise(9, 11, 2, seed=2)
FLOW = noise(20, 24, 2, seed=3)
BOX = torch.tensor([[3.0, 4, 15, 14]])
CAMERA = torch.tensor([[20.0, 0, 12], [0, 20, 10], [0, 0, 1]])
LENS = (-0.2, 0.05, 0.0, 0.0)
PATCH, TURN = torch.ones(3, 6, 5) / 3, torch.tensor([[[1.0, 0.1, 5], [-0.1, 1, 6]]])
OF_COVERED_PIXELS = {"paste_patches", "transform_patches"}
"""A graph cannot know their number."""


def of_first(x: Tensor) -> Tensor | None:
    """The image of one object in images with and without a batch."""
    return torch.tensor([0]) if x.ndim == 4 else None


CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "affine": lambda x: wk.warp_affine(x, AFFINE),
    "bicubic": lambda x: wk.warp_affine(x, AFFINE, interpolation="bicubic"),
    "perspective": lambda x: wk.warp_perspective(x, PERSPECTIVE, border="reflect"),
    "spline": lambda x: wk.warp_affine(x, AFFINE, interpolation="spline3"),
    "resize": lambda x: wk.resize(x, (9, 11)),
    "resize, not antialiased": lambda x: wk.resize(x, (9, 11), antialias=False),
    "torchvision": lambda x: wk.resize(x, (9, 11), arithmetic="torchvision"),
    "lanczos4": lambda x: wk.warp_affine(x, AFFINE, interpolation="lanczos4"),
    "nearest": lambda x: wk.warp_affine(x, AFFINE, interpolation="nearest"),
    "antialias": lambda x: wk.warp_affine(x, SHRINKING, size=(9, 11), antialias=True),
    "antialias, 2": lambda x: wk.warp_affine(x, SHRINKING, size=(9, 11), antialias=2),
    "remap": lambda x: wk.remap(x, POINTS),
    "remap, antialias": lambda x: wk.remap(x, POINTS, antialias=True),
    "sample_pixels": lambda x: wk.sample_pixels(x, POINTS[0]),
    "warp_flow": lambda x: wk.warp_flow(x, FLOW),
    "crop_patches": lambda x: wk.crop_patches(x, BOX, of_first(x), (7, 8)),
    "crop_patches, antialias": lambda x: wk.crop_patches(x, BOX, of_first(x), (5, 4), antialias=2),
    "undistort": lambda x: wk.camera.undistort(x, CAMERA, LENS),
    "distort": lambda x: wk.camera.distort(x, CAMERA, LENS),
    "from_sphere": lambda x: wk.camera.from_sphere(x[..., :12, :], (8, 9), field_of_view=70.0),
    "to_sphere": lambda x: wk.camera.to_sphere(x, (12, 24), field_of_view=70.0),
    "to_cube": lambda x: wk.camera.to_cube(x[..., :12, :], 6),
    "paste_patches": lambda x: wk.paste_patches(x, PATCH, TURN, of_first(x)),
    "transform_patches": lambda x: wk.transform_patches(x, BOX, TURN, of_first(x)),
    "resize, nearest": lambda x: wk.resize(x, (9, 11), interpolation="nearest"),
    "resize, area": lambda x: wk.resize(x, (9, 11), interpolation="area"),
    "resize, bicubic": lambda x: wk.resize(x, (9, 11), interpolation="bicubic"),
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
    compiled = call if name in OF_COVERED_PIXELS else compiled
    wanted = results(image.float(), push.float(), call)
    for got, exact in zip(results(image, push, compiled), wanted, strict=True):
        assert got.dtype == dtype
        room = 6 * torch.finfo(dtype).eps * max(1.0, float(exact.abs().max()))
        torch.testing.assert_close(got.float(), exact, atol=room, rtol=0)
