"""The six faces of the sphere: their directions, their seams, and the round trip."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from tests.support import naive_sphere
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.engine.definitions import sphere as definition

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos4")
FACES = "+x -z +y, -x +z +y, +y +x -z, -y +x +z, +z +x +y, -z -x +y"
"""What each looks at, its right and its down."""


def axes():
    """The directions forward, right and down of the faces, (6, 3, 3)."""
    vector = {name: sign * np.eye(3)[k] for k, n in enumerate("xyz")
              for name, sign in ((f"+{n}", 1), (f"-{n}", -1))}  # fmt: skip
    return np.array([[vector[name] for name in face.split()] for face in FACES.split(", ")])


def cube_of_directions(side):
    """The directions of the pixels of a cube, (6, 3, side, side)."""
    a = (2 * np.arange(side) + 1) / side - 1
    forward, right, down = (axes()[:, k, :, None, None] for k in range(3))
    found = forward + right * a[None, None, None] + down * a[None, None, :, None]
    return torch.from_numpy(found / np.linalg.norm(found, axis=1, keepdims=True))


def sphere_of_directions(height, width):
    x, y, z = torch.broadcast_tensors(*definition.directions((height, width), None))
    return torch.stack((x, y, z))


def smooth(height, width):
    x, y, z = sphere_of_directions(height, width)
    waves = 0.25 * (3 * x + y).sin() + 0.2 * (2 * z - y).cos() * x
    return torch.stack((0.5 + waves, 0.5 + 0.4 * x * y * z, 0.5 + 0.5 * z))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_faces_are_views_of_the_definition(interpolation):
    sphere = noise(2, 7, 10)
    cube = camera.to_cube(sphere, 4, interpolation=interpolation)
    assert cube.shape == (6, 2, 4, 4)
    for face, (forward, right, down) in enumerate(axes()):
        rotation = np.stack([right, down, forward])
        truth = naive_sphere.view(sphere.numpy(), (4, 4), rotation, interpolation, field=90.0)
        assert np.abs(cube[face].numpy() - truth).max() < TOLERANCE["reference float64"]


def test_directions_are_continuous_across_seams():
    cube, truth = cube_of_directions(64), sphere_of_directions(256, 512)
    # bilinear changes a direction by 1/8 of a pixel's square, 2 / 64 at the middle of a face,
    # along both axes; at the seams a nearest neighbour gives 0.0028, clamped edges 0.0057
    near = {"bilinear": 2.5e-4, "bicubic": 1.6e-3, "lanczos4": 7e-4, "nearest": 1.6e-2}
    for interpolation in INTERPOLATIONS:
        found = camera.from_cube(cube, (256, 512), interpolation=interpolation)
        assert (found - truth).abs().max() < near[interpolation], interpolation
    assert (camera.to_cube(truth, 64) - cube).abs().max() < 1e-4


def test_a_sphere_survives_the_way_to_a_cube_and_back():
    sphere = smooth(256, 512)
    back = camera.from_cube(camera.to_cube(sphere, 192), (256, 512))
    assert 10 * np.log10(1 / float((back - sphere).square().mean())) > 90


def test_batches_and_types():
    spheres = noise(2, 3, 2, 6, 12)
    cubes = camera.to_cube(spheres, 5)
    assert cubes.shape == (2, 3, 6, 2, 5, 5)
    assert torch.equal(cubes[1, 2], camera.to_cube(spheres[1, 2], 5))
    back = camera.from_cube(cubes, (6, 12))
    assert back.shape == (2, 3, 2, 6, 12)
    assert torch.equal(back[1, 2], camera.from_cube(cubes[1, 2], (6, 12)))
    for dtype in (torch.uint8, torch.int16, torch.uint16):
        cube = noise(6, 2, 4, 4, dtype=dtype)
        found, limits = camera.from_cube(cube, (5, 9), interpolation="bicubic"), torch.iinfo(dtype)
        truth = camera.from_cube(cube.double(), (5, 9), interpolation="bicubic")
        assert found.dtype == dtype
        assert torch.equal(found.double(), truth.round().clamp(limits.min, limits.max))
    for dtype in (torch.float16, torch.bfloat16):
        cube = noise(6, 2, 4, 4, dtype=dtype)
        found = camera.from_cube(cube, (5, 9))
        truth = camera.from_cube(cube.double(), (5, 9))
        near = TOLERANCE[str(dtype).removeprefix("torch.")]
        assert found.dtype == dtype
        assert (found.double() - truth).abs().max() < near
    for dtype in (torch.bool, torch.int32):
        labels = noise(6, 1, 4, 4) if dtype == torch.bool else noise(6, 1, 4, 4, dtype=dtype)
        labels = labels > 0.5 if dtype == torch.bool else labels
        found = camera.from_cube(labels, (5, 9), interpolation="nearest")
        assert found.dtype == dtype
        assert set(found.flatten().tolist()) <= set(labels.flatten().tolist())
    one = camera.from_cube(torch.arange(6.0).reshape(6, 1, 1, 1), (1, 2), interpolation="lanczos4")
    assert one.isfinite().all()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_gradients(interpolation):
    options = {"interpolation": interpolation}
    sphere, cube = noise(1, 3, 4).requires_grad_(), noise(6, 1, 2, 2).requires_grad_()
    forward = {"check_forward_ad": True}
    assert gradcheck(lambda s: camera.to_cube(s, 2, **options), sphere, **forward)
    assert gradcheck(lambda c: camera.from_cube(c, (3, 4), **options), cube, **forward)
    square = lambda c: camera.from_cube(c.square(), (3, 4), **options)  # noqa: E731
    assert gradgradcheck(square, cube)


def test_antialias_gives_the_means_of_a_sphere():
    sphere = noise(1, 48, 96)
    plain, mean, truth = (camera.to_cube(sphere, 4, antialias=n) for n in (False, True, 40))
    assert (mean - truth).square().mean() < (plain - truth).square().mean() / 25


ERRORS = {
    "side": (lambda: camera.to_cube(noise(1, 4, 8), 0), "to_cube: `side`"),
    "half": (lambda: camera.to_cube(noise(1, 4, 8), 2.5), "to_cube: `side`"),  # pyright: ignore
    "sphere": (lambda: camera.to_cube(noise(4, 8), 2), "to_cube: `sphere`"),
    "five": (lambda: camera.from_cube(noise(5, 1, 4, 4), (4, 8)), "from_cube: `cube`"),
    "oblong": (lambda: camera.from_cube(noise(6, 1, 4, 5), (4, 8)), "from_cube: `cube`"),
    "flat": (lambda: camera.from_cube(noise(6, 4, 4), (4, 8)), "from_cube: `cube`"),
    "size": (lambda: camera.from_cube(noise(6, 1, 4, 4), 4), "from_cube: `size`"),  # pyright: ignore
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_argument(name):
    call, text = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()
