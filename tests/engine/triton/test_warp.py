"""The CUDA kernels against the reference: forward, and all first gradients.

On a machine with a GPU: pytest -m cuda. Without one, the last test runs these files once more in a
process of its own, where Triton interprets the same kernels on CPU tensors.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import cycle, permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support import ROOT
from tests.support.cuda_comparison import (
    DEVICE,
    HERE,
    SIZE,
    check,
    combinations,
    mark_all,
    points,
    quiet_interpreter,  # noqa: F401
    run,
)
from tests.support.inputs import affine_matrices, images, noise, perspective_matrices
from tests.support.tolerances import TOLERANCE
from warpkit.engine import triton as cuda
from warpkit.engine.definitions.maps import inverse_map
from warpkit.engine.definitions.rules import BORDERS, SamplingRule

FILES = [__file__]
FILES += [
    str(Path(__file__).with_name(f"test_{name}.py"))
    for name in ("correlation", "depth", "extremes", "jpeg", "labels")
]


MATRIX_RULES = [
    *(("affine", rule, "constant") for rule in ("nearest", "bilinear", "bicubic")),
    ("affine", "bilinear", "transparent"),
    ("perspective", "nearest", "constant"),
    ("perspective", "bilinear", "constant"),
    ("perspective", "bilinear", "reflect"),
    ("perspective", "bicubic", "transparent"),
]
"""Under a matrix, borders of which pixels are missing have the gather, of two kinds."""


@pytest.mark.parametrize(
    ("kind", "interpolation", "border"),
    dict.fromkeys(
        combinations(("affine", "points"), ("nearest", "bilinear", "bicubic"), BORDERS)
        + MATRIX_RULES
    ),
)
def test_every_rule_agrees_with_the_reference(kind, interpolation, border):
    """One image and one map, since each takes the interpreter 0.4 s."""
    image = images(torch.float32)["odd"][:1, :1]
    if kind == "points":
        check(wk.remap, image, points()[:1], interpolation, border)
    elif kind == "affine":
        matrix = affine_matrices()["batch of turns"][:1]
        check(wk.warp_affine, image, matrix, interpolation, border)
    else:
        matrix = perspective_matrices()["mild"][:1]
        check(wk.warp_perspective, image, matrix, interpolation, border)


WHOLE_BORDERS = [border for border in BORDERS if border != "transparent"]
WAYS = ("nearest", "bilinear", "bicubic")


@pytest.mark.parametrize(
    ("pair", "kind", "interpolation"),
    list(zip(permutations(WHOLE_BORDERS, 2), cycle(("affine", "points")), cycle(WAYS))),
)
def test_pairs_of_borders_agree_with_the_reference(pair, kind, interpolation):
    """With a matrix, too, pairs of borders compute the image's gradient by a scatter."""
    image = images(torch.float32)["odd"][:1, :1]
    if kind == "points":
        check(wk.remap, image, points()[:1], interpolation, pair)
    else:
        matrix = affine_matrices()["batch of turns"][:1]
        check(wk.warp_affine, image, matrix, interpolation, pair)


@pytest.mark.parametrize(
    ("warp", "where", "border"),
    [
        (wk.warp_affine, affine_matrices()["batch of turns"][:1], "constant"),
        (wk.remap, points()[:1], "reflect"),
    ],
)
def test_lanczos4_agrees_with_the_reference(warp, where, border):
    check(warp, images(torch.float32)["odd"][:1, :1], where, "lanczos4", border)


@pytest.mark.parametrize("interpolation", ["spline3", "spline5"])
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect"])
def test_splines_agree_with_the_reference(interpolation, border):
    image = images(torch.float32)["odd"][:1, :1]
    check(wk.remap, image, points()[:1], interpolation, border)
    check(wk.warp_affine, image, affine_matrices()["batch of turns"][:1], interpolation, border)


@pytest.mark.parametrize("name", affine_matrices())
def test_every_matrix_agrees_with_the_reference(name):
    image = images(torch.float32)["odd"][:, :2]
    image = image if name == "batch of turns" else image[:1]
    check(wk.warp_affine, image, affine_matrices()[name], "bilinear", "constant")


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_a_horizon_in_the_image_agrees_with_the_reference(interpolation):
    matrix = perspective_matrices()["horizon"]
    image = images(torch.float32)["odd"][:1]
    check(wk.warp_perspective, image, matrix, interpolation, "constant")


@pytest.mark.parametrize(
    ("name", "border"),
    [
        *((name, "constant") for name in images()),
        *((name, "wrap") for name in ("1x1", "channels-last", "deep batch")),
    ],
)
def test_every_image_agrees_with_the_reference(name, border):
    turn = affine_matrices()["batch of turns"][0]
    check(wk.warp_affine, images(torch.float32)[name], turn, "bilinear", border)


