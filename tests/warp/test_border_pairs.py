"""A border for each axis: numpy's padding by hand, sampled in float64, and every gradient."""

from __future__ import annotations

import re
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck
from warpkit import camera
from warpkit.gradients import gradient_support

MODES: dict[str, Any] = {
    "constant": "constant",
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect_101": "reflect",
    "wrap": "wrap",
}
PAIRS = list(permutations(MODES, 2))
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos4")
MARGIN = 24
"""Pixels around the image of 5 x 7: more than three times round, and lanczos4's four."""
EXACT = 1e-12
"""Of values below 1 and a border of 3, whose weights are summed in another order."""
SINGLE = 1e-5
"""The same in float32."""


def continued(plane, pair, value):
    """plane (H, W) padded by MARGIN pixels; the axis with a constant border is padded last."""
    for axis in sorted((0, 1), key=lambda axis: pair[axis] == "constant"):
        width = [(0, 0), (0, 0)]
        width[axis] = (MARGIN, MARGIN)
        more: dict[str, Any] = {"constant_values": value} if pair[axis] == "constant" else {}
        plane = np.pad(plane, width, mode=MODES[pair[axis]], **more)
    return plane


def weights(position, interpolation):
    """The first tap and the weights of a position along an axis."""
    if interpolation == "nearest":
        return int(np.rint(position)), np.ones(1)  # half to even
    count = {"bilinear": 2, "bicubic": 4, "lanczos4": 8}[interpolation]
    first = int(np.floor(position)) - count // 2 + 1
    d = np.abs(position - first - np.arange(count))
    if interpolation == "bilinear":
        return first, 1 - d
    if interpolation == "bicubic":
        a = -0.75
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        return first, np.where(d <= 1, near, a * (d**3 - 5 * d**2 + 8 * d - 4))
    found = np.sinc(d) * np.sinc(d / 4)
    return first, found / found.sum()


def sampled(image, points, pair, value, interpolation):
    """image (C, H, W) at points (N, 2): (C, N)."""
    planes = [continued(plane, pair, value) for plane in np.asarray(image, np.float64)]
    result = np.empty((len(planes), len(points)))
    for n, (x, y) in enumerate(points):
        column, across = weights(x + MARGIN, interpolation)
        row, down = weights(y + MARGIN, interpolation)
        for c, plane in enumerate(planes):
            window = plane[row : row + len(down), column : column + len(across)]
            result[c, n] = down @ window @ across
    return result


def scattered(count=60, seed=3):
    """Points (count, 2) up to 15 pixels beyond a 5 x 7 image, and all whole pixels around it."""
    around = wk.pixel_grid((13, 17)).double().flatten(0, 1) - torch.tensor([5.0, 4.0])
    return torch.cat((30 * noise(count, 2, seed=seed) - 12, around, around[::5] + 0.5))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("pair", PAIRS)
def test_each_axis_has_its_border(pair, interpolation, backend):
    image, points = noise(2, 5, 7), scattered()
    truth = sampled(image, points.numpy(), pair, 3.0, interpolation)
    options: dict[str, Any] = {"interpolation": interpolation, "border": pair, "border_value": 3.0}
    assert np.abs(wk.sample_pixels(image, points, **options).numpy() - truth).max() < EXACT
    for dtype, near in ((torch.float64, EXACT), (torch.float32, SINGLE)):
        given = image.to(dtype), points[:60].unflatten(0, (6, 10))
        seen = wk.remap(*given, **{**options, "border": list(pair)}, backend=backend)
        assert np.abs(seen.flatten(-2).numpy() - truth[:, :60]).max() < near
    offsets = points[:60].unflatten(0, (6, 10)) - wk.pixel_grid((6, 10))
    seen = wk.warp_flow(image, offsets, **options)
    assert np.abs(seen.flatten(-2).numpy() - truth[:, :60]).max() < EXACT
    matrix = torch.tensor([[0.4, 0.1, 3.0], [-0.2, 0.5, 2.0]]).double()
    places = wk.transform_points(wk.invert(matrix), wk.pixel_grid((9, 11)).double().flatten(0, 1))
    truth = sampled(image, places.numpy(), pair, 3.0, interpolation)
    for warp, rows in ((wk.warp_affine, matrix), (wk.warp_perspective, square(matrix))):
        seen = warp(image, rows, size=(9, 11), backend=backend, **options).flatten(-2)
        assert np.abs(seen.numpy() - truth).max() < 1e-11  # rounding of the inverse


