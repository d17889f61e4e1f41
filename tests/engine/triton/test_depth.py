"""Points of depths and z-buffers by the CUDA kernels, against the definitions."""

from __future__ import annotations

import pytest
import torch

from tests.support.cuda_comparison import DEVICE, mark_all, quiet_interpreter  # noqa: F401
from tests.support.inputs import noise
from tests.support.tolerances import TOLERANCE
from warpkit import camera
from warpkit.engine.definitions import depth as definition
from warpkit.engine.definitions import front as fronts
from warpkit.engine.definitions.depth import Depths
from warpkit.engine.operators.depth import POINTS
from warpkit.engine.operators.front import FRONT

INF, NAN = float("inf"), float("nan")
LENSES = [("brown", n) for n in (0, 4, 5, 8, 12, 14)] + [("fisheye", 4)]


def scene(model, count, pinhole, dtype=torch.float64):
    """Depths (2, 1, 9, 17), rays, poses (3, 3, 4), a lens's numbers, and its end."""
    depth = noise(2, 1, 9, 17, seed=count) * 4 + 0.2
    hard = torch.tensor([NAN, INF, 0.0, -1.0, 1e-300, 1e300, -INF, 1.0], dtype=torch.float64)
    depth[0, 0, 3, :8], depth[1, 0, 8, 9:] = hard, hard
    rays = torch.tensor([20.0, 19, 8, 4.2], dtype=torch.float64)
    if not pinhole:
        y, x = torch.meshgrid(
            *(torch.arange(n, dtype=torch.float64) for n in (9, 17)), indexing="ij"
        )
        rays = torch.stack(((x - 8) / 9, (y - 4) / 9, torch.ones_like(x) - x / 12))
        rays[:, 2, 3] = NAN
    turn = camera.rotation(vector=noise(3, 3, seed=2) - 0.5)
    pose = torch.cat((turn, noise(3, 3, 1, seed=3) - 0.5), -1).double()
    k = (noise(count, seed=4) - 0.4) * 0.2
    numbers = torch.cat((torch.tensor([22.0, 21, 7, 4]).double(), k))
    end = torch.tensor(1.3 if count else INF, dtype=torch.float64)
    tensors = depth.to(dtype)[:, 0], rays, pose, numbers, end
    # three poses of two depths each
    return [t.to(DEVICE) for t in (tensors[0], rays, pose[:, None], numbers, end)]


def compare(options, tensors):
    """The kernels' results and gradients with the definition's; every call is made twice."""
    *leaves, end = tensors
    leaves = [t.detach().requires_grad_() for t in leaves]
    floats = 1 + options.own
    truth = definition.points(options, *leaves, end)
    grads = [noise(*t.shape, seed=9).to(t) for t in truth[:floats]]
    # depths of 1e300 would hide all others in sums
    near = [t.detach().abs() < 1e6 for t in truth[:floats]]
    grads = [torch.where(there, g, 0.0) for g, there in zip(grads, near, strict=True)]
    expected = torch.autograd.grad(truth[:floats], leaves, grads, allow_unused=True)
    limit = {"rtol": 0, "atol": TOLERANCE["cuda depth"], "equal_nan": True}
    for _ in range(2):
        found = POINTS(options, *leaves, end, device="triton")
        assert found[0].requires_grad
        for mine, theirs in zip(found[:floats], truth[:floats], strict=True):
            scale = theirs.detach()[theirs.detach().isfinite()].abs().clamp(min=1)
            size = torch.ones_like(theirs)
            size[theirs.isfinite()] = scale
            torch.testing.assert_close(mine / size, theirs / size, **limit)
        for mine, theirs in zip(found[floats:], truth[floats:], strict=True):
            assert torch.equal(mine, theirs)
        slopes = torch.autograd.grad(found[:floats], leaves, grads, allow_unused=True)
        for mine, theirs in zip(slopes, expected, strict=True):
            assert theirs is not None
            assert mine.dtype == theirs.dtype
            scale = max(1.0, float(theirs.abs().max()))
            torch.testing.assert_close(mine / scale, theirs / scale, **limit)


