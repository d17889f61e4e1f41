"""`resize` under torch.compile, torch.export and on fake tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import warpkit as wk
from tests.resize.test_resize import BACKENDS
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE

pytestmark = pytest.mark.usefixtures("fresh_compiler")


def gradient(function, image, *others):
    image = image.clone().requires_grad_()
    result = function(image, *others)
    return [result.detach(), *torch.autograd.grad(result.square().sum(), image)]


OPTIONS = [
    {"interpolation": "bicubic"},
    {"interpolation": "bicubic", "antialias": False},
    {"interpolation": "area"},
    {"interpolation": "nearest"},
    {"box": (0.5, 1.0, 7.5, 6.0)},
    {"arithmetic": "opencv5", "interpolation": "bicubic"},
    {"arithmetic": "opencv4_ipp", "interpolation": "bilinear"},
    {"arithmetic": "opencv5", "interpolation": "area"},
    {"arithmetic": "pillow", "interpolation": "lanczos"},
]


@pytest.mark.parametrize(
    ("options", "backend"),
    [
        (options, name)
        for place, options in enumerate(OPTIONS)
        # both for a plain float image; the other options are traced with one of them
        for name in (BACKENDS if place == 0 else BACKENDS[place % 2 :][:1])
    ],
    ids=lambda o: "-".join(map(str, o.values())) if isinstance(o, dict) else o,
)
def test_compile_makes_one_graph_with_gradients(options, backend):
    def resize(image):
        return wk.resize(image, (4, 13), backend=backend, **options)

    compiled = torch.compile(resize, fullgraph=True, backend="aot_eager")
    image = noise(2, 3, 7, 9).float()
    pairs = zip(gradient(compiled, image), gradient(resize, image), strict=True)
    for got, wanted in pairs:
        torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["compiled float32"])


def test_compiled_resizes_of_integers_are_the_same():
    def resize(image):
        options = {"size": (4, 13), "interpolation": "bicubic"}
        kinds = ("opencv5", "opencv4_ipp", "pillow")
        return [wk.resize(image, arithmetic=kind, **options) for kind in kinds]

    compiled = torch.compile(resize, fullgraph=True, backend="aot_eager")
    image = noise(3, 7, 9, dtype=torch.uint8)
    for got, wanted in zip(compiled(image), resize(image), strict=True):
        assert torch.equal(got, wanted)


def test_a_tensor_box_is_traced_with_its_gradient():
    def resize(image, box):
        return wk.resize(image, (4, 13), box=box)

    compiled = torch.compile(resize, fullgraph=True, backend="aot_eager")
    image = noise(3, 7, 9)
    found = []
    for function in (compiled, resize):
        box = torch.tensor([0.5, 1.2, 7.5, 6.1], dtype=torch.float64, requires_grad=True)
        function(image, box).square().sum().backward()
        found.append(box.grad)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("cpu", {}),
        ("reference", {"antialias": False}),
        ("reference", {"interpolation": "area"}),  # like all filters with many taps; 3 s, not 9
    ],
)
def test_compile_makes_one_graph_for_any_batch(backend, options):
    """Not with inductor, which takes 40 s for the reference; tests/warp compiles a warp with it."""

    def resize(image):
        return wk.resize(image, (5, 4), backend=backend, **options)

    compiled = torch.compile(resize, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (2, 3, 5):
        image = noise(batch, 3, 7, 9).float()
        torch.testing.assert_close(compiled(image), resize(image))


class Resize(nn.Module):
    """A resize as a module, which exporters require."""

    def __init__(self, **options) -> None:
        super().__init__()
        self.options = options

    def forward(self, image):
        return wk.resize(image, (4, 13), **self.options)


@pytest.mark.parametrize(
    ("options", "strict"),
    [(options, place % 2 == 0) for place, options in enumerate(OPTIONS)],
    ids=lambda o: "-".join(map(str, o.values())) if isinstance(o, dict) else str(o),
)
def test_exported_resizes_accept_batches_of_any_size(options, strict):
    batch = torch.export.Dim("batch", min=1, max=64)
    image = noise(2, 3, 7, 9).float()
    module = Resize(**options)
    program = torch.export.export(
        module, (image,), dynamic_shapes=({0: batch},), strict=strict
    ).module()
    many = noise(4, 3, 7, 9).float()
    torch.testing.assert_close(program(many), module(many), rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_fake_and_meta_tensors_have_the_right_shape(options):
    with FakeTensorMode(allow_non_fake_inputs=True):
        image = torch.empty(2, 3, 7, 9)
        assert wk.resize(image, (4, 13), **options).shape == (2, 3, 4, 13)
    real = noise(2, 3, 7, 9).float()
    assert wk.resize(real, (4, 13), **options).isfinite().all()  # no fake table was cached
    if "box" not in options:
        meta = wk.resize(torch.empty(2, 3, 7, 9, device="meta"), (4, 13), **options)
        assert meta.shape == (2, 3, 4, 13)
