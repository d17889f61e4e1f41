"""Compiled kernels for objects: bands, threads, memory formats and hostile numbers."""

from __future__ import annotations

import pytest
import torch

import warpkit as wk
from tests.support.guarded_memory import survives
from tests.support.inputs import noise
from tests.support.naive_objects import scene
from tests.support.tolerances import TOLERANCE

LOOP = TOLERANCE["objects against the loop"]


def objects(count, batch, height, width, seed=0):
    """Large images, boxes of many sizes that cross every boundary between bands, and thetas."""
    generator = torch.Generator().manual_seed(seed)
    low = torch.rand(count, 2, generator=generator) * torch.tensor([width, height]) * 1.2 - 20
    side = torch.rand(count, 2, generator=generator) * 120 + 1
    theta = torch.eye(2, 3) + 0.4 * torch.randn(count, 2, 3, generator=generator)
    index = torch.randint(0, batch, (count,), generator=generator)
    return noise(batch, 3, height, width, seed=seed), torch.cat((low, low + side), 1), theta, index


def transform(images, boxes, theta, index, value):
    return wk.transform_patches(images, boxes, theta, index, space="theta", border_value=value)


def crop(images, boxes, theta, index, value):
    return wk.crop_patches(images, boxes, index, (33, 40), border_value=value)


def paste(images, boxes, theta, index, value):
    """One patch for all objects, or one each, by the shape of `value`; with mask and opacities."""
    patches = noise(9, 11, seed=5, dtype=value.dtype) + value[..., None, None]
    matrices = wk.compose(theta, wk.box_to_matrix(boxes, (9, 11), angle=20.0))
    mask = noise(1, 9, 11, seed=6, dtype=images.dtype).sigmoid()
    return wk.paste_patches(
        images, patches, matrices, index, mask=mask, opacity=(boxes[:, 0] / 99).sigmoid()
    )


def paste_in_perspective(images, boxes, theta, index, value):
    bent = theta.new_tensor([[0.002, -0.001, 1.0]]).expand(len(theta), 1, 3)
    patches = noise(3, 9, 11, seed=5, dtype=value.dtype) + value[..., None, None]
    matrices = wk.box_to_matrix(boxes, (9, 11))
    matrices = wk.compose(torch.cat((theta, bent), 1), matrices)
    return wk.paste_patches(images, patches, matrices, index, opacity=value.mean().sigmoid())


def masked(images, boxes, theta, index, value):
    masks = value[..., None, :, None].expand(*value.shape[:-1], 1, 3, 4).sigmoid()
    opacity = (boxes[:, 0] / 99).sigmoid()
    return wk.transform_patches(
        images, boxes, theta, index, space="theta", mask=masks, opacity=opacity
    )


def masked_over_the_image(images, boxes, theta, index, value):
    """Masks of the images' size: stripes, scaled by each object's value."""
    rows = torch.arange(images.shape[2], dtype=value.dtype).cos()[:, None]
    masks = value[..., :1, None, None] * rows  # (H, 1) each
    masks = masks.expand(*masks.shape[:-1], images.shape[3]).sigmoid()
    options = {"space": "theta", "mask": masks, "mask_space": "image"}
    return wk.transform_patches(images, boxes, theta, index, **options)


FUNCTIONS = [transform, crop, paste, paste_in_perspective, masked, masked_over_the_image]


def with_gradients(function, images, boxes, theta, index, value):
    leaves = [t.detach().clone().requires_grad_() for t in (images, boxes, theta, value)]
    out = function(*leaves[:3], index, leaves[3])
    weight = noise(*out.shape, seed=9, dtype=out.dtype)
    found = torch.autograd.grad((out * weight).sum(), leaves, allow_unused=True)
    return [out.detach(), *(g for g in found if g is not None)]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("values", [1, 60])
def test_kernels_agree_with_plain_torch(monkeypatch, function, batch, values):
    images, boxes, theta, index = objects(60, batch, 290, 301)
    theta[3] = torch.nan
    given = (images, boxes.double(), theta.double(), index)
    value = noise(values, 3, seed=4) if values > 1 else noise(3, seed=4)
    ours = with_gradients(function, *given, value)
    monkeypatch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
    plain = with_gradients(function, *given, value)
    for got, wanted in zip(ours, plain, strict=True):
        # gradients to maps are sums over thousands of pixels, each multiplied by a coordinate
        atol = LOOP * max(1, float(wanted.nan_to_num().abs().max()))
        torch.testing.assert_close(got, wanted, atol=atol, rtol=0, equal_nan=True)


