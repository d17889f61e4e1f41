"""`Pipeline`: steps that expect the numbers of 8 bits, tuples of images, and several ends."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import warpkit as wk
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import (
    Pipeline,
    expectation,
    jpeg,
    normalize,
    on_floats,
    on_uint8,
    reverse_channels,
    to_uint8,
)
from warpkit.gradients import straight_through

CAFFE = torch.tensor([103.939, 116.779, 123.68])[:, None, None]
SMALL = partial(wk.resize, size=(6, 7), arithmetic="pillow")
LARGE = partial(wk.resize, size=(12, 14), arithmetic="pillow")


def photographs(*shape: int) -> Tensor:
    """Noise, float32 in [0, 1]."""
    return noise(*shape, dtype=torch.float32, seed=7)


def levels_of(images: Tensor) -> np.ndarray:
    """8-bit images as OpenCV and Pillow hold them: (N, H, W, C)."""
    return np.rint(images.detach().numpy() * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def by_pillow(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images after Pillow's own resize to (h, w): uint8 (N, C, h, w)."""
    made = [
        np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))
        for image in levels_of(images)
    ]
    return torch.from_numpy(np.stack(made).transpose(0, 3, 1, 2).copy())


# step, the same in numpy on 8-bit images, the derivative by the image in [0, 1]
NUMBERS = {
    "x / 127.5 - 1": (lambda x: x / 127.5 - 1, lambda x: x / 127.5 - 1, 2.0),
    "converts first": (lambda x: (x.float() - 127.5) / 127.5, lambda x: (x - 127.5) / 127.5, 2.0),
    "a mean for each channel": (
        lambda x: x.float() - CAFFE,
        lambda x: x - CAFFE.double().numpy().transpose(1, 2, 0),
        255.0,
    ),
    "mean and deviation": (lambda x: (x - 123.7) / 58.4, lambda x: (x - 123.7) / 58.4, 255 / 58.4),
    "divides and normalises": (
        lambda x: (x / 255 - 0.45) / 0.22,
        lambda x: (x / 255 - 0.45) / 0.22,
        1 / 0.22,
    ),
    "negative": (lambda x: (255 - x.float()) / 255, lambda x: (255 - x) / 255, -1.0),
    "floats, cropped": (lambda x: x.float()[..., 1:, 2:], lambda x: x[:, 1:, 2:], 255.0),
    "floats, padded": (lambda x: F.pad(x.float(), (1, 0)), None, 255.0),
    "floats, mirrored": (lambda x: x.float().flip(-1), lambda x: x[:, :, ::-1], 255.0),
    "unit, mirrored": (lambda x: x.float().flip(-1) / 255, lambda x: x[:, :, ::-1] / 255, 1.0),
    "given as such": (on_uint8(lambda x: x / 127.5 - 1), lambda x: x / 127.5 - 1, 2.0),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_a_step_of_the_numbers_of_bytes_gives_their_numbers_and_their_gradient(case: str):
    step, by_numpy, slope = NUMBERS[case]
    images = photographs(2, 3, 16, 21).requires_grad_()
    levels = levels_of(images)
    pipeline = Pipeline(step)
    if by_numpy is None:
        expected = np.pad(levels, ((0, 0), (0, 0), (1, 0), (0, 0))).astype(float)
    else:
        expected = by_numpy(levels.astype(float))
    expected = torch.from_numpy(expected.transpose(0, 3, 1, 2).copy())
    for _ in range(2):  # found out in the first call, known in the second
        got = pipeline(images)
        error = (got.detach() - expected).abs().max() / expected.abs().max()
        assert error < TOLERANCE["reference float32"]
        of_bytes = pipeline(torch.from_numpy(levels.transpose(0, 3, 1, 2).copy()))
        assert torch.equal(of_bytes, got)
        (grad,) = torch.autograd.grad(got.sum(), images)
        seen = torch.zeros_like(grad)
        seen[..., 1 if "cropped" in case else 0 :, 2 if "cropped" in case else 0 :] = slope
        torch.testing.assert_close(grad, seen, rtol=TOLERANCE["reference float32"], atol=0)
    assert [step.takes for step in pipeline.steps] == ["uint8"]


FLOATS = {
    "normalise": lambda x: (x - 0.45) / 0.2,
    "from -1 to 1": lambda x: x * 2.0 - 1,
    "gamma": lambda x: x**2.2,
    "half": lambda x: x * 0.5,
    "window": lambda x: x * torch.linspace(0, 1, 21),
    "noise": lambda x: x + 0.1 * torch.rand(x.shape),
    "differs by the type": lambda x: x * 0.3 + (0.5 if x.dtype == torch.uint8 else 0.1),
}


@pytest.mark.parametrize("case", FLOATS)
def test_a_step_of_numbers_in_the_unit_range_gets_floats(case: str):
    images = photographs(2, 3, 16, 21)
    levels = torch.from_numpy(levels_of(images)).permute(0, 3, 1, 2)
    pipeline = Pipeline(FLOATS[case])
    torch.manual_seed(0)
    got = pipeline(images)
    torch.manual_seed(0)
    assert torch.equal(got, FLOATS[case](levels / 255))
    assert [step.takes for step in pipeline.steps] == ["floats"]


def test_a_step_with_constants_in_levels_has_their_gradient():
    def contrast(x: Tensor) -> Tensor:
        made = ((x.float() - 128) * 1.5 + 128).clamp(0, 255)
        return made.round().byte() if x.dtype == torch.uint8 else made

    images = photographs(1, 3, 16, 21).requires_grad_()
    levels = levels_of(images).astype(float)
    raw = (levels - 128) * 1.5 + 128
    for _ in range(2):
        got = Pipeline(contrast)(images)
        expected = np.rint(raw.clip(0, 255)).transpose(0, 3, 1, 2)
        assert np.array_equal(np.rint(got.detach().numpy() * 255), expected)
        (grad,) = torch.autograd.grad(got.sum(), images)
        inside = torch.from_numpy(((raw >= 0) & (raw <= 255)).transpose(0, 3, 1, 2).copy())
        torch.testing.assert_close(
            grad, 1.5 * inside.float(), rtol=0, atol=TOLERANCE["reference float32"]
        )


def two_sizes(x: Tensor) -> tuple[Tensor, Tensor]:
    return SMALL(x), LARGE(x)


def test_a_step_takes_the_images_of_a_tuple_as_arguments():
    images = photographs(2, 3, 24, 21).requires_grad_()
    small, large = by_pillow(images, (6, 7)).float(), by_pillow(images, (12, 14)).float()
    both = Pipeline(two_sizes)

    def mean(a: Tensor, b: Tensor) -> Tensor:
        a = F.interpolate(a, scale_factor=2)
        return a // 2 + b // 2 if a.dtype == torch.uint8 else a / 2 + b / 2

    joined = Pipeline(two_sizes, mean)
    rounded = Pipeline(
        on_floats(lambda x: (x / 2, 1 - x)), to_uint8, lambda a, b: torch.cat((a, b), 1)
    )
    levels = torch.from_numpy(levels_of(images)).permute(0, 3, 1, 2)
    for _ in range(2):
        got = both(images)
        assert isinstance(got, tuple)
        assert [torch.equal((x * 255).round(), y) for x, y in zip(got, (small, large), strict=True)]
        total = joined(images)
        expected = large // 2 + F.interpolate(small // 2, scale_factor=2)
        assert torch.equal((total * 255).round(), expected)
        (grad,) = torch.autograd.grad(total.sum(), images)
        floats = images.detach().requires_grad_()
        plain = LARGE(floats) / 2 + F.interpolate(SMALL(floats), scale_factor=2) / 2
        (wanted,) = torch.autograd.grad(plain.sum(), floats)
        torch.testing.assert_close(grad, wanted, rtol=0, atol=TOLERANCE["reference float32"])
        pair = (levels / 255 / 2, 1 - levels / 255)
        expected = torch.cat([(x * 255).round() for x in pair], 1)  # half to even in both
        assert torch.equal((rounded(images) * 255).round(), expected)
        assert torch.autograd.grad(rounded(images).sum(), images)[0].eq(-0.5).all()


def test_an_image_without_a_gradient_may_stand_beside_one():
    images = photographs(2, 3, 8, 9).requires_grad_()
    mask = on_floats(lambda x: (x, (x > 0.5).float()))
    got = Pipeline(mask, lambda x, seen: x * seen)(images)
    levels = torch.from_numpy(levels_of(images)).permute(0, 3, 1, 2) / 255
    assert torch.equal(got, levels * (levels > 0.5))
    (grad,) = torch.autograd.grad(got.sum(), images)
    assert torch.equal(grad, (levels > 0.5).float())


def test_a_picture_with_bytes_may_stand_beside_floats():
    """As in a program: a mask of floats, and the image that it is laid over."""
    images = photographs(2, 3, 8, 9).requires_grad_()

    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x[:, :1].float() / (255 if x.dtype == torch.uint8 else 1)

    def join(x: Tensor, mask: Tensor) -> Tensor:
        made = x.float() * mask
        return made.round().byte() if x.dtype == torch.uint8 else made

    levels = torch.from_numpy(levels_of(images)).permute(0, 3, 1, 2).float()
    for _ in range(2):
        pipeline = Pipeline(split, join, reverse_channels)
        got = pipeline(images)
        mask = levels[:, :1] / 255
        assert torch.equal((got * 255).round(), (levels * mask).round().flip(1))
        (grad,) = torch.autograd.grad(got.sum(), images)
        expected = mask.expand(-1, 3, -1, -1).clone()
        expected[:, :1] += levels.sum(1, keepdim=True) / 255
        torch.testing.assert_close(grad, expected, rtol=0, atol=TOLERANCE["reference float32"])
        assert [step.takes for step in pipeline.steps] == ["uint8"] * 3


class Counted:
    """A step that counts its calls."""

    def __init__(self, function) -> None:
        self.function, self.calls = function, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.function(x)


def test_several_ends_share_the_steps_before_them():
    images = photographs(2, 3, 24, 21).requires_grad_()
    first = Counted(reverse_channels)
    pipeline = Pipeline(
        first,
        {
            "small": SMALL,
            224: Pipeline(LARGE, normalize([0.5], [0.25])),
            "bytes": to_uint8,
            "tuple": two_sizes,
            "deep": Pipeline({"once": lambda x: x, "more": Pipeline(SMALL, {"end": LARGE})}),
        },
    )
    pipeline(images)  # finds out what they take
    swapped = images.detach().flip(1)
    small, large = (by_pillow(swapped, s).float() / 255 for s in ((6, 7), (12, 14)))
    for _ in range(2):
        first.calls = 0
        got = pipeline(images)
        assert first.calls == 2  # on 8 bits, and on floats for the gradient
        assert list(got) == ["small", 224, "bytes", "tuple", "deep"]
        assert torch.equal(got["small"], small)
        assert torch.equal(got[224], (large - 0.5) / 0.25)
        assert torch.equal(got["bytes"], (swapped * 255).round() / 255)
        assert [torch.equal(x, y) for x, y in zip(got["tuple"], (small, large), strict=True)]
        assert torch.equal(got["deep"]["once"], got["bytes"])
        assert got["deep"]["more"]["end"].shape == (2, 3, 12, 14)
        (grad,) = torch.autograd.grad(got["small"].sum() + got[224].sum(), images)
        floats = images.detach().requires_grad_()
        total = SMALL(floats).sum() + LARGE(floats).sum() * 4
        (wanted,) = torch.autograd.grad(total, floats)
        torch.testing.assert_close(grad, wanted, rtol=0, atol=TOLERANCE["reference float32"])
    levels = torch.from_numpy(levels_of(images)).permute(0, 3, 1, 2)
    assert torch.equal(pipeline(levels)["small"], small)
    assert pipeline.ends == ("small", 224, "bytes", "tuple", "deep")
    assert Pipeline(SMALL).ends == ()


def test_an_objective_gets_the_ends():
    images = photographs(1, 3, 24, 21).requires_grad_()
    pyramid = Pipeline({"small": SMALL, "large": LARGE})

    def objective(ends: dict[str, Tensor]) -> Tensor:
        return ends["small"].mean() + ends["large"].mean()

    matrices = torch.eye(2, 3).expand(2, 2, 3)
    whole = expectation(objective, images, matrices, pipeline=pyramid)
    parts = expectation(objective, images, matrices, pipeline=pyramid, chunk=1)
    expected = sum(float(by_pillow(images, s).double().mean()) for s in ((6, 7), (12, 14))) / 255
    for value in (whole, parts):
        assert abs(float(value.detach()) - expected) < TOLERANCE["reference float32"]
        (grad,) = torch.autograd.grad(value, images)
        assert grad.sum() == pytest.approx(2, abs=TOLERANCE["reference float32"])


def test_a_pipeline_is_a_step_of_another():
    images = photographs(2, 3, 24, 21).requires_grad_()
    inner = Counted(SMALL)
    pipeline = Pipeline(reverse_channels, Pipeline(inner, to_uint8), normalize([0.5], [0.25]))
    pipeline(images)
    inner.calls = 0
    expected = (by_pillow(images.detach().flip(1), (6, 7)).float() / 255 - 0.5) / 0.25
    assert torch.equal(pipeline(images), expected)
    assert inner.calls == 2


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Pipeline({}), "`steps[0]` must be a dict of steps, with at least one end, got an"),
        (
            lambda: Pipeline({"a": SMALL}, SMALL),
            "`steps[0]` must be a function of images: only the",
        ),
        (
            lambda: Pipeline(Pipeline({"a": SMALL}), SMALL),
            "`steps[0]` must be a function of images: only the last step may have several ends",
        ),
        (lambda: Pipeline({"a": 3}), "`steps[0]['a']` must be a function of images, got 3"),
        (
            lambda: Pipeline({"a": {"b": SMALL}}),
            "`steps[0]['a']` must be a function of images, got",
        ),
    ],
)
def test_ends_are_checked(make, text: str):
    with pytest.raises((TypeError, ValueError), match="^" + re.escape(f"Pipeline: {text}")):
        make()


