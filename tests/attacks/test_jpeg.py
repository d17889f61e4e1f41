"""JPEG files on tensors: the bytes of Pillow, OpenCV and torchvision, and their gradient."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, features
from torch import Tensor
from torchvision import io as torchvision_io

from tests.support.allocations import allocated
from tests.support.any_size import any_size
from tests.support.inputs import noise
from tests.support.pillow_files import by_pillow
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline, jpeg, to_uint8
from warpkit.engine.cpu import jpeg as kernels
from warpkit.engine.definitions import jpeg as definition

SUBSAMPLINGS: tuple[Any, ...] = ("4:4:4", "4:2:2", "4:2:0")
FACTORS = {
    "4:4:4": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    "4:2:2": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "4:2:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
}
PHOTOGRAPHS = sorted((Path(__file__).parents[2] / "data/images").glob("*.png"))

pytestmark = pytest.mark.skipif(
    features.version("libjpeg_turbo") is None, reason="Pillow has another libjpeg"
)


def drawn(random: np.random.Generator) -> Tensor:
    """An image (C, H, W) of 1 to 70 pixels a side: noise, waves, 0 and 255, or ramps; some grey."""
    height, width = random.integers(1, 71, 2)
    shape = (3 if random.random() < 0.85 else 1, int(height), int(width))
    kind = random.integers(4)
    if kind == 0:
        image = random.integers(0, 256, shape)
    elif kind == 1:
        image = 255 * random.integers(0, 2, shape)
    else:
        y, x = np.mgrid[:height, :width]
        slopes = random.normal(0, 3 if kind == 2 else 0.4, (2, shape[0], 1, 1))
        phase = slopes[0] * y + slopes[1] * x
        image = 127.5 + 130 * np.sin(phase) if kind == 2 else 40 * phase + random.integers(0, 256)
    return torch.from_numpy(np.clip(image, 0, 255).astype(np.uint8))


def by_opencv(image: Tensor, quality: int, subsampling: str) -> Tensor:
    """The file of an image (C, H, W), uint8, written and read by OpenCV."""
    grey, options = len(image) == 1, [cv2.IMWRITE_JPEG_QUALITY, quality]
    options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FACTORS[subsampling]]
    bgr = np.ascontiguousarray(image.flip(0).permute(1, 2, 0).numpy())
    written = cv2.imencode(".jpg", bgr, options)[1]
    read = cv2.imdecode(written, cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR)
    return torch.from_numpy(read.reshape(bgr.shape)).permute(2, 0, 1).flip(0)


def by_torchvision(image: Tensor, quality: int) -> Tensor:
    """The file of an image (C, H, W), uint8, which torchvision writes in 4:2:0."""
    return torchvision_io.decode_jpeg(torchvision_io.encode_jpeg(image.contiguous(), quality))


@pytest.mark.filterwarnings("ignore:The image decoding and encoding:DeprecationWarning")
@pytest.mark.parametrize("seed", range(4))
def test_random_pictures_have_the_bytes_of_pillow_opencv_and_torchvision(seed: int):
    random = np.random.default_rng(seed)
    for n in range(2500):
        image, subsampling = drawn(random), SUBSAMPLINGS[n % 3]
        quality = int(random.integers(1, 101))
        found = jpeg(quality, subsampling=subsampling)(image[None])[0]
        case = n, quality, subsampling, image.shape
        assert torch.equal(found, by_pillow(image, quality, subsampling)), case
        assert torch.equal(found, by_opencv(image, quality, subsampling)), case
        if subsampling == "4:2:0":
            assert torch.equal(found, by_torchvision(image, quality)), case
        if n % 10 == 0:  # the definition decides
            qualities = torch.tensor([quality], dtype=torch.int32)
            by_definition = definition.through_file(image[None], qualities, subsampling)[0]
            assert torch.equal(by_definition, found), case


@pytest.mark.parametrize("file", PHOTOGRAPHS, ids=lambda file: file.stem)
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_photographs_have_pillows_bytes_at_all_qualities(file: Path, subsampling: Any):
    photograph = torch.from_numpy(np.array(Image.open(file).convert("RGB"))).permute(2, 0, 1)
    image = photograph[:, :131, :149]
    batch = image.expand(100, -1, -1, -1)
    found = jpeg(torch.arange(1, 101), subsampling=subsampling)(batch)
    for quality, one in enumerate(found, 1):
        assert torch.equal(one, by_pillow(image, quality, subsampling)), quality
    whole = jpeg(75, subsampling=subsampling)(photograph[None])[0]
    assert torch.equal(whole, by_pillow(photograph, 75, subsampling))
    assert torch.equal(jpeg(75, subsampling=subsampling)(photograph[None])[0], whole)


@pytest.mark.parametrize("quality", [1, 3, 10, 25])
def test_values_far_beyond_a_byte_saturate(quality: int):
    """Blocks that come back as far beyond 255 as a search of patterns of 0 and 255 finds."""
    generator = torch.Generator().manual_seed(quality)
    cosines = torch.tensor(definition.COSINES, dtype=torch.float64)
    weights = torch.randn(4000, 8, 8, generator=generator, dtype=torch.float64)
    blocks = (255 * (cosines.T @ weights @ cosines > 0)).byte()[:, None]
    qualities = torch.tensor([quality], dtype=torch.int32)
    steps = definition.steps_of(qualities)[0]
    waves = definition._times(cosines, blocks.int().sub(128).mT, 11).mT
    kept = definition.rounded(definition._times(cosines, waves, 15), steps[:, None])
    back = definition._times(cosines.T, kept, 11).mT
    largest = definition._times(cosines.T, back, 18).amax((1, 2, 3)) + 128
    best = largest.argsort(descending=True)[:50]
    assert largest[best[0]] > 255 + 100
    found = jpeg(quality)(blocks[best])
    for image, one in zip(blocks[best], found, strict=True):
        assert torch.equal(one, by_pillow(image, quality, "4:2:0"))


def test_types_grey_batches_and_qualities():
    images = noise(4, 3, 21, 18, dtype=torch.uint8)
    qualities = torch.tensor([1, 50, 99, 20])
    found = jpeg(qualities)(images)
    for n, quality in enumerate(qualities.tolist()):
        assert torch.equal(found[n : n + 1], jpeg(quality)(images[n : n + 1]))
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        floats = jpeg(qualities)((images.double() / 255).to(dtype))
        assert floats.dtype == dtype
        assert torch.equal((floats.double() * 255).round().byte(), found)
    strided = images.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1)
    assert torch.equal(jpeg(qualities)(strided), found)
    empty = torch.empty(0, 1, 5, 7, requires_grad=True)
    made = jpeg(50)(empty)
    assert torch.autograd.grad(made.sum(), empty)[0].shape == made.shape == (0, 1, 5, 7)


@pytest.mark.parametrize("quality", [10, 60, 95])
def test_the_gradient_of_grey_blocks_is_the_scaled_cosine_transform(quality: int):
    levels = noise(1, 1, 16, 24, dtype=torch.uint8, seed=quality)
    images = (levels.double() / 255).requires_grad_()
    push = noise(1, 1, 16, 24, seed=1) - 0.5
    (found,) = torch.autograd.grad(jpeg(quality)(images), images, push)
    steps = definition.steps_of(torch.tensor([quality]))[0][0].double().numpy()
    waves = np.array(definition.COSINES, dtype=np.int64)
    expected = np.zeros((16, 24))
    for y in range(0, 16, 8):
        for x in range(0, 24, 8):
            place = np.s_[y : y + 8, x : x + 8]
            block = levels[0, 0].numpy()[place].astype(np.int64) - 128
            turned = (block @ waves.T + (1 << 10)) >> 11
            quotient = ((waves @ turned + (1 << 14)) >> 15) / (8 * steps)
            slope = np.minimum(1, 0.1 + 1.8 * np.abs(quotient))
            kept = np.trunc(quotient + np.copysign(0.5, quotient)) * steps
            back = np.rint(128 + cv2.idct(kept))
            inside = (back >= 0) & (back <= 255)
            gradient = push[0, 0].numpy()[place] * inside
            expected[place] = cv2.idct(slope * cv2.dct(gradient))
    limit = TOLERANCE["jpeg gradient"]
    # where the exact transform ends within half a level of a clip, a mask may differ
    far = np.abs(found[0, 0].numpy() - expected) > limit
    assert far.reshape(2, 8, 3, 8).any((1, 3)).sum() <= 1


def test_without_the_slope_colours_are_means_and_bilinear(monkeypatch):
    """With slope 1 everywhere the cosines cancel, and torch's own functions say the rest."""
    monkeypatch.setattr(definition, "kept_share", torch.ones_like)
    levels = noise(1, 3, 32, 48, dtype=torch.uint8, seed=3).double().mul(0.2).add(100).round()
    images, push = (levels / 255).requires_grad_(), noise(1, 3, 32, 48, seed=4)
    matrix = torch.tensor(
        [[0.299, 0.587, 0.114], [-0.16874, -0.33126, 0.5], [0.5, -0.41869, -0.08131]]
    ).double()
    for subsampling, size in (("4:4:4", (1, 1)), ("4:2:2", (1, 2)), ("4:2:0", (2, 2))):
        quality = torch.tensor([90], dtype=torch.int32)
        made = definition.through_file(images, quality, subsampling)
        (found,) = torch.autograd.grad(made, images, push)
        planes = torch.einsum("dc,nchw->ndhw", matrix, images)
        small = F.avg_pool2d(planes[:, 1:], size)
        colours = F.interpolate(small, images.shape[2:], mode="bilinear")
        back = torch.einsum(
            "dc,nchw->ndhw", torch.linalg.inv(matrix), torch.cat((planes[:, :1], colours), 1)
        )
        (expected,) = torch.autograd.grad(back, images, push)
        limit = {"rtol": 0, "atol": TOLERANCE["jpeg colours"]}
        torch.testing.assert_close(found, expected, **limit)


