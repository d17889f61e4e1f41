"""crop_patches of bytes reads windows alone; a number of samples; torchvision's RoIs."""

from __future__ import annotations

import re
import time
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import warpkit as wk
from tests.support.inputs import noise
from tests.support.naive_warp import sample as naive_sample
from tests.support.tolerances import TOLERANCE

BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap", "reflect,constant"]
BOXES = torch.tensor(
    [
        [3.2, 4.1, 9.7, 12.3],
        [-6.0, 2.0, 4.5, 8.0],
        [20.0, -9.0, 31.0, 5.0],
        [-40.0, -30.0, -20.0, -10.0],
        [5.0, 6.0, 6.5, 7.0],
        [60.0, 3.0, 71.0, 9.0],
    ]
).double()


def by_numpy(image: Tensor, boxes: Tensor, size, interpolation: str, border: str, fill: float):
    """Bytes sampled in float64 at the centres of the cells, not rounded."""
    height, width = size
    found = []
    for x1, y1, x2, y2 in boxes.tolist():
        x = x1 + (np.arange(width) + 0.5) * (x2 - x1) / width - 0.5
        y = y1 + (np.arange(height) + 0.5) * (y2 - y1) / height - 0.5
        places = np.stack(np.meshgrid(x, y), -1)
        around = np.full((len(image), height, width), fill)
        found.append(naive_sample(image.double().numpy(), places, interpolation, border, around))
    return torch.from_numpy(np.stack(found)).clamp(0, 255)


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_bytes_are_what_numpy_makes(interpolation: str, border: str):
    image = noise(2, 40, 50, dtype=torch.uint8)
    expected = by_numpy(image, BOXES, (5, 6), interpolation, border, 7.0)
    for _ in range(2):
        found = wk.crop_patches(
            image, BOXES, None, (5, 6), interpolation=interpolation, border=border, border_value=7.0
        )
        assert found.dtype == torch.uint8
        # float32 sums may round a tie of float64 to the other side
        assert (found.double() - expected).abs().max() <= 0.5 + 1e-4


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("antialias", [False, True, 3])
@pytest.mark.parametrize("kind", ["upright", "turned", "quad"])
def test_windows_change_no_value(kind: str, antialias, border: str):
    """Of bytes, 16 bits and halves, in a batch and in a list: floats' crops, rounded."""
    along = tuple(border.split(",")) if "," in border else border
    boxes, index = BOXES, torch.tensor([0, 1, 1, 0, 1, 0])
    if kind != "upright":
        middle, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
        angles = torch.tensor([[10.0], [-70], [33], [5], [180], [91]]).double()
        boxes = torch.cat((middle, sides, angles), 1)
    if kind == "quad":
        box = BOXES
        x1, y1, x2, y2 = box.unbind(-1)
        corners = torch.stack((x1, y1, x2, y1 + 0.4, x2 - 0.3, y2, x1 + 0.2, y2 - 0.1), -1)
        boxes = corners.unflatten(-1, (4, 2))
    options = {"border": along, "border_value": 7.0, "antialias": antialias}
    for dtype in (torch.uint8, torch.int16, torch.float16):
        images = noise(2, 3, 200, 220, dtype=dtype)
        exact = wk.crop_patches(images.float(), boxes, index, (4, 3), **options)
        expected = exact.to(dtype) if dtype.is_floating_point else exact.round().to(dtype)
        for given in (images, list(images), images.mT.contiguous().mT):
            found = wk.crop_patches(given, boxes, index, (4, 3), **options)
            assert found.dtype == dtype
            # a place counted from the window's corner differs by 1e-16: a tie may fall otherwise
            other = found != expected
            if dtype.is_floating_point:
                torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE["float16"])
            else:
                tied = (exact - exact.floor() - 0.5).abs() < 1e-2
                assert not bool((other & ~tied).any())


def test_labels_are_read_by_windows_too():
    labels = torch.randint(
        -(2**62), 2**62, (1, 100, 120), generator=torch.Generator().manual_seed(0)
    )
    found = wk.crop_patches(labels, [[3.0, 4, 13, 12]], None, (8, 10), interpolation="nearest")
    assert torch.equal(found[0], labels[:, 4:12, 3:13])


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float16, torch.int64])
def test_nothing_larger_than_the_box_is_converted(dtype: torch.dtype, antialias: bool):
    if dtype == torch.int64 and antialias:
        return  # labels are never averaged
    image = torch.zeros(3, 1500, 2000, dtype=dtype)
    options = {"interpolation": "nearest" if dtype == torch.int64 else "bilinear"}
    options["antialias"] = antialias
    box = torch.tensor([[700.0, 700, 750, 750]])

    def run() -> Tensor:
        return wk.crop_patches(image, box, None, (25, 25), **options)

    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    events = record.profiler.kineto_results.events() if record.profiler else []
    spent = sum(max(e.nbytes(), 0) for e in events if e.name() == "[memory]")
    assert spent < 40 * 3 * 55 * 55 * 8  # the image is 9 million numbers


