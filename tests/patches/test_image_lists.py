"""Lists of images of different sizes: bit for bit as single images, without a copy."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.second_order import gradgradcheck

INDEX = torch.tensor([5, 0, 2, 0, 1, 4, 2, 0])
UPRIGHT = torch.tensor([[1.0, 2, 9.5, 8], [-3, -2, 6, 7], [0, 0, 4, 3], [5, 1, 14, 30]]).repeat(
    2, 1
)
TURNED = torch.tensor([[6.0, 5, 8, 5, 30], [2, 3, 9, 4, -100]]).repeat(4, 1)
QUADS = torch.tensor([[[1.0, 1], [9, 2], [8, 8], [0, 6]]]).repeat(8, 1, 1)
BOXES = {"upright": UPRIGHT, "turned": TURNED, "quads": QUADS}


def pictures(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Images: dense, channels last, a slice, with expanded rows (unread), transposed, expanded."""
    cut = noise(3, 30, 40, seed=2, dtype=dtype)[:, 5:-7, 3:-9]
    return [
        noise(3, 11, 17, dtype=dtype),
        noise(21, 13, 3, seed=1, dtype=dtype).permute(2, 0, 1),
        cut,
        noise(3, 1, 9, seed=3, dtype=dtype).expand(3, 8, 9),
        noise(3, 12, 10, seed=4, dtype=dtype).mT,
        noise(1, 1, 1, seed=5, dtype=dtype).expand(3, 7, 6),
    ]


def one_by_one(images: list[Tensor], function) -> list[Tensor]:
    """function(image, the indices of its objects) for each image."""
    return [function(image, (n == INDEX).nonzero()[:, 0]) for n, image in enumerate(images)]


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.float16])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_crops_equal_those_of_each_image(kind, dtype, interpolation):
    images, boxes = pictures(dtype), BOXES[kind]
    for border in ("constant", "reflect", ("wrap", "constant")):
        for antialias in (False, True):
            options = {"interpolation": interpolation, "border": border, "antialias": antialias}
            ours = wk.crop_patches(images, boxes, INDEX, (5, 34), **options)

            def alone(image, chosen, options=options):
                return wk.crop_patches(image, boxes[chosen], None, (5, 34), **options)

            for number, expected in enumerate(one_by_one(images, alone)):
                assert torch.equal(ours[number == INDEX], expected), (border, antialias)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.int8], ids=str)
def test_label_crops_equal_those_of_each_image(dtype):
    images = [(100 * image).to(dtype) for image in pictures()]
    ours = wk.crop_patches(images, TURNED, INDEX, (5, 6), interpolation="nearest")
    assert ours.dtype == dtype
    for number, image in enumerate(images):
        chosen = number == INDEX
        alone = wk.crop_patches(image, TURNED[chosen], None, (5, 6), interpolation="nearest")
        assert torch.equal(ours[chosen], alone)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_gradients_equal_those_of_each_image(interpolation):
    """Gradients of several objects in one image add up; an unread image gets zeros."""
    images = [image.clone().requires_grad_() for image in pictures()]
    boxes = TURNED.clone().requires_grad_(interpolation != "nearest")
    options = {"interpolation": interpolation, "border": "reflect"}
    crops = wk.crop_patches(images, boxes, INDEX, (5, 34), **options)
    weight = noise(*crops.shape, seed=9, dtype=torch.float32)
    (crops * weight).sum().backward()
    assert not images[3].grad.any()
    for number, image in enumerate(images):
        chosen = number == INDEX
        alone = image.detach().clone().requires_grad_()
        own = TURNED[chosen].requires_grad_(interpolation != "nearest")
        value = wk.crop_patches(alone, own, None, (5, 34), **options)
        (value * weight[chosen]).sum().backward()
        assert torch.equal(image.grad, alone.grad)
        if interpolation != "nearest":
            assert torch.equal(boxes.grad[chosen], own.grad)


def test_a_tensor_listed_twice_gets_the_sum_of_gradients():
    image = noise(2, 9, 8).requires_grad_()
    boxes = torch.tensor([[1.0, 1, 5, 6], [2.5, 0, 7, 7]])
    crops = wk.crop_patches([image, image], boxes, [0, 1], (3, 4))
    alone = wk.crop_patches(image, boxes, None, (3, 4))
    weight = noise(*crops.shape, seed=3)
    found = [torch.autograd.grad((c * weight).sum(), image)[0] for c in (crops, alone)]
    torch.testing.assert_close(*found, atol=1e-12, rtol=0)


