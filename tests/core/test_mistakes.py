"""Names of other libraries get an error with a hint, and their conventions a warning."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL.Image import Resampling
from torchvision.transforms import InterpolationMode

import warpkit as wk
from warpkit import attacks, nn, transforms
from warpkit.validation import compare_with_opencv

IMAGE, EYE = torch.zeros(2, 3, 4, 5), torch.eye(2, 3)
LARGE = torch.zeros(1, 3, 32, 48)

ELSEWHERE = [
    ("interpolation", "linear", "'linear' (write 'bilinear')"),
    ("interpolation", "cubic", "'cubic' (write 'bicubic')"),
    ("interpolation", "BILINEAR", "'BILINEAR' (write 'bilinear')"),
    ("interpolation", "nearest-exact", "'nearest-exact' (write 'nearest')"),
    ("interpolation", "area", "'area' (write 'bilinear' and antialias=True)"),
    ("interpolation", 1, "1 (cv2.INTER_LINEAR: write 'bilinear')"),
    ("interpolation", 17, "17 (cv2.INTER_LINEAR: write 'bilinear' and inverse=True)"),
    ("interpolation", 4, "4 (cv2.INTER_LANCZOS4: write 'lanczos4')"),
    ("interpolation", 99, "99"),
    ("interpolation", True, "True"),
    ("interpolation", Resampling.BICUBIC, "<Resampling.BICUBIC: 3> (write 'bicubic')"),
    (
        "interpolation",
        InterpolationMode.NEAREST_EXACT,
        "<InterpolationMode.NEAREST_EXACT: 'nearest-exact'> (write 'nearest')",
    ),
    ("border", "reflect101", "'reflect101' (write 'reflect_101')"),
    ("border", "reflect-101", "'reflect-101' (write 'reflect_101')"),
    ("border", "BORDER_REPLICATE", "'BORDER_REPLICATE' (write 'replicate')"),
    ("border", "symmetric", "'symmetric' (write 'reflect')"),
    ("border", "circular", "'circular' (write 'wrap')"),
    ("border", 4, "4 (cv2.BORDER_REFLECT_101: write 'reflect_101')"),
    ("border", 16, "16"),
    ("arithmetic", "linear", "'linear'"),
]


@pytest.mark.parametrize(("argument", "value", "got"), ELSEWHERE)
@pytest.mark.parametrize("name", ["warp_affine", "crop_patches"])
def test_names_of_other_libraries_get_a_hint(name, argument, value, got):
    calls = {
        "warp_affine": lambda: wk.warp_affine(IMAGE, EYE, **{argument: value}),
        "crop_patches": lambda: wk.crop_patches(
            IMAGE[0], [[0, 0, 2, 2]], None, (2, 2), **{argument: value}
        ),
    }
    if (name, argument) == ("crop_patches", "arithmetic"):
        got = "arithmetic"  # it has no such name: Python's own error
        with pytest.raises(TypeError, match=got):
            calls[name]()
        return
    with pytest.raises(
        ValueError, match=f"{name}: `{argument}` must be one of .*got {re.escape(got)}$"
    ):
        calls[name]()


KEYWORDS = [
    ("warp_affine", "mode", "bilinear", "called `interpolation`, got mode='bilinear'"),
    ("warp_affine", "padding_mode", "border", "called `border`, got padding_mode='border'"),
    ("warp_affine", "flags", 1, "called `interpolation`, got flags=1"),
    ("warp_affine", "dsize", (5, 4), "called `size`, (H, W), got dsize=(5, 4)"),
    ("warp_affine", "fill", 0, "called `border_value`, got fill=0"),
    (
        "remap",
        "align_corners",
        True,
        "left out: there is none in pixels; to_theta and from_theta take it, got align_corners=",
    ),
    ("remap", "grid", 0, "called `points`, (x, y) in pixels, got grid=0"),
    ("crop_patches", "img", 0, "called `images`, got img=0"),
    ("sample_pixels", "mode", "nearest", "called `interpolation`, got mode='nearest'"),
]


@pytest.mark.parametrize(("name", "keyword", "value", "text"), KEYWORDS)
def test_keywords_of_other_libraries_get_a_hint(name, keyword, value, text):
    with pytest.raises(TypeError, match=re.escape(f"{name}: `{keyword}` must be {text}")) as caught:
        getattr(wk, name)(IMAGE, EYE, **{keyword: value})
    assert caught.value.__suppress_context__  # Python's own error is not shown above it


def test_an_unknown_keyword_gets_pythons_error():
    for keyword in ("intrpolation", "fill"):
        options: dict[str, Any] = {keyword: 1}
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{keyword}'"):
            wk.indexing.linear_lookup(torch.zeros(3), 0.5, **options)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'matrix'"):
        wk.warp_affine(IMAGE)  # pyright: ignore


def grid(height: int, width: int) -> torch.Tensor:
    """The identity grid of F.grid_sample, (1, h, w, 2)."""
    return F.affine_grid(EYE[None], [1, 1, height, width], align_corners=False)


SLIPS = [
    (
        lambda: wk.warp_affine(torch.zeros(48, 64, 3), EYE),
        "warp_affine: `image` of shape (48, 64, 3) is read as (..., C, H, W), and looks like (",
    ),
    (
        lambda: wk.warp_perspective(torch.zeros(2, 32, 32, 1), torch.eye(3)),
        "warp_perspective: `image` of shape (2, 32, 32, 1) is read as (..., C, H, W), and looks",
    ),
    (
        lambda: wk.crop_patches(torch.zeros(48, 64, 4), [[0, 0, 2, 9]], None, (2, 2)),
        "crop_patches: `images` of shape (48, 64, 4) is read as",
    ),
    (
        lambda: wk.remap(LARGE, grid(32, 48)),
        "remap: all `points` lie within [-1, 1], the first pixel of an image of (32, 48): they are",
    ),
    (
        lambda: wk.remap(LARGE, grid(23, 23).half().requires_grad_()),
        "remap: all `points` lie within [-1, 1], the first pixel of an image of (32, 48): they are",
    ),
    (
        lambda: wk.crop_patches(LARGE, [[0.1, 0.2, 0.5, 1.0]], None, (2, 2)),
        "crop_patches: all `boxes` lie within [0, 1], the first pixel of images of (32, 48): they",
    ),
    (
        lambda: wk.transform_patches(LARGE, np.array([[0, 0, 1, 0.5]]), EYE[None], [0]),
        "transform_patches: all `boxes` lie within [0, 1], the first pixel of images of (32, 48)",
    ),
]

LAST = torch.zeros(2, 48, 64, 3)
"""Images (B, H, W, C)."""
NESTED = [  # functions that call another one that also checks
    (lambda: wk.warp_flow(LAST, torch.zeros(8, 9, 2)), "warp_flow: `image`"),
    (lambda: wk.camera.undistort(LAST, torch.eye(3), torch.zeros(4)), "undistort: `image`"),
    (lambda: transforms.RandomAffine(10)(LAST), "RandomAffine: `inpt`"),
    (lambda: transforms.Resize((8, 9))(LAST), "Resize: `inpt`"),
    (lambda: attacks.expectation(torch.mean, LAST, EYE[None]), "expectation: `image`"),
    (
        lambda: attacks.optimize_perturbation(torch.mean, LAST, epsilon=0.1, steps=2),
        "optimize_perturbation: `image`",
    ),
    (
        lambda: attacks.optimize_patch(
            torch.mean, LAST, [[1, 2, 2, 20]], [0], patch_size=(8, 8), steps=2, samples=2
        ),
        "optimize_patch: `images`",
    ),
    (
        lambda: attacks.optimize_patch(
            torch.mean, LARGE, [[0.1, 0.2, 0.5, 1]], None, patch_size=(8, 8), steps=2, samples=2
        ),
        "optimize_patch: all `boxes` lie within [0, 1]",
    ),
    (lambda: compare_with_opencv(LAST, EYE), "compare_with_opencv: `image`"),
    (lambda: TRANSFORMER(LAST), "SpatialTransformer: `images`"),
]
TRANSFORMER = nn.SpatialTransformer(
    torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(4)), (9, 9)
)


@pytest.mark.parametrize(("call", "text"), SLIPS + NESTED)
def test_other_conventions_get_one_warning(call, text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert len(caught) == 1
    assert str(caught[0].message).startswith(text)
    assert caught[0].filename == __file__  # the caller's line, not one of the package


def test_arguments_that_may_be_intended_get_no_warning():
    """Every warning is an error in these tests."""
    wk.warp_affine(torch.zeros(2, 512, 4, 4), EYE)  # features of a network
    wk.warp_affine(torch.zeros(3, 64, 4), EYE)  # a narrow strip
    small, zeros = torch.zeros(1, 8, 8), torch.zeros(1, 23, 23, 2)
    wk.remap(small, grid(23, 23))  # part of a small image
    wk.remap(LARGE, grid(8, 8))  # only a few points
    wk.remap(LARGE, zeros)
    wk.remap(LARGE, zeros - 1)  # a marker for points that see nothing
    wk.remap(LARGE, grid(23, 23) * 20)
    wk.remap(LARGE, torch.full_like(zeros, torch.nan))
    wk.crop_patches(LARGE, [[0, 0, 1, 1]], None, (2, 2))  # the box of the first pixel
    wk.crop_patches(small, [[0.2, 0.2, 0.9, 0.9]], None, (2, 2))
    wk.crop_patches(LARGE, [[0.2, 0.2, 0.9, 0.9], [0.2, 0.2, 3.9, 0.9]], None, (2, 2))
    wk.crop_patches(LARGE, torch.zeros(0, 4), None, (2, 2))


def test_values_are_not_checked_where_there_are_none():
    """Under vmap, while torch traces, and on the meta device."""
    points = grid(32, 48).expand(3, -1, -1, -1)
    torch.vmap(lambda p: wk.remap(LARGE[0], p))(points)
    torch.compile(lambda p: wk.remap(LARGE, p), backend="eager", fullgraph=True)(points)
    wk.remap(LARGE.to("meta"), points.to("meta"))
    exported = torch.export.export(
        Warp(), (torch.zeros(2, 32, 40, 9),), dynamic_shapes=({3: torch.export.Dim("w", min=2)},)
    )
    assert exported.module()(torch.zeros(2, 32, 40, 3)).shape == (2, 32, 40, 3)


class Warp(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return wk.warp_affine(image, EYE)


@pytest.mark.parametrize(("dtype", "whole"), [(torch.float16, 2048), (torch.bfloat16, 256)])
def test_positions_in_16_bits_that_lack_pixels_get_a_warning(dtype, whole):
    """float16 holds 2049 as 2048, bfloat16 257 as 256: the image's last column is one further."""
    assert torch.tensor(whole + 1.0).to(dtype) == whole
    small, large = torch.zeros(1, 4, whole + 1), torch.zeros(1, 4, whole + 2)
    points = torch.tensor([[[0.0, 0.0], [1.0, 1.0]]]).to(dtype)
    theta = torch.eye(2, 3).to(dtype)
    kind = str(dtype).removeprefix("torch.")
    calls = {
        "remap: `points`": lambda image: wk.remap(image, points),
        "sample_pixels: `points`": lambda image: wk.sample_pixels(image, points[0]),
        "from_theta: `theta`": lambda image: wk.from_theta(theta, image.shape[-2:], (4, 4)),
    }
    turn = wk.rotation_matrix((9.0, 9.0), 10.0).to(dtype)
    box = torch.tensor([0.5, 0.0, 2.0, 2.0]).to(dtype)
    corners = torch.tensor([[0.5, 0.0], [9.0, 0.0], [0.0, 9.0]]).to(dtype)
    calls |= {
        "warp_affine: `matrix`": lambda image: wk.warp_affine(image, turn, size=(2, 2)),
        "resize: `box`": lambda image: wk.resize(image, (2, 2), box=box),
        "crop_patches: `boxes`": lambda image: wk.crop_patches(image, box[None], None, (2, 2)),
        "paste_patches: `matrices`": lambda image: wk.paste_patches(
            image, torch.ones(1, 1, 2, 2), turn[None], None
        ),
        "thin_plate_spline: `source`": lambda image: wk.flow.thin_plate_spline(
            corners, corners.float(), image.shape[-2:]
        ),
    }
    for name, call in calls.items():
        for _ in range(2):  # the second call goes a shorter way
            call(small)
            with pytest.warns(UserWarning, match=f"{name} of {kind} holds .* up to {whole}, and"):
                call(large)
    index = torch.tensor([0.5, 1.0]).to(dtype)
    for look_up in (
        lambda n: wk.indexing.linear_lookup(torch.arange(n), index),
        lambda n: wk.indexing.residual_lookup(torch.arange(n), index),
        lambda n: wk.indexing.assign(torch.zeros(n), index, 1.0),
        lambda n: wk.indexing.soft_one_hot(index, n),
    ):
        look_up(whole + 1)
        with pytest.warns(UserWarning, match=f"`index` of {kind} .* up to {whole}, and the array"):
            look_up(whole + 2)
    wk.remap(large, points.float())
    wk.warp_affine(large, torch.tensor([[-1.0, 0, 9], [0, 1, 0]]).to(dtype))  # all are held
    wk.crop_patches(large, torch.tensor([[0, 0, 2, 2]]).to(dtype), None, (2, 2))


