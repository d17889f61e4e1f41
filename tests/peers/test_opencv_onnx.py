"""ONNX's examples of Resize, as in OpenCV's tests: point sampling, and antialiasing.

The facts are of its imgproc (resize_onnx) and ONNX's list of examples; the code is ours. Images
count from 1, row by row, so each entry of a result is a sum of a number for its row and one for its
column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import warpkit as wk


class Resize(NamedTuple):
    """A resize of an image of `size`: (H, W)."""

    interpolation: Any
    rule: str
    size: tuple[int, int]
    scale: tuple[float, float]
    row: list[float]
    """The result's first."""
    column: list[float]


def upwards(row: list[float], last: float) -> list[float]:
    """A row whose second half mirrors the steps of the first, up to `last`."""
    return [*row, *[last - value for value in reversed(row)]]


EIGHTH = [0.47265625, 0.76953125, 1.24609375, 1.875]
NINTH = [0.45507922, 1.39437963, 2.95130693, 5.20525069]
TENTH = [0.45507922, 0.64057922, 0.97157922, 1.42257922, 1.90732922]
BY_POINTS = {
    "downsample_scales_cubic": Resize(
        "bicubic",
        "half pixel",
        (4, 4),
        (0.8, 0.8),
        [1.47119141, 2.78125, 4.08251953],
        [1.47119141, 6.71142578, 11.91650391],
    ),
    "downsample_scales_cubic_align_corners": Resize(
        "bicubic",
        "align corners",
        (4, 4),
        (0.8, 0.8),
        [1.0, 2.39519159, 3.79038317],
        [1.0, 6.58076634, 12.16153268],
    ),
    "downsample_scales_linear": Resize(
        "bilinear", "half pixel", (2, 4), (0.6, 0.6), [2.6666665, 4.3333331], [2.6666665]
    ),
    "downsample_scales_linear_align_corners": Resize(
        "bilinear", "align corners", (2, 4), (0.6, 0.6), [1.0, 3.142857], [1.0]
    ),
    "downsample_scales_linear_half_pixel_symmetric": Resize(
        "bilinear", "symmetric", (1, 4), (1.0, 0.6), [1.6666667, 3.3333333], [1.6666667]
    ),
    "downsample_scales_nearest": Resize("nearest", "half pixel", (2, 4), (0.6, 0.6), [1, 3], [1]),
    "downsample_sizes_cubic": Resize(
        "bicubic",
        "half pixel",
        (4, 4),
        (0.75, 0.75),
        [1.63078704, 3.00462963, 4.37847222],
        [1.63078704, 7.12615741, 12.62152778],
    ),
    "downsample_sizes_linear_pytorch_half_pixel": Resize(
        "bilinear",
        "pytorch",
        (4, 4),
        (0.75, 0.25),
        [1.6666666],
        [1.6666666, 7.0, 12.333333],
    ),
    "tf_crop_and_resize": Resize(
        "bilinear", "crop", (4, 4), (0.75, 0.75), [7.6, 7.9, 8.2], [7.6, 8.8, 10.0]
    ),
    "upsample_scales_cubic": Resize(
        "bicubic",
        "half pixel",
        (4, 4),
        (2, 2),
        upwards(EIGHTH, 4.15625),
        upwards([0.47265625, 1.66015625, 3.56640625, 6.08203125], 13.7890625),
    ),
    "upsample_scales_cubic_align_corners": Resize(
        "bicubic",
        "align corners",
        (4, 4),
        (2, 2),
        [1.0, 1.34110787, 1.80029155, 2.32944606, 2.67055394, 3.19970845, 3.65889213, 4.0],
        [1.0, 2.36443149, 4.20116618, 6.31778426, 7.68221574, 9.79883382, 11.63556851, 13.0],
    ),
    "upsample_scales_cubic_asymmetric": Resize(
        "bicubic",
        "asymmetric",
        (4, 4),
        (2, 2),
        [1.0, 1.40625, 2.0, 2.5, 3.0, 3.59375, 4.0, 4.09375],
        [1.0, 2.625, 5.0, 7.0, 9.0, 11.375, 13.0, 13.375],
    ),
    "upsample_scales_linear": Resize(
        "bilinear", "half pixel", (2, 2), (2, 2), [1, 1.25, 1.75, 2], [1, 1.5, 2.5, 3]
    ),
    "upsample_scales_linear_align_corners": Resize(
        "bilinear",
        "align corners",
        (2, 2),
        (2, 2),
        [1.0, 1.33333333, 1.66666667, 2.0],
        [1.0, 1.66666667, 2.33333333, 3.0],
    ),
    "upsample_scales_linear_half_pixel_symmetric": Resize(
        "bilinear",
        "symmetric",
        (2, 2),
        (2.3, 2.94),
        [1.0, 1.15986395, 1.5, 1.84013605, 2.0],
        [1.0, 1.56521738, 2.43478262, 3.0],
    ),
    "upsample_scales_nearest": Resize(
        "nearest", "half pixel", (2, 2), (2, 3), [1, 1, 1, 2, 2, 2], [1, 1, 3, 3]
    ),
    "upsample_sizes_cubic": Resize(
        "bicubic",
        "half pixel",
        (4, 4),
        (2.25, 2.5),
        upwards(TENTH, 4.13065844),
        [*NINTH, 6.88975, *upwards(NINTH, 13.7795)[4:]],
    ),
    "upsample_sizes_nearest": Resize(
        "nearest",
        "half pixel",
        (2, 2),
        (3.5, 4),
        [1, 1, 1, 1, 2, 2, 2, 2],
        [1, 1, 1, 1, 3, 3, 3],
    ),
}