def test_second_derivatives_are_those_of_a_linear_step():
    images = noise(1, 3, 9, 11, seed=5).requires_grad_()
    push = noise(1, 3, 9, 11, seed=6).requires_grad_()
    made = jpeg(40)(images)
    (first,) = torch.autograd.grad(made, images, push, create_graph=True)
    along = noise(1, 3, 9, 11, seed=7)
    (to_push,) = torch.autograd.grad((first * along).sum(), push)
    (transposed,) = torch.autograd.grad((jpeg(40)(images) * to_push).sum(), images)
    assert not transposed.equal(torch.zeros_like(transposed))
    (push * to_push).sum().backward()
    # <J' push, along> = <push, J along>
    product = (first * along).sum()
    torch.testing.assert_close(
        product, (push * to_push).sum(), rtol=TOLERANCE["jpeg adjoint"], atol=0
    )


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_a_flat_image_has_a_gradient_at_both_ends_too(level: float):
    images = torch.full((1, 3, 16, 16), level, requires_grad=True)
    (found,) = torch.autograd.grad(jpeg(30)(images)[0, 0, 3, 4], images)
    assert bool(found.any())


def test_the_kernels_gradient_is_the_definitions():
    random = np.random.default_rng(7)
    for n in range(200):
        levels, subsampling = drawn(random)[None], SUBSAMPLINGS[n % 3]
        quality = torch.tensor([int(random.integers(1, 101))], dtype=torch.int32)
        images = (levels.float() / 255).requires_grad_()
        push = torch.from_numpy(random.normal(size=levels.shape).astype(np.float32))
        by_kernel = jpeg(quality, subsampling=subsampling).function(images)
        (found,) = torch.autograd.grad(by_kernel, images, push, retain_graph=True)
        (again,) = torch.autograd.grad(by_kernel, images, push)
        assert torch.equal(found, again)
        by_definition = definition.through_file(images, quality, subsampling)
        (expected,) = torch.autograd.grad(by_definition, images, push)
        limit = TOLERANCE["jpeg kernels"] * max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(found, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("threads", [1, 3])
def test_bands_threads_and_strides_change_no_byte(threads: int):
    images = noise(2, 3, 541, 77, dtype=torch.uint8, seed=2)
    quality, before = torch.tensor([20, 90], dtype=torch.int32), torch.get_num_threads()
    wanted = definition.through_file(images, quality, "4:2:0")
    floats = (images.float() / 255).requires_grad_()
    push = noise(2, 3, 541, 77, dtype=torch.float32, seed=3)
    (slopes,) = torch.autograd.grad(definition.through_file(floats, quality, "4:2:0"), floats, push)
    found = []
    try:
        for count in (threads, 1):
            torch.set_num_threads(count)
            assert torch.equal(jpeg(quality)(images), wanted)
            assert torch.equal(jpeg(quality)(images.mT.contiguous().mT), wanted)
            made = jpeg(quality).function(floats)
            assert torch.equal((made * 255).round().byte(), wanted)
            found.append(torch.autograd.grad(made, floats, push)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)
    limit = TOLERANCE["jpeg kernels"] * float(slopes.abs().max())
    torch.testing.assert_close(found[0], slopes, rtol=0, atol=limit)


def test_a_gradient_holds_its_result_and_strips():
    images = noise(1, 3, 1080, 640, dtype=torch.float32, seed=2)
    quality, push = torch.tensor([75], dtype=torch.int32), torch.ones_like(images)
    size = images.numel() * images.element_size()
    assert allocated(lambda: kernels.forward("4:2:0", images, quality)) < 1.1 * size
    given = None, (push,), (images, quality), (True, False)
    assert allocated(lambda: kernels.backward("4:2:0", *given)) < 1.1 * size


def test_floats_between_two_levels_are_rounded_once():
    """k + 1/2 levels, and the floats beside: a product in float32 is rounded to k + 1/2 itself."""
    middle = ((torch.arange(255).double() + 0.5) / 255).float()
    ends = torch.tensor([0.0, 1.0])
    beside = [torch.nextafter(middle, end) for end in ends]
    images = torch.cat((middle, *beside, ends))[:, None, None, None].expand(-1, 1, 8, 8)
    levels = (images.double() * 255).round()
    assert not torch.equal((images * 255).round().double(), levels)
    # at quality 100 a flat block keeps its level
    assert torch.equal(jpeg(100).function(images), (levels / 255).float())


@pytest.mark.parametrize("step", [jpeg(60), Pipeline(jpeg(60))])
def test_floats_outside_0_to_1_saturate_as_in_to_uint8(step: Any):
    images = noise(2, 3, 19, 22, dtype=torch.float32, seed=11) * 1.5 - 0.25
    inside = images.clamp(0, 1)
    assert not torch.equal(images, inside)
    push = noise(2, 3, 19, 22, dtype=torch.float32, seed=12)
    found = []
    for given in (images, inside, images.double(), images):
        leaf = given.clone().requires_grad_()
        made = step(leaf)
        (slope,) = torch.autograd.grad(made, leaf, push.to(given.dtype))
        found.append((made.detach().float(), slope.float()))
    assert torch.equal(
        (found[0][0] * 255).round().byte(), jpeg(60)((to_uint8(inside) * 255).round().byte())
    )
    for values, slope in found[1:]:
        torch.testing.assert_close(values, found[0][0], rtol=0, atol=1e-7)
        limit = TOLERANCE["jpeg kernels"] * float(slope.abs().max())
        torch.testing.assert_close(slope, found[0][1], rtol=0, atol=limit)
    assert torch.equal(found[3][1], found[0][1])


def test_compiled_exported_and_batched(tmp_path: Path, fresh_compiler: object):
    step = jpeg(35)
    images = noise(3, 3, 19, 22, dtype=torch.uint8, seed=8)
    wanted = step(images)
    compiled = torch.compile(step.function, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(images), wanted)
    floats = (images.float() / 255).requires_grad_()
    push = noise(3, 3, 19, 22, dtype=torch.float32, seed=9)
    (plain,) = torch.autograd.grad(step.function(floats), floats, push)
    (traced,) = torch.autograd.grad(compiled(floats), floats, push)
    limit = {"rtol": 0, "atol": TOLERANCE["jpeg kernels"]}
    torch.testing.assert_close(traced, plain, **limit)
    several = torch.func.vmap(step.function)(images[:, None])
    assert torch.equal(several[:, 0], wanted)

    pipeline = Pipeline(step)

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return pipeline(x)

    dynamic = {"dynamic_shapes": ({0: torch.export.Dim("n")},)}
    with any_size():
        exported = torch.export.export(Model(), (images,), **dynamic)
    other = noise(5, 3, 19, 22, dtype=torch.uint8, seed=10)
    for batch in (images, other):
        levels = (exported.module()(batch) * 255).round().byte()
        assert torch.equal(levels, step(batch))


@pytest.mark.parametrize(
    ("channels", "subsampling"), [(1, "4:2:0"), *((3, subsampling) for subsampling in SUBSAMPLINGS)]
)
def test_onnx_graphs_have_the_same_integers(tmp_path: Path, channels: int, subsampling: Any):
    step = jpeg(35, subsampling=subsampling)
    images = noise(2, channels, 19, 22, dtype=torch.uint8, seed=8)

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return step(x)

    file = tmp_path / "jpeg.onnx"
    dynamic = ({0: torch.export.Dim("n")},)
    with any_size():
        torch.onnx.export(Model().eval(), (images,), file, dynamo=True, dynamic_shapes=dynamic)
    session = onnxruntime.InferenceSession(file)
    for batch in (images, noise(3, channels, 19, 22, dtype=torch.uint8, seed=9)):
        (found,) = session.run(None, {session.get_inputs()[0].name: batch.numpy()})
        assert np.array_equal(found, step(batch).numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jpeg(0), "jpeg: `quality` must be an integer from 1 to 100, got 0"),
        (lambda: jpeg(75.0), "jpeg: `quality` must be an integer from 1 to 100, got 75.0"),
        (lambda: jpeg(torch.tensor([1.0])), "jpeg: `quality` must be an integer from 1 to 100, or"),
        (lambda: jpeg(torch.tensor([True])), "one for each image, got torch.bool"),
        (lambda: jpeg(torch.tensor(5)), "one for each image, got a tensor of shape ()"),
        (lambda: jpeg(torch.tensor([5, 101])), "one for each image, got 101"),
        (lambda: jpeg(torch.tensor([5, 300])), "one for each image, got 300"),
        (
            lambda: jpeg(torch.tensor([5, 6]))(torch.zeros(3, 3, 8, 8)),
            "jpeg: `quality` must be one for each of 3 images, got 2 qualities",
        ),
        (lambda: jpeg(75, subsampling="4:1:1"), "`subsampling` must be one of '4:4:4', '4:2:2'"),
        (
            lambda: Pipeline(jpeg(75))(torch.zeros(1, 2, 8, 8)),
            "jpeg: `images` must be of shape (N, 3",
        ),
        (lambda: jpeg()(torch.full((1, 1, 8, 8), torch.nan)), "`images` must be numbers"),
    ],
)
def test_arguments_are_checked(call: Any, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
