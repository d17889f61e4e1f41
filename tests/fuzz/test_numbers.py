"""Matrices, indices and gradients with any arguments: float64 numpy's, or a clear error."""

from __future__ import annotations

import pytest
import torch
from hypothesis import strategies as st

import warpkit as wk
from tests.support import hostile_arguments as wild
from tests.support import naive_geometry as truth
from tests.support.fuzzing import Case, fuzz
from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.indexing import BORDERS

count = 3
bools = st.booleans()
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
lengths = st.integers(-1, 6)
borders = st.sampled_from((*BORDERS, "constant"))
curves = st.sampled_from(
    (
        lambda x, *_: x.sin(),
        lambda *x: x[-1].square().sum(),
        lambda x, *_: x.abs().sqrt(),
        lambda *x: (x[0] * x[-1], x[0]),
        lambda x, *_: x.detach() * x,
    )
)


def listed(value):
    """The value, or a list of it if it is not a list."""
    return value if isinstance(value, list) else [value]


def explained(image, where, **options):
    """The explanation of an image's full gradient support."""
    mask = torch.zeros(getattr(image, "shape", (1, 2, 3)), dtype=torch.bool, device="cpu")
    return wk.GradientSupport(0, mask.numel(), 0.0, mask).explain(where, **options)


CASES = {
    "rotation_matrix": Case(
        wk.rotation_matrix,
        {"center": wild.pairs, "angle": wild.numbers},
        {"scale": wild.numbers},
    ),
    "affine_matrix": Case(
        wk.affine_matrix,
        {},
        geometry_options | {"shear": st.one_of(wild.numbers, wild.pairs), "center": wild.pairs},
    ),
    "image_center": Case(wk.image_center, {"size": wild.sizes}, {}),
    "affine_from_points": Case(
        wk.affine_from_points,
        {"src": wild.points(3), "dst": wild.points(3)},
        {},
    ),
    "perspective_from_points": Case(
        wk.perspective_from_points,
        {"src": wild.points(4), "dst": wild.points(4)},
        {},
    ),
    "box_to_matrix": Case(
        wk.box_to_matrix,
        {"boxes": wild.boxes(count), "size": wild.sizes},
        geometry_options,
    ),
    "invert": Case(wk.invert, {"matrix": wild.matrices()}, {}),
    "transform_points": Case(
        wk.transform_points,
        {"matrix": wild.matrices(), "points": wild.points(4)},
        {},
    ),
    "transform_boxes": Case(
        wk.transform_boxes, {"boxes": wild.boxes(count), "matrix": wild.matrices()}, {}
    ),
    "resize_matrix": Case(wk.resize_matrix, {"size": wild.sizes, "new_size": wild.sizes}, {}),
    "to_theta": Case(
        wk.to_theta,
        {"matrix": wild.matrices(), "size_in": wild.sizes, "size_out": wild.sizes},
        {"align_corners": bools},
    ),
    "from_theta": Case(
        wk.from_theta,
        {"theta": wild.matrices(), "size_in": wild.sizes, "size_out": wild.sizes},
        {"align_corners": bools},
    ),
    "compose": Case(
        lambda matrices: wk.compose(*listed(matrices)),
        {"matrices": st.lists(wild.matrices(), min_size=1, max_size=4)},
        {},
    ),
    "linear_lookup": Case(
        wk.indexing.linear_lookup, {"array": rows, "index": index}, {"dim": dims, "border": borders}
    ),
    "soft_one_hot": Case(
        wk.indexing.soft_one_hot, {"index": index, "length": lengths}, {"border": borders}
    ),
    "superposition_lookup": Case(
        wk.indexing.superposition_lookup,
        {"array": rows, "weights": weights},
        {"dim": dims},
    ),
    "residual_lookup": Case(
        wk.indexing.residual_lookup, {"array": rows, "index": index}, {"dim": dims}
    ),
    "assign": Case(
        wk.indexing.assign,
        {"array": rows, "index": index, "value": wild.numbers},
        {"dim": dims},
    ),
    "superposition_assign": Case(
        wk.indexing.superposition_assign,
        {"array": rows, "weights": weights, "value": wild.numbers},
        {"dim": dims},
    ),
    "lookup_2d": Case(
        wk.indexing.lookup_2d,
        {"array": tables, "row_weights": weights, "column_weights": weights},
        {},
    ),
    "assign_2d": Case(
        wk.indexing.assign_2d,
        {"array": tables, "value": wild.numbers, "row_weights": weights, "column_weights": weights},
        {},
    ),
    "straight_through": Case(
        wk.straight_through,
        {"value": wild.tensors((2, 3)), "surrogate": wild.tensors((2, 3))},
        {},
    ),
    "quantize": Case(wk.quantize, {"image": wild.images()}, {"levels": st.integers(0, 300)}),
    "gradient_support": Case(
        wk.gradient_support,
        {"output": wild.tensors((2, 3)), "input": wild.tensors((2, 3))},
        {},
    ),
    "check_gradients": Case(
        lambda function, inputs: wk.check_gradients(function, *listed(inputs)),
        {
            "function": curves,
            "inputs": st.lists(wild.tensors((2, 3)), min_size=1, max_size=2),
        },
        {},
    ),
    "explain": Case(
        explained,
        {"image": wild.images(), "where": st.one_of(wild.matrices(), wild.points(3, 4))},
        {
            "size": st.one_of(st.none(), wild.sizes),
            "interpolation": st.sampled_from(INTERPOLATIONS),
            "border": st.sampled_from(BORDERS),
            "inverse": bools,
            "antialias": st.sampled_from((False, True, 1, 3)),
            "image_gradient": st.sampled_from(("exact", "straight_through")),
        },
        says=("explain: ", "gradient_support: "),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_are_right_or_rejected(name):
    fuzz(name, CASES[name]._replace(truth=getattr(truth, name, None)))
