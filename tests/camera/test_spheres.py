"""Views of the sphere, compared with the numpy definition, also at the seam and the poles."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support import naive_sphere
from tests.support.inputs import noise
from tests.support.naive_lens import shown
from tests.support.naive_sphere import turn
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.engine.definitions import sphere as definition

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos4")
TURNS = {
    "forward": None,
    "across the seam": turn(180),
    "anywhere": turn(77, -40, 20),
    "up": turn(30, 89.9),
    "down": turn(-170, -89.9, 10),
}
SIZES = [(8, 16), (7, 15), (1, 2), (2, 1), (5, 4)]
"""Spheres: an odd width has no column half a turn round, and few rows let taps cross two poles."""
FISHEYE = [0.02, 0.001, 0.0, 0.0]


def double(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(
    ("direction", "pixel"),
    [
        ((0, 0, 1), (3.5, 1.5)),
        ((1, 0, 0), (5.5, 1.5)),
        ((1, 0, 1), (4.5, 1.5)),
        ((0, 1, 1), (3.5, 2.5)),
        ((-1e-300, 0, -2), (-0.5, 1.5)),
        ((0, 0, -2), (7.5, 1.5)),
        ((0, 3, 0), (3.5, 3.5)),
        ((-0.0, -1, -0.0), (3.5, -0.5)),
    ],
)
def test_directions_follow_the_convention(direction, pixel):
    x, y, z = double(direction)
    found = definition.places(x, y, z, (4, 8))
    assert found.tolist() == pytest.approx(pixel, abs=1e-12)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("name", TURNS)
def test_a_view_matches_the_definition(interpolation, name):
    for seed, size in enumerate(SIZES):
        sphere = noise(2, *size, seed=seed)
        options: dict[str, Any] = {"field_of_view": 100.0, "interpolation": interpolation}
        options["rotation"] = TURNS[name]
        seen = camera.from_sphere(sphere, (4, 7), **options)
        rotation = TURNS[name]
        truth = naive_sphere.view(sphere.numpy(), (4, 7), rotation, interpolation, field=100.0)
        assert np.abs(seen.numpy() - truth).max() < TOLERANCE["reference float64"]
        single = camera.from_sphere(sphere.float(), (4, 7), **options)
        if interpolation != "nearest":  # float32 copies the same pixels as float64
            assert np.abs(single.numpy() - truth).max() < TOLERANCE["reference float32"]


def test_the_pole_is_the_mean_of_opposite_pixels():
    sphere = noise(1, 4, 8)
    up = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    seen = camera.from_sphere(sphere, (3, 3), field_of_view=90, rotation=up)
    # its longitude is 0: between columns 3 and 4 of the first row, and their opposites
    middle = sphere[0, 0, [3, 4, 7, 0]].mean()
    assert float(seen[0, 1, 1]) == pytest.approx(float(middle), abs=1e-12)


@pytest.mark.parametrize("k", [None, FISHEYE])
@pytest.mark.parametrize("field", [90.0, 200.0, 340.0])
def test_a_fisheye_can_see_behind_the_camera(field, k):
    sphere, rotation = noise(2, 8, 16), TURNS["anywhere"]
    options = {"field_of_view": field, "rotation": rotation, "model": "fisheye"}
    seen = camera.from_sphere(sphere, (5, 7), distortion=k, **options)
    coefficients = [0.0] * 4 if k is None else k
    arguments = {"field": field, "fisheye": coefficients}
    truth = naive_sphere.view(sphere.numpy(), (5, 7), rotation, **arguments)
    bent = np.pi * (1 + coefficients[0] * np.pi**2 + coefficients[1] * np.pi**4)
    for i, j in np.ndindex(5, 7):
        if np.hypot(j - 3, i - 2) * np.radians(field) / 7 > bent:
            truth[:, i, j] = 0  # beyond 180 degrees, in the corners
    assert np.abs(seen.numpy() - truth).max() < TOLERANCE["reference float64"]


def test_a_fisheyes_corners_beyond_180_degrees_are_empty():
    seen = camera.from_sphere(
        torch.ones(1, 8, 16), (9, 9), field_of_view=360, model="fisheye", interpolation="bicubic"
    )
    radius = np.hypot(*np.mgrid[-4:5, -4:5])
    assert np.allclose(seen[0].numpy(), np.where(radius <= 4.5, 1.0, 0.0), atol=1e-6)


def test_a_lens_bends_the_view():
    k, matrix = [-0.2, 0.05, 0.001, -0.002, 0.01], [[5.0, 0, 3], [0, 4.5, 2], [0, 0, 1]]
    sphere, rotation = noise(2, 8, 16), TURNS["anywhere"]
    options = {"camera_matrix": double(matrix), "rotation": rotation}
    seen = camera.from_sphere(sphere, (5, 7), distortion=k, **options)
    pixels = wk.pixel_grid((5, 7)).double().flatten(0, 1)
    ideal, converged = camera.undistort_points(pixels, double(matrix), double(k))
    assert converged.all()
    for n, (x, y) in enumerate(ideal.tolist()):
        ray = np.array([(x - 3) / 5, (y - 2) / 4.5, 1])
        assert shown(ray[:2], k) * [5, 4.5] + [3, 2] == pytest.approx(pixels[n].numpy(), abs=1e-9)
        truth = naive_sphere.read(sphere.numpy(), rotation.T @ ray, "bilinear")
        assert np.abs(seen.flatten(1)[:, n].numpy() - truth).max() < 1e-9


def test_batches_broadcast_and_equal_single_items():
    spheres, rotations = noise(2, 1, 3, 6, 12), double(np.stack(list(TURNS.values())[2:]))
    fields = double([60.0, 90.0, 120.0])
    options: dict[str, Any] = {"interpolation": "lanczos4"}
    seen = camera.from_sphere(spheres, (3, 5), field_of_view=fields, rotation=rotations, **options)
    assert seen.shape == (2, 3, 3, 3, 5)
    for i, j in np.ndindex(2, 3):
        one = camera.from_sphere(
            spheres[i, 0], (3, 5), field_of_view=fields[j], rotation=rotations[j], **options
        )
        assert torch.equal(seen[i, j], one)


@pytest.mark.parametrize("name", ["anywhere", "up"])
def test_every_image_type(name):
    rotation = TURNS[name]
    options = {"field_of_view": 90.0, "rotation": rotation, "interpolation": "bicubic"}
    for dtype in (torch.uint8, torch.int16, torch.uint16):
        sphere = noise(2, 6, 12, dtype=dtype)
        truth = camera.from_sphere(sphere.double(), (4, 5), **options)
        limits = torch.iinfo(dtype)
        seen = camera.from_sphere(sphere, (4, 5), **options)
        assert seen.dtype == dtype
        assert torch.equal(seen.double(), truth.round().clamp(limits.min, limits.max))
    for dtype in (torch.float16, torch.bfloat16):
        sphere = noise(2, 6, 12, dtype=dtype)
        seen = camera.from_sphere(sphere, (4, 5), **options)
        truth = camera.from_sphere(sphere.double(), (4, 5), **options)
        assert seen.dtype == dtype
        near = TOLERANCE[str(dtype).removeprefix("torch.")]
        assert (seen.double() - truth).abs().max() < near
    labels = noise(2, 6, 12, dtype=torch.int32)
    seen = camera.from_sphere(
        labels, (4, 5), field_of_view=90, rotation=rotation, interpolation="nearest"
    )
    assert set(seen.flatten().tolist()) <= set(labels.flatten().tolist())
    last = noise(2, 3, 6, 12).to(memory_format=torch.channels_last)
    seen = camera.from_sphere(last, (4, 5), **options)
    assert seen.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(
        seen, camera.from_sphere(last.contiguous(), (4, 5), **options), atol=1e-13
    )


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_view_of_a_constant_is_that_constant_everywhere(interpolation):
    for rotation in TURNS.values():
        seen = camera.from_sphere(
            torch.ones(1, 5, 9, dtype=torch.float64), (6, 6), field_of_view=170.0,
            rotation=rotation, interpolation=interpolation,
        )  # fmt: skip
        assert (seen - 1).abs().max() < TOLERANCE["reference float64"]


def mapping(model, interpolation="bicubic", size=(3, 4), **options):
    def see(sphere, field, rotation, k):
        seen = camera.from_sphere(
            sphere, size, field_of_view=field, rotation=rotation, distortion=k, model=model,
            interpolation=interpolation, **options,
        )  # fmt: skip
        shown_ = camera.to_sphere(
            seen[..., :3], (3, 5), field_of_view=field, rotation=rotation, distortion=k,
            model=model, interpolation=interpolation,
        )  # fmt: skip
        return seen, shown_

    return see


@pytest.mark.parametrize("model", ["brown", "fisheye"])
def test_gradients_to_image_field_rotation_and_lens(model):
    field = double(200.0 if model == "fisheye" else 95.0)
    k = double([-0.1, 0.02, 0.001, -0.002] if model == "brown" else FISHEYE)
    # the last coefficient multiplies the ninth power of angles above 2
    see, scales = mapping(model), double([1.0, 0.1, 0.01, 0.001])
    inputs = [noise(1, 4, 6), field, double(turn(40, 60, 20)), k / scales]
    inputs = [value.requires_grad_() for value in inputs]

    def both(sphere, field, rotation, parts):
        return see(sphere, field, rotation, parts * scales)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # finite differences leave the rotations
        assert gradcheck(both, inputs, check_forward_ad=True, fast_mode=True)
        assert gradgradcheck(both, inputs)


@pytest.mark.parametrize("name", ["forward", "across the seam", "down"])
def test_gradients_of_a_plain_view(name):
    rotation = double(np.eye(3) if TURNS[name] is None else TURNS[name]).requires_grad_()
    inputs = [noise(1, 3, 4).requires_grad_(), double(100.0).requires_grad_(), rotation]

    def see(sphere, field, rotation):
        return camera.from_sphere(
            sphere, (2, 3), field_of_view=field, rotation=rotation, interpolation="bicubic"
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert gradcheck(see, inputs, check_forward_ad=True)
        assert gradgradcheck(see, inputs)


@pytest.mark.parametrize("down", [90.0, -90.0])
def test_a_view_of_odd_size_straight_at_a_pole_has_a_gradient(down):
    rotation = double(turn(0, down))
    for whole in (rotation, rotation.round()):  # the cosine of 90 degrees is 6e-17, or 0
        sphere, whole = noise(1, 6, 12).requires_grad_(), whole.clone().requires_grad_()
        seen = camera.from_sphere(sphere, (3, 3), field_of_view=90.0, rotation=whole)
        first = torch.autograd.grad(seen.square().sum(), (sphere, whole), create_graph=True)
        squares = torch.stack([g.square().sum() for g in first])
        second = torch.autograd.grad(squares.sum(), (sphere, whole))
        for grad in (*first, *second):
            assert grad.isfinite().all()
            assert 0 < grad.abs().max() < 1e6


@pytest.mark.parametrize("size", [(6, 12), (5, 9)], ids=str)
def test_vmap_jvp_and_compile_give_the_same_view(size):
    sphere, rotations = noise(2, *size), double(np.stack(list(TURNS.values())[2:]))

    def see(rotation, sphere=sphere):
        return camera.from_sphere(sphere, (3, 5), field_of_view=100.0, rotation=rotation)

    each = torch.stack([see(rotation) for rotation in rotations])
    near = TOLERANCE["two modes float64"]
    assert torch.allclose(torch.func.vmap(see)(rotations), each, rtol=0, atol=near)
    value = torch.func.jvp(see, (rotations[1],), (torch.ones_like(rotations[1]),))[0]
    assert torch.allclose(value, each[1], rtol=0, atol=near)
    compiled = torch.compile(see, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(rotations[0]), each[0], rtol=0, atol=near)


def zone_plate(height, width):
    _, _, z = definition.directions((height, width), None)
    angle = torch.acos(z.clamp(-1, 1))
    return ((height / 4) * angle.square()).cos()[None] / 2 + 0.5


@pytest.mark.parametrize("name", ["forward", "across the seam", "up", "down"])
def test_antialias_gives_means_of_the_sphere(name):
    near_pole, options = name in ("up", "down"), {"field_of_view": 90.0, "rotation": TURNS[name]}
    for sphere, share in ((zone_plate(64, 128), 0.1), (noise(1, 64, 128), 0.2)):
        plain, mean, truth = (
            camera.from_sphere(sphere, (8, 8), antialias=n, **options) for n in (False, True, 40)
        )
        off, left = (float((seen - truth).square().mean().sqrt()) for seen in (plain, mean))
        assert left < off * (0.2 if near_pole else share), (off, left)
    small = noise(2, 8, 16)
    fixed = camera.from_sphere(small, (3, 2), antialias=3, **options)
    truth = naive_sphere.view(small.numpy(), (3, 2), TURNS[name], field=90.0, samples=3)
    assert np.abs(fixed.numpy() - truth).max() < TOLERANCE["mean of warps float64"]


def test_antialias_changes_nothing_where_the_view_magnifies():
    sphere, options = noise(1, 6, 12), {"field_of_view": 60.0, "rotation": TURNS["anywhere"]}
    plain, mean = (
        camera.from_sphere(sphere, (30, 40), antialias=n, **options) for n in (False, True)
    )
    assert torch.equal(plain, mean)


def test_an_antialiased_item_does_not_change_with_its_batch():
    sphere, fields = noise(2, 32, 64), double([40.0, 120.0])
    both = camera.from_sphere(sphere, (5, 6), field_of_view=fields, antialias=True)
    for n in range(2):
        one = camera.from_sphere(sphere, (5, 6), field_of_view=fields[n], antialias=True)
        assert torch.equal(both[n] if both.ndim == 4 else both, one)


def test_antialias_has_gradients():
    inputs = [noise(1, 8, 12).requires_grad_(), double(TURNS["anywhere"]).requires_grad_()]

    def see(sphere, rotation):
        return camera.from_sphere(
            sphere, (2, 2), field_of_view=100, rotation=rotation, antialias=2,
            interpolation="bicubic",
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert gradcheck(see, inputs)


def test_to_sphere_puts_a_view_back_in_its_place():
    y, x = torch.meshgrid(*(torch.arange(n).double() for n in (40, 60)), indexing="ij")
    view = ((x / 9).sin() * (y / 7).cos())[None]
    for model, field in (("brown", 90.0), ("fisheye", 200.0)):
        options = {"field_of_view": field, "rotation": turn(160, 30, 20), "model": model}
        sphere = camera.to_sphere(view, (400, 800), interpolation="bicubic", **options)
        back = camera.from_sphere(sphere, (40, 60), interpolation="bicubic", **options)
        assert (back - view)[..., 4:-4, 4:-4].abs().max() < TOLERANCE["there and back"]


def test_pixels_outside_a_view_get_the_border_value():
    view = noise(2, 5, 6)
    rotation = turn(30, 20, 10)
    sphere = camera.to_sphere(view, (9, 18), field_of_view=80.0, rotation=rotation, border_value=-3)
    f, truth = 3 / np.tan(np.radians(40)), np.full((2, 9, 18), -3.0)
    for i, j in np.ndindex(9, 18):
        a, b, c = rotation @ naive_sphere.directions((9, 18))[i, j]
        if c > 0:
            x, y = f * a / c + 2.5, f * b / c + 2.0
            around = np.pad(view.numpy(), ((0, 0), (40, 40), (40, 40)), constant_values=-3.0)
            if -2 < x < 8 and -2 < y < 7:
                left, top = int(np.floor(x)), int(np.floor(y))
                p, q = x - left, y - top
                box = around[:, top + 40 : top + 42, left + 40 : left + 42]
                truth[:, i, j] = np.einsum("cij,i,j", box, [1 - q, q], [1 - p, p])
    assert np.abs(sphere.numpy() - truth).max() < TOLERANCE["reference float64"]
    labels = camera.to_sphere(view > 0.5, (9, 18), field_of_view=80.0, interpolation="nearest")
    assert labels.dtype == torch.bool


def test_a_folding_lens_shows_no_direction_twice():
    view = torch.ones(1, 20, 20)
    matrix = [[20.0, 0, 9.5], [0, 20, 9.5], [0, 0, 1]]
    sphere = camera.to_sphere(view, (90, 180), camera_matrix=matrix, distortion=[-0.5, 0, 0, 0])
    x, y, z = definition.directions((90, 180), None)
    beyond = (z <= 0) | ((x / z).square() + (y / z).square() > 2 / 3)
    assert (sphere[0][beyond] == 0).all()
    assert (sphere > 0.5).sum() > 100


ERRORS = {
    "neither": (
        {},
        "`field_of_view` must be given, or `camera_matrix`: exactly one of the two, got neither",
    ),
    "both": (
        {"field_of_view": 90, "camera_matrix": np.eye(3)},
        "`field_of_view` must be given, or `camera_matrix`: exactly one of the two, got both",
    ),
    "too wide": (
        {"field_of_view": 180},
        "`field_of_view` must be above 0 and below 180 degrees for model='brown', got 180.0",
    ),
    "none": ({"field_of_view": torch.tensor([90.0, 0.0])}, "got 0.0 at 1"),
    "NaN": ({"field_of_view": float("nan")}, "got nan"),
    "wide fisheye": (
        {"field_of_view": 361, "model": "fisheye"},
        "`field_of_view` must be above 0 and at most 360 degrees for model='fisheye', got 361.0",
    ),
    "model": ({"field_of_view": 90, "model": "pinhole"}, "`model` must be one of"),
    "rotation": ({"field_of_view": 90, "rotation": np.eye(2)}, "`rotation` must be of shape"),
    "coefficients": ({"field_of_view": 90, "distortion": [0.1]}, "`distortion` must be of shape"),
    "interpolation": ({"field_of_view": 90, "interpolation": "cubic"}, "`interpolation` must be"),
    "antialias": ({"field_of_view": 90, "antialias": 0}, "`antialias` must be True, False or"),
    "batches": (
        {"field_of_view": torch.full((3,), 90.0), "rotation": np.stack([np.eye(3)] * 2)},
        "must broadcast",
    ),
}


@pytest.mark.parametrize("function", [camera.from_sphere, camera.to_sphere])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(function, name):
    options, text = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(text)) as error:
        function(noise(1, 4, 8), (4, 4), **options)
    assert str(error.value).startswith(function.__name__)


def test_labels_are_rejected_and_integers_warn_of_a_lost_gradient():
    labels = noise(1, 4, 8, dtype=torch.int32)
    with pytest.raises(ValueError, match="'nearest'"):
        camera.from_sphere(labels, (2, 2), field_of_view=90)
    with pytest.raises(ValueError, match="labels have no mean"):
        camera.from_sphere(labels, (2, 2), field_of_view=90, interpolation="nearest", antialias=2)
    field = torch.tensor(90.0, requires_grad=True)
    with pytest.warns(UserWarning, match="no gradient reaches `field_of_view`"):
        camera.from_sphere(noise(1, 4, 8, dtype=torch.uint8), (2, 2), field_of_view=field)


@pytest.mark.parametrize("matrix", [2 * np.eye(3), np.diag([1.0, 1, -1]), np.ones((3, 3))])
def test_a_matrix_that_is_no_rotation_gets_a_warning(matrix):
    with pytest.warns(UserWarning, match="`rotation` is not a rotation"):
        seen = camera.from_sphere(noise(1, 4, 8), (2, 2), field_of_view=90, rotation=matrix)
    assert seen.isfinite().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            rotation = double(TURNS["anywhere"]).to(dtype)
            camera.from_sphere(noise(1, 4, 8), (2, 2), field_of_view=90, rotation=rotation)


def test_a_nan_rotation_does_not_affect_other_items():
    rotations = double(np.stack([np.eye(3), np.full((3, 3), np.nan)])).requires_grad_()
    sphere = noise(1, 4, 8).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = camera.from_sphere(sphere, (2, 3), field_of_view=90, rotation=rotations)
    assert (seen[1] == 0).all()
    seen.square().sum().backward()
    for given in (rotations, sphere):
        assert given.grad is not None
        assert given.grad.isfinite().all()
