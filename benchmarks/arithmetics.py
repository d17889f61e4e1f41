"""What other libraries' pixels cost with gradients: python -m benchmarks.arithmetics

The gradient of every arithmetic is that of "exact". Every case first proves that, then times a call
with all its gradients in every arithmetic, as `harness` says; the aim is 1.5 times "exact".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.testing import assert_close

import warpkit as wk
from benchmarks import harness
from warpkit import camera
from warpkit.types import Arithmetic

OPENCV = ("opencv4", "opencv5")
GENERATOR = torch.Generator().manual_seed(0)

Call = Callable[..., Tensor]


class Case(NamedTuple):
    """A call as a function of its tensors, the same in other arithmetics, and these tensors."""

    name: str
    exact: Call
    others: dict[str, Call]
    inputs: tuple[Tensor, ...]
    apart: float = 0.0
    """The largest difference of the gradients, as a part of the largest entry: 0 means their bits.
    Only F.interpolate's gradient is its own."""


def random(*shape: int) -> Tensor:
    """Noise in [0, 1], float32."""
    return torch.rand(*shape, generator=GENERATOR)


def in_opencv(function: Call) -> dict[str, Call]:
    """The function in OpenCV's arithmetics."""
    return {name: partial(function, arithmetic=name) for name in OPENCV}


def warps() -> Iterator[Case]:
    """Warps by matrices, points and flows."""
    image = random(3, 512, 512)
    turns = wk.affine_matrix(
        angle=random(32) * 60 - 30, scale=random(32) * 0.3 + 0.2, center=(56.0, 56.0)
    ).double()
    small = partial(wk.warp_affine, size=(112, 112))
    yield Case(
        "warp_affine, 3 x 512 x 512, 32 matrices to 112 x 112",
        small, in_opencv(small), (image, turns),
    )  # fmt: skip
    landmarks = wk.transform_points(turns, random(5, 2) * 112)

    def faces(image: Tensor, landmarks: Tensor, arithmetic: Arithmetic = "exact") -> Tensor:
        matrices = wk.similarity_from_points(landmarks, TEMPLATE)
        return wk.warp_affine(image, matrices, size=(112, 112), arithmetic=arithmetic)

    inputs = (image, landmarks)
    yield Case("32 faces aligned by landmarks, 3 x 512 x 512", faces, in_opencv(faces), inputs)
    tiny = wk.rotation_matrix((15.5, 15.5), random(256).double() * 90, 1.1)
    yield Case(
        "warp_affine, 256 x 3 x 32 x 32", wk.warp_affine, in_opencv(wk.warp_affine),
        (random(256, 3, 32, 32), tiny),
    )  # fmt: skip
    images = random(8, 3, 480, 640)
    matrix = torch.tensor([[1.05, 0.1, -20], [-0.08, 0.95, 12], [1e-4, -5e-5, 1]]).double()
    yield Case(
        "warp_perspective, 8 x 3 x 480 x 640", wk.warp_perspective,
        in_opencv(wk.warp_perspective), (images, matrix.expand(8, 3, 3).contiguous()),
    )  # fmt: skip
    offsets = wk.flow.bspline(6 * torch.randn(8, 9, 9, 2, generator=GENERATOR), (480, 640))
    points = offsets + wk.pixel_grid((480, 640))
    yield Case("remap, 8 x 3 x 480 x 640", wk.remap, in_opencv(wk.remap), (images, points))
    yield Case(
        "warp_flow, 8 x 3 x 480 x 640", wk.warp_flow, in_opencv(wk.warp_flow), (images, offsets)
    )
    lens = torch.tensor([-0.3, 0.08, 0.001, -0.0005, 0.02])
    matrix = torch.tensor([[500.0, 0, 320], [0, 505, 240], [0, 0, 1]])
    yield Case(
        "camera.undistort, 8 x 3 x 480 x 640", camera.undistort, in_opencv(camera.undistort),
        (images, matrix, lens),
    )  # fmt: skip


TEMPLATE = torch.tensor(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655],
     [70.7299, 92.2041]]
)  # fmt: skip
"""insightface's landmarks in 112 x 112 pixels."""


def resizes() -> Iterator[Case]:
    """Resizes to a classifier's size."""
    images = random(8, 3, 480, 640)
    resize = partial(wk.resize, size=(224, 224))
    plain = partial(resize, antialias=False)
    yield Case("resize, 8 x 3 x 480 x 640 to 224 x 224", plain, in_opencv(resize), (images,))
    pillow = {"pillow": partial(resize, arithmetic="pillow")}
    name = "the same, antialias"
    yield Case(name, partial(resize, antialias=True), pillow, (images,))
    torchvision = {"torchvision": partial(resize, arithmetic="torchvision", antialias=True)}
    name = "the same, antialias, F.interpolate's gradient"
    yield Case(name, partial(resize, antialias=True), torchvision, (images,), 1e-4)


def gradients(call: Call, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradients to all inputs, forward pass included."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    result = call(*leaves)
    return torch.autograd.grad(result, leaves, torch.ones_like(result))


def prove_equal(case: Case) -> None:
    """Raise if the gradients are not those of "exact"."""
    wanted = gradients(case.exact, case.inputs)
    assert all(exact.any() for exact in wanted)
    for call in case.others.values():
        for gradient, exact in zip(gradients(call, case.inputs), wanted, strict=True):
            assert_close(gradient, exact, rtol=0, atol=case.apart * float(exact.abs().max()))


def cases() -> Iterator[harness.Case]:
    """Each call with all its gradients, in "exact" and in the other arithmetics."""
    for case in (*warps(), *resizes()):
        prove_equal(case)
        calls = {"warpkit": case.exact}
        calls |= {f"warpkit, {name}": call for name, call in case.others.items()}
        ways = {name: partial(gradients, call, case.inputs) for name, call in calls.items()}
        yield harness.Case(f"{case.name}, gradients", ways, "1.5")


if __name__ == "__main__":
    harness.main(__doc__, "arithmetics", cases, seconds=6.0)
