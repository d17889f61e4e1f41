"""Points of depths against OpenCV, homographies of planes and formulas by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE
from warpkit import camera

NAN, INF = float("nan"), float("inf")
SIZE = H, W = 12, 16
OWN = torch.tensor([[20.0, 0, 7.3], [0, 21.0, 5.8], [0, 0, 1]], dtype=torch.float64)
OTHER = torch.tensor([[25.0, 0, 9.1], [0, 24.0, 6.7], [0, 0, 1]], dtype=torch.float64)
VECTOR, SHIFT = torch.tensor([[0.05, -0.1, 0.03], [0.3, -0.1, 0.2]], dtype=torch.float64)
TURN = camera.rotation(vector=VECTOR)
POSE = camera.pose(TURN, SHIFT)
BROWN = {
    4: [-0.2, 0.05, 1e-3, -2e-3],
    5: [-0.2, 0.05, 1e-3, -2e-3, 0.01],
    8: [-0.2, 0.05, 1e-3, -2e-3, 0.01, 0.05, 0.02, 0.01],
    12: [-0.2, 0.05, 1e-3, -2e-3, 0.01, 0.05, 0.02, 0.01, 1e-3, 2e-3, -1e-3, 1e-3],
    14: [-0.2, 0.05, 1e-3, -2e-3, 0.01, 0.05, 0.02, 0.01, 1e-3, 2e-3, -1e-3, 1e-3, 0.05, -0.03],
}
FISHEYE = [0.05, -0.01, 2e-3, 1e-4]
LENSES = {"pinhole": (None, "brown"), "fisheye": (FISHEYE, "fisheye")} | {
    f"brown {n}": (k, "brown") for n, k in BROWN.items()
}


def pixels(size: tuple[int, int] = SIZE) -> np.ndarray:
    y, x = np.mgrid[: size[0], : size[1]]
    return np.stack((x, y), -1).astype(np.float64)


def depths(*batch: int, seed: int = 0) -> Tensor:
    return 1 + 4 * noise(*batch, 1, *SIZE, seed=seed)


def by_opencv(scene: np.ndarray, matrix: Tensor, distortion, model: str) -> np.ndarray:
    """Pixels (N, 2) of points (N, 3) in a camera's own coordinates."""
    cv2, still = installed_opencv(), np.zeros(3)
    k = np.zeros(4) if distortion is None else np.array(distortion)
    if model == "fisheye":
        return cv2.fisheye.projectPoints(scene[:, None], still, still, matrix.numpy(), k)[0][:, 0]
    return cv2.projectPoints(scene, still, still, matrix.numpy(), k)[0][:, 0]


def rays(distortion, model: str, kind: str) -> np.ndarray:
    """Rays (h w, 3) of the own camera's pixels, by cv2's projection and many steps back."""
    at = pixels().reshape(-1, 2)
    focal, centre = np.array([20.0, 21]), np.array([7.3, 5.8])
    d = np.c_[(at - centre) / focal, np.ones(len(at))]
    for _ in range(300):
        d[:, :2] -= (by_opencv(d, OWN, distortion, model) - at) / focal
    return d / np.linalg.norm(d, axis=1, keepdims=True) if kind == "ray" else d


def own_depth(kind: str, scene: np.ndarray) -> np.ndarray:
    z = scene[..., 2]
    return {"z": z, "inverse": 1 / z, "ray": np.linalg.norm(scene, axis=-1)}[kind]


@pytest.mark.parametrize("other", LENSES)
@pytest.mark.parametrize("own", ["pinhole", "brown 5", "brown 14", "fisheye"])
@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
def test_points_are_cv2s_pixel_by_pixel(kind, own, other):
    (k, model), (other_k, other_model) = LENSES[own], LENSES[other]
    given = depths()
    z = given.numpy().reshape(-1, 1)
    scene = rays(k, model, kind) * (1 / z if kind == "inverse" else z)
    moved = scene @ TURN.numpy().T + SHIFT.numpy()
    for _ in range(2):
        found = camera.depth_points(
            given, OWN, POSE, other_matrix=OTHER, distortion=k, other_distortion=other_k,
            model=model, other_model=other_model, kind=kind,
        )  # fmt: skip
        truth = by_opencv(moved, OTHER, other_k, other_model)
        off = found.points.reshape(-1, 2).numpy() - truth
        assert np.abs(off).max() <= TOLERANCE["depth points"]
        off = found.depth.reshape(-1).numpy() - own_depth(kind, moved)
        assert np.abs(off).max() <= TOLERANCE["depth points"]


