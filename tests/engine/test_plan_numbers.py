"""Plans of OpenCV's warps and of crops: the first call's bits, its gradients, and its errors."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise
from warpkit.engine.binding import plan

OPENCV = [
    (arithmetic, interpolation, dtype)
    for arithmetic in ("opencv4", "opencv5")
    for interpolation in ("nearest", "bilinear", "bicubic", "lanczos4")
    for dtype in (torch.uint8, torch.int16, torch.float32)
]
LAYOUTS = {
    "planes": lambda image: image,
    "channels-last": lambda image: image.contiguous(memory_format=torch.channels_last),
    "one image": lambda image: image[0],
    "channels-last image": lambda image: image[0].movedim(0, -1).contiguous().movedim(-1, 0),
    "a part": lambda image: image[..., 2:, 1:15],
    "repeated": lambda image: (
        image[:1].contiguous(memory_format=torch.channels_last).expand(2, -1, -1, -1)
    ),
}
BOXES = {
    "upright": [[2.0, 1.5, 12.0, 9.0], [-3.0, 4.0, 8.5, 30.0]],
    "turned": [[8.0, 7.0, 9.0, 5.0, 30.0], [6.0, 6.0, 4.0, 20.0, -120.0]],
    "quads": [[[2.0, 1], [12, 2], [11, 12], [1, 9]], [[-4.0, 1], [14, 3], [9, 8], [1, 9]]],
}


@pytest.fixture(autouse=True)
def _nothing_planned(monkeypatch):
    monkeypatch.setattr(plan, "_plans", {})


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("arithmetic", "interpolation", "dtype"), OPENCV)
def test_planned_warps_have_opencvs_values(arithmetic, interpolation, dtype, layout):
    options = {"arithmetic": arithmetic, "interpolation": interpolation, "border": "reflect"}
    matrix = wk.rotation_matrix((9.0, 8.0), torch.tensor([30.0, 200.0]), 1.3)
    points = noise(2, 9, 35, 2, seed=3, dtype=torch.float32) * 30 - 5
    for n in range(3):
        image = LAYOUTS[layout](noise(2, 3, 20, 18, dtype=dtype, seed=n))
        calls: list[Any] = [
            (wk.warp_affine, matrix + n / 4, {"size": (9, 35)}),
            (wk.warp_affine, matrix + n / 4, {"inverse": True}),
            (wk.remap, points + n / 4, {}),
            (wk.remap, noise(*image.shape[-2:], 2, seed=n) * 5, {"relative": True}),
        ]
        for function, where, more in calls:
            got = function(image, where, **options, **more)
            wanted = function(image, where, backend="reference", **options, **more)
            assert torch.equal(got, wanted)
            assert got.stride() == wanted.stride()
    assert len(plan._plans) == 4


@pytest.mark.parametrize("arithmetic", ["opencv4", "opencv5"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_planned_warps_have_the_gradients_of_exact(wanted, inverse, arithmetic):
    given = noise(2, 3, 8, 9), wk.rotation_matrix((4.0, 4.0), torch.tensor([20.0, 70.0]).double())
    pushed, found = noise(4, 2, 3, 7, 10, seed=4), []
    for name in ("exact", arithmetic, arithmetic):
        inputs = [x.clone().requires_grad_(w) for x, w in zip(given, wanted, strict=True)]
        needed = [x for x in inputs if x.requires_grad]
        out = wk.warp_affine(*inputs, size=(7, 10), inverse=inverse, arithmetic=name)
        first = torch.autograd.grad(out, needed, pushed[0], retain_graph=True)
        batch = torch.autograd.grad(out, needed, pushed, is_grads_batched=True, retain_graph=True)
        again = torch.autograd.grad(out, needed, pushed[1], create_graph=True)
        total = sum((x.sin().sum() for x in again), torch.zeros(()))
        second = ()
        if total.requires_grad:
            second = torch.autograd.grad(total, needed, allow_unused=True)
        found.append([*first, *batch, *(x for x in second if x is not None)])
    assert len(plan._plans) == 2
    for calls in zip(*found, strict=True):
        assert torch.equal(calls[0], calls[1])
        assert torch.equal(calls[0], calls[2])


def test_a_matrix_may_change_before_the_gradient():
    """The map that the kernel read is kept, and a changed one would give another gradient."""
    image, matrix = noise(1, 2, 8, 9).requires_grad_(), torch.tensor([[1.0, 0, 0.5], [0, 1, 0]])
    wanted = torch.autograd.grad(wk.warp_affine(image, matrix).sum(), image)[0]
    for _ in range(2):
        moved = matrix.clone()
        out = wk.warp_affine(image, moved, arithmetic="opencv5")
        moved.add_(3.0)
        assert torch.equal(torch.autograd.grad(out.sum(), image)[0], wanted)


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "lanczos4"])
def test_planned_crops_have_the_first_ones_bits(interpolation, kind):
    boxes, options = torch.tensor(BOXES[kind]), {"interpolation": interpolation, "border": "wrap"}
    index = torch.tensor([1, 0])
    for n in range(3):
        image = noise(2, 3, 20, 18, dtype=torch.float32, seed=n)
        for given in (image, image.contiguous(memory_format=torch.channels_last)):
            got = wk.crop_patches(given, boxes + n / 4, index, (7, 9), **options)
            wanted = wk.crop_patches(given, (boxes + n / 4).tolist(), index, (7, 9), **options)
            assert torch.equal(got, wanted)
            assert got.is_contiguous()
        one = wk.crop_patches(image[0], boxes, None, (7, 9), **options)
        assert torch.equal(one, wk.crop_patches(image, boxes, index * 0, (7, 9), **options))
    assert len(plan._plans) == 3


@pytest.mark.parametrize("kind", BOXES)
def test_planned_crops_have_gradients(kind):
    found = []
    for make in (torch.Tensor.tolist, lambda boxes: boxes, lambda boxes: boxes):
        image = noise(2, 3, 20, 18).requires_grad_()
        boxes = torch.tensor(BOXES[kind]).double().requires_grad_()
        index = torch.tensor([1, 0])
        out = wk.crop_patches(image, make(boxes), index, (7, 9))
        pushed = noise(*out.shape, seed=5)
        found.append(torch.autograd.grad(out, (image, boxes), pushed, allow_unused=True))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] is None  # of a list
    for first, second in zip(found[1], found[2], strict=True):
        assert torch.equal(first, second)
    given = noise(1, 2, 6, 7).requires_grad_(), torch.tensor(BOXES[kind]).double().requires_grad_()

    def crops(image, boxes):
        return wk.crop_patches(image, boxes, None, (3, 4))

    assert torch.autograd.gradcheck(crops, given, check_forward_ad=True)


@pytest.mark.parametrize(
    ("boxes", "index", "text"),
    [
        ([[2.0, 1.0, 2.0, 9.0], [0, 0, 4, 4]], [0, 1], "`boxes` must be finite"),
        ([[2.0, 1.0, 9.0, torch.nan], [0, 0, 4, 4]], [0, 1], "`boxes` must be finite"),
        ([[2.0, 1.0, 9.0, 9.0], [0, 0, 4, 4]], [0, 2], r"`image_index` must be in \[0, 2\)"),
        ([[2.0, 1.0, 9.0, 9.0], [0, 0, 4, 4]], [-1, 0], r"`image_index` must be in \[0, 2\)"),
    ],
)
def test_numbers_of_planned_crops_are_checked(boxes, index, text):
    image, good = noise(2, 3, 20, 18, dtype=torch.float32), torch.tensor(BOXES["upright"])
    for _ in range(2):
        wk.crop_patches(image, good, torch.tensor([0, 1]), (7, 9))
        with pytest.raises(ValueError, match=text):
            wk.crop_patches(image, torch.tensor(boxes), torch.tensor(index), (7, 9))


def test_planned_crops_warn_each_time():
    image, index = noise(2, 3, 20, 28, dtype=torch.float32), torch.tensor([0, 1])
    shares = torch.tensor([[0.1, 0.2, 0.7, 0.9], [0.0, 0.0, 0.5, 0.5]])
    rois = torch.tensor([[0.0, 2.0, 3.0, 9.0, 12.0], [1.0, 1.0, 1.0, 8.0, 9.0]])
    for _ in range(3):
        with pytest.warns(UserWarning, match="pixels here"):
            wk.crop_patches(image, shares, index, (4, 5))
        with pytest.warns(UserWarning, match="RoIs|torchvision"):
            wk.crop_patches(image, rois, index, (4, 5))


@pytest.mark.parametrize("arithmetic", ["exact", "opencv5"])
@pytest.mark.parametrize("model", ["brown", "fisheye"])
@pytest.mark.parametrize("batch", [False, True])
def test_planned_undistorted_images_have_the_first_ones_bits(batch, model, arithmetic):
    options = {"model": model, "arithmetic": arithmetic, "size": (13, 11)}
    turn = torch.tensor([[1.0, 0.02, 0.0], [-0.02, 1.0, 0.1], [0.0, -0.1, 1.0]])
    for n in range(3):
        image = noise(2, 3, 20, 18, dtype=torch.float32, seed=n)
        camera = CAMERA + torch.tensor([[n, 0.0, 0.5], [0.0, n, 0.0], [0.0, 0.0, 0.0]])
        camera = torch.stack((camera, CAMERA)) if batch else camera
        lens = torch.tensor([[-0.1, 0.01 * n, 0.002, 0.001]])  # cv2's form of one lens
        views: list[Any] = [{}, {"rotation": turn}, {"new_camera_matrix": CAMERA}]
        for more in views:
            got = wk.camera.undistort(image, camera, lens, **options, **more)
            wanted = wk.camera.undistort(image, camera.tolist(), lens, **options, **more)
            assert torch.equal(got, wanted)
            found = [
                wk.camera.undistort_map(matrix, lens.double(), (13, 11), model=model, **more)
                for matrix in (camera.double(), camera.double().tolist())
            ]
            assert torch.equal(*found)
    assert len(plan._plans) == 6


@pytest.mark.parametrize("at", [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)])
def test_numbers_of_planned_cameras_are_checked(at):
    bad = CAMERA.clone()
    bad[at] = 0.0 if at[0] == at[1] else 0.5
    lens, image = torch.tensor([-0.1, 0.0, 0.0, 0.0]), noise(1, 8, 9)
    for _ in range(2):
        wk.camera.undistort(image, CAMERA, lens)
        wk.camera.undistort_map(CAMERA, lens, (8, 9))
        for camera in (bad, torch.stack((CAMERA, bad))):
            with pytest.raises(ValueError, match="undistort: `camera_matrix` must be"):
                wk.camera.undistort(image, camera, lens)
            with pytest.raises(ValueError, match="undistort_map: `camera_matrix` must be"):
                wk.camera.undistort_map(camera, lens, (8, 9))


def test_a_planned_camera_of_nan_shows_nothing():
    lens, image = torch.tensor([-0.1, 0.0, 0.0, 0.0]), noise(1, 8, 9)
    for focal in (9.0, torch.nan, 9.0):
        camera = CAMERA.clone()
        camera[0, 0] = focal
        shown = wk.camera.undistort(image, camera, lens, border_value=7.0)
        assert bool((shown == 7.0).all()) == (focal != 9.0)


def test_a_planned_call_warns_once():
    image, lens = noise(2, 3, 20, 28, dtype=torch.float32), torch.tensor([-0.1, 0.0, 0.0, 0.0])
    shares = torch.tensor([[0.1, 0.2, 0.7, 0.9], [0.0, 0.0, 0.5, 0.5]])
    camera, index = CAMERA * torch.tensor([[0.1], [0.1], [1.0]]), torch.tensor([0, 1])
    for antialias in (False, True):  # which has no plan
        options: Any = {"antialias": antialias}
        calls = (
            partial(wk.crop_patches, image, shares, index, (4, 5), **options),
            partial(wk.camera.undistort, image, camera, lens, **options),
            partial(wk.camera.undistort_map, camera, lens, (20, 28)),
        )
        for call in (*calls, *calls):
            with pytest.warns(UserWarning, match="pixels here") as caught:
                call()
            assert len(caught) == 1


def test_planned_cameras_warn_each_time():
    lens, image = torch.tensor([-0.1, 0.0, 0.0, 0.0]), noise(1, 20, 28)
    wk.camera.undistort(image, CAMERA, lens)
    for _ in range(3):
        with pytest.warns(UserWarning, match="centre within the first pixel"):
            wk.camera.undistort(image, CAMERA * torch.tensor([[0.1], [0.1], [1.0]]), lens)
        camera = CAMERA.clone().requires_grad_()
        with torch.no_grad():
            wk.camera.undistort(image, camera, lens, interpolation="nearest")
        with pytest.warns(UserWarning, match="no gradient reaches"):
            wk.camera.undistort(image, camera, lens, interpolation="nearest")


def crops(image, boxes):
    return wk.crop_patches(image, boxes, None, (4, 5))


def values(image, matrix):
    return wk.warp_affine(image, matrix, arithmetic="opencv5")


def undistorted(image, camera):
    return wk.camera.undistort(image, camera, LENS)


LENS = torch.tensor([-0.1, 0.01, 0.0, 0.0])
CAMERA = torch.tensor([[9.0, 0.0, 4.0], [0.0, 8.0, 3.5], [0.0, 0.0, 1.0]])
CALLS = {
    "undistorted": (undistorted, CAMERA.clone),
    "crops": (crops, lambda: torch.tensor(BOXES["upright"])),
    "values": (values, lambda: torch.tensor([[1.0, 0.1, 0.5], [0.0, 0.9, 0.0]])),
}


@pytest.mark.parametrize("name", CALLS)
def test_modes_agree_before_and_after_a_plan(name):
    function, make = CALLS[name]
    image, where = noise(2, 1, 3, 8, 9, dtype=torch.float32), make()
    for _ in range(2):
        wanted = torch.stack([function(each, where) for each in image])
        # the definition, whose sums have another order
        found = torch.func.vmap(function, (0, None))(image, where)
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
        pushed: Any = torch.func.jvp(lambda x: function(x, where), (image[0],), (image[1],))
        torch.testing.assert_close(pushed[1].float(), wanted[1], atol=1e-3, rtol=1e-3)
        with torch.inference_mode():
            assert torch.equal(function(image[0].clone(), where.clone()), wanted[0])
        torch.set_default_device("meta")
        try:
            assert torch.equal(function(image[0], where), wanted[0])
        finally:
            torch.set_default_device(None)
    compiled, wanted = torch.compile(function, backend="aot_eager"), function(image[0], where)
    torch.testing.assert_close(compiled(image[0], where), wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", CALLS)
def test_a_plan_of_inference_mode_serves_gradients(name):
    function, make = CALLS[name]
    image, where = noise(1, 3, 8, 9, dtype=torch.float32), make()
    with torch.inference_mode():
        function(image, where)
    leaf = image.clone().requires_grad_()
    function(leaf, where).sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("name", CALLS)
def test_plans_hold_no_tensor_of_the_caller(name):
    function, make = CALLS[name]
    image, where = noise(1, 3, 8, 9, dtype=torch.float32), make()
    function(image, where)
    assert len(plan._plans) == 1
    alive = weakref.ref(image), weakref.ref(where)
    del image, where
    assert [each() for each in alive] == [None, None]