@pytest.mark.parametrize(
    ("pipeline", "text"),
    [
        (Pipeline({"a": SMALL, "b": lambda x: x[:1]}), "step 1, end 'b' (lambda at"),
        (Pipeline({"a": Pipeline(SMALL, lambda x: x[:1])}), "step 1, end 'a': step 2 (lambda at"),
        (Pipeline(two_sizes, SMALL), "step 2 (resize) raises TypeError: "),
        (Pipeline(lambda x: (x, 3)), "a tensor, or a tuple of tensors, got a tuple with int"),
        (
            Pipeline(lambda x: (x, x) if x.dtype == torch.uint8 else (x, x, x)),
            "must be one that returns as many images of floats as of 8 bits, 2, got 3",
        ),
    ],
)
def test_a_step_of_several_images_is_named(pipeline: Pipeline, text: str):
    with pytest.raises((TypeError, ValueError), match=re.escape(text)) as caught:
        pipeline(photographs(2, 3, 8, 9).requires_grad_())
    assert str(caught.value).startswith("Pipeline: step ")


def allocated(function, images: Tensor) -> int:
    """The bytes that the value and the gradient allocate, all together."""
    images = images.detach().requires_grad_()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        torch.autograd.grad(function(images).sum(), images)
    events = record.profiler.kineto_results.events() if record.profiler else []
    return sum(max(e.nbytes(), 0) for e in events if e.name() == "[memory]")


