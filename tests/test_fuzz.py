"""Any arguments at all: the reference's result, or one clear error; never a crash further in.

`FUZZ_EXAMPLES=10000 pytest tests/test_fuzz.py` runs other and more cases of each function.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warpkit as wk
import warpkit.opencv as wcv
from tests import wild
from tests.tolerances import TOLERANCE
from warpkit.kernels.rules import ARITHMETICS, BORDERS, INTERPOLATIONS

MORE = os.environ.get("FUZZ_EXAMPLES")

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
geometry_options = {"angle": wild.numbers, "scale": wild.numbers, "translation": wild.pairs}
index = st.one_of(
    st.integers(-9, 9), wild.numbers, wild.tensors((4,), (torch.float32, torch.int64), -2, 7)
)
rows = st.sampled_from(((5,), (5, 2), (2, 5), (1,), (5, 2, 3), (0,), ())).flatmap(wild.tensors)
weights = st.sampled_from(((5,), (4, 5), (4, 5), (5,), (2,), (1,), (0,), (2, 1, 5))).flatmap(
    wild.tensors
)
tables = st.sampled_from(((5, 5), (5, 5, 2), (2, 5), (1, 1), (5,), (0, 5))).flatmap(wild.tensors)
dims = st.sampled_from((0, 0, 0, -1, 1, 2, -3))
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

CASES: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]] = {
    "warp_affine": (
        wk.warp_affine,
        {"image": wild.images(), "matrix": wild.matrices((2, 2, 2, 3))},
        warp_options,
    ),
    "warp_perspective": (
        wk.warp_perspective,
        {"image": wild.images(), "matrix": wild.matrices((3, 3, 3, 2))},
        warp_options,
    ),
    "remap": (
        wk.remap,
        {"image": wild.images(), "points": wild.points(3, 4)},
        names | {k: warp_options[k] for k in ("background", "backend")},
    ),
    "sample_pixels": (
        wk.sample_pixels,
        {"image": wild.images(), "points": wild.points(5)},
        {k: names[k] for k in ("interpolation", "border", "border_value")},
    ),
    "rotation_matrix": (
        wk.rotation_matrix,
        {"center": wild.pairs, "angle": wild.numbers},
        {"scale": wild.numbers},
    ),
    "affine_matrix": (
        wk.affine_matrix,
        {},
        geometry_options | {"shear": st.one_of(wild.numbers, wild.pairs), "center": wild.pairs},
    ),
    "image_center": (wk.image_center, {"size": wild.sizes}, {}),
    "affine_from_points": (
        wk.affine_from_points,
        {"src": wild.points(3), "dst": wild.points(3)},
        {},
    ),
    "perspective_from_points": (
        wk.perspective_from_points,
        {"src": wild.points(4), "dst": wild.points(4)},
        {},
    ),
    "box_to_matrix": (
        wk.box_to_matrix,
        {"boxes": wild.boxes(count), "size": wild.sizes},
        geometry_options,
    ),
    "invert": (wk.invert, {"matrix": wild.matrices()}, {}),
    "transform_points": (
        wk.transform_points,
        {"matrix": wild.matrices(), "points": wild.points(4)},
        {},
    ),
    "to_theta": (
        wk.to_theta,
        {"matrix": wild.matrices(), "size_in": wild.sizes, "size_out": wild.sizes},
        {"align_corners": bools},
    ),
    "from_theta": (
        wk.from_theta,
        {"theta": wild.matrices(), "size_in": wild.sizes, "size_out": wild.sizes},
        {"align_corners": bools},
    ),
    "crop_patches": (
        wk.crop_patches,
        {
            "images": photographs,
            "boxes": wild.boxes(count),
            "image_index": object_index,
            "size": wild.sizes,
        },
        {k: warp_options[k] for k in ("interpolation", "border", "border_value", "antialias")},
    ),
    "paste_patches": (
        wk.paste_patches,
        {
            "images": photographs,
            "patches": st.one_of(wild.tensors((count, 3, 3, 4)), wild.tensors((3, 3, 4))),
            "matrices": wild.matrices(batch=(count,)),
            "image_index": object_index,
        },
        {"mask": masks, "opacity": wild.numbers, "interpolation": names["interpolation"]},
    ),
    "transform_patches": (
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
            "overlap": st.sampled_from(("last", "sequential", "first")),
        }
        | {k: names[k] for k in ("interpolation", "border", "border_value")},
    ),
    "linear_lookup": (wk.linear_lookup, {"array": rows, "index": index}, {"dim": dims}),
    "soft_one_hot": (wk.soft_one_hot, {"index": index, "length": st.integers(-1, 6)}, {}),
    "superposition_lookup": (
        wk.superposition_lookup,
        {"array": rows, "weights": weights},
        {"dim": dims},
    ),
    "residual_lookup": (wk.residual_lookup, {"array": rows, "index": index}, {"dim": dims}),
    "assign": (
        wk.assign,
        {"array": rows, "index": index, "value": wild.numbers},
        {"dim": dims},
    ),
    "superposition_assign": (
        wk.superposition_assign,
        {"array": rows, "weights": weights, "value": wild.numbers},
        {"dim": dims},
    ),
    "lookup_2d": (
        wk.lookup_2d,
        {"array": tables, "row_weights": weights, "column_weights": weights},
        {},
    ),
    "assign_2d": (
        wk.assign_2d,
        {"array": tables, "value": wild.numbers, "row_weights": weights, "column_weights": weights},
        {},
    ),
    "straight_through": (
        wk.straight_through,
        {"value": wild.tensors((2, 3)), "surrogate": wild.tensors((2, 3))},
        {},
    ),
    "quantize": (wk.quantize, {"image": wild.images()}, {"levels": st.integers(0, 300)}),
    "gradient_support": (
        wk.gradient_support,
        {"output": wild.tensors((2, 3)), "input": wild.tensors((2, 3))},
        {},
    ),
    "warpAffine": (
        wcv.warpAffine,
        {"src": picture, "M": wild.matrices((2,), batch=()), "dsize": wild.sizes},
        opencv_options,
    ),
    "warpPerspective": (
        wcv.warpPerspective,
        {"src": picture, "M": wild.matrices((3,), batch=()), "dsize": wild.sizes},
        opencv_options,
    ),
    "opencv.remap": (
        wcv.remap,
        {
            "src": picture,
            "map1": st.one_of(maps, wild.points(3, 4)),
            "map2": st.one_of(maps, st.none()),
            "interpolation": opencv_options["flags"],
        },
        {k: opencv_options[k] for k in ("dst", "borderMode", "borderValue", "arithmetic")},
    ),
    "getRotationMatrix2D": (
        wcv.getRotationMatrix2D,
        {"center": wild.pairs, "angle": wild.numbers, "scale": wild.numbers},
        {},
    ),
    "getAffineTransform": (
        wcv.getAffineTransform,
        {"src": wild.points(3), "dst": wild.points(3)},
        {},
    ),
    "getPerspectiveTransform": (
        wcv.getPerspectiveTransform,
        {"src": wild.points(4), "dst": wild.points(4)},
        {},
    ),
    "invertAffineTransform": (wcv.invertAffineTransform, {"M": wild.matrices((2,))}, {}),
}


def output_shape(values: dict[str, Any]) -> tuple[int, ...]:
    """(C, h, w) of a warp's result."""
    image, points = values["image"], values.get("points")
    own = image.shape[-2:] if points is None else points.shape[-3:-1]
    return (image.shape[-3], *(values.get("size") or own))