@pytest.mark.parametrize(
    ("dtype", "interpolation", "border"),
    [
        (torch.float16, "bicubic", "constant"),
        (torch.bfloat16, "bilinear", "replicate"),
        (torch.bfloat16, "bilinear", "constant"),
        (torch.float64, "bicubic", "constant"),
        (torch.float64, "bilinear", "replicate"),
    ],
)
def test_every_floating_type_agrees_with_the_reference(dtype, interpolation, border):
    matrix = affine_matrices()["batch of turns"][:1]
    check(wk.warp_affine, images(dtype)["odd"][:1, :2], matrix, interpolation, border)


@pytest.mark.parametrize(
    ("dtype", "interpolation"),
    [
        (torch.uint8, "nearest"),
        (torch.uint8, "bilinear"),
        (torch.uint8, "bicubic"),
        (torch.int16, "bicubic"),
        (torch.uint16, "bicubic"),
    ],
)
def test_integers_equal_the_references(dtype, interpolation):
    image, matrix = images(dtype)["odd"].to(DEVICE), affine_matrices()["batch of turns"].to(DEVICE)
    options = {"size": SIZE, "interpolation": interpolation, "border_value": 17}
    ours = wk.warp_affine(image, matrix, backend="cuda", **options)
    truth = wk.warp_affine(image, matrix, backend="reference", **options)
    assert ours.dtype == dtype
    assert np.array_equal(ours.cpu().numpy(), truth.cpu().numpy())


@pytest.mark.parametrize(
    ("image_batch", "batch", "border"),
    [
        ((1,), (3,), "constant"),
        ((2, 1), (1, 2), "reflect_101"),
        ((1, 2), (2, 2), "constant"),
        ((2, 1, 2), (2, 1), "constant"),
        ((2, 1, 2), (2, 1), "reflect_101"),
        ((2,), (), "constant"),
    ],
)
def test_batches_broadcast(image_batch, batch, border):
    """Also many maps of one image, and an image repeated in the middle of a batch."""
    image = noise(*image_batch, 1, 5, 6, dtype=torch.float32, seed=44)
    turns = noise(6, seed=45)[: math.prod(batch)].reshape(batch) * 300
    check(wk.warp_affine, image, wk.rotation_matrix((2.5, 2.0), turns, 0.9), "bilinear", border)


def test_ties_go_to_even():
    image = noise(1, 1, 6, 6, dtype=torch.float32)
    matrix = torch.tensor([[1.0, 0, 0.5], [0, 1, 0.5]], dtype=torch.float64)
    check(wk.warp_affine, image, matrix, "nearest", "constant")


@pytest.mark.parametrize("rows", [[[0.0, 0, 2], [0, 0, 1]], [[1.0, 1, 0], [1, 1, 0.5]]])
def test_a_map_onto_a_point_or_a_line_agrees_with_the_reference(rows):
    image, inverse = noise(1, 1, 6, 6), torch.tensor(rows, dtype=torch.float64)

    def warp(image, matrix, **options):
        return wk.warp_affine(image, matrix, inverse=True, **options)

    check(warp, image, inverse, "bilinear", "constant")


def test_singular_and_nan_matrices_show_the_border():
    matrix = torch.tensor([[[0.0, 0, 0], [0, 0, 0]], [[torch.nan, 0, 0], [0, 1, 0]]]).double()
    check(wk.warp_affine, noise(2, 1, 5, 5), matrix, "bilinear", "constant")


