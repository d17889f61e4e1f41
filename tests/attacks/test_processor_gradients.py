"""The gradient of `Pipeline.outputs`: that of the same steps on floats, by their differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support import whole_processors as whole
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.calls import Call
from warpkit.attacks.processors.kinds import KINDS
from warpkit.attacks.processors.program import Processor
from warpkit.types import Library

SIZES = ((61, 84), (90, 50))
KINDS_IN_SHORT = [
    kind
    for kind in whole.CHANGED
    if kind not in ("DepthPro", "Donut", "SmolVLM", "Aria", "MaskFormer", "DeepseekVLHybrid")
]
"""The large ones take seconds."""


def config(kind: str) -> dict[str, Any]:
    options = whole.configurations(kind)[0]
    return {"image_processor_type": f"{kind}ImageProcessor", **options}


def photographs() -> list[Tensor]:
    """In [0.2, 0.8], so that no filter overshoots [0, 1]."""
    return [(whole.image(size) / 255 * 0.6 + 0.2).requires_grad_() for size in SIZES]


def on_floats(processor: Processor, images: list[Tensor]) -> dict[str, Any]:
    """The outputs of the same steps on floats, which nothing rounds."""
    call = Call(SIZES, None, images[0].device)
    more = processor.of_call(call)
    pixels = {}
    for key in processor.programs:
        made = []
        for image in images:
            program = processor.program(key, **more, neighbours=1)
            made.append(program.function(image[None] * 255)[0])
        pixels[key] = made
    return processor.outputs(pixels, call)


def weighted(made: dict[str, Any]) -> Tensor:
    """A weighted sum of all pixels, in float64."""
    total = torch.zeros((), dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    for key in sorted(made):
        for part in made[key] if isinstance(made[key], list) else [made[key]]:
            if isinstance(part, Tensor) and part.is_floating_point():
                total = total + (part.double() * torch.randn(part.shape, generator=generator)).sum()
    return total


@pytest.mark.parametrize("library", ["torchvision", "pillow"])
@pytest.mark.parametrize("kind", KINDS_IN_SHORT)
def test_the_gradient_is_that_of_the_steps_on_floats(kind: str, library: Library):
    """They are affine, so that a difference of any length is exact up to float32's rounding."""
    if KINDS[kind].get("library", library) != library:
        pytest.skip("one library")
    pipeline = Pipeline.from_processor(config(kind), library=library)
    images = photographs()
    grads = torch.autograd.grad(weighted(pipeline.outputs(images)), images)
    assert all(grad.isfinite().all() and grad.abs().max() > 0 for grad in grads)
    directions = [grad / grad.abs().max() * 0.15 for grad in grads]
    assert pipeline.processor is not None
    with torch.no_grad():
        ends = [
            weighted(
                on_floats(
                    pipeline.processor,
                    [x + sign * d for x, d in zip(images, directions, strict=True)],
                )
            )
            for sign in (1, -1)
        ]
    slope = sum(float((g * d).sum()) for g, d in zip(grads, directions, strict=True))
    difference = float(ends[0] - ends[1]) / 2
    assert difference == pytest.approx(slope, rel=TOLERANCE["processors outputs slope"])


@pytest.mark.parametrize("kind", ["Qwen2VL", "LlavaOnevision", "Llama4", "Phi4Multimodal", "Detr"])
def test_asking_for_a_gradient_changes_no_value(kind: str):
    pipeline = Pipeline.from_processor(config(kind))
    images = photographs()
    made = pipeline.outputs(images)
    with torch.no_grad():
        wanted = pipeline.outputs(images)
    levels = [(image.detach() * 255).round().to(torch.uint8) for image in images]
    of_levels = pipeline.outputs(levels)
    for key, value in wanted.items():
        assert torch.equal(made[key], value)
        assert torch.equal(of_levels[key], value)
        assert made[key].requires_grad == (value.is_floating_point() and "mask" not in key)


def test_one_image_of_a_list_may_have_a_gradient():
    pipeline = Pipeline.from_processor(config("Qwen2VL"))
    first, second = photographs()
    made = pipeline.outputs([first, second.detach()])["pixel_values"]
    (grad,) = torch.autograd.grad(made.sum(), first)
    assert (grad != 0).any()


def test_a_pixel_of_a_tile_has_the_gradient_of_its_photograph():
    """By hand: 80 x 120 as 2 x 3 tiles of 40 without a resize, and the whole picture last."""
    options = {"crop_to_patches": True, "size": {"height": 40, "width": 40}, "image_std": [0.5] * 3}
    pipeline = Pipeline.from_processor({"image_processor_type": "GotOcr2ImageProcessor", **options})
    image = (whole.image((80, 120)) / 255).requires_grad_()
    made = pipeline.outputs([image])
    assert made["num_patches"].tolist() == [7]
    (grad,) = torch.autograd.grad(made["pixel_values"][4, 1, 3, 5], image)
    assert grad.nonzero().tolist() == [[1, 43, 45]]
    assert float(grad[1, 43, 45]) == pytest.approx(1 / 0.5, rel=1e-6)


@pytest.mark.parametrize("kind", ["Qwen2VL", "LlavaOnevision"])
def test_an_objective_of_several_photographs_falls(kind: str):
    """A few steps of an attack on what a model reads."""
    pipeline = Pipeline.from_processor(config(kind))
    images = [image.detach() for image in photographs()]
    deltas = [torch.zeros_like(image, requires_grad=True) for image in images]
    losses = []
    for _ in range(4):
        shown = [(x + d).clamp(0, 1) for x, d in zip(images, deltas, strict=True)]
        loss = pipeline.outputs(shown)["pixel_values"].square().mean()
        losses.append(loss.item())
        for delta, slope in zip(deltas, torch.autograd.grad(loss, deltas), strict=True):
            delta.data = (delta.data - 2 / 255 * slope.sign()).clamp(-8 / 255, 8 / 255)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