@pytest.mark.parametrize("channels", [1, 2, 4, 9])
@pytest.mark.parametrize("each", [False, True])
def test_patches_of_any_number_of_channels(monkeypatch, channels, each):
    """Kernels add four channels at once to a patch's gradient."""
    images, boxes, theta, index = objects(6, 2, 40, 50)
    images = noise(2, channels, 40, 50)
    value = noise(6, channels, seed=4) if each else noise(channels, seed=4)
    ours = with_gradients(paste, images, boxes.double(), theta.double(), index, value)
    monkeypatch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
    plain = with_gradients(paste, images, boxes.double(), theta.double(), index, value)
    for got, wanted in zip(ours, plain, strict=True):
        atol = LOOP * max(1, float(wanted.abs().max()))
        torch.testing.assert_close(got, wanted, atol=atol, rtol=0)


@pytest.mark.parametrize("function", [transform, masked_over_the_image])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 9])
def test_images_of_any_number_of_channels(monkeypatch, function, channels):
    """With three and more channels, the images' gradient is summed four channels at a time."""
    _, boxes, theta, index = objects(9, 2, 70, 83)
    given = noise(2, channels, 70, 83), boxes.double(), theta.double(), index
    value = noise(channels, seed=4)
    ours = with_gradients(function, *given, value)
    monkeypatch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
    plain = with_gradients(function, *given, value)
    for got, wanted in zip(ours, plain, strict=True):
        atol = LOOP * max(1, float(wanted.abs().max()))
        torch.testing.assert_close(got, wanted, atol=atol, rtol=0)


@pytest.mark.parametrize("size", [(1, 1), (7, 1), (1, 7), (2, 2)])
def test_patches_and_boxes_of_few_pixels_agree_with_plain_torch(monkeypatch, size):
    """Their taps cannot be read in pairs: patches, and boxes with and without a mask."""
    boxes = torch.tensor([[3.0, 2, 3 + size[1], 2 + size[0]], [5, 4, 5 + size[1], 4 + size[0]]])
    turn = torch.tensor([[0.8, 0.2, 0.1], [-0.1, 0.9, -0.2]]).double().expand(2, 2, 3)
    patch, mask = noise(3, *size, seed=1), noise(1, *size, seed=2).sigmoid()
    matrices = wk.compose(turn, wk.box_to_matrix(boxes + 0.3, size).double())

    def results():
        image = noise(1, 3, 12, 13).requires_grad_()
        leaves = [image, *(t.clone().requires_grad_() for t in (turn, patch, matrices))]
        shown = wk.transform_patches(image, boxes, leaves[1], [0, 0])
        shown = wk.transform_patches(shown, boxes, leaves[1], [0, 0], mask=mask, mask_space="box")
        shown = wk.paste_patches(shown, leaves[2], leaves[3], [0, 0], mask=mask)
        return shown, *torch.autograd.grad(shown.square().sum(), leaves)

    ours = results()
    monkeypatch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
    for got, wanted in zip(ours, results(), strict=True):
        torch.testing.assert_close(got, wanted, atol=LOOP, rtol=0)


def test_opaque_objects_hide_what_is_below():
    """Also in float32, where four weights may sum to 1 - 6e-8."""
    image = torch.full((1, 9, 9), 1e30)
    matrix = wk.rotation_matrix((4, 4), 10.0)
    mask = torch.ones(1, 9, 9)
    for options in ({}, {"mask": mask}):
        shown = wk.paste_patches(image, torch.zeros(1, 9, 9), matrix[None], None, **options)
        assert not shown[:, 2:7, 2:7].any()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("batch", [1, 3])
def test_results_have_the_same_bits_for_any_number_of_threads(function, batch):
    images, boxes, theta, index = objects(300, batch, 290, 301)
    inputs = (images.float(), boxes, theta, index, torch.ones(3))
    before, seen = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            seen.append(with_gradients(function, *inputs))
    finally:
        torch.set_num_threads(before)
    for other in seen[1:]:
        assert all(torch.equal(a, b) for a, b in zip(seen[0], other, strict=True))


