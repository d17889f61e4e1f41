"""arithmetic="torchvision": the pixels of F.interpolate, for bytes and floats."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_torch import beside_torch
from tests.support.naive_torch import naive_bytes
from warpkit.engine.arithmetic import torch_resize

CALLS = (
    *(("bilinear", a) for a in (False, True)),
    *(("bicubic", a) for a in (False, True)),
    *(("lanczos", True), ("nearest", None), ("nearest_exact", None), ("area", None)),
)
SIZES = (
    *(((31, 45), (12, 20)), ((31, 45), (60, 91)), ((31, 45), (31, 9)), ((31, 45), (7, 45))),
    *(((4, 5), (130, 3)), ((300, 3), (2, 200)), ((224, 97), (100, 98)), ((2, 2), (9, 141))),
    *(((4, 300), (166, 150)), ((512, 7), (3, 7)), ((64, 64), (2, 2)), ((9, 9), (2, 120))),
)


def interpolate(image: Tensor, size: tuple[int, int], name: str, antialias: bool | None) -> Tensor:
    corners = False if antialias is not None else None
    if name == "area" and not image.is_floating_point():  # as in torchvision; torch lacks it
        return F.interpolate(image.float(), size, mode="area").round().to(image.dtype)
    mode = name.replace("_", "-")
    return F.interpolate(image, size, mode=mode, antialias=bool(antialias), align_corners=corners)


def resize(image: Tensor, size: tuple[int, int], name: str, antialias: bool | None, **options):
    options = {"interpolation": name, "antialias": antialias, **options}
    return wk.resize(image, size, arithmetic="torchvision", **options)


def bytes_of(*shape: int, last: bool = False, ends: bool = False) -> Tensor:
    torch.manual_seed(sum(shape))
    image = torch.randint(0, 256, shape, dtype=torch.uint8)
    image = (image > 127).to(torch.uint8) * 255 if ends else image
    layout = torch.channels_last if last else torch.contiguous_format
    return image.contiguous(memory_format=layout)


@beside_torch
@pytest.mark.parametrize(("name", "antialias"), CALLS)
def test_bytes_have_torchs_pixels(name, antialias):
    if name == "lanczos" and not torch_resize.has_kernel("lanczos", True, torch.uint8, "cpu"):
        pytest.skip("this torch has no lanczos")
    for n, (source, size) in enumerate(SIZES):
        for channels in (1, 3, 4, 6):
            for last in (False, True):
                image = bytes_of(1 + n % 2, channels, *source, last=last, ends=n % 3 == 0)
                wanted = interpolate(image, size, name, antialias)
                for backend in ("cpu", "reference"):
                    got = resize(image, size, name, antialias, backend=backend)
                    said = (source, size, channels, last, backend)
                    assert torch.equal(got, wanted), said
                    assert got.stride() == wanted.stride() or 1 in got.shape, said


@pytest.mark.parametrize(
    ("source", "size"), [*SIZES[:6], ((9, 8), (1, 1)), ((9, 8), (4, 1)), ((1, 8), (5, 1))], ids=str
)
@pytest.mark.parametrize(("name", "antialias"), CALLS[:5])
def test_bytes_match_their_definition(name, antialias, source, size):
    """Also for results one pixel wide, which torch 2.15 computes wrongly."""
    image = bytes_of(5, *source, ends=source[0] == 9)
    wanted = naive_bytes(image.numpy(), size, name, bool(antialias))
    for backend in ("cpu", "reference"):
        got = resize(image, size, name, antialias, backend=backend)
        assert np.array_equal(got.numpy(), wanted), (source, size, backend)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("name", "antialias"), CALLS)
def test_floats_match_interpolate(name, antialias, dtype):
    if not torch_resize.has_kernel(name.replace("_", "-"), bool(antialias), torch.float32, "cpu"):
        pytest.skip("this torch has no lanczos")
    for last in (False, True):
        image = (noise(2, 3, 13, 17) * 255).to(dtype)
        image = image.contiguous(memory_format=torch.channels_last) if last else image
        image.requires_grad_()
        try:
            wanted = interpolate(image, (8, 24), name, antialias)
        except NotImplementedError:
            wanted = interpolate(image.float(), (8, 24), name, antialias).to(dtype)
        got = resize(image, (8, 24), name, antialias)
        assert torch.equal(got, wanted)
        gradients = [torch.autograd.grad(t.float().square().sum(), image)[0] for t in (got, wanted)]
        assert torch.equal(*gradients)
    if dtype == torch.float64:
        small = noise(1, 5, 6).double().requires_grad_()
        function = lambda x: resize(x, (3, 8), name, antialias)  # noqa: E731
        assert torch.autograd.gradcheck(function, small, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, small)


def test_any_batch_and_layout_give_the_same_pixels():
    image = bytes_of(2, 3, 4, 20, 31)
    want = interpolate(image.flatten(0, 1), (9, 40), "bicubic", True).unflatten(0, (2, 3))
    assert torch.equal(resize(image, (9, 40), "bicubic", True), want)
    floats = image / 255.0
    want = interpolate(floats.flatten(0, 1), (9, 40), "bicubic", True).unflatten(0, (2, 3))
    assert torch.equal(resize(floats, (9, 40), "bicubic", True), want)
    single = image[0, 0]
    for view in (
        single.flip(-1),
        single[..., ::2],
        single.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    ):
        want = interpolate(view[None], (9, 40), "bilinear", False)[0]
        assert torch.equal(resize(view, (9, 40), "bilinear", False), want)
    assert resize(image[:0], (9, 40), "bicubic", True).shape == (0, 3, 4, 9, 40)
    assert resize(floats[:0], (9, 40), "area", None).shape == (0, 3, 4, 9, 40)
    kept = resize(floats, (20, 31), "bilinear", True)
    assert torch.equal(kept, floats)
    assert kept.data_ptr() != floats.data_ptr()


@pytest.mark.parametrize("name", ["nearest", "nearest_exact"])
def test_labels_are_resized_like_bytes(name):
    image = bytes_of(1, 3, 25, 9)
    want = resize(image, (60, 40), name, None)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint16, torch.int8, torch.bool):
        labels = image.to(dtype)
        assert torch.equal(resize(labels, (60, 40), name, None), want.to(dtype)), dtype


def test_through_uint8_has_the_values_of_bytes_and_the_gradient_of_floats():
    image = noise(3, 20, 31).float().requires_grad_()
    function = lambda x: resize(x, (9, 12), "bicubic", True)  # noqa: E731
    out = wk.through_uint8(function, image)
    eight = (image.detach() * 255).round().to(torch.uint8)
    assert torch.equal(out, function(eight) / 255)
    weight = noise(3, 9, 12).float()
    got = torch.autograd.grad((out * weight).sum(), image)[0]
    want = torch.autograd.grad((function(image) * weight).sum(), image)[0]
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_resizes_under_vmap_and_compile():
    image = bytes_of(2, 3, 20, 31)
    for name, antialias in CALLS:
        function = lambda x, n=name, a=antialias: resize(x, (9, 40), n, a)  # noqa: E731
        want = function(image)
        assert torch.equal(torch.func.vmap(function)(image), want)
    function = lambda x: resize(x, (9, 40), "bicubic", True)  # noqa: E731
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(image), function(image))
    assert torch.equal(compiled(image / 255.0), function(image / 255.0))


@pytest.mark.parametrize(
    ("options", "dtype", "words"),
    [
        ({"interpolation": "box"}, torch.uint8, "`interpolation` must be one of 'nearest'"),
        (
            {"interpolation": "lanczos", "antialias": False},
            torch.uint8,
            "`antialias` must be None or",
        ),
        ({"interpolation": "area", "antialias": True}, torch.uint8, "which has no antialias"),
        ({"interpolation": "nearest", "antialias": True}, torch.uint8, "which has no antialias"),
        ({"box": (0, 0, 2, 2)}, torch.uint8, "F.interpolate has none"),
        ({}, torch.int16, "F.interpolate has no other"),
        ({}, torch.int64, "labels have no mean"),
    ],
)
def test_errors(options, dtype, words):
    with pytest.raises((ValueError, TypeError), match=r"^resize: ") as raised:
        wk.resize(torch.zeros(1, 4, 4).to(dtype), (2, 2), arithmetic="torchvision", **options)
    assert words in str(raised.value)


def test_a_torch_without_lanczos_is_reported(monkeypatch):
    monkeypatch.setattr(torch_resize, "has_kernel", lambda *_: False)
    with pytest.raises(TypeError, match="none for floats on cpu"):
        resize(torch.zeros(1, 4, 4), (2, 2), "lanczos", True)
    assert resize(torch.zeros(1, 4, 4).to(torch.uint8), (2, 2), "lanczos", True).shape == (1, 2, 2)
