"""`Pipeline`: values of the real 8-bit program, gradients of its steps on floats."""

from __future__ import annotations

import io
import re
import warnings
from functools import partial

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_opencv import compares_with_opencv
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import (
    Pipeline,
    jpeg,
    normalize,
    on_floats,
    on_uint8,
    optimize_perturbation,
    reverse_channels,
    to_uint8,
)
from warpkit.engine.arithmetic.guarantees import installed_arithmetic

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
TURN = wk.rotation_matrix((10.0, 7.5), 20.0)
RESIZE = partial(wk.resize, size=(12, 14), arithmetic="pillow", interpolation="bicubic")
WARP = partial(wk.warp_affine, matrix=TURN, arithmetic=installed_arithmetic())


def smooth(*shape: int) -> Tensor:
    """Smooth images rather than noise: float32 in [0, 1]."""
    coarse = noise(*shape[:-2], 4, 5, dtype=torch.float32, seed=3)
    return wk.resize(coarse, shape[-2:], interpolation="bicubic").clamp(0, 1)


def program(image: np.ndarray) -> np.ndarray:
    """The attacked program on an 8-bit image (H, W, 3): OpenCV, Pillow, a file, NumPy."""
    turned = cv2.warpAffine(image, TURN.numpy(), (21, 16))
    small = Image.fromarray(turned).resize((14, 12), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=60)
    read = np.asarray(Image.open(file))[..., ::-1]
    return (read.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)


@compares_with_opencv
def test_values_have_the_real_programs_bits():
    images = smooth(2, 3, 16, 21)
    pipeline = Pipeline(WARP, RESIZE, jpeg(60), reverse_channels, normalize(MEAN, STD))
    got = pipeline(images.requires_grad_())
    levels = (images.detach() * 255).round().byte()
    for one, expected in zip(got.detach(), levels.permute(0, 2, 3, 1).numpy(), strict=True):
        assert np.array_equal(one.permute(1, 2, 0).numpy(), program(expected))
    assert torch.equal(pipeline(levels), got)  # the same program, given 8-bit images
    with torch.no_grad():
        assert torch.equal(pipeline(images), got)
    assert [step.takes for step in pipeline.steps] == ["uint8"] * 4 + ["floats"]


def test_the_gradient_is_the_steps_gradient_on_floats():
    images = smooth(2, 3, 16, 21).requires_grad_()
    cotangent = noise(2, 3, 12, 14, dtype=torch.float32, seed=5)
    pipeline = Pipeline(WARP, RESIZE, reverse_channels, normalize(MEAN, STD))
    (got,) = torch.autograd.grad((pipeline(images) * cotangent).sum(), images)
    scaled = (cotangent / torch.tensor(STD)[:, None, None]).flip(1)
    plain = RESIZE(WARP(images))
    (expected,) = torch.autograd.grad((plain * scaled).sum(), images)
    torch.testing.assert_close(got, expected, rtol=0, atol=TOLERANCE["reference float32"])
    doubles = images.detach().double().requires_grad_()  # Pillow's arithmetic has no float64
    (got,) = torch.autograd.grad((Pipeline(RESIZE)(doubles) * cotangent).sum(), doubles)
    (expected,) = torch.autograd.grad((RESIZE(images) * cotangent).sum(), images)
    torch.testing.assert_close(got, expected.double(), rtol=0, atol=TOLERANCE["reference float64"])


def test_a_step_is_differentiated_at_the_real_programs_values():
    """Not at unrounded floats, where a square, for example, has another slope."""
    image = torch.tensor([[[[0.4999]]]], requires_grad=True)
    value = Pipeline(on_floats(lambda x: x * x))(image)
    assert value.item() == float(np.square(np.float32(127 / 255)))
    (got,) = torch.autograd.grad(value, image)
    torch.testing.assert_close(
        got.item(), 2 * 127 / 255, rtol=0, atol=TOLERANCE["reference float32"]
    )
    twice = torch.autograd.grad(
        Pipeline(on_floats(lambda x: x**3))(image), image, create_graph=True
    )[0]
    torch.testing.assert_close(torch.autograd.grad(twice, image)[0].item(), 6 * 127 / 255)