def test_crops_read_images_of_any_layout(monkeypatch):
    images, boxes, _, index = objects(9, 3, 40, 50)
    shapes = (
        images.to(memory_format=torch.channels_last),
        images.transpose(2, 3).contiguous().transpose(2, 3),
        images[:1].expand(3, -1, -1, -1),
        images.float().half(),
    )
    for image in shapes:
        leaf = image.detach().requires_grad_()
        ours = wk.crop_patches(leaf, boxes, index, (7, 9))
        (gradient,) = torch.autograd.grad(ours.double().square().sum(), leaf)
        with monkeypatch.context() as patch:
            patch.setattr("warpkit.engine.binding.operator.device_of", lambda tensors: "none")
            plain = wk.crop_patches(leaf, boxes, index, (7, 9))
            (wanted,) = torch.autograd.grad(plain.double().square().sum(), leaf)
        assert ours.is_contiguous()
        assert ours.dtype == plain.dtype
        close = {"atol": LOOP, "rtol": 0} if image.dtype == torch.float64 else {}
        torch.testing.assert_close(ours, plain, **close)
        torch.testing.assert_close(gradient, wanted, **close)


def test_vmap_over_images_or_maps():
    images, boxes, theta, index = objects(5, 1, 30, 31)
    value = noise(3, seed=1)
    several, others = noise(2, *images.shape), torch.stack([theta, -theta])
    for function, given, dims in (
        (transform, (several, theta), (0, None)),
        (transform, (images, others), (None, 0)),
        (transform, (several, others), (0, 0)),
        (crop, (several, theta), (0, None)),
    ):

        def run(images, theta, function=function):
            return function(images, boxes, theta, index, value)

        ours = torch.vmap(run, in_dims=dims)(*given)
        for n, out in enumerate(ours):
            single = [t if d is None else t[n] for t, d in zip(given, dims, strict=True)]
            torch.testing.assert_close(out, run(*single), atol=LOOP, rtol=0)


@pytest.mark.parametrize("space", ["pixel", "theta"])
def test_a_nonfinite_map_gives_its_box_no_gradient(space):
    image = noise(1, 3, 12, 13)
    boxes = torch.tensor([[1.0, 2, 6, 8], [5, 3, 12, 11]]).double().requires_grad_()
    matrices = torch.eye(2, 3).double().repeat(2, 1, 1) * 0.9
    matrices[0] = 0.0 if space == "pixel" else torch.nan
    out = wk.transform_patches(image, boxes, matrices, [0, 0], space=space, border_value=0.5)
    (gradient,) = torch.autograd.grad(out.square().sum(), boxes)
    assert torch.equal(gradient[0], torch.zeros(4).double())
    assert gradient[1, :2].all()


HOSTILE = """
import itertools, torch, warpkit as wk
from tests.support.guarded_memory import guard_what_is_made, guarded
numbers = [0.0, 0.5, -1.0, 3.0, 1e5, -1e9, 2.0**31, -1e30, 1e300, float("inf"), float("nan")]
generator = torch.Generator().manual_seed(0)
def pick(*shape):
    return torch.tensor(numbers).double()[torch.randint(len(numbers), shape, generator=generator)]
def call(function, *arguments, place, **options):
    leaves = [place(a.clone()) for a in arguments]
    for leaf in leaves[:3]:
        leaf.requires_grad_()
    result = getattr(wk, function)(*leaves, **options)
    result.backward(place(torch.rand_like(result)))
def run(count, place):
    for batch, height, width in ((1, 1, 1), (3, 5, 70), (1, 70, 3), (2, 40, 37)):
        finite = [-1e30, -1e9, -7.25, -0.5, 0.0, 0.5, 1.0, 4.5, 33.0, 65.0, 1e5, 2.0**31, 1e30]
        finite = torch.tensor(finite).double()
        low, high = (finite[torch.randint(13, (count, 2), generator=generator)] for _ in "12")
        boxes = torch.cat((torch.minimum(low, high), torch.maximum(low, high)), 1)
        boxes = boxes[(boxes[:, 2:] > boxes[:, :2]).all(1)]
        index = torch.randint(batch, (len(boxes),), generator=generator)
        matrices = pick(len(boxes), 2, 3)
        matrices[::3] = torch.eye(2, 3).double() + torch.randn(2, 3, generator=generator)
        bent = torch.cat((matrices, pick(len(boxes), 1, 3)), 1)
        images = torch.rand(batch, 3, height, width)
        values = (0.5, torch.ones(3)) if batch < 3 else (torch.ones(3), 0.5)
        for space, value in zip(("pixel", "theta"), values):
            objects = images, boxes, matrices, index
            call("transform_patches", *objects, place=place, space=space, border_value=value)
            mask = place(torch.rand(1, 4, 6)).requires_grad_()
            options = {"space": space, "mask": mask, "opacity": 0.5}
            call("transform_patches", *objects, place=place, **options)
            for given, of_mask in itertools.product((matrices, bent), (None, mask)):
                options = {"mask": of_mask, "opacity": 0.5}
                patch = torch.rand(3, 4, 6)
                call("paste_patches", images, patch, given, index, place=place, **options)
        for border, rule in itertools.product(("constant", "wrap"), ("nearest", "bilinear")):
            leaves = place(images.clone()).requires_grad_(), place(boxes.clone()).requires_grad_()
            options = {"border": border, "interpolation": rule}
            result = wk.crop_patches(*leaves, index, (3, 40), **options)
            result.backward(place(torch.rand_like(result)))
guard_what_is_made()
run(300, guarded)
"""


