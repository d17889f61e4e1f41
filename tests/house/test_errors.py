"""The full text of every error: function, argument, wanted, got."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import warpkit as wk
from warpkit.engine import backends as kernels
from warpkit.engine.backends import BACKENDS
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.rules import SamplingRule

IMAGE = torch.zeros(2, 3, 4, 5)
EYE = torch.eye(2, 3)
TYPES = "float16, bfloat16, float32, float64, uint8, int16, uint16, with 'nearest' also bool, int8, int32, int64, uint32, uint64"
META = torch.zeros(2, 3, device="meta")

WARP = [
    (
        {"image": np.zeros((3, 4, 5))},
        TypeError,
        "`image` must be a tensor of shape (..., C, H, W), got ndarray (torch.from_numpy, then permute(2, 0, 1) where it is (H, W, C))",
    ),
    (
        {"image": IMAGE.bool(), "interpolation": "bicubic"},
        ValueError,
        "`interpolation` must be 'nearest' for torch.bool: labels have no mean (convert them to floats for one), got 'bicubic'",
    ),
    (
        {"image": IMAGE.cfloat()},
        TypeError,
        f"`image` must be of one of the types {TYPES}, got torch.c",
    ),
    (
        {"image": IMAGE.int(), "interpolation": "nearest", "antialias": 2},
        ValueError,
        "`antialias` must be False for torch.int32: labels have no mean (convert them to floats for one), got 2",
    ),
    (
        {"image": [IMAGE, IMAGE]},
        TypeError,
        "`image` must be a tensor of shape (..., C, H, W), got list (stack them, torch.stack, where they are of one size, or loop)",
    ),
    ({"image": IMAGE[0, 0]}, ValueError, "`image` must be of shape (..., C, H, W), got (4, 5)"),
    (
        {"image": IMAGE[..., :0]},
        ValueError,
        "`image` must be at least one channel and one pixel a side, got (2, 3, 4, 0)",
    ),
    (
        {"matrix": torch.eye(2)},
        ValueError,
        "`matrix` must be of shape (..., 2, 3) or (..., 3, 3), got (2, 2)",
    ),
    (
        {"matrix": "turn"},
        TypeError,
        "`matrix` must be a number, a sequence of numbers, an array or a",
    ),
    ({"matrix": [[1, 0], [0, 1, 2]]}, ValueError, "`matrix` must be a regular array, got items of"),
    (
        {"matrix": [[1, 0, 0], [5]]},
        ValueError,
        "`matrix` must be a regular array, got items of the",
    ),
    (
        {"matrix": np.array([[1, 0, 0], [0, "a", 0]], object)},
        TypeError,
        "`matrix` must be of a number type that torch has, got object",
    ),
    (
        {"matrix": [EYE[0], META[0]]},
        ValueError,
        "`matrix` must be on cpu, where its first item is, got meta",
    ),
    ({"matrix": EYE.cfloat()}, TypeError, "`matrix` must be real numbers, got torch.complex64"),
    ({"matrix": META}, ValueError, "`matrix` must be on cpu, where the image is, got meta"),
    (
        {"matrix": EYE.expand(3, 2, 3)},
        ValueError,
        "the batch dimensions of `image` and `matrix` must broadcast, got image (2,), matrix (3,)",
    ),
    (
        {"matrix": [[1, 0, 0], [0, 1, 0], [0, 0.1, 1]]},
        ValueError,
        "`matrix` must be affine, with the last row (0, 0, 1); warp_perspective takes any, got [0.0, 0.1, 1.0]",
    ),
    (
        {"matrix": torch.tensor([np.eye(3).tolist(), [[1, 0, 0], [0, 1, 0], [0, 0, 2.0]]])},
        ValueError,
        "`matrix` must be affine, with the last row (0, 0, 1); warp_perspective takes any, got [0.0, 0.0, 2.0] at 1",
    ),
    (
        {"size": torch.zeros(4, 5)},
        TypeError,
        "`size` must be (H, W), two integers of at least 1, got a tensor of shape (4, 5)",
    ),
    ({"size": 7}, TypeError, "`size` must be (H, W), two integers of at least 1, got 7"),
    (
        {"size": (4, 5, 6)},
        TypeError,
        "`size` must be (H, W), two integers of at least 1, got (4, 5, 6)",
    ),
    (
        {"size": (4.0, 5)},
        TypeError,
        "`size` must be (H, W), two integers of at least 1, got (4.0, 5)",
    ),
    ({"size": b"ab"}, TypeError, "`size` must be (H, W), two integers of at least 1, got b'ab'"),
    ({"size": (0, 5)}, ValueError, "`size` must be (H, W), two integers of at least 1, got (0, 5)"),
    (
        {"size": (4, -5)},
        ValueError,
        "`size` must be (H, W), two integers of at least 1, got (4, -5)",
    ),
    (
        {"interpolation": "cubic"},
        ValueError,
        "`interpolation` must be one of 'nearest', 'bilinear', 'bicubic', 'lanczos4', 'spline3', 'spline5', got 'cubic'",
    ),
    (
        {"border": "mirror"},
        ValueError,
        "`border` must be one of 'constant', 'replicate', 'reflect', 'reflect_101', 'wrap', "
        "'transparent', 'zeros', 'border', got 'mirror'",
    ),
    (
        {"border": np.array(["wrap", "wrap"])},
        ValueError,
        "`border` must be one of 'constant', 'replicate', 'reflect', 'reflect_101', 'wrap', "
        "'transparent', 'zeros', 'border', got array(['wrap', 'wrap']",
    ),
    (
        {"border": "reflection"},
        ValueError,
        "`border` must be 'reflect' (edge repeated: torch's reflection with align_corners=False) or "
        "'reflect_101' (edge once: with align_corners=True), got 'reflection'",
    ),
    (
        {"border_value": [1.0, 2.0]},
        ValueError,
        "`border_value` must be a number, of shape (3,) or (*batch, 3) for the batch (2,), got shape",
    ),
    (
        {"border_value": torch.zeros(3, 3)},
        ValueError,
        "`border_value` must be a number, of shape (3,)",
    ),
    (
        {"border_value": "black"},
        TypeError,
        "`border_value` must be a number, a sequence of numbers",
    ),
    (
        {"border_value": META[0]},
        ValueError,
        "`border_value` must be on cpu, where the image is, got",
    ),
    (
        {"border": "transparent"},
        ValueError,
        "`background` must be a tensor of shape (2, 3, 4, 5) (or broadcasting to it) with "
        "border='transparent', got None",
    ),
    (
        {"border": "transparent", "background": IMAGE.to_sparse()},
        TypeError,
        "`background` must be a dense tensor, got torch.sparse_coo",
    ),
    (
        {"border": "transparent", "background": torch.zeros(2, 3, 5, 4)},
        ValueError,
        "`background` must be a tensor of shape (2, 3, 4, 5) (or broadcasting to it) with "
        "border='transparent', got (2, 3, 5, 4)",
    ),
    (
        {"border": "transparent", "background": IMAGE.bool()},
        TypeError,
        "`background` must be of a type that images have, got torch.bool",
    ),
    (
        {"background": IMAGE},
        ValueError,
        "`background` must be None with border='constant', got a tensor",
    ),
    ({"inverse": 1}, TypeError, "`inverse` must be True or False, got 1"),
    (
        {"backend": "opencl"},
        ValueError,
        "`backend` must be one of 'auto', " + ", ".join(map(repr, BACKENDS)) + ", got 'opencl'",
    ),
    (
        {"backend": "grid_sample", "interpolation": "lanczos4", "border": "wrap"},
        ValueError,
        "`backend` must be one that can do this, got 'grid_sample':\n  grid_sample: has no lanczos4\n"
        "  grid_sample: has no border 'wrap'",
    ),
]


@pytest.mark.parametrize(("change", "error", "text"), WARP)
def test_errors_of_warp_affine(change, error, text):
    arguments = {"image": IMAGE, "matrix": EYE, **change}
    with pytest.raises(error, match=re.escape(f"warp_affine: {text}")):
        wk.warp_affine(**arguments)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: wk.warp_perspective(IMAGE, EYE),
            "warp_perspective: `matrix` must be of shape (..., 3, 3), got (2, 3)",
        ),
        (
            lambda: wk.remap(IMAGE, torch.zeros(4, 2)),
            "remap: `points` must be of shape (..., h, w, 2), got (4, 2)",
        ),
        (
            lambda: wk.remap(IMAGE, torch.zeros(0, 4, 2)),
            "remap: `points` must be of shape (..., h, w, 2), got (0, 4, 2)",
        ),
        (
            lambda: wk.remap(IMAGE, torch.zeros(3, 4, 4, 2)),
            "remap: the batch dimensions of `image` and `points` must broadcast, got image (2,), ",
        ),
        (
            lambda: wk.sample_pixels(IMAGE, torch.zeros(4, 3)),
            "sample_pixels: `points` must be of shape (..., N, 2), got (4, 3)",
        ),
        (
            lambda: wk.sample_pixels(IMAGE, torch.zeros(4, 2), border="transparent"),
            "sample_pixels: `border` must be a border other than 'transparent': a list of points has",
        ),
        (
            lambda: wk.rotation_matrix((1, 2, 3), 30),
            "rotation_matrix: `center` must be (x, y) or of shape (..., 2), got (3,)",
        ),
        (
            lambda: wk.rotation_matrix(torch.zeros(3, 2), torch.zeros(4)),
            "rotation_matrix: the batch dimensions of `center` and `angle` and `scale` must broadcast,",
        ),
        (
            lambda: wk.affine_matrix(center=(torch.zeros(2), torch.zeros(3))),
            "affine_matrix: `center`: the batch dimensions of `x` and `y` must broadcast, got x (2,), ",
        ),
        (
            lambda: wk.rotation_matrix(torch.zeros(2), META[0, 0]),
            "rotation_matrix: `angle` must be on cpu, where the first tensor is, got meta",
        ),
        (
            lambda: wk.affine_matrix(angle=EYE[0, 0], center=META[0, :2]),
            "affine_matrix: `center` must be on cpu, where the first tensor is, got meta",
        ),
        (
            lambda: wk.affine_from_points(torch.zeros(3, 2), META.mT),
            "affine_from_points: `dst` must be on cpu, where the first tensor is, got meta",
        ),
        (
            lambda: wk.compose(EYE, META),
            "compose: `matrices[1]` must be on cpu, where the first tensor is, got meta",
        ),
        (
            lambda: wk.transform_points(META, torch.zeros(4, 2)),
            "transform_points: `points` must be on meta, where the first tensor is, got cpu",
        ),
        (
            lambda: wk.image_center((0, 5)),
            "image_center: `size` must be (H, W), two integers of at",
        ),
        (
            lambda: wk.affine_from_points(torch.zeros(4, 2), torch.zeros(3, 2)),
            "affine_from_points: `dst` must be of shape (..., 4, 2), got (3, 2)",
        ),
        (
            lambda: wk.box_to_matrix(torch.zeros(3), (4, 4)),
            "box_to_matrix: `boxes` must be of shape (..., 4), (..., 5) or (..., 4, 2), got (3,)",
        ),
        (lambda: wk.compose(), "compose: `matrices` must be at least one matrix, got none"),
        (
            lambda: wk.compose(EYE, torch.eye(2)),
            "compose: `matrices[1]` must be of shape (..., 2, 3) or (..., 3, 3), got (2, 2)",
        ),
        (
            lambda: wk.invert([[1, 2, 3], [2, 4, 1]]),
            "invert: `matrix` must be invertible, got a degenerate one",
        ),
        (
            lambda: wk.to_theta([[1, 2, 3], [2, 4, 1]], (4, 4), (4, 4)),
            "to_theta: `matrix` must be invertible, got a degenerate one",
        ),
        (
            lambda: wk.from_theta([[0, 0, 1], [0, 0, 1]], (4, 4), (4, 4)),
            "from_theta: `theta` must be invertible, got a degenerate one",
        ),
        (
            lambda: wk.transform_points(EYE, torch.zeros(4, 3)),
            "transform_points: `points` must be of shape (..., 2), got (4, 3)",
        ),
    ],
)
def test_errors_of_other_functions(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_positional_options_say_that_they_are_keyword_only():
    """Python's own error names neither the argument nor the correct call."""
    text = "`size` and what follows it must be named, as in size=..., got 3 without a name"
    with pytest.raises(TypeError, match=re.escape(f"warp_affine: {text}")):
        wk.warp_affine(torch.zeros(1, 4, 4), EYE, (2, 3))  # pyright: ignore
    with pytest.raises(TypeError, match="resize: `interpolation` and what follows it must be"):
        wk.resize(torch.zeros(1, 4, 4), (2, 3), "bilinear")  # pyright: ignore
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments but 4 were given"):
        wk.rotation_matrix((0, 0), 3.0, 1.0, 2.0)  # pyright: ignore


