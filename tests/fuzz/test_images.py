"""Warps and objects with any arguments: the reference's result, or a clear error.

`FUZZ_EXAMPLES=10000 pytest tests/fuzz/test_images.py` runs other and more cases of each function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import warpkit as wk
import warpkit.opencv as wcv
from tests.support import hostile_arguments as wild
from tests.support.fuzzing import (
    Case,
    assert_near,
    fuzz,
    gradients,
    leaves,
    run,
    size_of,
    twice,
)
from tests.support.naive_objects import paste_loop
from warpkit.engine.definitions.rules import ARITHMETICS, BORDERS, INTERPOLATIONS

bools = st.booleans()
names = {
    "interpolation": st.sampled_from((*INTERPOLATIONS * 4, "area")),
    "border": st.sampled_from((*BORDERS * 3, "zeros", "border", "reflection")),
    "arithmetic": st.sampled_from((*("exact",) * 4, *ARITHMETICS)),
    "border_value": st.one_of(st.just(0.5), wild.numbers, st.just((0.1, 0.2, 0.3))),
}
warp_options = names | {
    "size": st.one_of(st.none(), wild.sizes),
    "inverse": bools,
    "background": st.one_of(st.none(), st.none(), st.none(), wild.images()),
    "antialias": st.sampled_from((False, False, False, True, 1, 3)),
    "image_gradient": st.sampled_from(("exact", "exact", "straight_through")),
    "backend": st.sampled_from(("auto",) * 9 + ("reference", "cpu", "grid_sample", "cuda")),
}
count = 3
masks = st.one_of(st.none(), wild.tensors((count, 1, 3, 4)), wild.tensors((1, 3, 4)))
object_index = st.one_of(
    st.none(), wild.tensors((count,), (torch.int64,), 0, 2, wild=False), st.just([0, 0, 1])
)
photographs = st.one_of(
    wild.tensors((2, 3, 5, 6), (torch.float32, torch.float64, torch.uint8)),
    wild.tensors((3, 5, 6)),
    wild.images((3, 4)),
)
picture = st.one_of(
    wild.tensors((5, 6, 3), (torch.uint8, torch.float32)),
    wild.tensors((4, 5), (torch.uint8, torch.float32, torch.float64)),
    wild.tensors((5, 6, 3), (torch.uint8, torch.float32), wild=False).map(
        lambda t: t.detach().numpy()
    ),
    st.just(np.zeros((4, 5, 6), np.int16)),
)
opencv_options = {
    "dst": st.one_of(st.none(), st.none(), picture),
    "flags": st.one_of(st.sampled_from((0, 1, 2, 3, 4, 16, 17)), st.integers(-1, 40)),
    "borderMode": st.integers(-1, 6),
    "borderValue": st.one_of(st.just(0), wild.numbers, st.just((1, 2, 3))),
    "arithmetic": st.sampled_from(("auto", "auto", *ARITHMETICS)),
}
maps = wild.tensors((3, 4), low=-2, high=7)

WARPS = {
    "warp_affine": Case(
        wk.warp_affine,
        {"image": wild.images(), "matrix": wild.matrices((2, 2, 2, 3))},
        warp_options,
    ),
    "warp_perspective": Case(
        wk.warp_perspective,
        {"image": wild.images(), "matrix": wild.matrices((3, 3, 3, 2))},
        warp_options,
    ),
    "remap": Case(
        wk.remap,
        {"image": wild.images(), "points": wild.points(3, 4)},
        names | {k: warp_options[k] for k in ("background", "backend")},
    ),
    "sample_pixels": Case(
        wk.sample_pixels,
        {"image": wild.images(), "points": wild.points(5)},
        {k: names[k] for k in ("interpolation", "border", "border_value")},
    ),
}

OBJECTS = {
    "crop_patches": Case(
        wk.crop_patches,
        {
            "images": photographs,
            "boxes": wild.boxes(count),
            "image_index": object_index,
            "size": wild.sizes,
        },
        {k: warp_options[k] for k in ("interpolation", "border", "border_value", "antialias")},
    ),
    "paste_patches": Case(
        wk.paste_patches,
        {
            "images": photographs,
            "patches": st.one_of(wild.tensors((count, 3, 3, 4)), wild.tensors((3, 3, 4))),
            "matrices": wild.matrices(batch=(count,)),
            "image_index": object_index,
        },
        {"mask": masks, "opacity": wild.numbers, "interpolation": names["interpolation"]},
    ),
    "transform_patches": Case(
        wk.transform_patches,
        {
            "images": photographs,
            "boxes": wild.boxes(count),
            "matrices": wild.matrices((2,), batch=(count,)),
            "image_index": object_index,
        },
        {
            "space": st.sampled_from(("pixel", "theta", "box")),
            "mask": masks,
            "opacity": wild.numbers,
            "edge": st.sampled_from(("hard", "soft", "round")),
            "overlap": st.sampled_from(("last", "sequential", "first")),
        }
        | {k: names[k] for k in ("interpolation", "border", "border_value")},
    ),
}

DROP_IN = {
    "warpAffine": Case(
        wcv.warpAffine,
        {"src": picture, "M": wild.matrices((2,), batch=()), "dsize": wild.sizes},
        opencv_options,
    ),
    "warpPerspective": Case(
        wcv.warpPerspective,
        {"src": picture, "M": wild.matrices((3,), batch=()), "dsize": wild.sizes},
        opencv_options,
    ),
    "opencv.remap": Case(
        wcv.remap,
        {
            "src": picture,
            "map1": st.one_of(maps, wild.points(3, 4)),
            "map2": st.one_of(maps, st.none()),
            "interpolation": opencv_options["flags"],
        },
        {k: opencv_options[k] for k in ("dst", "borderMode", "borderValue", "arithmetic")},
    ),
    "getRotationMatrix2D": Case(
        wcv.getRotationMatrix2D,
        {"center": wild.pairs, "angle": wild.numbers, "scale": wild.numbers},
        {},
    ),
    "getAffineTransform": Case(
        wcv.getAffineTransform,
        {"src": wild.points(3), "dst": wild.points(3)},
        {},
    ),
    "getPerspectiveTransform": Case(
        wcv.getPerspectiveTransform,
        {"src": wild.points(4), "dst": wild.points(4)},
        {},
    ),
    "invertAffineTransform": Case(wcv.invertAffineTransform, {"M": wild.matrices((2,))}, {}),
}


def check_warp(name: str, case: Case, values: dict[str, Any]) -> None:
    """Compare the results and gradients of all backends."""
    made = twice(name, case, values)
    if made is None:
        return
    result, grads = made
    if name == "sample_pixels" or values.get("backend", "auto") == "grid_sample":
        return
    others = leaves(values) | {"backend": "reference"}
    reference = run(name, case, others)
    assert_near(result, reference, values["image"], "result")
    # next to a border value of 1e300, a pixel vanishes in one order of the sum but not in another
    size = size_of(*(values.get(key) for key in ("image", "border_value", "background")))
    for key, grad in gradients(reference, others).items():
        assert_near(grads[key], grad, values["image"], f"gradient to {key}", size)


def check_objects(name: str, case: Case, values: dict[str, Any]) -> None:
    """Compare crops and pasted patches with a warp of each one."""
    made = twice(name, case, values)
    if made is None:
        return
    result = made.result
    if result.device.type == "cpu" and result.is_floating_point() and result.numel():
        truth = LOOPS.get(name, lambda **options: None)(**values)
        if truth is not None:
            assert_near(result, truth.to(result.dtype), values["images"], "result")


def crop_loop(images, boxes, image_index, size, **options):
    """`crop_patches`, one box at a time."""
    batch = images if images.ndim == 4 else images[None]
    if len(boxes) == 0 or torch.is_tensor(options.get("border_value")):
        return None
    index = [0] * len(boxes) if image_index is None else image_index
    there = wk.box_to_matrix(torch.as_tensor(boxes).double(), size)
    options |= {"size": size, "inverse": True, "backend": "reference"}
    crops = [wk.warp_affine(batch[int(i)], m, **options) for i, m in zip(index, there, strict=True)]
    return torch.stack(crops)


def paste_each(images, patches, matrices, image_index, **options):
    """`paste_loop` with those of the arguments that it accepts."""
    batch = images if images.ndim == 4 else images[None]
    tensors = (images, patches, matrices)
    if "opacity" in options or not all(torch.is_tensor(t) and t.isfinite().all() for t in tensors):
        return None
    index = [0] * len(matrices) if image_index is None else image_index
    dtype = torch.float64 if images.dtype == torch.float64 else torch.float32
    mask = options.pop("mask", None)
    result = paste_loop(
        batch.to(dtype),
        patches.to(dtype),
        matrices.double(),
        torch.as_tensor(index),
        mask=mask if mask is None else mask.to(dtype),
        **options,
    )
    return result.reshape(images.shape)


LOOPS = {"crop_patches": crop_loop, "paste_patches": paste_each}


@pytest.mark.parametrize("name", WARPS)
def test_warps_are_right_or_rejected(name):
    fuzz(name, WARPS[name], check_warp)


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_right_or_rejected(name):
    fuzz(name, OBJECTS[name], check_objects)


@pytest.mark.parametrize("name", DROP_IN)
def test_cv2s_warps_work_or_reject_any_arguments(name):
    fuzz(name, DROP_IN[name])