@pytest.mark.parametrize(("model", "count"), LENSES)
def test_points_of_all_lenses(model, count):
    pinhole = model == "brown" and count % 4 == 0
    compare(Depths("z", model, pinhole, True, ("bilinear", 9, 17)), scene(model, count, pinhole))


@pytest.mark.parametrize("kind", definition.KINDS)
@pytest.mark.parametrize("interpolation", ["nearest", "bicubic", "lanczos4"])
def test_points_of_all_kinds(kind, interpolation):
    pinhole = interpolation != "bicubic"
    model = "fisheye" if interpolation == "nearest" else "brown"
    count = {"nearest": 4, "bicubic": 5, "lanczos4": 0}[interpolation]
    options = Depths(kind, model, pinhole, interpolation != "lanczos4", (interpolation, 9, 17))
    compare(options, scene(model, count, pinhole))


def test_float32_depths_items_that_are_not_finite_and_empty_batches():
    options = Depths("z", "brown", True, False, None)
    tensors = scene("brown", 0, True)
    compare(options, tensors)
    depth, rays, pose, numbers, end = tensors
    found = POINTS(options, depth.float(), rays, pose, numbers, end, device="triton")[0]
    truth = definition.points(options, depth.float(), rays, pose, numbers, end)[0]
    torch.testing.assert_close(found, truth, rtol=1e-12, atol=1e-12, equal_nan=True)
    bad = pose.clone()
    bad[1, 0, 2, 1] = NAN
    leaves = [t.detach().requires_grad_() for t in (depth, rays, bad, numbers)]
    found = POINTS(options, *leaves, end, device="triton")[0]
    assert found[1].isnan().all()
    assert not found[0].isnan().all()
    for slope in torch.autograd.grad(found, leaves, torch.ones_like(found)):
        assert slope.isfinite().all()
    empty = POINTS(options, depth[:0], rays, pose[:0], numbers, end, device="triton")[0]
    assert empty.shape == (0, 0, 9, 17, 2)


FRONTS = [
    (torch.float32, torch.float32, (8, 9), (2,), ()),
    (torch.float64, torch.float64, (5, 14), (), (3,)),
    (torch.int64, torch.float32, (1, 1), (2, 1), (3,)),
    (torch.bfloat16, torch.float64, (11, 4), (1,), (2,)),
    (torch.int8, torch.float64, (8, 9), (2, 3), (2, 3)),
]


@pytest.mark.parametrize(("dtype", "places", "size", "images", "fields"), FRONTS)
def test_pixels_in_front_and_their_gradient(dtype, places, size, images, fields):
    """Few depths, so that many are equal; some are special, and so are some offsets."""
    image = (noise(*images, 2, 8, 9, seed=1) * 100).to(dtype).to(DEVICE)
    field = 3 * (2 * noise(*fields, 8, 9, 2, seed=2) - 1)
    depth = (3 * noise(*fields, 8, 9, seed=3)).floor() - 1
    depth[..., 0, :4] = torch.tensor([NAN, INF, -INF, -0.0]).double()
    field[..., 1, :4, :] = torch.tensor([NAN, INF, 1e300, 0.5]).double()[:, None]
    field, depth = field.to(places).to(DEVICE), depth.to(places).to(DEVICE)
    if dtype.is_floating_point:
        image.requires_grad_()
    truth = fronts.shown(size, image, field, depth)
    for _ in range(2):
        found = FRONT(size, image, field, depth, device="triton")
        assert torch.equal(found[0], truth[0])
        assert torch.equal(found[1], truth[1])
        if image.requires_grad:
            push = noise(*truth[0].shape, seed=4).to(truth[0])
            (slope,) = torch.autograd.grad(found[0], image, push)
            (expected,) = torch.autograd.grad(truth[0], image, push, retain_graph=True)
            assert torch.equal(slope, expected)


def test_empty_fronts():
    image, field = torch.rand(0, 3, 4, 5, device=DEVICE), torch.rand(4, 5, 2, device=DEVICE)
    found = FRONT((4, 5), image.requires_grad_(), field, field[..., 0], device="triton")
    assert found[0].shape == (0, 3, 4, 5)
    assert torch.autograd.grad(found[0].sum(), image)[0].shape == image.shape


mark_all(globals())