@pytest.mark.parametrize(("dtype", "held"), [(torch.float16, 1024), (torch.bfloat16, 128)])
def test_cameras_in_16_bits_that_lack_half_pixels_get_a_warning(dtype, held):
    """The centre of 1,920 columns is 959.5; float16 holds 1024.5 as 1024, bfloat16 128.5 as 128."""
    assert torch.tensor(held + 0.5).to(dtype) == held
    kind = str(dtype).removeprefix("torch.")
    exact = torch.tensor([[6.5, 0, 1], [0, 6.5, 1], [0, 0, 1]])
    coarse = torch.tensor([[held + 0.5, 0, held / 2], [0, held + 0.5, 1], [0, 0, 1]])
    none = torch.zeros(4)
    bent, turn = torch.tensor([0.1, 0, 0, 0]), wk.camera.rotation(yaw=3.0).float()
    depth = torch.ones(1, 2, held + 2)
    pose = torch.cat((turn, torch.zeros(3, 1)), -1)
    views = (coarse, none), (exact, bent)
    names = "`camera_matrix`", "`distortion`"
    calls: list[tuple[str, Any]] = []
    for name, (camera, k) in zip(names, views, strict=True):
        camera, k = camera.to(dtype), k.to(dtype)
        calls += [
            (
                f"undistort: {name}",
                lambda n, c=camera, k=k: wk.camera.undistort(depth[..., :n], c, k),
            ),
            (f"distort: {name}", lambda n, c=camera, k=k: wk.camera.distort(depth[..., :n], c, k)),
            (
                f"undistort_map: {name}",
                lambda n, c=camera, k=k: wk.camera.undistort_map(c, k, (2, n)),
            ),
            (f"distort_map: {name}", lambda n, c=camera, k=k: wk.camera.distort_map(c, k, (2, n))),
            (
                f"optimal_camera_matrix: {name}",
                lambda n, c=camera, k=k: wk.camera.optimal_camera_matrix(c, k, (2, n), 0.5),
            ),
            (
                f"depth_points: {name}",
                lambda n, c=camera, k=k: wk.camera.depth_points(
                    depth[..., :n], c, pose, distortion=k
                ),
            ),
        ]
    sphere, half = torch.zeros(1, 4, 8), turn.to(dtype)
    calls += [
        (
            "from_sphere: `rotation`",
            lambda n: wk.camera.from_sphere(sphere, (2, n), field_of_view=90, rotation=half),
        ),
        (
            "depth_points: `pose`",
            lambda n: wk.camera.depth_points(depth[..., :n], exact, pose.to(dtype)),
        ),
    ]
    for text, call in calls:
        for _ in range(2):
            call(held + 1)
            with pytest.warns(UserWarning, match=f"{text} of {kind} has too few digits"):
                call(held + 2)
    far = exact + torch.tensor([[0.0, 0, held], [0, 0, 0], [0, 0, 0]])
    for move in (wk.camera.undistort_points, wk.camera.distort_points):
        with pytest.warns(UserWarning, match=f"`points` of {kind} has too few digits"):
            move(torch.tensor([[3.3, 4.0]]).to(dtype), far, none)
        move(torch.tensor([[3.5, 4.0]]).to(dtype), far, none)  # held
        move(torch.tensor([[3.3, 4.0]]).to(dtype), exact, none)
    wk.camera.undistort(depth, exact.to(dtype), none.to(dtype))  # every number is held
    wk.camera.undistort(depth, coarse, bent)


