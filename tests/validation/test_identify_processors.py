"""`identify` and `Pipeline.from_processor` agree, from behaviour and from a configuration.

`scripts/identify shipped` tests transformers' own classes, which these tests do not need."""

from __future__ import annotations

import pytest
import torch

from tests.support.processors import picture, tensor
from warpkit.attacks import Pipeline
from warpkit.validation import identify

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALF = (0.5,) * 3, (0.5,) * 3
SMALL = {"height": 96, "width": 96}
KINDS = {
    "CLIP": (
        {"size": {"shortest_edge": 112}, "crop_size": SMALL},
        {"rule": "shortest", "size": 112, "crop": (96, 96), "interpolation": "bicubic"},
    ),
    "ViT": (
        {"size": {"height": 96, "width": 80}},
        {"rule": "fixed", "size": (96, 80), "crop": None, "interpolation": "bilinear"},
    ),
    "ConvNext": (
        {"size": {"shortest_edge": 84}},
        {"rule": "shortest", "size": 96, "crop": (84, 84), "interpolation": "bicubic"},
    ),
    "Janus": (
        {"size": SMALL, "min_size": 1},
        {"rule": "longest", "size": 96, "pad": ("center", (122, 116, 104))},
    ),
    "Detr": (
        {"size": {"shortest_edge": 80, "longest_edge": 133}},
        {"rule": "shortest", "size": 80, "limit": 133, "interpolation": "bilinear"},
    ),
    "GLPN": ({"size_divisor": 32}, {"rule": "keep", "multiple": 32}),
    "Perceiver": (
        {"size": SMALL, "crop_size": {"height": 112, "width": 112}},
        {"rule": "fixed", "size": (96, 96), "before": ("crop", 96 / 112)},
    ),
}
LIBRARIES = ("pillow", "torchvision")
NAMED = {"ViT": HALF, "ConvNext": HALF, "Detr": IMAGENET}
"""Means and deviations by default, of some."""


@pytest.mark.parametrize(("kind", "library"), list(zip(KINDS, LIBRARIES * 4, strict=False)))
def test_a_processor_is_named_as_in_its_configuration(kind, library):
    options, expected = KINDS[kind]
    source = {"image_processor_type": f"{kind}ImageProcessor", **options}
    pipeline = Pipeline.from_processor(source, library=library)
    found = identify(lambda image: pipeline(image[None]), takes="tensor")
    assert found.known, str(found)
    for attribute, value in expected.items():
        assert getattr(found, attribute) == value, attribute
    assert found.arithmetic == library
    assert found.antialias is True
    image = tensor(picture((301, 417)))
    gain = torch.tensor(found.gain).reshape(-1, 1, 1)
    levels = (found.pipeline(image) - pipeline(image)) / gain
    assert levels.abs().max() < 0.002
    if NAMED.get(kind):
        mean, std = (torch.tensor(v) for v in NAMED[kind])
        torch.testing.assert_close(gain[:, 0, 0], 1 / (255 * std), rtol=1e-5, atol=0)
        torch.testing.assert_close(torch.tensor(found.offset), -mean / std, rtol=1e-5, atol=0)


def test_sides_with_a_minimum_are_detected():
    source = {"image_processor_type": "JanusImageProcessor", "size": SMALL, "min_size": 14}
    pipeline = Pipeline.from_processor(source, library="pillow")
    found = identify(lambda image: pipeline(image[None]), takes="tensor")
    assert (found.rule, found.size, found.interpolation) == ("longest", 96, "bicubic")
    assert found.arithmetic is None
    assert "on pictures of 10 to 1" in found.reasons[0]
    image = tensor(picture((301, 417)))
    torch.testing.assert_close(found.pipeline(image), pipeline(image), rtol=0, atol=1e-5)