def counted(size: tuple[int, int]) -> torch.Tensor:
    return torch.arange(1.0, size[0] * size[1] + 1, dtype=torch.float64).reshape(1, *size)


def places(rule: str, length: int, scale: float, made: int, start: float) -> np.ndarray:
    """The source positions of `made` pixels along a side of `length`."""
    index = np.arange(made, dtype=float)
    whole = length * scale
    if rule == "align corners":
        return index * (length - 1) / (whole - 1) if made > 1 else index
    if rule == "asymmetric":
        return index / scale
    if rule == "crop":
        return start * (length - 1) + index * 0.2 * (length - 1) / (made - 1)
    if rule == "pytorch" and made == 1:
        return index
    shift = length / 2 * (1 - made / whole) if rule == "symmetric" else 0.0
    return shift + (index + 0.5) / scale - 0.5


@pytest.mark.parametrize("name", BY_POINTS)
def test_resizes_without_antialias_match_onnx(name: str):
    case = BY_POINTS[name]
    image = counted(case.size)
    y, x = (
        places(case.rule, case.size[axis], case.scale[axis], made, (0.4, 0.6)[axis])
        for axis, made in ((0, len(case.column)), (1, len(case.row)))
    )
    points = torch.from_numpy(np.stack(np.meshgrid(x, y), -1))
    out = wk.remap(image, points, interpolation=case.interpolation, border="replicate")[0]
    wanted = np.add.outer(np.array(case.column) - case.row[0], case.row)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=0, atol=1e-6)
    options: Any = {"interpolation": case.interpolation, "border": "replicate"}
    whole = wk.remap(image.to(torch.uint8), points, **options)[0]
    assert np.abs(whole.numpy() - wanted).max() <= 0.5 + 1e-6


def test_ties_of_nearest_go_to_the_even_pixel():
    """Halfway between the second and the third pixel, where ONNX rounds down."""
    points = torch.tensor([[[1 / 6, 0.0], [1.5, 0.0], [17 / 6, 0.0]]], dtype=torch.float64)
    out = wk.remap(counted((2, 4)), points, interpolation="nearest")
    assert out[0, 0].tolist() == [1, 3, 4]


AVERAGED: Any = {
    "downsample_scales_linear": (0.6, [2.875, 4.5], [2.875, 9.375]),
    "downsample_sizes_linear": (
        0.75,
        [2.3636363, 3.590909, 4.818182],
        [2.3636363, 7.2727275, 12.181818],
    ),
    "downsample_scales_cubic": (0.6, [2.5180721, 4.2858863], [2.5180721, 9.589329]),
    "downsample_sizes_cubic": (
        0.75,
        [1.7750092, 3.1200073, 4.4650054],
        [1.7750092, 7.1550016, 12.534994],
    ),
}


@pytest.mark.parametrize("name", AVERAGED)
def test_resizes_with_antialias_are_close_to_onnx(name: str):
    """Pillow's and torch's filters are not cut to whole pixels as ONNX's are."""
    scale, row, column = AVERAGED[name]
    size, options = (len(column), len(row)), {"interpolation": "bicubic"}
    if "linear" in name:
        options["interpolation"] = "bilinear"
    box = (0.0, 0.0, len(row) / scale, len(column) / scale)
    out = wk.resize(counted((4, 4)), size, box=box, **options)[0]  # pyright: ignore
    if box[2] == 4:
        kept = {"mode": options["interpolation"], "antialias": True}
        wanted = torch.nn.functional.interpolate(counted((4, 4))[None], size, **kept)[0, 0]
        torch.testing.assert_close(out, wanted, rtol=0, atol=1e-12)
    apart = np.abs(out.numpy() - (np.add.outer(np.array(column) - row[0], row))).max()
    assert 0.05 < apart < 0.4