def test_a_missing_tap_does_not_leak():
    image = noise(1, 1, 4, 4, dtype=torch.float32)
    image[..., 0, 0] = torch.nan
    matrix = torch.tensor([[1.0, 0, 3.5], [0, 1, 3.5]], dtype=torch.float64)
    options = {"size": (8, 8), "border_value": 0.0}
    ours = wk.warp_affine(image.to(DEVICE), matrix.to(DEVICE), backend="cuda", **options)
    truth = wk.warp_affine(image, matrix, backend="reference", **options)
    torch.testing.assert_close(ours.cpu(), truth, rtol=0, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("rows", [2, 3])
def test_matrices_are_inverted_as_by_the_reference(rows):
    matrix = noise(6, rows, 3, seed=46) * 4 - 2
    matrix[1], matrix[2, 1, 1] = 0, torch.nan
    matrix[0] *= 1e-80 if rows == 2 else 1e-60
    matrix = matrix.to(DEVICE).requires_grad_()
    ours, truth = cuda.inverse_map(matrix), inverse_map(matrix)
    assert torch.equal(ours.nan_to_num(7.0), truth.nan_to_num(7.0))
    weight = noise(*ours.shape, seed=47).to(DEVICE)
    (mine,), (theirs,) = (torch.autograd.grad(x, matrix, weight) for x in (ours, truth))
    assert (theirs[:3] == 0).all()
    assert torch.equal(mine[:3], theirs[:3])
    scale = float(theirs.abs().max())
    torch.testing.assert_close(mine, theirs, rtol=0, atol=TOLERANCE["cuda float64"] * scale)
    good = matrix.detach()[3:4].requires_grad_()
    assert torch.autograd.gradgradcheck(cuda.inverse_map, good)


@pytest.mark.parametrize("border", ["constant", "wrap"])
def test_gradients_repeat_bit_by_bit_and_count_as_deterministic(border):
    image, matrix = noise(1, 1, 9, 9, dtype=torch.float32), affine_matrices()["batch of turns"]
    value = torch.zeros(1)
    torch.use_deterministic_algorithms(True)
    try:
        first, second = (
            run(
                wk.warp_affine,
                "cuda",
                image,
                matrix,
                value,
                interpolation="bilinear",
                border=border,
            )
            for _ in range(2)
        )
    finally:
        torch.use_deterministic_algorithms(False)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def test_fixed_point_keeps_gradients_of_any_size():
    """1e-30 beside 1e30 in other channels; a NaN does not leave its channel."""
    image = torch.rand(1, 4, 5, 5, device=DEVICE, requires_grad=True)
    out = wk.remap(image, points()[:1].to(DEVICE), backend="cuda")
    scale = torch.tensor([1e-30, 1.0, 1e30, torch.nan], device=DEVICE)[:, None, None]
    (ours,) = torch.autograd.grad(out, image, (noise(*out.shape).to(out) * scale))
    out = wk.remap(image, points()[:1].to(DEVICE), backend="reference")
    (truth,) = torch.autograd.grad(out, image, (noise(*out.shape).to(out) * scale))
    ours, truth = ours[:, :3] / scale[:3], truth[:, :3] / scale[:3]
    torch.testing.assert_close(ours, truth, rtol=0, atol=TOLERANCE["cuda float32"])


@pytest.mark.parametrize("warp", ["affine", "points"])
def test_gradcheck_to_the_second_order(warp):
    image = noise(1, 1, 4, 4).to(DEVICE).requires_grad_()
    where = points()[:1, 1:2, :2].clone() if warp == "points" else affine_matrices()["grow"]
    where = where.to(DEVICE).requires_grad_()

    def call(image, where):
        if warp == "points":
            return wk.remap(image, where, backend="cuda")
        return wk.warp_affine(image, where, size=(2, 2), backend="cuda")

    assert torch.autograd.gradcheck(call, (image, where), fast_mode=DEVICE == "cpu")
    assert torch.autograd.gradgradcheck(call, (image, where), fast_mode=True)


def test_vmap_equals_a_loop():
    image, matrices = noise(2, 5, 5), affine_matrices()["batch of turns"]
    image, matrices = image.to(DEVICE), matrices.to(DEVICE)
    out = torch.vmap(lambda m: wk.warp_affine(image, m, backend="cuda"))(matrices)
    assert torch.equal(out, wk.warp_affine(image, matrices, backend="cuda"))


@pytest.mark.skipif(DEVICE != "cuda", reason="needs a CUDA device")
def test_calls_are_captured_in_a_cuda_graph_without_synchronising():
    image = torch.rand(2, 3, 32, 32, device=DEVICE, requires_grad=True)
    matrix = affine_matrices()["batch of turns"].to(DEVICE).requires_grad_()

    def step():
        out = wk.warp_affine(image, matrix, backend="cuda")
        return out, *torch.autograd.grad(out.square().sum(), (image, matrix))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        truth = step()  # also compiles the kernels
        torch.cuda.set_sync_debug_mode("error")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step()
    graph.replay()
    for a, b in zip(found, truth, strict=True):
        assert torch.equal(a, b)


@pytest.mark.skipif(DEVICE != "cuda", reason="needs a CUDA device")
def test_images_of_more_than_2_31_elements():
    image = torch.zeros(1, 1, 2**16, 2**15 + 1, dtype=torch.uint8, device=DEVICE)
    image[..., -1, -1] = 200
    matrix = torch.eye(3, dtype=torch.float64, device=DEVICE)[:2]
    out = wk.warp_affine(image, matrix, backend="cuda")
    assert out[0, 0, -1, -1] == 200
    assert out.count_nonzero() == 1


mark_all(globals())


def test_unsupported_tensors_are_rejected_with_a_reason():
    for image in (torch.rand(1, 2, 2), torch.empty(1, 2, 2, device="meta")):
        reasons = cuda.unsupported_reasons(image, SamplingRule("bilinear", "constant"))
        if not (cuda.INTERPRETED and image.device.type == "cpu"):
            assert reasons == [f"needs a CUDA tensor, got {image.device}"]


@pytest.mark.skipif(HERE, reason="the kernels run in this process")
def test_the_kernels_pass_these_tests_under_the_interpreter():
    """In a new process, since Triton reads the variable on import, and torch.compile would too."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *FILES]
    root = ROOT
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
