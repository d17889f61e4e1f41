"""Gradients of warps by depth and pose: all orders and modes, and none that is NaN."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad, gradcheck

from tests.camera.test_depth import BROWN, FISHEYE, LENSES, OTHER, OWN, POSE
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit import camera

NAN, INF = float("nan"), float("inf")
SIZE = H, W = 3, 4


def small(*batch: int) -> torch.Tensor:
    return 1 + 2 * noise(*batch, 1, *SIZE, seed=3)


def matrix_of(numbers: torch.Tensor) -> torch.Tensor:
    """The camera of fx, fy, cx, cy: finite differences of the other entries are refused."""
    fx, fy, cx, cy = numbers
    zero, one = torch.zeros_like(fx), torch.ones_like(fx)
    rows = ((fx, zero, cx), (zero, fy, cy), (zero, zero, one))
    return torch.stack([torch.stack(row) for row in rows])


def numbers_of(matrix: torch.Tensor) -> torch.Tensor:
    return matrix[[0, 1, 0, 1], [0, 1, 2, 2]].clone()


def lens(name: str) -> torch.Tensor | None:
    k = LENSES[name][0]
    return None if k is None else torch.tensor(k, dtype=torch.float64)


CASES = [
    ("z", "pinhole", "pinhole"),
    ("ray", "pinhole", "pinhole"),
    ("inverse", "pinhole", "brown 14"),
    ("z", "pinhole", "fisheye"),
    ("ray", "brown 5", "fisheye"),
    ("inverse", "fisheye", "brown 8"),
    ("ray", "fisheye", "brown 5"),
    ("z", "brown 12", "pinhole"),
]


@pytest.mark.parametrize(("kind", "own", "other"), CASES)
def test_gradients_of_all_orders_and_modes(kind, own, other):
    k, other_k = lens(own), lens(other)
    inputs = [small(2), POSE[:3].clone(), numbers_of(OWN), numbers_of(OTHER)]
    inputs += [value for value in (k, other_k) if value is not None]
    inputs = [value.requires_grad_() for value in inputs]

    def points(depth, pose, matrix, other_matrix, *lenses):
        left = list(lenses)
        found = camera.depth_points(
            depth, matrix_of(matrix), pose, other_matrix=matrix_of(other_matrix), kind=kind,
            distortion=None if k is None else left.pop(0), model=LENSES[own][1],
            other_distortion=None if other_k is None else left.pop(0),
            other_model=LENSES[other][1],
        )  # fmt: skip
        assert found.points.isfinite().all()
        return found.points, found.depth

    assert gradcheck(points, inputs, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(points, inputs)


@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
def test_depths_of_exactly_1_have_both_orders(kind):
    """The formulas change there."""
    inputs = [torch.ones(1, *SIZE).double().requires_grad_(), POSE[:3].clone().requires_grad_()]

    def points(depth, pose):
        return tuple(camera.depth_points(depth, OWN, pose, kind=kind))

    assert gradcheck(points, inputs, check_forward_ad=True)
    assert gradgradcheck(points, inputs)


def test_gradients_of_the_picture():
    image = noise(2, 6, 7).requires_grad_()
    shift = torch.tensor([0.11, -0.07, 0.02], dtype=torch.float64)
    pose = camera.pose(torch.eye(3).double(), shift)[:3].requires_grad_()
    depth, fill = (1 + noise(1, 6, 7, seed=2)).requires_grad_(), torch.tensor(0.3).double()
    inputs = [image, depth, numbers_of(OWN).requires_grad_(), pose, fill.requires_grad_()]

    def shown(image, depth, matrix, pose, fill):
        return camera.warp_depth(
            image, depth, matrix_of(matrix), pose, border_value=fill, interpolation="bicubic"
        ).image

    assert gradcheck(shown, inputs, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(shown, inputs)
    found = camera.warp_depth(image, depth, OWN, pose, other_depth=depth)
    assert not found.valid.requires_grad
    assert not found.occluded.requires_grad


BROKEN = {
    "missing": {"z": [NAN, 0.0, -1.0, INF], "inverse": [NAN, -1.0, INF, 0.0]},
    "extreme": {"z": [1e-300, 1e300, 1e-40, 1e40], "inverse": [1e-300, 1e300, 1e-40, 1e40]},
}


@pytest.mark.parametrize("other", ["pinhole", "brown 8", "fisheye"])
@pytest.mark.parametrize("own", ["pinhole", "brown 5", "fisheye"])
@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
@pytest.mark.parametrize("what", BROKEN)
def test_no_gradient_is_nan_and_what_is_missing_has_none(what, kind, own, other):
    """First and second ones, also where the loss reads every pixel."""
    (k, model), (other_k, other_model) = LENSES[own], LENSES[other]
    depth = small()
    depth[0, 0] = torch.tensor(BROKEN[what]["z" if kind == "ray" else kind], dtype=torch.float64)
    behind = camera.pose(camera.rotation(yaw=torch.tensor(100.0).double()), [0.0, 0, 0])
    for pose in (POSE, behind):
        leaves = [
            value.clone().requires_grad_() for value in (depth, pose, OWN, OTHER, noise(1, 9, 9))
        ]
        options = {
            "distortion": k, "model": model, "other_distortion": other_k,
            "other_model": other_model, "kind": kind, "other_matrix": leaves[3],
        }  # fmt: skip
        found = camera.depth_points(leaves[0], leaves[2], leaves[1], **options)
        shown = camera.warp_depth(leaves[4], leaves[0], leaves[2], leaves[1], **options)
        total = found.points.nan_to_num(0, 0, 0).sum() + shown.image.sum()
        own_depths = found.depth[found.depth.abs() < 1e6]
        total = total + own_depths.sum()
        grads = torch.autograd.grad(total, leaves, create_graph=True)
        assert all(grad.isfinite().all() for grad in grads), [g.isfinite().all() for g in grads]
        missing = found.points.isnan().all(-1)
        assert not grads[0][0][missing].any()
        if what == "missing":
            second = torch.autograd.grad(sum(g.sum() for g in grads), leaves, allow_unused=True)
            assert all(grad.isfinite().all() for grad in second if grad is not None)


def test_a_gradient_at_infinity_reaches_the_turn_and_inverse_depth():
    zero = torch.zeros(SIZE, dtype=torch.float64).requires_grad_()
    pose = POSE[:3].clone().requires_grad_()
    found = camera.depth_points(zero, OWN, pose, kind="inverse")
    to_depth, to_pose = torch.autograd.grad(found.points[..., 0].sum(), (zero, pose))
    step = 1e-7
    moved = camera.depth_points(zero.detach() + step, OWN, POSE, kind="inverse").points
    slope = (moved - found.points.detach())[..., 0] / step
    assert (to_depth - slope).abs().max() < 1e-4
    assert not to_pose[:, 3].any(), "no translation moves what is at infinity"
    assert to_pose[:, :3].any()


@pytest.mark.parametrize(("own", "other"), [("pinhole", "brown 8"), ("pinhole", "pinhole")])
def test_vmap_forward_mode_and_compiled_code(own, other, fresh_compiler):
    (k, model), (other_k, other_model) = LENSES[own], LENSES[other]
    depth, image = small(3), noise(2, *SIZE)
    poses = POSE[:3].repeat(3, 1, 1)
    poses[:, 0, 3] += torch.arange(3)

    def warp(depth, pose):
        found = camera.warp_depth(
            image, depth, OWN, pose, other_matrix=OTHER, distortion=k, model=model,
            other_distortion=other_k, other_model=other_model, other_depth=depth,
        )  # fmt: skip
        return found.image, found.valid, found.occluded

    wanted = warp(depth, poses)
    tight = TOLERANCE["two modes float64"]
    for found in (
        torch.func.vmap(warp)(depth, poses),
        torch.compile(warp, backend="aot_eager")(depth, poses),
    ):
        assert (found[0] - wanted[0]).abs().max() <= tight
        assert torch.equal(found[1], wanted[1])
        assert torch.equal(found[2], wanted[2])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(depth, torch.ones_like(depth))
        tangent = forward_ad.unpack_dual(warp(dual, poses)[0]).tangent
    leaf = depth.clone().requires_grad_()
    weights = noise(*wanted[0].shape)
    (back,) = torch.autograd.grad(warp(leaf, poses)[0], leaf, weights)
    assert float((tangent * weights).sum() - back.sum()) == pytest.approx(0, abs=1e-9)


def test_the_gradient_of_a_float32_depth_is_that_of_float64_places():
    depth, pose = small(2), POSE[:3]
    image = noise(2, 9, 9)
    grads = []
    for dtype in (torch.float64, torch.float32):
        leaves = [v.to(dtype).requires_grad_() for v in (depth.float(), pose.float())]
        shown = camera.warp_depth(
            image.to(dtype), leaves[0], OWN.float(), leaves[1], other_matrix=OTHER.float()
        )
        grads.append(torch.autograd.grad(shown.image.square().sum(), leaves))
    for exact, single in zip(*grads, strict=True):
        assert single.dtype == torch.float32
        assert (exact - single).abs().max() <= 1e-5 * exact.abs().max()


def test_lenses_of_batches_get_their_own_gradients():
    k = torch.tensor([BROWN[4], BROWN[4]], dtype=torch.float64).requires_grad_()
    other = torch.tensor([FISHEYE], dtype=torch.float64).repeat(2, 1).requires_grad_()
    options = {"other_matrix": OTHER, "other_model": "fisheye"}
    found = camera.depth_points(small(), OWN, POSE, distortion=k, other_distortion=other, **options)
    grads = torch.autograd.grad(found.points[1].sum(), (k, other))
    assert not grads[0][0].any()
    assert not grads[1][0].any()
    assert grads[0][1].any()
    assert grads[1][1].all()
