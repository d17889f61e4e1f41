"""Labels: integer and boolean images of any type, which nearest copies bit by bit."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as face
from tests.support.inputs import affine_matrices, perspective_matrices
from warpkit.engine.definitions.labels import saturated

TYPES = ("bool", "int8", "int32", "int64", "uint32", "uint64")
LIMITS = {
    "bool": (0, 1),
    "int8": (-(2**7), 2**7 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
BACKENDS = ("auto", "cpu", "reference")
PAD: dict[str, Any] = {
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect_101": "reflect",
    "wrap": "wrap",
}
NEAREST: dict[str, Any] = {"interpolation": "nearest"}
FAR = 60
SIZE = (5, 8)


def labels(dtype: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """Labels with random bits, including the limits of the type."""
    low, high = LIMITS[dtype]
    random = np.random.default_rng(seed)
    values = random.integers(low, high, shape, dtype=dtype, endpoint=True)
    values.flat[0], values.flat[-1] = low, high
    return torch.from_numpy(values)


def moved(image: Any, points: Any, border: str, value: int) -> np.ndarray:
    """Nearest in numpy, with numpy's padding: image (C, H, W) at points (h, w, 2)."""
    pixels, points = image.numpy(), np.asarray(points, np.float64)
    near: Any = np.isfinite(points).all(-1)
    column, row = np.rint(np.where(near[..., None], points, 0)).astype(int).transpose(2, 0, 1)
    height, width = pixels.shape[1:]
    if border == "constant":
        near &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
        row, column = row.clip(0, height - 1), column.clip(0, width - 1)
    else:
        row = np.pad(np.arange(height), FAR, mode=PAD[border])[row + FAR]
        column = np.pad(np.arange(width), FAR, mode=PAD[border])[column + FAR]
    return np.where(near, pixels[:, row, column], np.array(value, pixels.dtype))


def looks(matrix, size=SIZE) -> np.ndarray:
    """The source positions (h, w, 2) of output pixels under a matrix source -> destination."""
    full = np.vstack([matrix, [0, 0, 1]])[:3] if len(matrix) == 2 else np.asarray(matrix)
    y, x = np.mgrid[: size[0], : size[1]]
    u, v, w = np.einsum("ij,jhw->ihw", np.linalg.inv(full), np.stack([x, y, np.ones_like(x)]))
    return np.stack([u / w, v / w], -1)


@pytest.mark.parametrize("layout", ["planes", "channels-last"])
@pytest.mark.parametrize("border", ["constant", *PAD])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_backend_copies_the_bits(dtype, border, layout):
    image = labels(dtype, 2, 3, 7, 9)
    if layout == "channels-last":
        image = image.to(memory_format=torch.channels_last)
    low, high = LIMITS[dtype]
    turn, tilt = affine_matrices()["batch of turns"][0], perspective_matrices()["mild"][0]
    points = looks(turn) + 0.25
    points[1, 2] = np.nan
    for value in (low, high):
        options = {**NEAREST, "border": border, "border_value": value}
        for backend in BACKENDS:
            options["backend"] = backend
            results = (
                (wk.warp_affine(image, turn, size=SIZE, **options), looks(turn)),
                (wk.warp_perspective(image, tilt, size=SIZE, **options), looks(tilt)),
                (wk.remap(image, points, **options), points),
            )
            for result, where in results:
                assert result.dtype == image.dtype
                assert result.stride() == result.to(memory_format=layout_of(layout)).stride()
                for item, got in zip(image, result, strict=True):
                    assert np.array_equal(got.numpy(), moved(item, where, border, value))
        del options["backend"]
        got = wk.sample_pixels(image[1], points.reshape(-1, 2), **options)
        truth = moved(image[1], points, border, value).reshape(3, -1)
        assert np.array_equal(got.numpy(), truth)