@pytest.mark.parametrize("function", ["crop", "transform", "paste"])
def test_gradcheck_of_image_lists(function):
    images = [noise(1, 4, 5).requires_grad_(), noise(1, 6, 4, seed=1).requires_grad_()]
    boxes = torch.tensor([[2.6, 2.3, 3.1, 2.9, 20], [1.9, 3.2, 2.4, 4.1, -50]]).double()
    boxes.requires_grad_()
    moves = torch.eye(2, 3, dtype=torch.float64) + 0.1 * noise(2, 2, 3, seed=4)
    patch = noise(2, 1, 2, 3, seed=6)

    def run(boxes, *images):
        if function == "crop":
            return wk.crop_patches(images, boxes, [1, 0], (2, 3), border_value=0.3)
        if function == "transform":
            return tuple(wk.transform_patches(images, boxes, moves, [1, 0]))
        return tuple(wk.paste_patches(images, patch, wk.box_to_matrix(boxes, (2, 3)), [1, 0]))

    assert gradcheck(run, (boxes, *images), check_forward_ad=True)
    assert gradgradcheck(run, (boxes, *images))


@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize("masked", [False, True])
def test_transforms_equal_those_of_each_image(kind, masked):
    images, boxes = pictures(), BOXES[kind]
    moves = torch.eye(2, 3) + 0.2 * noise(8, 2, 3, seed=7, dtype=torch.float32)
    mask = noise(8, 1, 4, 5, seed=8, dtype=torch.float32) if masked else None
    options = {"border_value": torch.rand(8, 3), "overlap": "sequential" if masked else "last"}
    ours = wk.transform_patches(images, boxes, moves, INDEX, mask=mask, **options)
    assert type(ours) is list

    def alone(image, chosen):
        if not len(chosen):
            return image
        own = options | {"border_value": options["border_value"][chosen]}
        cover = None if mask is None else mask[chosen]
        return wk.transform_patches(image, boxes[chosen], moves[chosen], None, mask=cover, **own)

    for found, expected in zip(ours, one_by_one(images, alone), strict=True):
        assert torch.equal(found, expected)
    assert ours[3] is images[3]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("flow", [False, True])
def test_pastes_equal_those_of_each_image(shared, flow):
    images = pictures()
    moves = wk.box_to_matrix(TURNED, (4, 6))
    patches = noise(*(() if shared else (8,)), 3, 4, 6, seed=3, dtype=torch.float32)
    opacity = 0.5 if shared else torch.linspace(0.1, 1, 8)
    bend = noise(4, 6, 2, seed=2) if flow else None
    ours = wk.paste_patches(images, patches, moves, INDEX, opacity=opacity, flow=bend)

    def alone(image, chosen):
        if not len(chosen):
            return image
        own = (patches, opacity) if shared else (patches[chosen], opacity[chosen])
        return wk.paste_patches(image, own[0], moves[chosen], None, opacity=own[1], flow=bend)

    for found, expected in zip(ours, one_by_one(images, alone), strict=True):
        assert torch.equal(found, expected)


MOVES = torch.eye(2, 3) + 0.2 * noise(8, 2, 3, seed=7, dtype=torch.float32)
PATCHES = noise(8, 3, 4, 6, seed=3, dtype=torch.float32)
MASK = noise(8, 1, 4, 6, seed=8, dtype=torch.float32)


def turn(images, boxes, moves, index):
    return wk.transform_patches(images, boxes, moves, index)


def turn_masked(images, boxes, moves, index):
    return wk.transform_patches(images, boxes, moves, index, mask=MASK[0])


def paste(images, boxes, moves, index):
    count = len(boxes)
    places = wk.box_to_matrix(boxes, (4, 6))
    patches = PATCHES[:count, : images[0].shape[-3]]
    return wk.paste_patches(images, patches, places, index, mask=MASK[:count])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("function", [turn, turn_masked, paste])
def test_gradients_of_painted_images_equal_those_of_each_image(function, channels):
    """Objects read two images and not the other two, which get the incoming gradient or none."""
    order = torch.tensor([0, 2, 2, 0, 2])
    boxes, moves = TURNED[:5].clone().requires_grad_(), MOVES[:5].clone().requires_grad_()
    images = [image[:channels].clone().requires_grad_() for image in pictures()[:4]]
    results = function(images, boxes, moves, order)
    weights = [noise(*r.shape, seed=n, dtype=torch.float32) for n, r in enumerate(results)]
    torch.autograd.backward(results, weights)
    for number in (0, 2):
        chosen = order == number
        alone = images[number].detach().clone().requires_grad_()
        own = [t.detach()[chosen].requires_grad_() for t in (boxes, moves)]
        if function is paste:
            places = wk.box_to_matrix(own[0], (4, 6))
            patches, mask = PATCHES[:5, :channels][chosen], MASK[:5][chosen]
            value = wk.paste_patches(alone, patches, places, None, mask=mask)
        else:
            value = function(alone, *own, None)
        value.backward(weights[number])
        assert torch.equal(results[number], value)
        assert torch.equal(images[number].grad, alone.grad)
        assert torch.equal(boxes.grad[chosen], own[0].grad)
        if function is not paste:
            assert torch.equal(moves.grad[chosen], own[1].grad)
    assert torch.equal(images[1].grad, weights[1])


