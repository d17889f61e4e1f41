"""Plane sweeps against formulas in numpy, published volumes, and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.camera.test_depth import LENSES, OTHER, OWN
from tests.support import naive_matching
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import camera

NAN, INF = float("nan"), float("inf")
SIZE = H, W = 5, 18
EYE = torch.eye(3, dtype=torch.float64)
TURNS = camera.rotation(vector=torch.tensor([[0.02, -0.05, 0.03], [-0.03, 0.04, 0.0]]).double())
SHIFTS = torch.tensor([[0.3, -0.1, 0.1], [-0.2, 0.1, -0.1]], dtype=torch.float64)
POSES = camera.pose(TURNS, SHIFTS)
DEPTHS = torch.tensor([2.0, 5.0, INF, 0.0, NAN, 0.7], dtype=torch.float64)
MEASURES = ["correlation", "difference", "absolute", "squared", "variance"]
BORDERS = [None, "constant", "replicate", ("reflect", "wrap")]


def pair(border: Any) -> tuple[str, str] | None:
    return (border, border) if isinstance(border, str) else border


def features(channels: int = 6, size: tuple[int, int] = (6, 17)) -> tuple[Tensor, Tensor]:
    return noise(channels, *SIZE), noise(2, channels, *size, seed=1)


def naive_points(inverse: np.ndarray) -> np.ndarray:
    camera, other = OWN.numpy(), OTHER.numpy()
    return np.stack(
        [naive_matching.points_of(camera, p, other, inverse, SIZE) for p in POSES.numpy()]
    )


INVERSE = np.array([1 / 2, 1 / 5, 0.0, -1.0, -1.0, 1 / 0.7])  # -1: missing


@pytest.mark.parametrize("border", BORDERS, ids=str)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_values_are_numpys(border, measure, groups):
    view, sources = features()
    points = naive_points(INVERSE)
    cost, seen = naive_matching.sweep(
        view.numpy(), sources.numpy(), points, measure, groups, pair(border)
    )
    assert 0 < seen.mean() < 2
    for dtype in (torch.float64, torch.float32):
        for _ in range(2):
            found = camera.plane_sweep(
                view.to(dtype), sources.to(dtype), DEPTHS, OWN, POSES, OTHER[None],
                measure=measure, groups=groups, border=border,
            )  # fmt: skip
            off = np.abs(found.cost.double().numpy() - cost).max()
            assert found.cost.dtype == dtype
            assert off <= TOLERANCE[f"matching {dtype}"] + 5e-6 * (dtype == torch.float32)
            assert found.seen.dtype == torch.int32
            assert np.array_equal(found.seen.numpy(), seen)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("channels", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("groups", [1, 3, 5, 8, 17, 40])
def test_groups_of_any_number_of_channels(channels, groups, dtype):
    if channels % groups:
        return
    view, sources = features(channels)
    points = naive_points(INVERSE[:2])
    for measure, border in (("squared", None), ("variance", "constant")):
        cost, _ = naive_matching.sweep(
            view.numpy(), sources.numpy(), points, measure, groups, pair(border)
        )
        found = camera.plane_sweep(
            view.to(dtype), sources.to(dtype), DEPTHS[:2], OWN, POSES, OTHER[None],
            measure=measure, groups=groups, border=border,
        )  # fmt: skip
        off = np.abs(found.cost.double().numpy() - cost).max()
        assert off <= TOLERANCE[f"matching {dtype}"] + 5e-6 * (dtype == torch.float32)


@pytest.mark.parametrize("border", [None, "constant"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_variance_of_the_sources_alone(border, dtype):
    _, sources = features()
    depths = (1 + 3 * noise(2, *SIZE, seed=3)).to(dtype)
    points = np.empty((2, 2, *SIZE, 2))
    for d, v, u in np.ndindex(2, *SIZE):
        inverse = 1 / depths[d, v, u].double().numpy()[None]
        points[:, d, v, u] = naive_points(inverse)[:, 0, v, u]
    cost, seen = naive_matching.sweep(None, sources.numpy(), points, "variance", 3, pair(border))
    found = camera.plane_sweep(
        None, sources.to(dtype), depths, OWN, POSES, OTHER[None],
        measure="variance", groups=3, border=border,
    )  # fmt: skip
    close = TOLERANCE[f"matching {dtype}"] + 5e-6 * (dtype == torch.float32)
    assert np.abs(found.cost.double().numpy() - cost).max() <= close
    assert np.array_equal(found.seen.numpy(), seen)


@pytest.mark.parametrize("other", ["pinhole", "brown 5", "brown 14", "fisheye"])
@pytest.mark.parametrize("own", ["pinhole", "brown 8", "fisheye"])
@pytest.mark.parametrize("kind", ["z", "ray", "inverse"])
def test_lenses_and_kinds_are_those_of_depth_points(kind, own, other):
    view, sources = features()
    depths = 1 + 4 * noise(3, *SIZE, seed=5)
    depths[0, 1, 2], depths[1, 2, 3], depths[2, 0] = INF, NAN, 0
    (k, model), (other_k, other_model) = LENSES[own], LENSES[other]
    points = [
        camera.depth_points(
            depths[:, None], OWN, pose, other_matrix=OTHER, distortion=k, other_distortion=other_k,
            model=model, other_model=other_model, kind=kind,
        ).points.numpy()
        for pose in POSES
    ]  # fmt: skip
    cost, seen = naive_matching.sweep(
        view.numpy(), sources.numpy(), np.stack(points), "absolute", 2, None
    )
    for dtype in (torch.float64, torch.float32):
        found = camera.plane_sweep(
            view.to(dtype), sources.to(dtype), depths, OWN, POSES, OTHER[None], distortion=k,
            source_distortions=None if other_k is None else [other_k], model=model,
            source_model=other_model, kind=kind, measure="absolute", groups=2,
        )  # fmt: skip
        off = np.abs(found.cost.double().numpy() - cost).max()
        assert off <= TOLERANCE[f"matching {dtype}"] + 5e-6 * (dtype == torch.float32)
        assert np.array_equal(found.seen.numpy(), seen)


def test_gwcnets_volume_of_disparities():
    left, right = noise(2, 8, 4, 20).float(), noise(2, 8, 4, 20, seed=1).float()
    count = 6
    volume = torch.zeros(2, 4, count, 4, 20)
    for d in range(count):
        product = left[..., d:] * right[..., : 20 - d]
        volume[:, :, d, :, d:] = product.unflatten(1, (4, 2)).mean(2)
    pose = camera.pose(EYE, [-1.0, 0, 0])
    found = camera.plane_sweep(
        left, right[:, None], range(count), EYE, pose[None], kind="inverse", groups=4
    )
    assert (found.cost - volume).abs().max() <= TOLERANCE["matching torch.float32"]
    assert torch.equal(found.seen[0, :, 0].sum(-1), 20 - torch.arange(count))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("per_pixel", [False, True])
def test_mvsnets_variance_by_torchs_sampler(per_pixel, dtype):
    """Zeros outside count, as in MVSNet: E[x^2] - E[x]^2 of all volumes."""
    view, sources = (value[None].to(dtype) for value in features(4, SIZE))
    depths = torch.linspace(1, 6, 3).double()[:, None, None]
    if per_pixel:
        depths = depths + noise(3, *SIZE, seed=4)
    y, x = torch.meshgrid(*(torch.arange(n).double() for n in SIZE), indexing="ij")
    pixels = torch.stack((x, y, torch.ones_like(x)), -1)
    volumes = [view[0, :, None].double().expand(-1, 3, -1, -1)]
    for pose, source in zip(POSES, sources[0], strict=True):
        at = (pixels @ torch.linalg.inv(OWN).mT @ pose[:3, :3].mT)[None] * depths[..., None]
        at = (at + pose[:3, 3]) @ OWN.mT
        at = at[..., :2] / at[..., 2:]
        grid = at / torch.tensor([W - 1, H - 1]).double() * 2 - 1
        sampled = torch.nn.functional.grid_sample(
            source.double().expand(3, -1, -1, -1), grid, align_corners=True
        )
        volumes.append(sampled.movedim(0, 1))
    all_of = torch.stack(volumes)
    truth = all_of.square().mean(0) - all_of.mean(0).square()
    found = camera.plane_sweep(
        view, sources, depths, OWN, POSES, measure="variance", groups=4, border="constant"
    )
    assert (found.cost[0].double() - truth).abs().max() <= 5 * TOLERANCE[f"matching {dtype}"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_takes_no_row_away(dtype):
    """The identity of cameras whose numbers are no round ones: every edge pixel is seen."""
    draw = noise(20, 4, seed=9)
    for fx, fy, cx, cy in (draw * torch.tensor([900.0, 900, 640, 192]) + 50).tolist():
        matrix = torch.tensor([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], dtype=torch.float64)
        picture = torch.ones(1, 48, 160, dtype=dtype)
        still = torch.eye(4).double()[None]
        found = camera.plane_sweep(picture, picture[None], [0.3, 7.0], matrix, still)
        assert found.seen.min() == 1
        assert found.cost.min() >= 1 - 1e-6


@pytest.mark.parametrize("mean", [100.0, 1000.0])
def test_the_variance_keeps_its_digits_far_from_0(mean):
    view, sources = (mean + value for value in features(8, SIZE))
    exact = camera.plane_sweep(view, sources, DEPTHS[:2], OWN, POSES, measure="variance")
    found = camera.plane_sweep(
        view.float(), sources.float(), DEPTHS[:2], OWN, POSES, measure="variance"
    )
    assert (found.cost - exact.cost).abs().max() <= 3e-8 * mean
    same = torch.full_like(sources, mean).float()
    flat = camera.plane_sweep(same[0, :, :H], same, DEPTHS[:2], OWN, POSES, measure="variance")
    assert flat.cost.min() >= 0
    assert flat.cost.max() <= 1e-8


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batches_broadcast(dtype):
    view, sources = noise(2, 1, 4, *SIZE).to(dtype), noise(3, 2, 4, 6, 7, seed=1).to(dtype)
    depths, poses = 1 + noise(2, 1, 3, *SIZE, seed=2), POSES.expand(3, 2, 4, 4)
    last = sources.movedim(-3, -1).contiguous().movedim(-1, -3)
    for one in (sources, last):
        found = camera.plane_sweep(
            view, one, depths, OWN, poses, OTHER.expand(3, 2, 3, 3), groups=2, measure="squared"
        )
        assert found.cost.shape == (2, 3, 2, 3, *SIZE)
        assert found.seen.shape == (2, 3, 3, *SIZE)
        for i, j in np.ndindex(2, 3):
            alone = camera.plane_sweep(
                view[i, 0], sources[j], depths[i, 0], OWN, POSES, OTHER[None], groups=2,
                measure="squared",
            )  # fmt: skip
            assert torch.equal(found.cost[i, j], alone.cost)
            assert torch.equal(found.seen[i, j], alone.seen)
    # planes of each item, and one source under two poses
    planes = torch.tensor([[2.0, 4.0], [3.0, 6.0]])[:, None, :, None, None]
    found = camera.plane_sweep(view, sources[:, :1], planes, OWN, poses, OTHER[None])
    alone = camera.plane_sweep(
        view[1, 0], sources[2, :1].expand(2, -1, -1, -1), [3.0, 6.0], OWN, POSES, OTHER[None]
    )
    assert torch.equal(found.cost[1, 2], alone.cost)
    # views as a batch: a cost each
    each = camera.plane_sweep(view[0], sources[0][:, None], [2.0], OWN, POSES[:, None], OTHER[None])
    assert each.cost.shape == (2, 1, 1, *SIZE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_more_than_sixteen_views(dtype):
    view, sources = noise(4, *SIZE).to(dtype), noise(19, 4, 6, 17, seed=1).to(dtype)
    poses = POSES[:1].expand(19, 4, 4)
    found = camera.plane_sweep(view, sources, [3.0], OWN, poses, OTHER[None])
    mean = sum(
        camera.plane_sweep(view, s[None], [3.0], OWN, POSES[:1], OTHER[None]).cost for s in sources
    )
    assert (found.cost - mean / 19).abs().max() <= 1e-6
    assert found.seen.max() == 19


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_empty_views_planes_and_batches(dtype):
    def swept(view: Tensor, depths: Any, batch: int = 1) -> Any:
        sources = noise(batch, 2, 3, 5, 6).to(dtype).requires_grad_()
        found = camera.plane_sweep(view.to(dtype), sources, depths, OWN, POSES, OTHER[None])
        found.cost.sum().backward()
        assert sources.grad is not None
        assert not sources.grad.any()
        return found

    assert swept(noise(3, 4, 5), torch.zeros(0)).cost.shape == (1, 1, 0, 4, 5)
    assert swept(noise(3, 0, 5), [1.0]).cost.shape == (1, 1, 1, 0, 5)
    assert swept(noise(3, 4, 0), [1.0]).seen.shape == (1, 1, 4, 0)
    assert swept(noise(3, 4, 5), [1.0], 0).cost.shape == (0, 1, 1, 4, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once(dtype):
    view, sources = (value.to(dtype) for value in features())
    given = (DEPTHS, OWN, POSES, OTHER[None])
    truth = camera.plane_sweep(view.float(), sources.float(), *given).cost.to(dtype)
    assert torch.equal(camera.plane_sweep(view, sources, *given).cost, truth)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(camera.plane_sweep(view, sources, *given).cost, truth)
        full = camera.plane_sweep(view.float(), sources.float(), *given).cost
    assert full.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_is_not_finite_spoils_only_what_reads_it(dtype):
    view, sources = (value.to(dtype) for value in features())
    given = (DEPTHS[:3], OWN, POSES, OTHER[None])
    clean = camera.plane_sweep(view, sources, *given, border="constant").cost
    bad = sources.clone()
    bad[0, 2, 3, 4] = NAN
    found = camera.plane_sweep(view, bad, *given, border="constant").cost
    same = found.isfinite()
    assert 0 < (~same).sum() < 60
    assert torch.equal(found[same], clean[same])
    # a reference that nobody sees, and an edge that only places outside would read
    poses = camera.pose(EYE, [[1e3, 0, 0], [0, 1e3, 0]])
    hidden = camera.plane_sweep(view * NAN, sources, [1.0], OWN, poses, OTHER[None])
    assert not hidden.cost.any()
    edge = sources.clone()
    edge[..., 0, :], edge[..., -1] = NAN, INF
    out = camera.plane_sweep(view, edge, [1.0], OWN, poses, OTHER[None], border="constant")
    assert not out.cost.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("bad", ["poses", "matrices", "camera"])
def test_a_camera_that_is_not_finite_sees_nothing(bad, dtype):
    view, sources = (value.to(dtype) for value in features())
    poses, matrices, own = POSES.clone(), OTHER.expand(2, 3, 3).clone(), OWN.clone()
    {"poses": poses[1], "matrices": matrices[1], "camera": own}[bad][0, 0] = NAN
    inputs = [view, sources, DEPTHS[:3].clone(), own, poses[:, :3], matrices]
    inputs = [value.detach().clone().requires_grad_() for value in inputs]
    found = camera.plane_sweep(*inputs)
    if bad == "camera":
        assert not found.cost.any()
        assert not found.seen.any()
    else:
        alone = camera.plane_sweep(view, sources[:1], DEPTHS[:3], OWN, POSES[:1], OTHER[None])
        assert torch.equal(found.seen, alone.seen)
        close = TOLERANCE[f"matching {dtype}"]
        assert (found.cost - alone.cost).abs().max() <= close
    grads = torch.autograd.grad(found.cost.sum(), inputs)
    for grad in grads:
        assert grad.isfinite().all()


P = torch.rand(4, *SIZE)
S = torch.rand(2, 4, *SIZE)
GIVEN = {"depths": [1.0], "camera_matrix": OWN, "poses": POSES}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": S[0]}, "`sources` must be of shape (..., V, C, H, W), got (4, 5, 18)"),
        ({"sources": S[:0]}, "`sources` must be of shape (..., V, C, H, W) with at least a view"),
        ({"sources": S[..., :0]}, "`sources` must be of shape (..., V, C, H, W) with at least a view"),
        ({"sources": S.double()}, "`sources` must be of the type of `reference`, torch.float32"),
        ({"sources": S[:, :2]}, "`sources` must be of as many channels as `reference`, 4"),
        ({"sources": S.int()}, "`sources` must be of one of the types float16"),
        ({"sources": S[..., 1:]}, "`source_matrices` must be given for sources of (5, 17), as the view is of (5, 18)"),
        ({"sources": S.expand(3, 2, *P.shape), "reference": P.expand(2, *P.shape)}, "the batch dimensions of"),
        ({"reference": None}, "`reference` must be given with measure='correlation'"),
        ({"reference": None, "measure": "variance"}, "`depths` must be of shape (..., D, h, w) without a reference, got (1,)"),
        ({"depths": 1.0}, "`depths` must be of shape (D,), (..., D, 5, 18) or (..., D, 1, 1), got ()"),
        ({"depths": torch.ones(2, 3)}, "`depths` must be of shape (D,)"),
        ({"depths": torch.ones(2, 5, 17)}, "`depths` must be of shape (D,)"),
        ({"depths": torch.ones(2).bool()}, "`depths` must be real numbers, got torch.bool"),
        ({"poses": POSES[0]}, "`poses` must be of shape (..., V, 3, 4) or (..., V, 4, 4), got (4, 4)"),
        ({"poses": POSES[:, :2]}, "`poses` must be of shape (..., V, 3, 4)"),
        ({"poses": POSES[:1].expand(3, 4, 4)}, "`poses` must be for as many views as `sources`, 2, or for 1, got 3"),
        ({"poses": POSES.mT}, "`poses` must be a matrix with the last row (0, 0, 0, 1)"),
        ({"source_matrices": OWN}, "`source_matrices` must be of shape (..., V, 3, 3), got (3, 3): one for all views is [None]"),
        ({"source_matrices": OWN.expand(3, 3, 3)}, "`source_matrices` must be for as many views as `sources`, 2"),
        ({"source_matrices": OWN[None], "source_distortions": [0.0] * 4}, "`source_distortions` must be of shape (..., V, n)"),
        ({"source_matrices": OWN[None], "source_distortions": [[0.0] * 3]}, "`source_distortions` must be of shape (..., V, n) with n of 4, 5, 8, 12 or 14"),
        ({"source_matrices": OWN[None], "source_distortions": [[0.0] * 4] * 3}, "`source_distortions` must be for as many views as `sources`"),
        ({"source_matrices": OWN[None], "source_model": "pinhole"}, "`source_model` must be one of 'brown', 'fisheye'"),
        ({"source_distortions": [[0.0] * 4]}, "`source_distortions` must be left out without `source_matrices`"),
        ({"source_model": "brown"}, "`source_model` must be left out without `source_matrices`"),
        ({"camera_matrix": [[1.0, 0.1, 0], [0, 1, 0], [0, 0, 1]]}, "`camera_matrix` must be (fx, 0, cx)"),
        ({"model": "pinhole"}, "`model` must be one of 'brown', 'fisheye'"),
        ({"kind": "depth"}, "`kind` must be one of 'z', 'ray', 'inverse'"),
        ({"measure": "l1"}, "`measure` must be one of 'correlation', 'difference'"),
        ({"groups": 3}, "`groups` must be a whole number that divides the 4 channels, got 3"),
        ({"groups": 0}, "`groups` must be a whole number that divides"),
        ({"groups": True}, "`groups` must be a whole number that divides"),
        ({"border": "transparent"}, "`border` must be a border other than 'transparent'"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wanted(change, message):
    given = {"reference": P, "sources": S, **GIVEN, **change}
    with pytest.raises((TypeError, ValueError)) as caught:
        camera.plane_sweep(**given)
    assert message in str(caught.value)
    assert str(caught.value).startswith("plane_sweep: ")


def test_whole_depths_are_taken_and_a_turn_that_is_none_is_warned_of():
    found = camera.plane_sweep(P, S, torch.tensor([2, 3]), OWN, POSES)
    assert torch.equal(found.cost, camera.plane_sweep(P, S, [2.0, 3.0], OWN, POSES).cost)
    with pytest.warns(UserWarning, match="plane_sweep: the rotation of `poses` is not a rotation"):
        camera.plane_sweep(P, S, [1.0], OWN, 2 * POSES[:, :3])