def layout_of(layout: str) -> torch.memory_format:
    return torch.channels_last if layout == "channels-last" else torch.contiguous_format


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_ties_go_to_even(dtype, backend):
    image = (torch.arange(5) % 2).to(getattr(torch, dtype))[None, None]
    if dtype != "bool":
        image = labels(dtype, 1, 1, 5)
    points = np.array([[[0.5, 0], [1.5, 0], [2.5, 0], [3.5, 0], [-0.5, -0.5], [4.5, 0.5]]])
    found = wk.remap(image, points, backend=backend, **NEAREST)
    assert found[0, 0].tolist() == [image[0, 0, n].item() for n in (0, 2, 2, 4, 0, 4)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_images_of_one_pixel_batches_and_empty_images(dtype, backend):
    options: dict[str, Any] = {**NEAREST, "backend": backend}
    one = labels(dtype, 2, 1, 1)
    shift = torch.tensor([[1.0, 0, 1], [0, 1, 0]])
    assert (
        wk.warp_affine(one, shift, size=(1, 2), **options)[:, 0, 1].tolist()
        == one.flatten().tolist()
    )
    many = wk.warp_affine(one[None, None], shift.expand(3, 4, 2, 3), size=(2, 2), **options)
    assert many.shape == (3, 4, 2, 2, 2)
    assert torch.equal(many[2, 3, :, 0, 1], one[:, 0, 0])
    assert wk.warp_affine(labels(dtype, 2, 1, 3, 3)[:0], shift, **options).shape == (0, 1, 3, 3)
    singular = wk.warp_affine(one, torch.zeros(2, 3), border_value=1, **options)
    assert singular.flatten().tolist() == [1, 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_transparent_border_shows_the_background(dtype, backend):
    image, below = labels(dtype, 1, 3, 4), labels(dtype, 1, 3, 4, seed=1)
    shift = [[1.0, 0, 2], [0, 1, 0]]
    options = {**NEAREST, "border": "transparent", "backend": backend}
    found = wk.warp_affine(image, shift, background=below, **options)
    assert found[..., :2].tolist() == below[..., :2].tolist()
    assert found[..., 2:].tolist() == image[..., :2].tolist()
    back = wk.warp_affine(image, shift, inverse=True, background=below, **options)
    assert back[..., :2].tolist() == image[..., 2:].tolist()


@pytest.mark.parametrize("dtype", TYPES)
def test_border_values_are_exact_and_saturate(dtype):
    low, high = LIMITS[dtype]
    image, far = labels(dtype, 2, 1, 1), [[1.0, 0, 9], [0, 1, 0]]

    def shown(value):
        return wk.warp_affine(image, far, border_value=value, **NEAREST).flatten().tolist()

    assert shown(high) == [high, high]
    assert shown(low - 1) == shown(-(10**30)) == shown(-1e30) == shown(-torch.inf) == [low, low]
    assert shown(high + 1) == shown(10**30) == shown(1e30) == shown(torch.inf) == [high, high]
    assert shown([low, high]) == shown((low, high)) == [low, high]
    assert shown(np.array([low, high], dtype)) == shown(
        torch.tensor([low, high], dtype=image.dtype)
    )
    assert shown(torch.tensor([low, high], dtype=image.dtype)) == [low, high]
    assert shown(True) == shown(0.75) == [1, 1]
    assert shown(0.5) == shown(torch.nan) == [0, 0]
    assert shown(torch.tensor([2**63 + 2**20, 7], dtype=torch.uint64)) == [
        min(2**63 + 2**20, high),
        min(7, high),
    ]


def test_float_border_values_fill_uint64_above_half_its_range():
    values = torch.tensor([2.0**63, 2.0**63 + 2**12, 2.0**64 - 2**11, 2.0**64, 1.5, 2.5, -3.0])
    values = values.double()
    values[2] = 2.0**64 - 2**11
    found = saturated(values, torch.uint64).view(torch.uint64).tolist()
    assert found == [2**63, 2**63, 2**64 - 2**11, 2**64 - 1, 2, 2, 0]


@pytest.mark.parametrize("dtype", TYPES)
def test_other_rules_say_why_they_reject_labels(dtype):
    image, eye = labels(dtype, 1, 3, 4), torch.eye(2, 3)
    why = f"for torch.{dtype}: labels have no mean (convert them to floats for one), got"
    calls: Any = (
        (wk.warp_affine, eye, {}, "'bilinear'"),
        (wk.warp_perspective, torch.eye(3), {"interpolation": "lanczos4"}, "'lanczos4'"),
        (wk.remap, torch.zeros(1, 1, 2), {"interpolation": "bicubic"}, "'bicubic'"),
        (wk.sample_pixels, torch.zeros(1, 2), {}, "'bilinear'"),
    )
    for function, where, options, got in calls:
        text = f"{function.__name__}: `interpolation` must be 'nearest' {why} {got}"
        with pytest.raises(ValueError, match=re.escape(text)):
            function(image, where, **options)
    with pytest.raises(ValueError, match=re.escape(f"`antialias` must be False {why} True")):
        wk.warp_affine(image, eye, antialias=True, **NEAREST)
    text = f"grid_sample: needs a floating image (a grid has no other), got torch.{dtype}"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.warp_affine(image, eye, backend="grid_sample", **NEAREST)
    array = image[0].numpy()
    text = f"warpAffine: `flags` must be INTER_NEAREST {why} 1"
    with pytest.raises(ValueError, match=re.escape(text)):
        face.warpAffine(array, np.eye(2, 3), (3, 3))
    text = f"remap: `interpolation` must be INTER_NEAREST {why} 2"
    with pytest.raises(ValueError, match=re.escape(text)):
        face.remap(array, np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), 2)


def test_vmap_compile_and_export():
    """All types in one exported graph; the two types that torch supports least are compiled."""
    turns = affine_matrices()["batch of turns"][[0, 1, 0]]
    images = {dtype: labels(dtype, 3, 1, 6, 7) for dtype in TYPES}

    def warp(image, matrix, dtype):
        return wk.warp_affine(image, matrix, border_value=LIMITS[dtype][1], **NEAREST)

    class Module(torch.nn.Module):
        def forward(self, images, matrix):
            return {dtype: warp(image, matrix, dtype) for dtype, image in images.items()}

    expected = Module()(images, turns)
    torch._dynamo.reset()
    program = torch.export.export(Module(), (images, turns), strict=True)  # traced by Dynamo
    exported = program.module()(images, turns)
    some = {dtype: images[dtype] for dtype in ("bool", "uint64")}
    compiled = torch.compile(Module(), fullgraph=True)(some, turns)
    assert compiled.keys() == some.keys()
    assert all(equal(compiled[dtype], expected[dtype]) for dtype in some)
    for dtype, image in images.items():
        assert equal(exported[dtype], expected[dtype])
        assert equal(torch.vmap(partial(warp, dtype=dtype))(image, turns), expected[dtype])


def test_compiled_code_accepts_any_border_value():
    def warp(image, value):
        return wk.warp_affine(image, [[1.0, 0, 9], [0, 1, 0]], border_value=value, **NEAREST)

    torch._dynamo.reset()
    compiled = torch.compile(warp, fullgraph=True, backend="eager")
    for dtype, values in (("int64", (3, 5, 2**62 + 1, 2**70)), ("uint64", (2**64 - 1, 7, -9))):
        image = labels(dtype, 1, 1, 2)
        for value in values:
            assert equal(compiled(image, value), warp(image, value))


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("dtype", TYPES)
def test_crops_are_slices(dtype):
    images = labels(dtype, 2, 3, 8, 9)
    value = [LIMITS[dtype][1], 0, LIMITS[dtype][0]]
    boxes, index = [[1, 2, 5, 6], [-2, 0, 2, 4]], [1, 0]
    found = wk.crop_patches(images, boxes, index, (4, 4), border_value=value, **NEAREST).numpy()
    assert np.array_equal(found[0], images[1, :, 2:6, 1:5].numpy())
    assert np.array_equal(found[1, :, :, 2:], images[0, :, :4, :2].numpy())
    assert [np.unique(plane).tolist() for plane in found[1, :, :, :2]] == [[v] for v in value]
    program = torch.vmap(lambda image: wk.crop_patches(image, boxes[:1], None, (4, 4), **NEAREST))
    assert np.array_equal(program(images)[1, 0].numpy(), found[0])


@pytest.mark.parametrize("dtype", TYPES)
def test_labels_are_pasted_without_blending(dtype):
    images, patch = labels(dtype, 2, 3, 6, 7), labels(dtype, 3, 2, 3, seed=1)
    mask = torch.tensor([[[True, False, True], [True, True, True]]])
    move = [[[1.0, 0, 2], [0, 1, 3]]]
    for given in (None, mask):
        found = wk.paste_patches(images, patch, move, [1], mask=given, **NEAREST)
        expected = images.numpy().copy()
        part = expected[1, :, 3:5, 2:5]
        part[:] = np.where(mask.numpy() if given is not None else True, patch.numpy(), part)
        assert found.dtype == images.dtype
        assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("overlap", ["last", "sequential"])
@pytest.mark.parametrize("border", ["constant", "replicate", "transparent"])
@pytest.mark.parametrize("dtype", TYPES)
def test_boxes_of_labels_are_transformed_as_by_the_loop(dtype, border, overlap):
    images = labels(dtype, 2, 3, 12, 13)
    value = LIMITS[dtype][1]
    boxes, index = [[1, 2, 7, 9], [6, 3, 12, 10]], [1, 1]
    turn = wk.rotation_matrix((3.0, 3.0), torch.tensor([30.0, -50.0]))
    options = {**NEAREST, "border": border, "border_value": value}
    found = wk.transform_patches(images, boxes, turn, index, overlap=overlap, **options)
    expected = images.numpy().copy()
    for (x1, y1, x2, y2), matrix in zip(boxes, turn, strict=True):
        source = torch.from_numpy(expected[1].copy()) if overlap == "sequential" else images[1]
        part, below = source[:, y1:y2, x1:x2], expected[1, :, y1:y2, x1:x2]
        points = looks(matrix.double().numpy(), part.shape[1:])
        shown = moved(part, points, "constant" if border == "transparent" else border, value)
        if border == "transparent":
            everywhere = torch.ones(1, *part.shape[1:], dtype=torch.bool)
            shown = np.where(moved(everywhere, points, "constant", False), shown, below)
        expected[1, :, y1:y2, x1:x2] = shown
    assert np.array_equal(found.numpy(), expected)


HALF = torch.full((1, 2, 2), 0.5)


@pytest.mark.parametrize(
    ("function", "options", "text"),
    [
        ("crop", {}, "`interpolation` must be 'nearest'"),
        ("crop", {"antialias": True, **NEAREST}, "`antialias` must be False"),
        ("paste", {}, "`interpolation` must be 'nearest'"),
        ("paste", {"opacity": 0.5, **NEAREST}, "`opacity` must be 1"),
        ("paste", {"mask": HALF, **NEAREST}, "`mask` must be None or of booleans"),
        ("transform", {"edge": "soft", **NEAREST}, "`edge` must be 'hard'"),
    ],
)
def test_options_that_would_blend_labels_are_rejected(function, options, text):
    images, patch = labels("int64", 1, 1, 4, 4), labels("int64", 1, 2, 2)
    eye, box = torch.eye(2, 3)[None], [[0, 0, 2, 2]]
    call = {
        "crop": partial(wk.crop_patches, images, box, None, (2, 2)),
        "paste": partial(wk.paste_patches, images, patch, eye, None),
        "transform": partial(wk.transform_patches, images, box, eye, None),
    }[function]
    why = " for torch.int64: labels have no mean (convert them to floats for one), got "
    with pytest.raises(ValueError, match=re.escape(text + why)):
        call(**options)


def test_the_result_of_labels_has_no_gradient():
    matrix = torch.eye(2, 3, requires_grad=True)
    assert not wk.warp_affine(labels("int64", 1, 3, 4), matrix, **NEAREST).requires_grad
