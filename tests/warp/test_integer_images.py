"""Integer images and nearest lose a map's gradient: one warning, at the caller's line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import warpkit as wk
from warpkit import opencv

DTYPES = [torch.uint8, torch.int16, torch.uint16]
BOX = torch.tensor([[1.0, 1.0, 4.0, 4.0]], requires_grad=True)
EYE = torch.eye(2, 3, requires_grad=True)
POINTS = torch.zeros(3, 3, 2, requires_grad=True)

CALLS: dict[str, Callable[..., Tensor]] = {
    "warp_affine: no gradient reaches `matrix` ": lambda x, **o: wk.warp_affine(x, EYE, **o),
    "warp_perspective: no gradient reaches `matrix` ": lambda x, **o: wk.warp_perspective(
        x, torch.eye(3, requires_grad=True), **o
    ),
    "remap: no gradient reaches `points` ": lambda x, **o: wk.remap(x, POINTS, **o),
    "sample_pixels: no gradient reaches `points` ": lambda x, **o: wk.sample_pixels(
        x, POINTS[0], **o
    ),
    "crop_patches: no gradient reaches `boxes` ": lambda x, **o: wk.crop_patches(
        x, BOX, None, (2, 2), **o
    ),
    "paste_patches: no gradient reaches `matrices` ": lambda x, **o: wk.paste_patches(
        x, x[:, :2, :2], EYE[None], None, **o
    ),
    "transform_patches: no gradient reaches `boxes` and `matrices` ": (
        lambda x, **o: wk.transform_patches(x, BOX, EYE[None], None, **o)
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", CALLS)
def test_a_gradient_lost_to_integers_gets_a_warning(text: str, dtype: torch.dtype):
    image = torch.zeros(1, 6, 6).to(dtype)
    whole = f"{text}through an image of {dtype}: pass a floating one (image.float()), or detach"
    with pytest.warns(UserWarning, match=f"^{re.escape(whole)}") as seen:
        CALLS[text](image)
    assert [warning.filename for warning in seen] == [__file__]


@pytest.mark.parametrize("text", CALLS)
def test_a_gradient_lost_to_nearest_gets_a_warning(text: str):
    image = torch.zeros(1, 6, 6, requires_grad=True)
    whole = f"{text}under nearest interpolation: take bilinear, lend nearest's values its gradient "
    whole += "by warpkit.straight_through(nearest, bilinear), or detach what needs none"
    for _ in range(2):  # a cached call also warns
        with pytest.warns(UserWarning, match=f"^{re.escape(whole)}$") as seen:
            CALLS[text](image, interpolation="nearest")
        assert [warning.filename for warning in seen] == [__file__]


def test_nearest_loses_only_the_gradients_named():
    image = torch.rand(1, 1, 6, 6)
    for edge, wanted in (("hard", "`boxes` and `matrices`"), ("soft", "`matrices`")):
        with pytest.warns(UserWarning, match=f"no gradient reaches {wanted} under nearest"):
            result = wk.transform_patches(
                image, BOX + 0.3, EYE[None], None, interpolation="nearest", edge=edge
            )
        assert result.requires_grad == (edge == "soft")  # a soft edge depends on the box
    flow = torch.zeros(1, 2, 2, 2, requires_grad=True)
    placed = image, image[..., :2, :2], torch.eye(2, 3)[None], None
    with pytest.warns(UserWarning, match="no gradient reaches `flow` under nearest"):
        wk.paste_patches(*placed, interpolation="nearest", flow=flow)
    box = torch.tensor([1.0, 1.0, 4.0, 4.0], requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient reaches `box` under nearest"):
        wk.resize(image, (2, 2), interpolation="nearest", box=box)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", CALLS)
def test_no_warning_if_no_gradient_is_lost(text: str):
    image = torch.zeros(1, 6, 6, dtype=torch.uint8)
    CALLS[text](image.float())
    CALLS[text](image, interpolation="nearest")  # labels that follow a trained matrix
    with torch.no_grad():
        CALLS[text](image)
        CALLS[text](image.float(), interpolation="nearest")


def test_the_warning_points_to_the_callers_line_through_wrappers():
    image = torch.zeros(1, 6, 6, dtype=torch.uint8)
    for call in (
        lambda: wk.nn.Warp()(image, EYE),
        lambda: opencv.warpAffine(image[0], EYE, (6, 6)),
    ):
        with pytest.warns(UserWarning, match="no gradient reaches `matrix`") as seen:
            call()
        assert [warning.filename for warning in seen] == [__file__]


def test_the_warning_is_shown_once_per_line():
    image = torch.zeros(1, 6, 6, dtype=torch.uint8)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            wk.warp_affine(image, EYE)
    assert len(seen) == 1


@pytest.mark.filterwarnings("error:.*no gradient reaches")
def test_the_warning_does_not_break_a_graph():
    image = torch.zeros(1, 6, 6, dtype=torch.uint8)
    compiled = torch.compile(wk.warp_affine, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(image, EYE), image)
