"""The CUDA kernels copy labels as the reference does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support.cuda_comparison import DEVICE, SIZE, mark_all, points, quiet_interpreter  # noqa: F401
from tests.support.inputs import affine_matrices
from tests.warp.test_labels import LIMITS, NEAREST, TYPES, labels

CASES = [
    *(("constant", dtype) for dtype in TYPES),
    *(("transparent", dtype) for dtype in ("int8", "uint32", "int64")),
    ("replicate", "uint64"),
    ("reflect", "int32"),
    ("reflect_101", "bool"),
    ("wrap", "int64"),
]
"""Every type with a value from outside, every integer that carries one with a background, and
borders once: they choose the place, which knows no type."""


@pytest.mark.parametrize(("border", "dtype"), CASES)
def test_labels_have_the_references_bits(border, dtype):
    turns, low = affine_matrices()["batch of turns"].to(DEVICE), LIMITS[dtype][0]
    where, options = points().to(DEVICE), {**NEAREST, "border": border, "border_value": low}
    planes = labels(dtype, 2, 3, 7, 9).to(DEVICE)
    for image in (planes, planes.to(memory_format=torch.channels_last)):
        below = [None, None]
        if border == "transparent":
            below = [labels(dtype, 2, 3, *size, seed=2).to(DEVICE) for size in (SIZE, (3, 4))]
        found = {}
        for backend in ("reference", "cuda"):
            options["backend"] = backend
            warped = wk.warp_affine(image, turns, size=SIZE, background=below[0], **options)
            mapped = wk.remap(image, where, background=below[1], **options)
            assert warped.dtype == mapped.dtype == image.dtype
            found[backend] = [result.cpu().numpy() for result in (warped, mapped)]
        for one, other in zip(found["cuda"], found["reference"], strict=True):
            assert np.array_equal(one, other)


mark_all(globals())