@pytest.mark.parametrize("function", [turn, turn_masked, paste])
def test_one_launch_paints_all_images(function, monkeypatch):
    from warpkit.engine.cpu.objects import painter

    tasks, launch = [], painter.launch
    monkeypatch.setattr(painter, "launch", lambda *given: (tasks.append(given[0]), launch(*given)))
    images = [image.requires_grad_() for image in pictures()]
    results = function(images, TURNED, MOVES, INDEX)
    sum(result.sum() for result in results).backward()
    # patches require no gradient
    assert tasks == ["paint", "let_through", "paint_backward"][: 2 if function is paste else 3]
    memory = [result.untyped_storage().data_ptr() for result in results]
    assert len(set(memory)) == len(images)  # keeping one result keeps no other in memory


def test_no_boxes_and_one_image():
    images = pictures()
    assert wk.crop_patches(images, [], [], (2, 3)).shape == (0, 3, 2, 3)
    for found in (
        wk.transform_patches(images, [], [], []),
        wk.paste_patches(images, noise(3, 2, 2, dtype=torch.float32), [], []),
    ):
        assert all(a is b for a, b in zip(found, images, strict=True))
    only = wk.crop_patches(images[:1], UPRIGHT, None, (2, 3))
    assert torch.equal(only, wk.crop_patches(images[0], UPRIGHT, None, (2, 3)))


def test_no_image_is_copied(monkeypatch):
    """Kernels read float images in the caller's memory."""
    from warpkit.engine.cpu import image_lists

    images, seen = pictures(), []
    whole = image_lists.forward

    def forward(images, *rest):
        seen.extend(image.data_ptr() for image in images)
        return whole(images, *rest)

    monkeypatch.setattr(image_lists, "forward", forward)
    wk.crop_patches(images, UPRIGHT, INDEX, (3, 3))
    assert seen == [image.data_ptr() for image in images]


@pytest.mark.parametrize(
    ("images", "message", "error"),
    [
        ([], "`images` must be a list of at least one image, got an empty list", ValueError),
        (
            [torch.zeros(1, 4, 4), torch.zeros(3, 4, 5)],
            "`images[1]` must be of 1 channels, as `images[0]` is, got (3, 4, 5)",
            ValueError,
        ),
        (
            [torch.zeros(1, 4, 4), torch.zeros(1, 4, 5).double()],
            "`images[1]` must be of torch.float32, as `images[0]` is, got torch.float64",
            TypeError,
        ),
        (
            [torch.zeros(1, 4, 4), torch.zeros(1, 4, 5, device="meta")],
            "`images[1]` must be on cpu, where `images[0]` is, got meta",
            ValueError,
        ),
        (
            [torch.zeros(1, 1, 4, 4)],
            "`images[0]` must be of shape (C, H, W), in a list, got (1, 1, 4, 4)",
            ValueError,
        ),
        (
            [torch.zeros(1, 4, 4), torch.zeros(1, 0, 4)],
            "`images[1]` must be at least one channel and one pixel a side, got (1, 0, 4)",
            ValueError,
        ),
        ([torch.zeros(1, 4, 4), 3], "`images[1]` must be a tensor of shape", TypeError),
        (
            [torch.zeros(1, 4, 4)] * 2,
            "`image_index` must be in [0, 2), the number of images, got 2 at 0",
            ValueError,
        ),
    ],
)
def test_errors_name_the_image(images, message, error):
    box, move = [[0.0, 0, 2, 2]], torch.eye(2, 3)[None]
    calls = {
        "crop_patches": lambda: wk.crop_patches(images, box, [2], (2, 2)),
        "transform_patches": lambda: wk.transform_patches(images, box, move, [2]),
        "paste_patches": lambda: wk.paste_patches(images, torch.zeros(1, 2, 2), move, [2]),
    }
    for function, call in calls.items():
        with pytest.raises(error, match=re.escape(f"{function}: {message}")):
            call()


def test_errors_of_a_list():
    images = pictures()
    text = "`image_index` must be given for 6 images, got None"
    with pytest.raises(ValueError, match=re.escape(text)):
        wk.crop_patches(images, UPRIGHT, None, (2, 2))
    mask, moves = torch.ones(8, 1, 11, 17), torch.eye(2, 3).expand(8, 2, 3)
    for space, text in (("image", "must be 'box' for a list of images"), (None, "must be 'ima")):
        with pytest.raises(ValueError, match=f"`mask_space` {text}"):
            wk.transform_patches(images, UPRIGHT, moves, INDEX, mask=mask, mask_space=space)