def test_a_picture_that_is_no_whole_sphere_gets_a_warning():
    """A photograph, or the middle of a panorama; sides that were rounded are spheres."""
    photograph, cube = torch.zeros(3, 48, 64), torch.zeros(6, 1, 4, 4)
    calls = {
        "from_sphere: `sphere`": lambda: wk.camera.from_sphere(
            photograph, (4, 4), field_of_view=90
        ),
        "to_cube: `sphere`": lambda: wk.camera.to_cube(photograph, 4),
        "to_sphere: `size`": lambda: wk.camera.to_sphere(photograph, (48, 64), field_of_view=90),
        "from_cube: `size`": lambda: wk.camera.from_cube(cube, (48, 64)),
    }
    for name, call in calls.items():
        for _ in range(2):
            with pytest.warns(UserWarning, match=f"{name} of 48 x 64 pixels is stretched over"):
                call()
    wk.camera.from_sphere(torch.zeros(3, 50, 101), (4, 4), field_of_view=90)
    wk.camera.to_cube(torch.zeros(3, 64, 128), 4)


@pytest.mark.parametrize(
    ("arithmetic", "value", "hint"),
    [
        ("pillow", 2, "2 (PIL.Image.BILINEAR: write 'bilinear')"),
        ("pillow", 1, "1 (PIL.Image.LANCZOS: write 'lanczos')"),
        ("pillow", 5, "5 (PIL.Image.HAMMING: write 'hamming')"),
        ("torchvision", 3, "3 (PIL.Image.BICUBIC: write 'bicubic')"),
        ("opencv5", 2, "2 (cv2.INTER_CUBIC: write 'bicubic')"),
        ("exact", 3, "3 (cv2.INTER_AREA: write 'area', PIL.Image.BICUBIC: 'bicubic')"),
        ("exact", 0, "0 (cv2.INTER_NEAREST: write 'nearest')"),
    ],
)
def test_numbers_of_pillows_filters_get_their_own_name(arithmetic, value, hint):
    for resize in (wk.resize, wk.letterbox):
        with pytest.raises(ValueError, match=re.escape(f"got {hint}") + "$"):
            resize(IMAGE, (2, 2), interpolation=value, arithmetic=arithmetic)