def test_planes_are_homographies():
    """Of the plane n . X = q: K' (R + t n^T / q) K^-1."""
    normal, q = torch.tensor([0.1, 0.6, 0.8]).double(), 3.0
    at = np.c_[pixels().reshape(-1, 2), np.ones(H * W)]
    d = at @ np.linalg.inv(OWN.numpy()).T
    z = q / (d @ normal.numpy())
    matrix = OTHER @ (TURN + SHIFT[:, None] * normal / q) @ torch.linalg.inv(OWN)
    truth = wk.transform_points(matrix, torch.from_numpy(at[:, :2]))
    depth = torch.from_numpy(z.reshape(SIZE))
    found = camera.depth_points(depth, OWN, POSE[:3], other_matrix=OTHER)
    assert (found.points.reshape(-1, 2) - truth).abs().max() <= TOLERANCE["depth points"]
    image = noise(2, 15, 18)
    shown = camera.warp_depth(image, depth, OWN, POSE, other_matrix=OTHER).image
    warped = wk.warp_perspective(image, torch.linalg.inv(matrix), size=SIZE)
    assert (shown - warped).abs().max() <= TOLERANCE["depth points"]


def test_a_turn_alone_is_a_view_of_the_same_sphere_whatever_the_depth():
    own, other = camera.rotation(yaw=20.0), camera.rotation(yaw=35.0, pitch=10.0, roll=-5.0)
    turn = camera.pose((other @ own.mT).double(), [0.0, 0, 0])
    far = torch.full((H, W), INF, dtype=torch.float64)
    every = [
        camera.depth_points(depth, OWN, turn, other_matrix=OTHER).points
        for depth in (far, depths(), torch.full((H, W), 1e-12), torch.full((H, W), 1e30).double())
    ]
    truth = wk.transform_points(
        OTHER @ turn[:3, :3] @ torch.linalg.inv(OWN), torch.from_numpy(pixels().reshape(-1, 2))
    )
    for found in every:
        assert (found.double().reshape(-1, 2) - truth).abs().max() <= 2e-5
    assert (every[0].reshape(-1, 2) - truth).abs().max() <= TOLERANCE["depth points"]
    zero = camera.depth_points(torch.zeros(H, W), OWN, turn, other_matrix=OTHER, kind="inverse")
    assert torch.equal(zero.points, every[0])
    assert (zero.depth == 0).all()


def test_rectified_pairs_shift_by_focal_length_times_base_over_depth():
    base, shift = 0.5, 3
    pose = camera.pose(torch.eye(3).double(), torch.tensor([-base, 0, 0]).double())
    depth = depths()
    found = camera.depth_points(depth, OWN, pose).points.numpy()
    truth = pixels() - np.stack((20.0 * base / depth[0].numpy(), np.zeros(SIZE)), -1)
    assert np.abs(found - truth).max() <= TOLERANCE["depth points"]
    image = noise(3, *SIZE)
    for kind, value in (("z", 20.0 * base / shift), ("inverse", shift / (20.0 * base))):
        flat = torch.full(SIZE, value, dtype=torch.float64)
        shown = camera.warp_depth(image, flat, OWN, pose, kind=kind)
        assert (shown.image[..., shift:] - image[..., :-shift]).abs().max() <= 1e-12
        assert shown.valid[..., shift:].all()
        assert not shown.valid[..., :shift].any()
        assert shown.occluded is None