PRESET = v2.Compose(
    [v2.Resize((9, 8)), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
)
STEPS = {
    "resize": (RESIZE, "uint8"),
    "opencv": (WARP, "uint8"),
    "flip": (reverse_channels, "uint8"),
    "lambda": (lambda x: (x - 0.45) / 0.2, "floats"),
    "raises on uint8": (v2.Normalize(MEAN, STD), "floats"),
    "pool": (lambda x: F.avg_pool2d(x, 2), "floats"),
    "module": (torch.nn.Conv2d(3, 2, 3), "floats"),
    "looks at the type": (v2.ToDtype(torch.float32, scale=True), "uint8"),
    "preset": (PRESET, "uint8"),
    "divides by 255": (lambda x: x.float() / 255, "uint8"),
    "floats of 0 to 255": (lambda x: x.float(), "uint8"),
}


@pytest.mark.parametrize("case", STEPS)
def test_whether_a_step_takes_bytes_or_floats_is_detected(case: str):
    step, takes = STEPS[case]
    images = smooth(2, 3, 16, 21).requires_grad_()
    levels = (images.detach() * 255).round().byte()
    pipeline = Pipeline(step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = pipeline(images)
    assert pipeline.steps[0].takes == takes
    real = step(levels) if takes == "uint8" else step(levels / 255)
    assert torch.equal(got, real / 255 if real.dtype == torch.uint8 else real)
    assert torch.autograd.grad(got.square().sum(), images)[0].abs().sum() > 0
    # black looks the same as bytes and as floats
    assert Pipeline(step)(images[:1].detach() * 0).isfinite().all()


def test_detecting_what_a_step_takes_draws_no_random_numbers():
    images, states = smooth(1, 3, 8, 8), []
    pipeline = Pipeline(lambda x: x + 0.1 * torch.rand(x.shape))
    for _ in range(2):  # detected in the first call, known in the second
        torch.manual_seed(0)
        pipeline(images)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_floats_stay_floats_until_to_uint8():
    images = smooth(1, 3, 8, 8).requires_grad_()
    half = on_floats(lambda x: x * 0.5)
    levels = (images.detach() * 255).round()
    assert torch.equal(Pipeline(half, reverse_channels)(images), levels.flip(1) / 255 * 0.5)
    rounded = Pipeline(half, to_uint8, reverse_channels)
    assert torch.equal(rounded(images) * 255, (levels / 255 * 0.5 * 255).round().flip(1))
    (got,) = torch.autograd.grad(rounded(images).sum(), images)
    assert torch.equal(got, torch.full_like(images, 0.5))
    assert torch.equal(Pipeline()(images), levels / 255)


def test_a_step_outside_torch_has_a_surrogate():
    def by_numpy(images: Tensor) -> Tensor:
        return torch.from_numpy(np.sqrt(images.numpy() / 255.0) * 255).round().byte()

    images = smooth(2, 1, 6, 7).requires_grad_()
    got = Pipeline(on_uint8(by_numpy, torch.sqrt))(images)
    levels = (images.detach() * 255).round().byte()
    assert torch.equal(got * 255, by_numpy(levels).float())
    (grad,) = torch.autograd.grad(got.sum(), images)
    expected = 0.5 / (levels / 255).sqrt()
    torch.testing.assert_close(grad, expected, rtol=0, atol=TOLERANCE["reference float32"])


class ToBytes(torch.nn.Module):
    """A step that only accepts 8-bit images."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != torch.uint8:
            raise RuntimeError("uint8 alone")
        return x // 2


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda x: x[:1], ("step 2 (lambda at test_pipeline.py:{line}) must be one that returns as "
         "many images as it is given, 2, got shape (1, 3, 8, 8)")),
        (lambda x: (x > 0.5).float(), ("must be differentiable on floats, or `on_uint8(step, "
         "surrogate)` with a surrogate, got no gradient")),
        (lambda x: x.detach(), "got no gradient"),
        (ToBytes(), ("step 2 (ToBytes) must be differentiable on floats, or `on_uint8(step, "
         "surrogate)` with a surrogate, got no gradient: of floats it raises ")),
        (lambda x: x.tolist(), "must be one that returns a tensor, got list"),
        (lambda x: x.sum(), "as it is given, 2, got shape ()"),
        (on_uint8(lambda x: x, lambda x: x[..., 1:]), ("must be of one shape of 8 bits and of "
         "floats, (2, 3, 8, 8), got (2, 3, 8, 7)")),
        (lambda x: x.long(), "must be one that returns floats of floats, got torch.int64"),
    ],
)  # fmt: skip
def test_an_invalid_step_is_named(step, text: str):
    images = smooth(2, 3, 8, 8)
    line = getattr(getattr(step, "__code__", None), "co_firstlineno", 0)
    with pytest.raises((ValueError, TypeError), match=re.escape(text.format(line=line))) as caught:
        optimize_perturbation(
            torch.mean, images, epsilon=0.1, steps=1, pipeline=Pipeline(reverse_channels, step)
        )
    assert str(caught.value).startswith("Pipeline: step 2 (")


class UnusualError(Exception):
    """An error that is not one of Python's own."""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("no"), ValueError),
        (KeyError("no"), RuntimeError),
        (UnusualError("no"), RuntimeError),
    ],
)
@pytest.mark.parametrize("wrap", [lambda step: step, on_floats, lambda step: on_uint8(step, step)])
def test_a_step_that_fails_is_named(raised, kind, wrap):
    def broken(images: Tensor) -> Tensor:
        raise raised

    with pytest.raises(kind, match=r"^Pipeline: step 2 \(broken\) raises ") as caught:
        Pipeline(reverse_channels, wrap(broken))(smooth(2, 3, 8, 8))
    assert caught.type is kind
    assert str(caught.value).endswith(f"{type(raised).__name__}: {raised}")
    assert caught.value.__cause__ is raised


