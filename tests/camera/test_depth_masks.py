"""What `warp_depth` calls valid and occluded, by slow loops, and its errors and warnings."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

import warpkit as wk
from tests.camera.test_depth import OTHER, OWN, POSE, SIZE, H, W, depths
from tests.support.inputs import noise
from warpkit import camera

NAN, INF = float("nan"), float("inf")
STILL = torch.eye(4, dtype=torch.float64)


def near_whole(at: float) -> float:
    return float(round(at)) if abs(at - round(at)) <= 1e-6 else at


def taps_of(at: float, interpolation: str) -> list[int]:
    """The taps with weight along an axis."""
    if interpolation == "nearest":
        return [round(at)]
    low = math.floor(at)
    if at == low:
        return [low]
    first, last = {"bilinear": (0, 1), "bicubic": (-1, 2), "lanczos4": (-3, 4)}[interpolation]
    return list(range(low + first, low + last + 1))


def naive_valid(points: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    found = np.zeros(points.shape[:2], bool)
    for i, j in np.ndindex(points.shape[:2]):
        x, y = map(float, points[i, j])
        if x - x == 0 and y - y == 0:
            found[i, j] = all(
                0 <= tap < length
                for at, length in ((x, size[1]), (y, size[0]))
                for tap in taps_of(near_whole(at), interpolation)
            )
    return found


def naive_hidden(points, own, surface, kind: str, tolerance: float) -> np.ndarray:
    found = np.zeros(points.shape[:2], bool)
    for i, j in np.ndindex(points.shape[:2]):
        (x, y), total, weight = points[i, j], 0.0, 0.0
        if not (x - x == 0 and y - y == 0) or own[i, j] != own[i, j]:
            continue
        x, y = near_whole(float(x)), near_whole(float(y))
        for v in (math.floor(y), math.floor(y) + 1):
            for u in (math.floor(x), math.floor(x) + 1):
                share = max(0.0, 1 - abs(x - u)) * max(0.0, 1 - abs(y - v))
                if share == 0 or not (0 <= v < surface.shape[0] and 0 <= u < surface.shape[1]):
                    continue
                d = surface[v, u]
                if kind == "inverse" and 0 <= d < INF:
                    total, weight = total + share * d, weight + share
                elif kind != "inverse" and d > 0:
                    total, weight = total + share / d, weight + share
        mine = own[i, j] if kind == "inverse" else 1 / own[i, j]
        found[i, j] = weight > 0 and (1 + tolerance) * mine < total / weight
    return found


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
@pytest.mark.parametrize("border", ["constant", "replicate", ("wrap", "reflect")])
def test_valid_is_where_no_tap_is_missing_whatever_the_border(interpolation, border):
    image = noise(1, 15, 18)
    depth = depths()
    depth[0, 0, :3] = torch.tensor([NAN, 0, INF], dtype=torch.float64)
    options = {"other_matrix": OTHER, "interpolation": interpolation, "border": border}
    points = camera.depth_points(depth, OWN, POSE, other_matrix=OTHER).points
    truth = naive_valid(points.numpy(), (15, 18), interpolation)
    assert truth.any()
    assert not truth.all()
    for _ in range(2):
        found = camera.warp_depth(image, depth, OWN, POSE, **options)
        assert np.array_equal(found.valid[0].numpy(), truth)
        assert torch.equal(
            found.image,
            wk.remap(image, points, interpolation=interpolation, border=border),
        )


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos4"])
def test_rounding_takes_no_row_away(interpolation):
    """Coordinates off by less than 1e-6 are whole: inside up to the last row; others are not."""
    image = noise(1, *SIZE)
    for _ in range(2):
        same = camera.warp_depth(image, depths(), OWN, STILL, interpolation=interpolation)
        assert same.valid.all()
    flat = torch.full(SIZE, 4.0, dtype=torch.float64)
    for off, inside in ((9e-7, True), (1.1e-6, interpolation == "nearest")):
        for sign in (1, -1):
            step = STILL.clone()
            step[0, 3] = sign * off * 4 / 20
            found = camera.warp_depth(image, flat, OWN, step, interpolation=interpolation)
            assert found.valid[0, :, -1 if sign > 0 else 0].all() == inside


@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
def test_occlusion_is_the_loops(kind):
    depth, surface = depths(2), 0.5 + 4 * noise(2, 1, 15, 18, seed=5)
    surface[0, 0, 3:6, 4:9] = torch.tensor([NAN, 0, -1, INF, -INF], dtype=torch.float64)
    surface[1, 0, :, :6] = NAN
    depth[0, 0, 0, :4] = torch.tensor([NAN, 0, INF, -1], dtype=torch.float64)
    options = {"other_matrix": OTHER, "kind": kind}
    points, own = camera.depth_points(depth, OWN, POSE, **options)
    for tolerance in (0.0, 0.3):
        found = camera.warp_depth(
            noise(1, 15, 18), depth, OWN, POSE, other_depth=surface, tolerance=tolerance, **options
        )
        for n in range(2):
            truth = naive_hidden(
                points[n].numpy(), own[n, 0].numpy(), surface[n, 0].numpy(), kind, tolerance
            )
            assert truth.any()
            assert not truth.all()
            assert np.array_equal(found.occluded[n, 0].numpy(), truth)


def test_a_still_camera_hides_nothing_whatever_its_depths():
    depth = depths(3)
    for kind in ("z", "ray", "inverse"):
        found = camera.warp_depth(
            noise(1, *SIZE), depth, OWN, STILL, other_depth=depth, tolerance=1e-9, kind=kind
        )
        assert not found.occluded.any()


def test_a_road_does_not_hide_itself_and_a_box_hides_what_is_behind_it():
    """A camera 1.65 m above a road, 0.8 m ahead; a wall 10 m ahead, which covers 3 columns."""
    matrix = torch.tensor([[60.0, 0, 15.5], [0, 60, 3.5], [0, 0, 1]], dtype=torch.float64)

    below = (torch.arange(24, dtype=torch.float64)[:, None].expand(24, 32) - 3.5) / 60
    depth = torch.where(below > 0, 1.65 / below.clamp(min=1e-9), INF)
    forward = torch.eye(4, dtype=torch.float64)
    forward[2, 3] = -0.8
    options = {"other_depth": depth, "tolerance": 0.01}
    found = camera.warp_depth(noise(1, 24, 32), depth, matrix, forward, **options)
    assert not found.occluded.any()
    wall = depth.clone()
    wall[:, 10:20] = torch.minimum(wall[:, 10:20], torch.tensor(4.0).double())
    options["other_depth"] = wall
    seen = camera.warp_depth(noise(1, 24, 32), depth, matrix, STILL, **options)
    assert torch.equal(seen.occluded[0], depth > 1.01 * wall)
    assert seen.occluded[0, :, 10:20].any()


def test_the_plane_that_the_other_camera_sees_is_not_hidden_and_one_behind_is():
    """Own depth is the mean of 1 / depth at the point, on a slanted plane: to 1e-9."""
    normal, q = torch.tensor([0.1, 0.6, 0.8]).double(), 3.0
    y, x = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    at = torch.stack((x, y, torch.ones_like(x)), -1).double()
    depth = q / (at @ torch.linalg.inv(OWN).T @ normal)
    turned = POSE[:3, :3] @ normal
    beyond = q + float(turned @ POSE[:3, 3])
    other = torch.tensor([[20.0, 0, 30], [0, 20.0, 30], [0, 0, 1]], dtype=torch.float64)
    y, x = torch.meshgrid(torch.arange(60), torch.arange(60), indexing="ij")
    at = torch.stack((x, y, torch.ones_like(x)), -1).double()
    surface = beyond / (at @ torch.linalg.inv(other).T @ turned)
    image = noise(1, 60, 60)
    for off, hidden in ((1e-9, False), (-1e-9, True)):
        nearer = surface / 1.05 * (1 + off)
        found = camera.warp_depth(
            image, depth, OWN, POSE, other_matrix=other, other_depth=nearer, tolerance=0.05
        )
        assert found.valid.all()
        assert (found.occluded == hidden).all()
    exact = camera.depth_points(depth, OWN, POSE, other_matrix=other)
    seen = 1 / wk.remap((1 / surface)[None], exact.points)
    assert (exact.depth - seen).abs().max() < 1e-9


BAD = {
    "depth without a channel": (
        lambda: camera.depth_points(torch.ones(2, 4, 5), OWN, STILL),
        "`depth` must be of shape (..., 1, h, w), or (h, w), got (2, 4, 5): depth.unsqueeze(-3)",
    ),
    "no depth": (lambda: camera.depth_points(torch.ones(4), OWN, STILL), "`depth` must be"),
    "kind": (lambda: camera.depth_points(torch.ones(4, 5), OWN, STILL, kind="x"), "`kind` must"),
    "pose": (
        lambda: camera.depth_points(torch.ones(4, 5), OWN, torch.eye(3)),
        "`pose` must be of shape (..., 3, 4) or (..., 4, 4), got (3, 3)",
    ),
    "last row": (
        lambda: camera.depth_points(torch.ones(4, 5), OWN, 2 * torch.eye(4)),
        "`pose` must be a matrix with the last row (0, 0, 0, 1), got [0.0, 0.0, 0.0, 2.0]",
    ),
    "skew": (
        lambda: camera.depth_points(torch.ones(4, 5), torch.ones(3, 3), STILL),
        "`camera_matrix` must be (fx, 0, cx)",
    ),
    "other skew": (
        lambda: camera.depth_points(torch.ones(4, 5), OWN, STILL, other_matrix=torch.ones(3, 3)),
        "`other_matrix` must be (fx, 0, cx)",
    ),
    "other lens alone": (
        lambda: camera.depth_points(torch.ones(4, 5), OWN, STILL, other_distortion=[0.0] * 4),
        "`other_distortion` must be left out without `other_matrix`",
    ),
    "other model alone": (
        lambda: camera.depth_points(torch.ones(4, 5), OWN, STILL, other_model="fisheye"),
        "`other_model` must be left out without `other_matrix`",
    ),
    "other coefficients": (
        lambda: camera.depth_points(
            torch.ones(4, 5), OWN, STILL, other_matrix=OWN, other_distortion=[0.0] * 3
        ),
        "`other_distortion` must be of shape (..., n) with n of 4, 5, 8, 12",
    ),
    "another size": (
        lambda: camera.warp_depth(noise(1, 4, 6), torch.ones(4, 5), OWN, STILL),
        "`other_matrix` must be given for an image of (4, 6), as `depth` is of (4, 5)",
    ),
    "size of the other depth": (
        lambda: camera.warp_depth(
            noise(1, 4, 5), torch.ones(4, 5), OWN, STILL, other_depth=torch.ones(5, 4)
        ),
        "`other_depth` must be of the image's size, (..., 1, 4, 5), got (5, 4)",
    ),
    "transparent": (
        lambda: camera.warp_depth(
            noise(1, 4, 5), torch.ones(4, 5), OWN, STILL, border="transparent"
        ),
        "`border` must be another border",
    ),
    "batches": (
        lambda: camera.depth_points(torch.ones(2, 1, 4, 5), OWN, STILL.repeat(3, 1, 1)),
        "the batch dimensions of `depth`",
    ),
    "bytes": (
        lambda: camera.warp_depth(torch.zeros(1, 4, 5, dtype=torch.int64), torch.ones(4, 5), OWN,
                                  STILL),
        "`interpolation` must be 'nearest'",
    ),
    "rotation": (lambda: camera.pose([0.0, 0, 0], [0.0, 0, 0]), "camera.rotation makes it"),
    "translation": (lambda: camera.pose(torch.eye(3), [0.0, 0]), "`translation` must be"),
    **{
        f"tolerance {value}": (
            lambda value=value: camera.warp_depth(
                noise(1, 4, 5), torch.ones(4, 5), OWN, STILL, tolerance=value
            ),
            "`tolerance` must be a finite number of at least 0",
        )
        for value in (-1.0, NAN, INF, True, "0.1")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    call, text = BAD[name]
    for _ in range(2):
        with pytest.raises((ValueError, TypeError), match=re.escape(text)):
            call()


def test_what_is_no_rotation_and_what_gets_no_gradient_is_warned_of():
    sheared = STILL.clone()
    sheared[0, 1] = 0.5
    with pytest.warns(UserWarning, match="depth_points: the rotation of `pose` is not a rotation"):
        camera.depth_points(torch.ones(4, 5), OWN, sheared)
    with pytest.warns(UserWarning, match="pose: `rotation` is not a rotation"):
        camera.pose(sheared[:3, :3], [0.0, 0, 0])
    depth = torch.ones(4, 5, requires_grad=True)
    with pytest.warns(UserWarning, match="warp_depth: no gradient reaches `depth` under nearest"):
        camera.warp_depth(noise(1, 4, 5), depth, OWN, STILL, interpolation="nearest")


def test_poses_compose_and_go_back():
    turn = camera.rotation(vector=noise(5, 3))
    first, second = camera.pose(turn, noise(5, 3, seed=1)), camera.pose(turn[0], [1.0, 2, 3])
    there = second @ first
    scene = noise(5, 3, seed=2)
    moved = (turn @ scene[..., None])[..., 0] + noise(5, 3, seed=1)
    moved = moved @ turn[0].T + torch.tensor([1.0, 2, 3])
    found = (there @ torch.cat((scene, torch.ones(5, 1)), -1)[..., None])[..., :3, 0]
    assert (found - moved).abs().max() < 1e-12
    back = camera.depth_points(depths(), OTHER, torch.linalg.inv(POSE), other_matrix=OWN)
    again = camera.depth_points(
        depths(), OTHER, camera.pose(POSE[:3, :3].mT, -POSE[:3, :3].mT @ POSE[:3, 3]),
        other_matrix=OWN,
    )  # fmt: skip
    assert (back.points - again.points).abs().max() < 1e-10
    assert first.shape == (5, 4, 4)
    assert camera.pose(torch.eye(3).half(), [0, 0, 0]).dtype == torch.float32