def test_hostile_boxes_and_maps_stay_inside_the_arrays():
    assert survives(HOSTILE)


def test_only_the_topmost_whole_image_box_is_read():
    """Only the last of the boxes that cover the whole image is visible."""
    given = scene(3, batch=1)
    _, _, height, width = given.images.shape
    boxes = torch.tensor([[0.0, 0, width, height]]).expand(500, 4)
    shift = torch.eye(2, 3).double().repeat(500, 1, 1)
    shift[:, 0, 2] = torch.arange(500) % 7
    ours = wk.transform_patches(given.images, boxes, shift, [0] * 500)
    last = wk.warp_affine(given.images, shift[-1])
    torch.testing.assert_close(ours, last, atol=LOOP, rtol=0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_create_graph_does_not_change_first_gradients(function):
    """Also if boxes, maps and the border value depend on the images, as with a network."""
    images, boxes, theta, index = objects(5, 2, 40, 50)
    mean = images.requires_grad_().mean()
    given = (boxes.double() + mean, theta.double() + mean / 10, index, mean.expand(3))
    loss = function(images, *given).square().sum()
    once, twice = (
        torch.autograd.grad(loss, images, retain_graph=True, create_graph=again)[0]
        for again in (False, True)
    )
    atol = LOOP * max(1, float(once.abs().max()))
    torch.testing.assert_close(twice.detach(), once, atol=atol, rtol=0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_batched_gradients_equal_single_ones(function):
    images, boxes, theta, index = objects(5, 2, 40, 50)
    leaves = [images.requires_grad_(), boxes.double().requires_grad_(), theta.double()]
    out = function(*leaves, index, noise(3))
    pushes = noise(3, *out.shape)
    wanted = leaves[:2]
    together = torch.autograd.grad(out, wanted, pushes, retain_graph=True, is_grads_batched=True)
    for n, push in enumerate(pushes):
        alone = torch.autograd.grad(out, wanted, push, retain_graph=True)
        for many, one in zip(together, alone, strict=True):
            assert not many.requires_grad
            atol = LOOP * max(1, float(one.abs().max()))
            torch.testing.assert_close(many[n], one, atol=atol, rtol=0)


@pytest.mark.parametrize("shared", [False, True])
def test_no_objects_give_zero_gradients(shared):
    image = noise(2, 3, 8, 9).requires_grad_()
    patches, mask = (
        noise(*([] if shared else [0]), 3, 4, 4),
        noise(*([] if shared else [0]), 1, 4, 4),
    )
    leaves = [image, patches, torch.zeros(0, 2, 3).double(), mask, torch.tensor(0.5).double()]
    image, patches, matrices, mask, opacity = (leaf.requires_grad_() for leaf in leaves)
    index = torch.zeros(0, dtype=torch.long)
    out = wk.paste_patches(image, patches, matrices, index, mask=mask, opacity=opacity)
    through, *others = torch.autograd.grad(out.square().sum(), leaves)
    assert torch.equal(through, 2 * image)
    assert all(torch.equal(g, torch.zeros_like(t)) for g, t in zip(others, leaves[1:], strict=True))


@pytest.mark.parametrize("again", [False, True])
def test_objects_outside_the_image_get_zero_gradients(again):
    image, patch = noise(1, 3, 8, 9).requires_grad_(), noise(3, 4, 4).requires_grad_()
    matrices = torch.tensor([[[1.0, 0, 50], [0, 1, 50]]]).double().requires_grad_()
    opacity = torch.tensor(0.5).double().requires_grad_()
    out = wk.paste_patches(image, patch, matrices, None, opacity=opacity)
    leaves = [image, patch, matrices, opacity]
    through, *others = torch.autograd.grad(out.square().sum(), leaves, create_graph=again)
    assert torch.equal(out, image)
    assert torch.equal(through, 2 * image)
    assert all(torch.equal(other, torch.zeros_like(other)) for other in others)