def square(matrix):
    return torch.cat((matrix, torch.tensor([[0.0, 0, 1]]).double()))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("pair", [("constant", "wrap"), ("reflect", "constant"), PAIRS[9]])
def test_integers_are_rounded_and_labels_copied(pair, interpolation):
    image = (noise(2, 5, 7) * 255).round().to(torch.uint8)
    points = scattered()
    truth = sampled(image, points.numpy(), pair, 9, interpolation).round().clip(0, 255)
    options: dict[str, Any] = {"interpolation": interpolation, "border": pair, "border_value": 9}
    seen = wk.sample_pixels(image, points, **options)
    assert seen.dtype == torch.uint8
    assert np.array_equal(seen.numpy(), truth)
    if interpolation == "nearest":
        labels = image.long() + 2**60
        options["border_value"] = 2**60 + 9
        seen = wk.sample_pixels(labels, points, **options)
        assert np.array_equal((seen - 2**60).numpy(), truth)


def test_a_constant_axis_decides_outside_both_edges():
    """Beyond both edges pixels get the border value, for any border of the other axis."""
    image = torch.tensor([[[1.0, 2], [3, 4]]])
    points = [[-1.0, 0], [2, 1], [0, -1], [-1, -1], [2, 5]]
    for pair, wanted in {
        ("constant", "wrap"): [2.0, 3, 9, 9, 9],
        ("zeros", "border"): [1.0, 4, 9, 9, 9],
        ("wrap", "constant"): [9.0, 9, 3, 9, 9],
    }.items():
        assert wk.sample_pixels(image, points, border=pair, border_value=9)[0].tolist() == wanted


BOXES = torch.tensor([[-6.0, -4.0, 9.0, 12.5], [2.0, 1.0, 20.0, 4.0]]).double()
MATRIX = torch.tensor([[0.7, 0.2, 1.3], [-0.3, 0.8, 0.9]]).double()
CAMERA = torch.tensor([[6.0, 0, 3], [0, 6, 2.5], [0, 0, 1]]).double()
LENS = torch.tensor([0.4, 0.1, 0.0, 0.0]).double()
WARPS: dict[str, Any] = {
    "remap": lambda i, **options: wk.remap(i, 3 * wk.pixel_grid((4, 6)).double() - 4, **options),
    "warp_affine": lambda i, **options: wk.warp_affine(i, MATRIX, **options),
    "warp_perspective": lambda i, **options: wk.warp_perspective(i, square(MATRIX), **options),
}
"""Those that have a backend."""
OTHERS: dict[str, Any] = {
    "sample_pixels": lambda i, **options: wk.sample_pixels(i, scattered(), **options),
    "warp_flow": lambda i, **options: wk.warp_flow(i, 9 * noise(5, 7, 2) - 5, **options),
    "crop_patches": lambda i, **options: wk.crop_patches(i, BOXES, None, (4, 6), **options),
    "transform_patches": lambda i, **options: wk.transform_patches(
        i, [[1, 0, 6, 4]], MATRIX[None], None, **options
    ),
    "camera.undistort": lambda i, **options: camera.undistort(i, CAMERA, LENS, **options),
    "camera.distort": lambda i, **options: camera.distort(i, CAMERA, LENS, **options),
}