def test_a_device_without_float64_is_rejected_with_reasons():
    with FakeTensorMode():  # needs no such device
        image = torch.empty(1, 3, 4, 5, device="mps")
        for call in (
            lambda backend: wk.warp_affine(image, [[1, 0, 1], [0, 1, 0]], backend=backend),
            lambda backend: wk.warp_perspective(image, EYE, backend=backend),
            lambda backend: wk.remap(image, [[[0.5, 0.0]]], backend=backend),
        ):
            for backend in ("auto", "grid_sample"):
                text = "needs float64, which this device lacks: use image.cpu()"
                with pytest.raises(ValueError, match=re.escape(text)):
                    call(backend)
        image = torch.empty(1, 3, 4, 5, device="xpu")
        rule = SamplingRule("bilinear", "constant")
        assert kernels.select_backend("test", "auto", image, rule) is reference


def test_the_traceback_of_a_bad_argument_ends_at_the_public_function():
    with pytest.raises(ValueError, match="`matrix`") as caught:
        wk.warp_affine(torch.zeros(1, 2, 2), torch.eye(2))
    assert caught.traceback[-1].name == "warp_affine"


def test_the_traceback_of_other_errors_is_complete(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ValueError("not about an argument")

    monkeypatch.setattr("warpkit.core.checks.check_image", broken)
    with pytest.raises(ValueError, match="not about") as caught:
        wk.warp_affine(torch.zeros(1, 7, 2), torch.eye(2, 3) * 0.7)
    assert caught.traceback[-1].name == "broken"