@pytest.mark.parametrize("lens", ["brown 8", "fisheye"])
def test_a_still_camera_distorts_and_undistorts(lens):
    """From a lens to a pinhole and back, at any depth: the maps of `camera`."""
    k, model = LENSES[lens]
    away = {"other_matrix": OWN, "other_distortion": k, "other_model": model}
    found = camera.depth_points(depths(), OWN, torch.eye(4), **away).points
    truth = camera.undistort_map(OWN, k, SIZE, model=model)
    assert (found - truth).abs().max() <= TOLERANCE["depth points"]
    back = {"other_matrix": OWN, "distortion": k, "model": model, "other_model": "brown"}
    found = camera.depth_points(depths(), OWN, torch.eye(4), **back).points
    truth = camera.distort_map(OWN, k, SIZE, model=model)
    assert (found - truth).abs().max() <= TOLERANCE["depth points"]
    same = camera.depth_points(depths(), OWN, torch.eye(4), distortion=k, model=model).points
    assert (same - torch.from_numpy(pixels())).abs().max() <= TOLERANCE["solved pixels"]


def test_a_fisheye_shows_what_is_beside_and_behind_it():
    """Equidistant by hand: f times the angle from the axis, up to 180 degrees."""
    focal = torch.tensor([[4.0, 0, 0], [0, 4.0, 0], [0, 0, 1]]).double()
    half = camera.pose(camera.rotation(yaw=torch.tensor(-150.0).double()), [0.0, 0, 0])
    depth = torch.ones(1, 3, dtype=torch.float64)
    options = {"other_matrix": focal, "other_model": "fisheye"}
    own = torch.tensor([[1e9, 0, 0], [0, 1e9, 0], [0, 0, 1]]).double()
    for kind, known in (("z", False), ("ray", True)):
        found = camera.depth_points(depth, own, half, kind=kind, **options)
        at = 4 * np.deg2rad(150)
        assert np.allclose(found.points[..., 0], at, atol=1e-7)
        assert found.depth.isfinite().all() == known, "z is negative there"
    back = camera.pose(camera.rotation(yaw=torch.tensor(180.0).double()).round(), [0.0, 0, 0])
    centred = camera.depth_points(depth, own, back, kind="ray", **options)
    assert centred.points[0, 0].isnan().all(), "straight back there is no pixel"
    assert camera.depth_points(depth, own, back, other_matrix=focal).points.isnan().all()
    # as the view that asks: beyond 90 degrees a ray, and no z
    wide = torch.full((1, 9), 2.0, dtype=torch.float64)
    for kind, count in (("ray", 9), ("z", 7), ("inverse", 7)):  # pi / 2 * 4 = 6.28
        found = camera.depth_points(wide, focal, torch.eye(4), model="fisheye", kind=kind)
        assert int(found.points.isfinite().all(-1).sum()) == count
        assert np.allclose(found.points[0, :count, 0], np.arange(count), atol=1e-9)


def test_what_is_missing_has_no_point():
    z = torch.tensor([[NAN, 0.0, -0.0, -1.0, -INF, INF, 1e-300, 1e300, 2.0]], dtype=torch.float64)
    for kind in ("z", "ray"):
        found = camera.depth_points(z, OWN, POSE, kind=kind)
        assert found.points.isfinite().all(-1).tolist() == [[False] * 5 + [True] * 4]
        assert found.depth[0, 0, 5] == INF
        assert found.depth[0, 0, :5].isnan().all()
    w = torch.tensor([[NAN, -1e-9, INF, -INF, 0.0, -0.0, 1e300, 1e-300, 2.0]], dtype=torch.float64)
    found = camera.depth_points(w, OWN, POSE, kind="inverse")
    assert found.points.isfinite().all(-1).tolist() == [[False] * 4 + [True] * 5]
    assert found.depth[0, 0, 4:6].tolist() == [0, 0]
    behind = camera.pose(torch.eye(3).double(), torch.tensor([0.0, 0, -3]).double())
    found = camera.depth_points(torch.tensor([[3.0, 2.0, 3.5]]).double(), OWN, behind)
    assert found.points.isfinite().all(-1).tolist() == [[False, False, True]]
    strong = [-0.5, 0.0, 0.0, 0.0]  # folds at the tangent sqrt(2 / 3), 16.3 pixels from the centre
    far = torch.ones(1, 40).double()
    found = camera.depth_points(far, OWN, torch.eye(4), other_matrix=OWN, other_distortion=strong)
    limit = (2 / 3 - (5.8 / 21) ** 2) ** 0.5 * 20
    inside = np.abs(np.arange(40) - 7.3) < limit
    assert found.points.isfinite().all(-1)[0].tolist() == inside.tolist()


