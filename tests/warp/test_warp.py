"""Warps compared with the definition and with cv2, and general properties."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.support import naive_warp as oracle
from tests.support.inputs import (
    BACKENDS,
    RULES,
    affine_matrices,
    images,
    noise,
    perspective_matrices,
)
from tests.support.installed_opencv import installed_opencv
from tests.support.pairs_of_values import pairs_of_values
from tests.support.tolerances import TOLERANCE
from warpkit.engine.backends import grid_sample
from warpkit.engine.definitions.rules import BORDERS, INTERPOLATIONS, SamplingRule

SIZE = (6, 5)


def expected(image, matrix, rule, outside, size=SIZE, points=None):
    """The definition's result for a broadcast batch; `outside` broadcasts to it."""
    interpolation, border = rule[:2]
    batch = torch.broadcast_shapes(image.shape[:-3], matrix.shape[:-2])
    images_ = image.expand(*batch, *image.shape[-3:]).double().numpy()
    matrices = matrix.expand(*batch, *matrix.shape[-2:]).double().numpy()
    shape = (*batch, image.shape[-3], *size)
    outsides = np.broadcast_to(np.asarray(outside, dtype=np.float64), shape)
    result = np.empty(shape)
    for i in np.ndindex(*batch):
        points = oracle.source_points(matrices[i], size)
        result[i] = oracle.sample(images_[i], points, interpolation, border, outsides[i])
    return torch.from_numpy(result)


def background_for(image, matrix, border, size=SIZE):
    if border != "transparent":
        return None
    batch = torch.broadcast_shapes(image.shape[:-3], matrix.shape[:-2])
    return noise(*batch, image.shape[-3], *size, seed=20).to(image.dtype)