@st.composite
def calls(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Right arguments of one function, of which up to two are then exchanged for anything."""
    _, needed, options = CASES[name]
    chosen = draw(st.sets(st.sampled_from(sorted(options)), max_size=3)) if options else set()
    values = {key: draw(needed[key]) for key in needed}
    values |= {key: draw(options[key]) for key in sorted(chosen)}
    if values.get("border") == "transparent" and "background" in options:
        shape = output_shape(values)
        values["background"] = draw(wild.tensors(shape, (values["image"].dtype,)))
    spoil = draw(st.sampled_from((0, 0, 0, 0, 0, 1, 1, 2)))
    for key in draw(st.permutations(sorted(values)))[:spoil]:
        values[key] = draw(wild.wrong)
    return values


def run(name: str, values: dict[str, Any]) -> Any:
    """The function's result, or None where it refused in the form of all errors."""
    function = CASES[name][0]
    try:
        return function(**values)
    except (ValueError, TypeError) as error:
        refused = str(error)
    assert refused.startswith(f"{name.split('.')[-1]}: "), refused
    return None


def leaves(values: dict[str, Any]) -> dict[str, Any]:
    """The same arguments, those with a gradient as leaves of their own graph."""
    return {
        key: value.detach().requires_grad_()
        if isinstance(value, torch.Tensor) and value.requires_grad
        else value
        for key, value in values.items()
    }


def gradients(result: Any, values: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The gradients of a fixed weighting of the result."""
    of = {k: v for k, v in values.items() if isinstance(v, torch.Tensor) and v.requires_grad}
    if not isinstance(result, torch.Tensor) or not result.requires_grad:
        return {}
    weight = torch.linspace(0.5, 1.5, result.numel(), device=result.device)
    total = (result * weight.reshape(result.shape).to(result.dtype)).sum()
    grads = torch.autograd.grad(total, list(of.values()), allow_unused=True)
    return {key: grad for key, grad in zip(of, grads, strict=True) if grad is not None}


def tolerance_of(tensor: torch.Tensor) -> float:
    """The table's, for what is computed from such a tensor."""
    # one rounding of the type, which may fall on the other side
    half = {torch.float16: "cuda float16", torch.bfloat16: "cuda bfloat16"}
    return TOLERANCE[half.get(tensor.dtype, f"cpu {tensor.dtype}")]


def assert_near(
    ours: torch.Tensor, reference: torch.Tensor, image: torch.Tensor, what: str
) -> None:
    """Equal up to the table's tolerance, of the largest finite entry; NaN where NaN is."""
    assert ours.shape == reference.shape, what
    assert ours.dtype == reference.dtype, what
    if ours.device.type == "meta" or ours.numel() == 0:
        return
    whole = not ours.is_floating_point()
    a, b = ours.detach().double(), reference.detach().double()
    finite = b.isfinite()
    assert torch.equal(a.isfinite(), finite), f"{what}: {a}\n{b}"
    largest = max(1.0, float(b[finite].abs().max())) if finite.any() else 1.0
    # a value half way between two whole numbers may be rounded either way
    tolerance = 1.0 if whole else max(map(tolerance_of, (ours, image))) * largest
    assert not ((a - b).abs()[finite] > tolerance).any(), f"{what}: {a}\n{b}"


def check(name: str, values: dict[str, Any]) -> None:
    """One call: refused, or right."""
    mine = leaves(values)
    result = run(name, mine)
    if result is None:
        return
    grads = gradients(result, mine)
    if CASES[name][0].__module__ != "warpkit.warp" or name == "sample_pixels":
        return
    others = leaves(values) | {"backend": "reference"}
    reference = CASES[name][0](**others)
    if values.get("backend", "auto") == "grid_sample":
        return
    assert_near(result, reference, values["image"], "result")
    for key, grad in gradients(reference, others).items():
        assert_near(grads[key], grad, values["image"], f"gradient to {key}")


@pytest.mark.parametrize("name", CASES)
def test_any_call_is_right_or_refused(name):
    @settings(
        max_examples=int(MORE or 60),
        derandomize=not MORE,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values=calls(name))
    def one(values):
        check(name, values)

    one()