def test_a_pipeline_allocates_no_more_than_the_same_steps_by_hand():
    """The rounding and its gradient took twelve images more, and five times the time."""

    def by_hand(images: Tensor) -> Tensor:
        with torch.no_grad():
            value = SMALL((images * 255).round().clamp(0, 255).byte())
        return straight_through(value / 255, SMALL(images))

    images, pipeline = photographs(2, 3, 240, 320), Pipeline(SMALL)
    image = images.detach().requires_grad_()
    grads = [torch.autograd.grad(f(image).sum(), image)[0] for f in (pipeline, by_hand)]
    torch.testing.assert_close(*grads, rtol=0, atol=TOLERANCE["reference float32"])
    assert torch.equal(pipeline(images), by_hand(images))
    assert allocated(pipeline, images) <= 1.1 * allocated(by_hand, images)


def test_pixels_that_are_not_finite_have_no_gradient_and_saturate():
    images = torch.tensor([[[[0.25, torch.inf, -torch.inf]]]], requires_grad=True)
    for _ in range(2):
        with pytest.warns(UserWarning, match="has values from -inf to inf"):
            got = Pipeline(lambda x: x)(images)
        assert torch.equal(got * 255, torch.tensor([[[[64.0, 255.0, 0.0]]]]))
        assert torch.autograd.grad(got.sum(), images)[0].tolist() == [[[[1.0, 0.0, 0.0]]]]