def offsets() -> dict[str, torch.Tensor]:
    """Flows of 40 x 50 pixels."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(40, 50, 2, generator=generator)
    return {
        "noise": 2 * noise,
        "a shift": torch.tensor([3.0, 2.0]).expand(40, 50, 2),
        "a shift back": torch.tensor([-3.0, -2.0]).expand(40, 50, 2),
        "a smooth flow": torch.tensor([1.5, 1.0]) + 0.2 * noise,
        "a turn": wk.flow.from_matrix(wk.rotation_matrix((24.5, 19.5), 5.0), (40, 50)),
    }


@pytest.mark.parametrize("name", offsets())
def test_offsets_in_place_of_points_get_a_warning(name):
    image, flow = torch.rand(3, 40, 50), offsets()[name]
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"remap: all `points` lie near .* relative=True"):
            wk.remap(image, flow)
    wk.remap(image, flow, relative=True)
    wk.warp_flow(image, flow)
    wk.remap(image, wk.flow.to_points(flow))


def test_points_that_are_meant_get_no_warning():
    image, grid = torch.rand(3, 40, 50), wk.pixel_grid((40, 50))
    for points in (grid, grid / 2, grid / 8, grid / 10 + 1, grid / 4, 0 * grid, grid.flip(0)):
        wk.remap(image, points)
        wk.remap(image, points.expand(2, -1, -1, -1))