@pytest.mark.parametrize(
    ("name", "interpolation", "border"), pairs_of_values(list(images()), INTERPOLATIONS, BORDERS)
)
def test_every_image_agrees_with_the_definition(name, interpolation, border):
    image, matrix = images()[name], affine_matrices()["batch of turns"][-1]
    background = background_for(image, matrix, border)
    outside = background.numpy() if background is not None else 0.25
    out = wk.warp_affine(
        image,
        matrix,
        size=SIZE,
        interpolation=interpolation,
        border=border,
        border_value=0.25,
        background=background,
    )
    truth = expected(image, matrix, (interpolation, border), outside)
    torch.testing.assert_close(out, truth, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize(
    ("name", "interpolation", "border"),
    pairs_of_values(list(affine_matrices()), INTERPOLATIONS, BORDERS),
)
def test_every_matrix_agrees_with_the_definition(name, interpolation, border):
    image, matrix = images()["one for all"], affine_matrices()[name]
    if name == "far outside" and border not in ("constant", "replicate", "transparent"):
        # the definition walks back into the image step by step
        matrix = matrix / torch.tensor([1, 1, 500.0])
    background = background_for(image, matrix, border)
    outside = background.numpy() if background is not None else 0.25
    out = wk.warp_affine(
        image,
        matrix,
        size=SIZE,
        interpolation=interpolation,
        border=border,
        border_value=0.25,
        background=background,
    )
    truth = expected(image, matrix, (interpolation, border), outside)
    torch.testing.assert_close(out, truth, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize(("interpolation", "border"), RULES)
@pytest.mark.parametrize("name", perspective_matrices())
def test_every_perspective_agrees_with_the_definition(name, interpolation, border):
    image, matrix = images()["odd"], perspective_matrices()[name]
    background = background_for(image, matrix, border)
    outside = background.numpy() if background is not None else 0.25
    out = wk.warp_perspective(
        image,
        matrix,
        size=SIZE,
        interpolation=interpolation,
        border=border,
        border_value=0.25,
        background=background,
    )
    truth = expected(image, matrix, (interpolation, border), outside)
    torch.testing.assert_close(out, truth, rtol=0, atol=TOLERANCE["reference float64"])


@pytest.mark.parametrize(("interpolation", "border"), RULES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_floating_types_stay_within_their_rounding(dtype, interpolation, border):
    image, matrix = images(dtype)["odd"], affine_matrices()["batch of turns"]
    background = background_for(image, matrix, border)
    outside = background.double().numpy() if background is not None else 0.25
    out = wk.warp_affine(
        image,
        matrix,
        size=SIZE,
        interpolation=interpolation,
        border=border,
        border_value=0.25,
        background=background,
    )
    assert out.dtype == dtype
    truth = expected(image, matrix, (interpolation, border), outside)
    name = "reference float32" if dtype == torch.float32 else str(dtype).removeprefix("torch.")
    torch.testing.assert_close(out.double(), truth, rtol=0, atol=TOLERANCE[name])


@pytest.mark.parametrize(("interpolation", "border"), RULES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16])
def test_integers_are_rounded_half_to_even_and_saturated(dtype, interpolation, border):
    image, matrix = images(dtype)["odd"], affine_matrices()["batch of turns"]
    limits = torch.iinfo(dtype)
    background = None
    if border == "transparent":
        background = noise(2, 3, *SIZE, dtype=dtype, seed=21)
    out = wk.warp_affine(
        image,
        matrix,
        size=SIZE,
        interpolation=interpolation,
        border=border,
        border_value=1e9,
        background=background,
    )
    assert out.dtype == dtype
    outside = limits.max if background is None else background.double().numpy()
    truth = expected(image, matrix, (interpolation, border), outside)
    truth = truth.numpy().round().clip(limits.min, limits.max)  # numpy also rounds half to even
    assert np.array_equal(out.to(torch.int64).numpy(), truth.astype(np.int64))


@pytest.mark.parametrize(
    ("name", "interpolation", "border"), pairs_of_values(list(images()), INTERPOLATIONS, BORDERS)
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_grid_sample_gives_the_references_result_or_a_reason(dtype, name, interpolation, border):
    image = images(dtype)[name]
    rule = SamplingRule(interpolation, border)
    for matrix in (affine_matrices()["batch of turns"][-1], perspective_matrices()["mild"][0]):
        warp = wk.warp_affine if len(matrix) == 2 else wk.warp_perspective
        options = {
            "size": SIZE,
            "interpolation": interpolation,
            "border": border,
            "border_value": 0.25,
            "background": background_for(image, matrix, border),
        }
        reasons = grid_sample.unsupported_reasons(image, rule)
        if reasons:
            with pytest.raises(ValueError, match=reasons[0]):
                warp(image, matrix, backend="grid_sample", **options)
            continue
        out = warp(image, matrix, backend="grid_sample", **options)
        truth = warp(image, matrix, backend="reference", **options)
        tolerance = TOLERANCE[f"grid_sample {str(dtype).removeprefix('torch.')}"]
        torch.testing.assert_close(out, truth, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 11])
def test_ties_go_to_even_in_every_backend(dtype, length):
    image = noise(1, 1, length, dtype=dtype)
    x = torch.arange(-3, length + 3) + 0.5
    points = torch.stack((x, torch.zeros_like(x)), dim=-1)[None]
    for border in ("constant", "replicate", "reflect"):
        options = {"interpolation": "nearest", "border": border}
        truth = wk.remap(image, points, backend="reference", **options)
        assert torch.equal(wk.remap(image, points, backend="grid_sample", **options), truth)


def test_grid_sample_rejects_only_what_torch_cannot_do():
    image = noise(1, 3, 4, 4)
    refused = {
        rule for rule in RULES if grid_sample.unsupported_reasons(image, SamplingRule(*rule))
    }
    assert refused == {(i, b) for i, b in RULES if i == "lanczos4" or b == "wrap"}


CV2_INTERPOLATION = {"nearest": 0, "bilinear": 1, "bicubic": 2}
CV2_BORDER = {"constant": 0, "replicate": 1, "reflect": 2, "wrap": 3, "reflect_101": 4}


@pytest.mark.parametrize("border", CV2_BORDER)
@pytest.mark.parametrize("interpolation", CV2_INTERPOLATION)
@pytest.mark.parametrize("perspective", [False, True])
def test_float_images_agree_with_cv2(perspective, interpolation, border):
    cv2 = installed_opencv()
    if cv2.__version__.startswith("4"):
        pytest.skip("OpenCV 4 rounds positions to 1/32 pixel; its own arithmetic is tested apart")
    image = noise(1, 3, 37, 53, dtype=torch.float32)
    matrix = wk.rotation_matrix((26.0, 18.0), 33.0, 1.1).double()
    if perspective:
        row = torch.tensor([[1e-3, -2e-3, 1.0]], dtype=torch.float64)
        matrix = torch.cat((matrix, row))
    theirs = cv2.warpPerspective if perspective else cv2.warpAffine
    flags, mode = CV2_INTERPOLATION[interpolation], CV2_BORDER[border]
    array = image[0].permute(1, 2, 0).numpy()
    truth = theirs(array, matrix.numpy(), (47, 41), None, flags, mode, (0.25, 0.25, 0.25))
    ours = wk.warp_perspective if perspective else wk.warp_affine
    out = ours(
        image,
        matrix,
        size=(41, 47),
        interpolation=interpolation,
        border=border,
        border_value=0.25,
    )
    difference = (out[0].permute(1, 2, 0) - torch.from_numpy(truth)).abs()
    assert difference.max() < TOLERANCE["cv2 5 float32"]


@pytest.mark.parametrize("width", [512, 2048, 8192])
def test_float32_is_far_more_accurate_than_a_normalised_grid(width):
    """At least 4 times; with float64 coordinates, hundreds of times at large widths."""
    image = noise(1, 1, 16, width)
    matrix = wk.rotation_matrix(((width - 1) / 2, 7.5), torch.tensor(0.31), 1.01).double()
    truth = wk.warp_affine(image, matrix)
    ours = (wk.warp_affine(image.float(), matrix) - truth).abs().max()
    theta = wk.to_theta(matrix, (16, width), (16, width)).float()[None]
    grid = torch.nn.functional.affine_grid(theta, [1, 1, 16, width], align_corners=False)
    plain = torch.nn.functional.grid_sample(image.float(), grid, align_corners=False)
    assert 4 * ours < (plain - truth).abs().max()
    assert ours < TOLERANCE["reference float32"]


@pytest.mark.parametrize(("interpolation", "border"), RULES)
def test_a_batch_equals_a_loop(interpolation, border):
    image, matrix = images()["odd"], affine_matrices()["batch of turns"]
    background = background_for(image, matrix, border)
    options = {"size": SIZE, "interpolation": interpolation, "border": border}
    whole = wk.warp_affine(image, matrix, background=background, **options)
    for i in range(2):
        one = background[i] if background is not None else None
        assert torch.equal(whole[i], wk.warp_affine(image[i], matrix[i], background=one, **options))


def test_python_numbers_keep_their_digits_under_any_default_type():
    image, rows, point = noise(2, 5, 6), [[1.1, 0.2, 0.3], [0.1, 0.9, -0.7]], [[0.1, 0.7]]
    exact = wk.warp_affine(image, torch.tensor(rows, dtype=torch.float64))
    assert torch.equal(wk.warp_affine(image, rows), exact)
    exact = wk.sample_pixels(image, torch.tensor(point, dtype=torch.float64))
    assert torch.equal(wk.sample_pixels(image, point), exact)
    assert torch.equal(wk.remap(image, [point])[:, 0], exact)


def test_images_and_matrices_broadcast_over_several_dimensions():
    image, matrix = noise(2, 1, 3, 5, 6), wk.rotation_matrix((2.0, 2.0), torch.rand(4) * 90)
    whole = wk.warp_affine(image, matrix)
    assert whole.shape == (2, 4, 3, 5, 6)
    for i, j in np.ndindex(2, 4):
        assert torch.equal(whole[i, j], wk.warp_affine(image[i, 0], matrix[j]))


def test_a_broadcast_image_is_not_copied():
    """No tensor that is saved or made is larger than the image, 40 MB."""
    image = torch.zeros(1, 1, 2000, 2500, dtype=torch.float64)
    matrices = wk.rotation_matrix((1250.0, 1000.0), torch.arange(40.0))
    with torch.profiler.profile(profile_memory=True) as profile:
        wk.warp_affine(image, matrices, size=(8, 8))
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest < 1e6


@pytest.mark.parametrize("value", [0.5, [0.1, 0.2, 0.3], torch.tensor([0.1, 0.2, 0.3])])
def test_border_values_for_all_or_each_channel(value):
    out = wk.warp_affine(torch.zeros(2, 3, 4, 4), [[1.0, 0, 100], [0, 1, 0]], border_value=value)
    wanted = torch.as_tensor(value).expand(3)[:, None, None].expand(2, 3, 4, 4)
    assert torch.equal(out, wanted)


def test_border_values_for_each_item():
    value = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    out = wk.warp_affine(torch.zeros(2, 3, 4, 4), [[1.0, 0, 100], [0, 1, 0]], border_value=value)
    assert torch.equal(out, value[:, :, None, None].expand(2, 3, 4, 4))


def test_torchs_names_of_borders_are_accepted():
    image, matrix = images()["odd"], affine_matrices()["shrink"]
    for alias, name in (("zeros", "constant"), ("border", "replicate")):
        ours = wk.warp_affine(image, matrix, border=name)
        assert torch.equal(wk.warp_affine(image, matrix, border=alias), ours)


def test_channels_last_is_kept():
    image = images()["channels-last"]
    out = wk.warp_affine(image, affine_matrices()["batch of turns"])
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert wk.warp_affine(images()["odd"], affine_matrices()["shrink"]).is_contiguous()


def test_an_inverse_matrix_gives_the_same_result():
    image, matrix = images()["odd"], affine_matrices()["batch of turns"]
    there = wk.warp_affine(image, matrix, size=SIZE)
    back = wk.warp_affine(image, wk.invert(matrix), size=SIZE, inverse=True)
    torch.testing.assert_close(there, back, rtol=0, atol=TOLERANCE["reference float64"])


def test_remap_and_sample_pixels_read_the_same_points():
    image, points = noise(2, 3, 5, 6), noise(2, 4, 7, 2) * 8 - 1
    for interpolation, border in RULES:
        if border == "transparent":
            continue
        options = {"interpolation": interpolation, "border": border, "border_value": 0.3}
        field = wk.remap(image, points, **options)
        listed = wk.sample_pixels(image, points.reshape(2, 28, 2), **options)
        assert torch.equal(field.reshape(2, 3, 28), listed)
        truth = oracle.sample(
            image[0].numpy(), points[0].numpy(), interpolation, border, np.full((3, 4, 7), 0.3)
        )
        np.testing.assert_allclose(
            field[0].numpy(), truth, rtol=0, atol=TOLERANCE["reference float64"]
        )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("images_", "matrices"),
    [((0,), ()), ((1,), (0,)), ((0,), (0,)), ((2, 0), (2, 1)), ((0,), (1,))],
)
def test_an_empty_batch_gives_an_empty_batch_with_gradients(backend, images_, matrices):
    image = torch.zeros(*images_, 3, 4, 5, requires_grad=True)
    for rows, warp in ((2, wk.warp_affine), (3, wk.warp_perspective)):
        matrix = torch.eye(3)[:rows].expand(*matrices, rows, 3).clone().requires_grad_()
        out = warp(image, matrix, size=(6, 7), backend=backend)
        assert out.shape == (*torch.broadcast_shapes(images_, matrices), 3, 6, 7)
        out.sum().backward()
        assert image.grad is not None
        assert not image.grad.any()


def test_no_points_give_an_empty_result():
    assert wk.sample_pixels(noise(2, 3, 5, 6), torch.zeros(0, 2)).shape == (2, 3, 0)


@pytest.mark.parametrize("batch", ["expanded", "strided"])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_channels_last_is_kept_for_any_strides_of_the_batch(batch, backend):
    image = noise(4, 3, 5, 6).to(memory_format=torch.channels_last)
    image = image[:1].expand(4, -1, -1, -1) if batch == "expanded" else image[::2]
    out = wk.warp_affine(image, [[1, 0, 1], [0, 1, 0]], backend=backend)
    assert out.is_contiguous(memory_format=torch.channels_last)