def test_derivatives_of_all_kinds_pass_the_rounding():
    images = photographs(1, 3, 8, 9).double()
    pipeline = Pipeline(reverse_channels, on_floats(lambda x: x**3))
    levels = (images * 255).round() / 255
    first = torch.func.grad(lambda x: pipeline(x).sum())(images)
    torch.testing.assert_close(first, 3 * levels**2, rtol=0, atol=TOLERANCE["reference float64"])
    tangent = noise(1, 3, 8, 9, seed=2)
    _, along = torch.func.jvp(pipeline, (images,), (tangent,))
    expected = (3 * levels**2 * tangent).flip(1)
    torch.testing.assert_close(along, expected, rtol=0, atol=TOLERANCE["reference float64"])
    image = images.clone().requires_grad_()
    (grad,) = torch.autograd.grad(pipeline(image).sum(), image, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), image)
    torch.testing.assert_close(second, 6 * levels, rtol=0, atol=TOLERANCE["reference float64"])


def test_what_inference_mode_found_out_serves_training():
    pipeline = Pipeline(jpeg(75), lambda x: x / 127.5 - 1)
    images = photographs(1, 3, 16, 16)
    with torch.inference_mode():
        value = pipeline(images)
    got = pipeline(images.requires_grad_())
    assert torch.equal(got, value)
    assert torch.autograd.grad(got.sum(), images)[0].abs().sum() > 0
