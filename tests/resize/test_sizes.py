"""Sizes of `resize` by the shorter side and by a factor: those of torchvision and cv2."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional

import warpkit as wk
from tests.support.inputs import noise


@pytest.mark.parametrize("sides", [(480, 641), (641, 480), (37, 500), (50, 50), (1, 9)])
def test_a_shorter_side_is_torchvisions_and_a_factor_cv2s(sides):
    image = noise(1, *sides, dtype=torch.float32)
    array = np.zeros(sides, np.uint8)
    for shorter in (1, 17, 224, np.int64(99)):
        wanted = tuple(functional.resize(image, int(shorter)).shape[-2:])
        for _ in range(2):
            found = wk.resize(image, shorter)
            assert torch.equal(found, wk.resize(image, wanted)), shorter
    for factor in (0.5, 0.73, 1.5, 2.0):
        rows, columns = (round(side * factor) for side in sides)
        if min(rows, columns) < 1:
            continue
        assert cv2.resize(array, None, fx=factor, fy=factor).shape == (rows, columns)
        assert torch.equal(wk.resize(image, factor), wk.resize(image, (rows, columns)))
    box = [0, 0, 1, 1]
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (0, {}, "a shorter side of at least 1, got 0"),
        (-2.0, {}, "a factor that leaves at least one of"),
        (0.001, {}, "a factor that leaves at least one of"),
        (math.nan, {}, "a factor that leaves at least one of"),
        (0.5, {"box": box}, "with a box, got 0.5"),
        (5, {"box": box}, "with a box, got 5"),
    ]
    for size, options, text in wrong:
        with pytest.raises(ValueError, match=f"resize: `size` must be .*{text}"):
            wk.resize(image, size, **options)
    with pytest.raises(TypeError, match="two integers"):
        wk.resize(image, True)


def test_a_shorter_side_is_compiled_with_any_size():
    exported = torch.export.export(
        _Shorter(),
        (torch.zeros(1, 40, 60),),
        dynamic_shapes=({1: torch.export.Dim("h", min=30, max=50)},),
    )
    for height in (33, 50):
        image = noise(1, height, 60, dtype=torch.float32)
        assert torch.equal(exported.module()(image), wk.resize(image, 20))


class _Shorter(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return wk.resize(image, 20)
