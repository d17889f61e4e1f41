"""Flows, their warps and alignment with any arguments: right, or a clear error.

`FUZZ_EXAMPLES=10000 pytest tests/fuzz/test_flows.py` runs other and more cases of each function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import warpkit as wk
from tests.fuzz.test_images import bools, check_warp, names, warp_options
from tests.support import hostile_arguments as wild
from tests.support.fuzzing import Case, check_result, fuzz, tame, twice
from warpkit import flow

sides = st.integers(1, 6)
fields = st.tuples(wild.batches, sides, sides).flatmap(
    lambda s: wild.tensors((*s[0], s[1], s[2], 2), low=-4.0, high=4.0)
)
square = wild.batches.flatmap(lambda b: wild.tensors((*b, 4, 5, 2), low=-2.0, high=2.0))
lattices = st.tuples(wild.batches, st.integers(3, 6)).flatmap(
    lambda s: wild.tensors((*s[0], s[1], 5, 2), low=-3.0, high=3.0)
)
pictures = wild.batches.flatmap(
    lambda b: wild.tensors((*b, 2, 4, 5), (*wild.IMAGES, torch.uint8, torch.float32))
)
weights = wild.batches.flatmap(lambda b: wild.tensors((*b, 1, 4, 5)))
photographs = wild.batches.flatmap(
    lambda b: wild.tensors((*b, 1, 17, 16), (torch.float32, torch.float64, torch.uint8))
)
shades = st.one_of(st.none(), wild.tensors((1, 17, 16), (torch.float32, torch.bool)))
sampling = names | {k: warp_options[k] for k in ("background", "antialias", "backend")}

WARPS = {
    "warp_flow": Case(wk.warp_flow, {"image": wild.images(), "flow": fields}, sampling),
    "remap": Case(
        lambda **options: wk.remap(**options, relative=True),
        {"image": wild.images(), "points": fields},
        sampling,
    ),
}


def carried(
    image: Any, flow: Any, size: Any = None, mode: str = "sum", weights: Any = None, **options: Any
) -> Any:
    """`splat` in float64, one pixel after another; None for options that it does not implement."""
    if mode == "softmax" or options:
        return None
    batch = np.broadcast_shapes(image.shape[:-3], flow.shape[:-3])
    heavy = np.ones((1, 4, 5)) if weights is None else weights
    batch = np.broadcast_shapes(batch, heavy.shape[:-3])
    image, flow, heavy = (np.broadcast_to(a, (*batch, *a.shape[-3:])) for a in (image, flow, heavy))
    h, w = (4, 5) if size is None else size
    total = np.zeros((*batch, image.shape[-3] + 1, h, w))
    for at in np.ndindex(*batch, 4, 5):
        own, y, x = at[:-2], *at[-2:]
        u, v = flow[(*own, y, x)] + (x, y)
        left, top = np.floor((u, v)).astype(int)
        value = np.append(image[(*own, slice(None), y, x)], 1.0) * heavy[(*own, 0, y, x)]
        for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
            i, j = top + row, left + column
            share = (1 - abs(u - j)) * (1 - abs(v - i))
            if 0 <= i < h and 0 <= j < w:
                total[(*own, slice(None), i, j)] += share * value
    value, weight = total[..., :-1, :, :], total[..., -1:, :, :]
    return (value, weight) if mode == "sum" else None


def plainly_carried(image: Any, **options: Any) -> Any:
    """`splat`, with its weights only for float32 and float64, whose rounding hides nothing."""
    values = {"image": image, **options}
    result = flow.splat(image, **options)
    wide = isinstance(image, torch.Tensor) and image.dtype in (torch.float32, torch.float64)
    if not wide or not all(map(tame, (v for v in values.values() if v is not None))):
        return result.image
    return tuple(result)


CASES = {
    "splat": Case(
        plainly_carried,
        {"image": pictures, "flow": square},
        {
            "size": st.one_of(st.none(), wild.sizes),
            "mode": st.sampled_from(("sum", "sum", "average", "softmax")),
            "weights": st.one_of(st.none(), weights),
            "temperature": st.one_of(st.just(1.0), wild.numbers),
        },
    ),
    "from_matrix": Case(
        flow.from_matrix, {"matrix": wild.matrices(), "size": wild.sizes}, {"inverse": bools}
    ),
    "from_points": Case(
        flow.from_points,
        {"points": fields},
        {},
        lambda points: points - np.stack(np.meshgrid(*map(np.arange, points.shape[-2:-4:-1])), -1),
    ),
    "to_points": Case(
        flow.to_points,
        {"flow": fields},
        {},
        lambda flow: flow + np.stack(np.meshgrid(*map(np.arange, flow.shape[-2:-4:-1])), -1),
    ),
    "compose": Case(flow.compose, {"first": fields, "second": fields}, {}),
    "integrate": Case(flow.integrate, {"velocity": fields}, {"steps": st.integers(0, 9)}),
    "jacobian_determinant": Case(flow.jacobian_determinant, {"flow": fields}, {}),
    "invert": Case(lambda **field: flow.invert(**field).flow, {"flow": fields}, {}),
    "transform_points": Case(
        lambda **arguments: flow.transform_points(**arguments)[0],
        {"points": st.one_of(wild.points(3), wild.tensors((2,))), "flow": fields},
        {},
    ),
    "thin_plate_spline": Case(
        flow.thin_plate_spline,
        {"source": wild.points(4), "target": wild.points(4), "size": wild.sizes},
        {"smoothing": wild.numbers},
    ),
    "thin_plate_points": Case(
        flow.thin_plate_points,
        {"points": wild.points(3), "source": wild.points(4), "target": wild.points(4)},
        {"smoothing": wild.numbers},
    ),
    "bspline": Case(flow.bspline, {"control": lattices, "size": wild.sizes}, {}),
    "through_uint8": Case(
        wk.through_uint8,
        {
            "function": st.sampled_from(
                (
                    lambda x: x,
                    lambda x: x // 2 if x.dtype == torch.uint8 else x / 2,
                    lambda x: wk.resize(x, (2, 3), arithmetic="pillow"),
                    lambda x: x.sum(),
                    lambda x: None,
                )
            ),
            "image": wild.images(),
        },
        {},
        says=("resize: ",),
        spoiled=("image",),
    ),
}
ALIGN = Case(
    lambda **arguments: wk.align(**({"steps": 2} | arguments)).matrix,
    {"moving": photographs, "fixed": photographs},
    {
        "model": st.sampled_from(("translation", "euclidean", "affine", "perspective")),
        "loss": st.sampled_from(("ecc", "ssd", "robust")),
        "moving_mask": shades,
        "fixed_mask": shades,
        "init": st.one_of(st.none(), st.just("search"), wild.matrices(), wild.matrices((2,), ())),
        "levels": st.integers(0, 3),
        "steps": st.integers(1, 3),
        "tolerance": wild.numbers,
    },
)


def check_field(name: str, case: Case, values: dict[str, Any]) -> None:
    """As `check_result`; also, finite arguments that are not huge get no NaN gradient."""
    made = check_result(name, case, values)
    if made is None or not all(map(tame, (v for v in values.values() if v is not None))):
        return
    result = made.result[0] if isinstance(made.result, tuple) else made.result
    if isinstance(result, torch.Tensor) and result.detach().isfinite().all():
        for key, grad in made.gradients.items():
            assert not grad.isnan().any(), key


def check_alignment(name: str, case: Case, values: dict[str, Any]) -> None:
    """The result is finite for any images."""
    made = twice(name, case, values)
    if made is not None and made.result.device.type != "meta":
        assert made.result.isfinite().all()


@pytest.mark.parametrize("name", WARPS)
def test_warps_by_flows_are_right_or_rejected(name):
    fuzz(name, WARPS[name], check_warp)


@pytest.mark.filterwarnings("ignore:.*(runs from -1 to 1|runs over the pixels|lie within)")
@pytest.mark.parametrize("name", CASES)
def test_functions_of_flows_are_right_or_rejected(name):
    told = CASES[name]._replace(truth=carried) if name == "splat" else CASES[name]
    fuzz(name, told, check_field, least=20)


def test_alignment_is_finite_or_rejected():
    fuzz("align", ALIGN, check_alignment, least=30)
