"""Resize kernels have the reference's bits on any number of threads and stay in their arrays."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import warpkit as wk
from tests.resize.test_resize import WAYS
from tests.support.guarded_memory import survives
from tests.support.inputs import images, noise
from tests.support.resize_cases import FLAGS
from warpkit.engine.arithmetic import opencv_ipp_resize
from warpkit.engine.binding import plan
from warpkit.engine.cpu import resize as backend
from warpkit.engine.definitions.resize import ResizeRule

SIZES = [(5, 6), (3, 2), (9, 14), (1, 1), (40, 3), (17, 33)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.uint8, torch.int16])
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_resizes_have_the_references_bits(name, antialias, dtype):
    large = noise(2, 3, 50, 70, dtype=dtype)
    given = [*images(dtype).values(), large, large.contiguous(memory_format=torch.channels_last)]
    for image in given:
        for size in SIZES:
            options = {"interpolation": name, "antialias": antialias}
            got = wk.resize(image, size, backend="cpu", **options)
            wanted = wk.resize(image, size, backend="reference", **options)
            assert torch.equal(got, wanted), (image.shape, image.stride(), size)


@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_a_box_has_the_references_bits(name, antialias):
    image = noise(3, 23, 31)
    for box in ((0, 0, 31, 23), (3.3, 2.7, 28.1, 20.4), (5, 5, 6, 6), (30.2, 1, 30.9, 22.5)):
        options = {"interpolation": name, "antialias": antialias, "box": box}
        got = wk.resize(image, (9, 17), backend="cpu", **options)
        assert torch.equal(got, wk.resize(image, (9, 17), backend="reference", **options)), box


ROUNDED = [(a, n) for a in ("opencv4", "opencv5_ipp") for n in FLAGS]
ROUNDED += [("pillow", n) for n in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize(("arithmetic", "name"), ROUNDED)
def test_other_arithmetics_have_the_references_bits(arithmetic, name, dtype, channels):
    image = noise(2, channels, 50, 68, dtype=dtype)
    for given in (image, image.contiguous(memory_format=torch.channels_last)):
        for size in ((25, 34), (10, 17), (21, 40), (90, 111), (60, 30), (3, 68)):
            options = {"interpolation": name, "arithmetic": arithmetic}
            got = wk.resize(given, size, backend="cpu", **options)
            wanted = wk.resize(given, size, backend="reference", **options)
            assert torch.equal(got, wanted), (given.stride(), size)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("wide", [True, False], ids=["AVX-512", "AVX2"])
def test_ipp_with_avx2_and_avx512_has_the_references_bits(wide, channels, monkeypatch):
    """Both code paths, AVX-512's and AVX2's, on any machine."""
    monkeypatch.setattr(opencv_ipp_resize, "AVX512", wide)
    monkeypatch.setattr(plan, "_plans", {})
    options = {"interpolation": "bicubic", "arithmetic": "opencv5_ipp"}
    image = noise(2, channels, 23, 31, dtype=torch.uint8)
    for given in (image, image.contiguous(memory_format=torch.channels_last)):
        for size in ((11, 17), (181, 243), (4, 5), (23, 200), (1, 1)):
            got = wk.resize(given, size, backend="cpu", **options)
            wanted = wk.resize(given, size, backend="reference", **options)
            assert torch.equal(got, wanted), (given.stride(), size)


def test_extreme_bytes_do_not_overflow():
    for image in (torch.zeros(1, 64, 70), torch.ones(1, 64, 70), noise(1, 64, 70).round()):
        levels = (image * 255).byte()
        for arithmetic, name in ROUNDED:
            for size in ((31, 33), (2, 3), (140, 150)):
                options = {"interpolation": name, "arithmetic": arithmetic}
                got = wk.resize(levels, size, backend="cpu", **options)
                assert torch.equal(got, wk.resize(levels, size, backend="reference", **options))


CALLS = {
    "float32": partial(wk.resize, size=(211, 223)),
    "area": partial(wk.resize, size=(97, 301), interpolation="area"),
    "pillow": partial(wk.resize, size=(97, 301), arithmetic="pillow", interpolation="lanczos"),
    "opencv": partial(wk.resize, size=(211, 223), arithmetic="opencv5", interpolation="bicubic"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_bits_for_any_number_of_threads(name):
    dtype = torch.float32 if name in ("float32", "area") else torch.uint8
    image, before, found = noise(2, 3, 401, 503, dtype=dtype), torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        given = image.clone().requires_grad_(dtype == torch.float32)
        result = CALLS[name](given, backend="cpu")
        found.append([result.detach()])
        if given.requires_grad:
            found[-1] += torch.autograd.grad(result.square().sum(), given)
    torch.set_num_threads(before)
    for other in found[1:]:
        for got, wanted in zip(other, found[0], strict=True):
            assert torch.equal(got, wanted)


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 3, 40, 51), (11, 77)), ((1, 30, 30), (64, 7))], ids=str
)
@pytest.mark.parametrize(("name", "antialias"), WAYS)
def test_gradients_equal_the_references(name, antialias, shape, size):
    found = []
    for which in ("cpu", "reference"):
        image = noise(*shape).requires_grad_()
        options = {"interpolation": name, "antialias": antialias, "backend": which}
        result = wk.resize(image, size, **options)
        found += torch.autograd.grad(result, image, noise(*result.shape, seed=3))
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_a_nan_in_the_gradient_only_reaches_pixels_that_were_read():
    image = torch.zeros(1, 1, 12, dtype=torch.float64, requires_grad=True)
    result = wk.resize(image, (1, 4), interpolation="area", backend="cpu")
    result.backward(torch.tensor([[[0.0, torch.nan, 0.0, 0.0]]]).double())
    assert image.grad is not None
    assert image.grad.isnan().flatten().tolist() == [3 <= k < 6 for k in range(12)]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_the_operator_passes_opcheck():
    for image in (noise(2, 3, 7, 9).float(), noise(1, 5, 6, dtype=torch.uint8)):
        image = image.requires_grad_(image.is_floating_point())
        for adjoint in (False, True)[: 1 + image.is_floating_point()]:
            options = [11, 5], "bicubic", True, [0.5, 4.5, 0.0, 5.0] if not adjoint else [], adjoint
            torch.library.opcheck(torch.ops.warpkit.cpu_resize, (image, *options))


HOSTILE = """
import torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
from tests.support.inputs import noise
from tests.resize.test_resize import WAYS
guard_what_is_made()
for dtype in (torch.float32, torch.uint8):
    for shape, sizes in (
        ((2, 3, 19, 37), ((5, 70), (33, 2))),
        ((1, 1, 1, 1), ((5, 33), (1, 1))),
        ((1, 4, 50, 3), ((5, 70), (1, 1))),
    ):
        image = noise(*shape, dtype=dtype)
        for given in (image, image.contiguous(memory_format=torch.channels_last)):
            for size in sizes:
                for name, antialias in WAYS:
                    leaf = guarded(given).requires_grad_(dtype == torch.float32)
                    result = wk.resize(leaf, size, interpolation=name, antialias=antialias,
                                       backend="cpu")
                    if dtype == torch.float32:
                        result.backward(guarded(torch.ones_like(result)))
                for name in ("bilinear", "bicubic", "area", "lanczos4", "bilinear_exact"):
                    for arithmetic in ("opencv5", "opencv5_ipp"):
                        wk.resize(guarded(given), size, interpolation=name, arithmetic=arithmetic)
                wk.resize(guarded(given), size, interpolation="lanczos", arithmetic="pillow")
"""


def test_nothing_is_read_or_written_outside_the_arrays():
    assert survives(HOSTILE)


def test_unsupported_tensors_are_rejected_with_a_reason():
    rule = ResizeRule("bilinear", True)
    assert backend.unsupported_reasons(torch.zeros(1, 2, 2), rule) == []
    assert backend.unsupported_reasons(torch.zeros(1, 2, 2, device="meta"), rule)
    with pytest.raises(ValueError, match="cpu: needs a CPU tensor, got meta"):
        wk.resize(torch.zeros(1, 2, 2, device="meta"), (3, 3), backend="cpu")