def test_an_item_that_is_not_finite_has_no_points_and_spoils_no_other():
    depth = depths(3).requires_grad_()
    for broken in range(3):
        given = [OWN.repeat(3, 1, 1), POSE.repeat(3, 1, 1)[:, :3], OTHER.repeat(3, 1, 1)]
        given[broken][1, 0, 0] = NAN
        leaves = [value.requires_grad_() for value in given]
        if broken != 1:  # errors of cameras are about values; NaN is not the expected form
            with pytest.raises(ValueError, match="matrix` must be"):
                camera.depth_points(depth, leaves[0], leaves[1], other_matrix=leaves[2] * 0)
        found = camera.depth_points(depth, leaves[0], leaves[1], other_matrix=leaves[2])
        assert found.points[1].isnan().all()
        assert found.depth[1].isnan().all()
        good = camera.depth_points(depth[[0, 2]], OWN, POSE, other_matrix=OTHER)
        assert torch.equal(found.points[[0, 2]], good.points)
        total = found.points.nan_to_num().sum() + found.depth.nan_to_num().sum()
        grads = torch.autograd.grad(total, [depth, *leaves])
        assert all(grad.isfinite().all() for grad in grads)
        assert not any(grad[1].any() for grad in grads)


def test_batches_broadcast_and_results_have_the_common_batch():
    depth, poses = depths(2, 1), POSE.repeat(3, 1, 1)
    poses[:, 0, 3] += torch.arange(3)
    found = camera.depth_points(depth, OWN, poses, other_matrix=OTHER.expand(5, 1, 1, 3, 3))
    assert found.points.shape == (5, 2, 3, H, W, 2)
    assert found.depth.shape == (5, 2, 3, 1, H, W)
    for i, j in np.ndindex(2, 3):
        one = camera.depth_points(depth[i, 0], OWN, poses[j], other_matrix=OTHER)
        assert torch.equal(found.points[3, i, j], one.points)
        assert torch.equal(found.depth[3, i, j], one.depth)
    image = noise(4, 1, 1, 2, *SIZE)
    hidden = camera.warp_depth(image, depth, OWN, poses, other_depth=depths(7, 1, 1, 1))
    assert hidden.image.shape == (7, 4, 2, 3, 2, H, W)
    assert hidden.valid.shape == hidden.occluded.shape == (7, 4, 2, 3, 1, H, W)
    empty = camera.warp_depth(image[:0], depth, OWN, poses)
    assert empty.image.shape == (0, 2, 3, 2, H, W)


def test_types():
    single = camera.depth_points(depths().float(), OWN.float(), POSE.float())
    assert single.points.dtype == single.depth.dtype == torch.float32
    mixed = camera.depth_points(depths().half(), OWN.float(), POSE.float())
    assert mixed.points.dtype == torch.float32
    image = torch.randint(0, 255, (3, *SIZE), dtype=torch.uint8)
    shown = camera.warp_depth(image, depths(), OWN, POSE, interpolation="nearest")
    assert shown.image.dtype == torch.uint8
    points = camera.depth_points(depths(), OWN, POSE).points
    assert torch.equal(shown.image, wk.remap(image, points, interpolation="nearest"))
    labels = camera.warp_depth(image > 90, depths(), OWN, POSE, interpolation="nearest")
    assert labels.image.dtype == torch.bool
    assert not labels.image.requires_grad
