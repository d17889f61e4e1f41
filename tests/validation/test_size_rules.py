"""`identify` finds the rules of sizes of detectors, recognisers and vision-language models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.processors import picture
from tests.support.size_rules import RULES, smart_resize
from warpkit.validation import identify
from warpkit.validation.programs.geometry import Geometry


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_sizes_is_found(name):
    function, takes, expected = RULES[name]
    found = identify(function, takes=takes)
    assert found.known, str(found)
    for attribute, value in expected.items():
        assert getattr(found, attribute) == value, attribute
    assert found.compared >= 200_000
    for shape in ((301, 417), (530, 260)):
        image = picture(shape)
        tensor = torch.from_numpy(image).movedim(-1, 0)
        given = {"array": image, "pil": Image.fromarray(image), "tensor": tensor}[takes]
        wanted = torch.from_numpy(np.asarray(function(given)).copy()).double()
        wanted = wanted[0] if wanted.ndim == 4 else wanted
        wanted = wanted.movedim(-1, 0) if wanted.shape[-1] == 3 else wanted
        made = found.pipeline(tensor[None])[0].double()
        assert made.shape == wanted.shape
        gain = torch.tensor(found.gain, dtype=torch.float64).reshape(-1, 1, 1)
        assert float(((made - wanted) / gain).abs().max()) < 0.002


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_of_pixels_is_that_of_qwen(seed):
    generator = np.random.default_rng(seed)
    rule = Geometry("area", (3136, 200_704), multiple=28)
    for height, width in generator.integers(28, 1500, (200, 2)).tolist():
        wanted = smart_resize(height, width, 28, 3136, 200_704)
        assert rule.placement(height, width).size == wanted


def test_a_side_that_lacks_a_pixel_for_a_tenth_of_sizes_is_right():
    """lerobot's int(H / (H / 224)) is 223 for these."""
    function, takes, _ = RULES["lerobot"]
    geometry = identify(function, takes=takes).twin.geometry
    lacks = 0
    for height, width in [(h, h // 2) for h in range(100, 700)]:
        ratio = max(width / 224, height / 224)
        size = int(height / ratio), int(width / ratio)
        assert geometry.placement(height, width).size == size
        lacks += size[0] == 223
    assert 30 < lacks < 90