def test_a_step_that_raises_in_torch_is_named_and_out_of_memory_keeps_its_type():
    layer = torch.nn.Conv2d(4, 1, 1)
    with pytest.raises(RuntimeError, match=r"^Pipeline: step 2 \(Conv2d\) raises RuntimeError: "):
        Pipeline(reverse_channels, layer)(smooth(2, 3, 8, 8))

    def full(images: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("no more")

    with pytest.raises(torch.OutOfMemoryError, match=r"^no more$"):
        Pipeline(full)(smooth(2, 3, 8, 8))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda x: x[:1], "must be one that returns as many images as it is given, 2, got shape"),
        (lambda x: x.detach(), "must be differentiable on floats"),
        (lambda x: None, "must be one that returns a tensor, got NoneType"),
    ],
    ids=["fewer images", "detached", "None"],
)
def test_a_plain_function_as_pipeline_is_checked_too(step, text: str):
    images = smooth(2, 3, 8, 8)
    text = re.escape(f"optimize_perturbation: `pipeline` {text}")
    with pytest.raises((ValueError, TypeError), match=f"^{text}"):
        optimize_perturbation(torch.mean, images, epsilon=0.1, steps=1, pipeline=step)


def test_values_in_an_unexpected_range_get_a_warning():
    images = smooth(1, 3, 8, 8)
    with pytest.warns(UserWarning, match=r"returns different images for 8 bits and floats"):
        Pipeline(lambda x: x.clamp(max=1))(images)
    with pytest.warns(UserWarning, match=r"returns nearly constant values: if it divides"):
        Pipeline(lambda x: x / 300 + float(x.dtype == torch.uint8))(images)
    with pytest.warns(UserWarning, match=r"the image has values from"):
        Pipeline()(images * 255)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(
            (Pipeline(lambda x: 255 - x)(images) * 255).round(),
            255 - (Pipeline()(images) * 255).round(),
        )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Pipeline(3), "Pipeline: `steps[0]` must be a function of images, got 3"),
        (lambda: Pipeline(ToBytes), "must be a function of images, got the class ToBytes"),
        (
            lambda: Pipeline()(smooth(3, 8, 8)),
            "`images` must be of shape (N, C, H, W), or a list of (C, H, W), got (3, ",
        ),
        (lambda: Pipeline()(torch.full((1, 3, 2, 2), torch.nan)), "`images` must be numbers"),
        (lambda: normalize(MEAN, (0.0, 1, 1)), "normalize: `std` must be positive numbers"),
        (lambda: normalize((), 1.0), "normalize: `mean` must be a number, a sequence"),
        (lambda: normalize(MEAN, STD)(smooth(1, 1, 8, 8)), "for images of 3 channels, got images"),
        (lambda: on_uint8(3), "on_uint8: `step` must be a function of images, got 3"),
        (lambda: on_floats(Pipeline), "on_floats: `step` must be a function of images"),
    ],
)
def test_arguments_are_checked(call, text: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