@pytest.mark.parametrize(
    ("warp", "backend"),
    [*product(WARPS, ("reference", "grid_sample", "cpu")), *product(OTHERS, ("auto",))],
)
@pytest.mark.parametrize("border", [*MODES, "zeros", "border"])
def test_two_equal_borders_equal_the_single_one(border, warp, backend):
    """Results and image gradients have the same bits."""
    options: dict[str, Any] = {"border_value": 2.0, "interpolation": "bicubic"}
    if warp in WARPS:
        options["backend"] = backend
    if (backend, border) == ("grid_sample", "wrap"):
        pytest.skip("a grid has no wrap")
    for dtype in (torch.float64, torch.float32):
        found = []
        for named in (border, (border, border)):
            image = noise(2, 5, 7, dtype=dtype).requires_grad_()
            seen = (WARPS | OTHERS)[warp](image, border=named, **options)
            found.append((seen, *torch.autograd.grad(seen.square().sum(), image)))
        for one, other in zip(*found, strict=True):
            assert torch.equal(one, other)


def test_two_equal_borders_are_accepted_where_one_is_required():
    image, points = noise(2, 5, 7), scattered()
    alike = wk.sample_pixels(image, points, border=("zeros", "constant"))
    assert torch.equal(alike, wk.sample_pixels(image, points))
    one = wk.warp_affine(
        image,
        torch.eye(2, 3),
        border=("wrap", "wrap"),
        arithmetic="opencv4",
    )
    assert torch.equal(one, wk.warp_affine(image, torch.eye(2, 3), border="wrap"))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("pair", [("constant", "reflect"), ("wrap", "constant"), PAIRS[6]])
def test_gradients(pair, interpolation):
    image = noise(1, 3, 4).requires_grad_()
    # inside, beyond each axis, and beyond both
    points = torch.tensor([[1.3, 0.7], [-1.6, 1.2], [1.8, 3.4], [4.3, -1.1]]).double()
    points.requires_grad_()
    fill = torch.tensor([0.7]).double().requires_grad_()
    matrix = torch.tensor([[0.7, 0.2, 1.3], [-0.3, 0.8, 0.9]]).double().requires_grad_()
    options: dict[str, Any] = {"interpolation": interpolation, "border": pair}

    def at(i, p, v):
        return wk.sample_pixels(i, p, border_value=v, **options)

    def warped(i, m, v):
        return wk.warp_affine(i, m, size=(2, 3), border_value=v, **options)

    if interpolation == "nearest":
        points, matrix = points.detach(), matrix.detach()
    assert gradcheck(at, (image, points, fill), check_forward_ad=True)
    assert gradcheck(warped, (image, matrix, fill), check_forward_ad=True)
    if interpolation != "nearest":
        assert gradgradcheck(at, (image, points, fill))
        assert gradgradcheck(warped, (image, matrix, fill))


def test_a_constant_axis_has_no_slope_beyond_the_edge():
    """Also with a border of NaN: where no image pixel is visible, the point's gradient is 0."""
    image = noise(1, 5, 7)
    points = torch.tensor([[-3.0, 9.0], [2.5, -7.0], [-3.4, 2.2]]).double().requires_grad_()
    seen = wk.sample_pixels(image, points, border=("constant", "wrap"), border_value=torch.nan)
    assert seen.isnan().tolist() == [[True, True, False]]
    (grad,) = torch.autograd.grad(seen[0, 2] + 0 * seen[0, :2].nan_to_num().sum(), points)
    assert grad.isfinite().all()
    assert (grad[:2] == 0).all()


