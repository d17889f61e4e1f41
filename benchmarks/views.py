"""Images as other libraries hold them: python -m benchmarks.views

Photographs of 12 megapixels, whose channels are adjacent (the view `array.permute(2, 0, 1)` of a
picture that was read from a file), of bytes and of float32: the view beside the same call of
`view[None]`, and float16 beside float32. And patches averaged over the pixels that they are pasted
on, beside their warps and a composition by hand. Every case first proves that its ways agree, then
times them as `harness` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks import harness
from benchmarks.harness import Case
from warpkit import camera

HEIGHT, WIDTH, SIZE = 3000, 4000, (224, 224)
SAME = "1 of the view[None]"
GENERATOR = torch.Generator().manual_seed(0)

Call = Callable[[Tensor], Tensor]


def calls() -> dict[str, Call]:
    """Functions of an image (..., 3, H, W) with small results."""
    matrix = wk.affine_matrix(angle=10.0, scale=0.075, translation=(10.0, -5.0))
    y, x = torch.meshgrid(*(torch.arange(float(n)) for n in SIZE), indexing="ij")
    points = torch.stack((10 * x + 3 * (y / 9).sin(), 10 * y + 3 * (x / 9).cos()), -1) + 40
    some = 2500 * torch.rand(2, 2, generator=GENERATOR)
    lens = torch.tensor([[3000.0, 0, 1999.5], [0, 3000, 1499.5], [0, 0, 1]])
    flow = 5 * torch.randn(*SIZE, 2, generator=GENERATOR)
    box = torch.tensor([[1000.0, 800.0, 1050.0, 850.0]])
    first = torch.zeros(1, dtype=torch.long)

    def cropped(image: Tensor) -> Tensor:
        return wk.crop_patches(image if image.ndim == 4 else image[None], box, first, (50, 50))

    return {
        "warp_affine": partial(wk.warp_affine, matrix=matrix, size=SIZE),
        "warp_affine, antialias": partial(wk.warp_affine, matrix=matrix, size=SIZE, antialias=4),
        "remap": partial(wk.remap, points=points),
        "sample_pixels of two": partial(wk.sample_pixels, points=some),
        "undistort": partial(
            camera.undistort, camera_matrix=lens, distortion=[-0.2, 0.05, 0, 0], size=SIZE
        ),
        "from_sphere": lambda x: camera.from_sphere(x[..., :2000, :], SIZE, field_of_view=60.0),
        "warp_flow": partial(wk.warp_flow, flow=flow),
        "resize in opencv5": partial(
            wk.resize, size=SIZE, arithmetic="opencv5", interpolation="bilinear"
        ),
        "crop_patches, 50 x 50": cropped,
    }


def views() -> Iterator[Case]:
    """The view beside the same with a dimension for the batch."""
    for dtype in (torch.uint8, torch.float32):
        array = torch.randint(0, 256, (HEIGHT, WIDTH, 3), generator=GENERATOR).to(dtype).numpy()
        image = torch.from_numpy(array).permute(2, 0, 1)
        for name, call in calls().items():
            # a flow has the image's size: of a part of the photograph
            part = image[:, 100 : 100 + SIZE[0], 200 : 200 + SIZE[1]]
            view = part if name == "warp_flow" else image
            one, other = call(view), call(view[None])
            assert torch.equal(one.reshape(other.shape), other), name
            kind = str(dtype).removeprefix("torch.")
            ways = {
                "warpkit": partial(call, view),
                "the same of view[None]": lambda c=call, v=view: c(v[None]),
            }
            yield Case(f"{name}, {kind}, {HEIGHT} x {WIDTH} x 3", ways, SAME)


def halves() -> Iterator[Case]:
    """float16, read in place, beside float32."""
    image = torch.rand(3, HEIGHT, WIDTH, generator=GENERATOR)
    half = image.half()
    warps = ("warp_affine", "warp_affine, antialias", "remap")
    some = {name: call for name, call in calls().items() if name in warps}
    for name, call in (some | {"resize": partial(wk.resize, size=SIZE)}).items():
        assert_close(call(half).float(), call(half.float()), rtol=0, atol=1e-3)
        ways = {"warpkit": partial(call, half), "float32": partial(call, image)}
        yield Case(f"{name}, float16, 3 x {HEIGHT} x {WIDTH}", ways)


def by_hand(images: Tensor, patch: Tensor, matrices: Tensor) -> Tensor:
    """One patch on each image: its warp and that of its mask, composed over whole images."""
    layers = torch.cat((patch, torch.ones_like(patch[:1])))
    size = (images.shape[-2], images.shape[-1])
    layer = wk.warp_affine(
        layers.expand(len(images), -1, -1, -1), matrices, size=size, antialias=True
    )
    return layer[:, :-1] + (1 - layer[:, -1:]) * images


def patches() -> Iterator[Case]:
    """A patch of 300 x 300 on 30 to 40 pixels of 16 images, with the patch's gradient."""
    count = 16
    images = torch.rand(count, 3, 480, 640, generator=GENERATOR)
    patch = torch.rand(3, 300, 300, generator=GENERATOR).requires_grad_()
    number = torch.arange(count).double()
    shift = torch.stack((100 + 20 * number, 100 + 10 * number), -1)
    matrices = wk.affine_matrix(angle=5 * number, scale=0.1 + 0.002 * number, translation=shift)
    index = torch.arange(count)
    grad = torch.rand(images.shape, generator=GENERATOR)
    paste = partial(wk.paste_patches, images, patch, matrices, index)

    def both_ways(call: Callable[[], Tensor]) -> Tensor:
        return torch.autograd.grad(call(), patch, grad)[0]

    pasted = {"warpkit": partial(paste, antialias=True), "one sample a pixel": paste}
    pasted["warps of whole images, composed"] = partial(by_hand, images, patch, matrices)
    one, _, other = (call() for call in pasted.values())
    assert_close(one, other, rtol=0, atol=1e-5)
    with torch.no_grad():
        yield Case("paste_patches, antialias, 16 patches of 300 x 300", pasted)
    ways = {name: partial(both_ways, call) for name, call in pasted.items()}
    assert_close(ways["warpkit"](), ways["warps of whole images, composed"](), rtol=1e-4, atol=1e-5)
    yield Case("the same, with the patch's gradient", ways)


def cases() -> Iterator[Case]:
    yield from views()
    yield from halves()
    yield from patches()


if __name__ == "__main__":
    harness.main(__doc__, "views", cases, seconds=3.0)