def test_a_gradient_to_halves_is_whole():
    image = noise(1, 2, 40, 50, dtype=torch.float16).requires_grad_()
    found = wk.crop_patches(image, BOXES[:1], None, (5, 6))
    (grad,) = torch.autograd.grad(found.sum(), image)
    exact = image.detach().float().requires_grad_()
    (expected,) = torch.autograd.grad(wk.crop_patches(exact, BOXES[:1], None, (5, 6)).sum(), exact)
    torch.testing.assert_close(grad.float(), expected, rtol=0, atol=TOLERANCE["float16"])


@pytest.mark.filterwarnings("ignore:crop_patches. no gradient reaches")
def test_boxes_of_bytes_may_ask_for_gradients_in_vain():
    boxes = BOXES[:1].clone().requires_grad_()
    found = wk.crop_patches(noise(2, 40, 50, dtype=torch.uint8), boxes, None, (5, 6))
    assert not found.requires_grad


def test_a_number_of_samples_is_the_mean_of_that_many():
    image, box = noise(1, 2, 40, 50), torch.tensor([[3.0, 4, 33, 34]]).double()
    found = wk.crop_patches(image, box, None, (6, 5), antialias=4)
    x = 3 + (np.arange(20) + 0.5) * 30 / 20 - 0.5
    y = 4 + (np.arange(24) + 0.5) * 30 / 24 - 0.5
    places = np.stack(np.meshgrid(x, y), -1)
    values = naive_sample(image[0].numpy(), places, "bilinear", "constant", np.zeros((2, 24, 20)))
    expected = values.reshape(2, 6, 4, 5, 4).mean((2, 4))
    assert np.abs(found[0].numpy() - expected).max() < TOLERANCE["reference float64"]
    larger = torch.tensor([[3.0, 4, 6, 7]]).double()  # enlarged: nothing changes
    plain = wk.crop_patches(image, larger, None, (6, 5))
    many = wk.crop_patches(image, larger, None, (6, 5), antialias=4)
    torch.testing.assert_close(many, plain, rtol=0, atol=TOLERANCE["reference float64"])


def test_a_number_of_samples_can_be_compiled_and_vmapped():
    image, boxes = noise(1, 2, 40, 50), BOXES[:2]

    def crop(box: Tensor, antialias) -> Tensor:
        return wk.crop_patches(image, box[None], None, (6, 5), antialias=antialias)

    expected = torch.stack([crop(box, 3) for box in boxes])
    found = torch.vmap(lambda box: crop(box, 3))(boxes)
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE["reference float64"])
    text = (
        "crop_patches: `antialias` must be a number of samples along an axis where the boxes' size"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        torch.vmap(lambda box: crop(box, True))(boxes)
    exported = torch.export.export(Crop(), (image, boxes)).module()
    torch.testing.assert_close(
        exported(image, boxes)[:, 0], expected[:, 0, 0], rtol=0, atol=TOLERANCE["reference float64"]
    )


class Crop(torch.nn.Module):
    """Crops by a fixed number of samples."""

    def forward(self, image: Tensor, boxes: Tensor) -> Tensor:
        index = torch.zeros(len(boxes), dtype=torch.int64)
        return wk.crop_patches(image, boxes, index, (6, 5), antialias=3)


@pytest.mark.parametrize("value", [0, 257, 2.5, "yes"])
def test_antialias_is_checked(value):
    text = (
        "crop_patches: `antialias` must be True, False or a number of samples along an axis, from"
    )
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        wk.crop_patches(noise(1, 2, 40, 50), BOXES[:1], None, (6, 5), antialias=value)


def test_torchvisions_rois_get_a_warning():
    images, index = noise(3, 2, 40, 50), torch.tensor([0, 2, 1])
    rois = torch.tensor([[0.0, 3, 4, 13, 24], [2, 1, 2, 30, 31], [1, 5, 6, 20, 22]])
    text = re.escape(
        "(index, x1, y1, x2, y2): boxes (N, 5) are (cx, cy, w, h, angle) here; boxes[:"
    )
    for _ in range(2):
        with pytest.warns(UserWarning, match=text):
            wk.crop_patches(images, rois, index, (5, 6))
    with pytest.warns(UserWarning, match=r"^transform_patches: the first column of `boxes`"):
        wk.transform_patches(images, rois, torch.eye(2, 3).expand(3, 2, 3), index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = torch.tensor([[10.0, 3, 4, 13, 24], [2, 1, 2, 30, 31], [1, 5, 6, 20, 22]])
        wk.crop_patches(images, turned, index, (5, 6))
        wk.crop_patches(images, torch.tensor([[0.0, 9, 4, 3, 24]]), [0], (5, 6))


def test_a_crop_of_bytes_takes_the_time_of_one_of_floats():
    """112 ms for 0.8: the whole picture was converted."""
    image, box = torch.zeros(3, 1500, 2000, dtype=torch.uint8), [[700.0, 700, 750, 750]]

    def least(image: Tensor) -> float:
        taken = []
        for _ in range(7):
            start = time.perf_counter()
            wk.crop_patches(image, box, None, (50, 50))
            taken.append(time.perf_counter() - start)
        return min(taken)

    assert least(image) < 3 * least(image.float()) + 1e-3