@pytest.mark.parametrize("pair", [("constant", "wrap"), ("wrap", "constant"), ("reflect", "wrap")])
def test_antialias_takes_means_of_samples_by_hand(pair):
    """With 3 x 3 samples per pixel, each pixel is the mean of nine plain samples."""
    image = noise(2, 5, 7)
    matrix = torch.tensor([[0.4, 0.0, 1.0], [0.0, 0.4, 1.0]]).double()
    options: dict[str, Any] = {"border": pair, "border_value": 3.0}
    grid = wk.pixel_grid((4, 6)).double()
    points = wk.transform_points(wk.invert(matrix), grid.flatten(0, 1))
    total = 0.0
    for dx, dy in [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]:
        step = torch.tensor([dx, dy]).double() / 3 / matrix[0, 0]
        total = total + sampled(image, (points + step).numpy(), pair, 3.0, "bilinear") / 9
    for count in (3, True):  # 2.5 source pixels per pixel: 3 samples
        seen = wk.warp_affine(image, matrix, size=(4, 6), antialias=count, **options)
        assert np.abs(seen.flatten(-2).numpy() - total).max() < 1e-11
        seen = wk.warp_perspective(image, square(matrix), size=(4, 6), antialias=count, **options)
        assert np.abs(seen.flatten(-2).numpy() - total).max() < 1e-11
        field = points.unflatten(0, (4, 6))
        seen = wk.remap(image, field, antialias=count, **options)
        assert np.abs(seen.flatten(-2).numpy() - total).max() < 1e-11


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("pair", PAIRS)
def test_patches_accept_border_pairs(pair, interpolation):
    images = noise(2, 3, 5, 7)
    options: dict[str, Any] = {"interpolation": interpolation, "border": pair, "border_value": 3.0}
    crops = wk.crop_patches(images, BOXES, [1, 0], (4, 6), **options)
    for crop, box, i in zip(crops, BOXES, (1, 0), strict=True):
        grid = (wk.pixel_grid((4, 6)).double().flatten(0, 1) + 0.5) / torch.tensor([6, 4])
        points = box[:2] + grid * (box[2:] - box[:2]) - 0.5
        truth = sampled(images[i], points.numpy(), pair, 3.0, interpolation)
        assert np.abs(crop.flatten(-2).numpy() - truth).max() < 1e-11
    # an object's border is its box's; this box has columns 1 to 5 and rows 0 to 3
    matrix = torch.tensor([[[0.6, 0.2, 0.4], [-0.1, 0.7, 0.3]]]).double()
    inside = images[0, :, :4, 1:6]
    truth = images[:1].clone()
    truth[0, :, :4, 1:6] = wk.warp_affine(inside, matrix[0], **options)
    painted = wk.transform_patches(images[:1], [[1, 0, 6, 4]], matrix, None, **options)
    assert (painted - truth).abs().max() < EXACT
    for edge, mask in (
        ("soft", None),
        ("hard", torch.ones(1, 4, 5)),
        ("soft", torch.ones(1, 4, 5)),
    ):
        painted = wk.transform_patches(
            images[:1], [[1, 0, 6, 4]], matrix, None, edge=edge, mask=mask, **options
        )
        if mask is None:
            assert (painted - truth).abs().max() < EXACT
        assert torch.equal(painted[..., 4:, :], images[:1, :, 4:])


def test_a_soft_edge_is_read_softly_only_along_the_constant_axis():
    """The last row of a box of 4 x 2.5 pixels counts half, both when read and when painted."""
    image = torch.arange(24.0).reshape(1, 4, 6)
    box, eye = [[0.0, 0.0, 6.0, 2.5]], torch.eye(2, 3)[None]
    for pair, row in {
        ("wrap", "constant"): image[0, 2],  # read fully, half of it painted over itself
        ("constant", "wrap"): image[0, 2] * 0.75,  # half of it read, and half of that painted
    }.items():
        painted = wk.transform_patches(image, box, eye, None, border=pair, edge="soft")
        torch.testing.assert_close(painted[0, 2], row)
        assert torch.equal(painted[:, [0, 1, 3]], image[:, [0, 1, 3]])


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("way", ["undistort", "distort"])
def test_cameras_accept_border_pairs(way, pair):
    """`distort` reads beyond the image only with a larger output, `undistort` at its corners."""
    image, options = noise(1, 8, 9), {} if way == "undistort" else {"size": (19, 23)}
    points = getattr(camera, f"{way}_map")(CAMERA, LENS, options.get("size", (8, 9)))
    assert ((points < -1) | (points > 9)).any()
    seen = getattr(camera, way)(image, CAMERA, LENS, border=pair, border_value=3.0, **options)
    truth = sampled(image, points.flatten(0, 1).numpy(), pair, 3.0, "bilinear")
    assert np.abs(seen.flatten(-2).numpy() - truth).max() < EXACT


