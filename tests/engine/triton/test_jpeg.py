"""JPEG files and their gradient by the CUDA kernels, against the definition."""

from __future__ import annotations

import pytest
import torch

from tests.support.cuda_comparison import DEVICE, mark_all, quiet_interpreter  # noqa: F401
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.engine.definitions import jpeg as definition
from warpkit.engine.operators.jpeg import FILE

CASES = [
    *(("4:2:0", 3, size) for size in ((17, 37), (16, 16), (3, 4), (1, 5))),
    *(("4:2:2", 3, size) for size in ((9, 21), (2, 3))),
    ("4:4:4", 3, (9, 18)),
    ("4:2:0", 1, (9, 18)),
]
"""Odd sizes, whole blocks, and colours of two columns or less, which are repeated."""
QUALITIES = torch.tensor([3, 90], dtype=torch.int32)


@pytest.mark.parametrize(("subsampling", "channels", "size"), CASES)
def test_files_have_the_definitions_integers_and_gradient(subsampling, channels, size):
    images = noise(2, channels, *size, dtype=torch.uint8, seed=sum(size)).to(DEVICE)
    quality = QUALITIES.to(DEVICE)
    wanted = definition.through_file(images, quality, subsampling)
    for _ in range(2):
        assert torch.equal(FILE(subsampling, images, quality, device="triton"), wanted)
    floats = (images.float() / 255).requires_grad_()
    push = noise(2, channels, *size, dtype=torch.float32, seed=1).to(DEVICE)
    made = FILE(subsampling, floats, quality, device="triton")
    assert torch.equal(made, definition.through_file(floats, quality, subsampling))
    found, again = (torch.autograd.grad(made, floats, push, retain_graph=True) for _ in range(2))
    assert torch.equal(found[0], again[0])
    made = definition.through_file(floats, quality, subsampling)
    (expected,) = torch.autograd.grad(made, floats, push)
    limit = TOLERANCE["jpeg kernels"] * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(found[0], expected, rtol=0, atol=limit)


def test_levels_beyond_a_byte_strides_and_float64():
    """Patterns of 0 and 255 at quality 1 come back far beyond both ends."""
    images = 255 * noise(2, 16, 20, 3, dtype=torch.uint8, seed=4).to(DEVICE).gt(127).byte()
    images, quality = images.permute(0, 3, 1, 2), torch.ones(2, dtype=torch.int32, device=DEVICE)
    wanted = definition.through_file(images, quality, "4:2:0")
    assert torch.equal(FILE("4:2:0", images, quality, device="triton"), wanted)
    doubles = (images.double() / 255).requires_grad_()
    made, push = FILE("4:2:0", doubles, quality, device="triton"), wanted.double()
    (found,) = torch.autograd.grad(made, doubles, push)
    expected = definition.gradient(doubles, quality, "4:2:0", push)
    assert torch.equal(found, expected)


def test_floats_between_two_levels_and_empty_batches():
    middle = ((torch.arange(0, 255, 5).double() + 0.5) / 255).float()
    beside = torch.nextafter(middle, torch.tensor(0.0))
    images = torch.cat((middle, beside))[:, None, None, None].expand(-1, 1, 1, 1).to(DEVICE)
    quality = torch.full((len(images),), 100, dtype=torch.int32, device=DEVICE)
    levels = (images.double() * 255).round()
    found = FILE("4:4:4", images, quality, device="triton")
    assert torch.equal(found, (levels / 255).float())
    empty = torch.empty(0, 3, 5, 7, device=DEVICE, requires_grad=True)
    made = FILE("4:2:0", empty, quality[:0], device="triton")
    assert torch.autograd.grad(made.sum(), empty)[0].shape == made.shape == (0, 3, 5, 7)


def test_the_tables_are_those_of_all_qualities():
    """One picture a quality: every step of both tables rounds its coefficient."""
    images = noise(1, 3, 8, 8, dtype=torch.uint8, seed=9).expand(20, -1, -1, -1).to(DEVICE)
    for first in (1, 41, 81):
        quality = torch.arange(first, first + 20, dtype=torch.int32, device=DEVICE)
        found = FILE("4:4:4", images, quality, device="triton")
        assert torch.equal(found, definition.through_file(images, quality, "4:4:4"))


mark_all(globals())