class Warp(torch.nn.Module):
    def forward(self, image, matrix):
        options: dict[str, Any] = {"border": ("constant", "wrap"), "border_value": 2.0}
        return wk.warp_affine(image, matrix, **options) + wk.remap(
            image, 3 * wk.pixel_grid((5, 7)) - 4, border=["wrap", "reflect"]
        )


def test_border_pairs_compile_export_and_vmap():
    image, matrix = noise(1, 2, 5, 7), torch.tensor([[0.7, 0.2, 1.3], [-0.3, 0.8, 0.9]]).double()
    truth = Warp()(image, matrix)
    compiled = torch.compile(Warp(), fullgraph=True, backend="aot_eager")
    assert (compiled(image, matrix) - truth).abs().max() < EXACT
    leaf = matrix.clone().requires_grad_()
    (grad,) = torch.autograd.grad(compiled(image, leaf).sum(), leaf)
    again = matrix.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(Warp()(image, again).sum(), again)
    assert (grad - wanted).abs().max() < 1e-10
    program = torch.export.export(Warp(), (image, matrix)).module()
    assert (program(image, matrix) - truth).abs().max() < EXACT
    many = torch.vmap(lambda m: Warp()(image, m))(torch.stack((matrix, matrix)))
    assert (many[1] - truth).abs().max() < EXACT
    layer = wk.nn.SpatialTransformer(
        torch.nn.Flatten(), (3, 4), features=70, border=("constant", "wrap")
    )
    assert layer(noise(1, 2, 5, 7, dtype=torch.float32)).shape == (1, 2, 3, 4)


def test_gradient_support_is_explained():
    image = noise(1, 4, 4).requires_grad_()
    matrix = [[1.0, 0, 2], [0, 1, 2]]  # half of the rows wrap, half of the columns are lost
    border = ("wrap", "constant")
    support = gradient_support(wk.warp_affine(image, matrix, border=border), image)
    assert support.nonzero == 8
    assert "8 show the border alone" in support.explain(matrix, border=border)


ERRORS = [
    (
        ("wrap", "transparent"),
        {},
        "two names other than 'transparent', got ('wrap', 'transparent')",
    ),
    (("transparent",) * 2, {}, "two names other than 'transparent', got ('transparent', 'trans"),
    (("wrap",), {}, "a name, or two, (along y, along x), got ('wrap',)"),
    (["wrap", "zeros", "wrap"], {}, "a name, or two, (along y, along x), got ['wrap', 'zeros', "),
    (("wrap", "reflection"), {}, "'reflect' (edge repeated"),
    (("wrap", "circular"), {}, "one of 'constant', "),
    ("replicate,wrap", {}, "one of 'constant', "),
    (
        ("wrap", "zeros"),
        {"arithmetic": "opencv5"},
        "one name with arithmetic='opencv5': OpenCV has",
    ),
]


@pytest.mark.parametrize(("border", "options", "wanted"), ERRORS)
def test_errors(border, options, wanted):
    with pytest.raises(ValueError, match=re.escape(f"warp_affine: `border` must be {wanted}")):
        wk.warp_affine(torch.zeros(1, 4, 5), torch.eye(2, 3), border=border, **options)


def test_backends_without_border_pairs_say_so():
    image, matrix = torch.zeros(1, 4, 5), torch.eye(2, 3)
    text = "grid_sample: a grid has one border for both axes"
    with pytest.raises(ValueError, match=text):
        wk.warp_affine(image, matrix, border=("wrap", "constant"), backend="grid_sample")
    with pytest.raises(ValueError, match=re.escape("None with border=('wrap', 'constant')")):
        wk.warp_affine(image, matrix, border=("wrap", "constant"), background=image)
