"""letterbox: the pixels of four programs, re-implemented, and the positions of points."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
import torch

import warpkit as wk
from tests.support.inputs import noise

Size = tuple[int, int]


def ultralytics(image: np.ndarray, size: Size, center: bool = True, scaleup: bool = True):
    """LetterBox(new_shape=size, auto=False, center, scaleup)."""
    height, width = image.shape[:2]
    r = min(size[0] / height, size[1] / width)
    if not scaleup:
        r = min(r, 1.0)
    unpadded = round(width * r), round(height * r)
    dw, dh = size[1] - unpadded[0], size[0] - unpadded[1]
    if center:
        dw, dh = dw / 2, dh / 2
    if (width, height) != unpadded:
        image = cv2.resize(image, unpadded, interpolation=cv2.INTER_LINEAR)
    top, bottom = round(dh - 0.1) if center else 0, round(dh + 0.1)
    left, right = round(dw - 0.1) if center else 0, round(dw + 0.1)
    edges = top, bottom, left, right
    return cv2.copyMakeBorder(image, *edges, cv2.BORDER_CONSTANT, value=(114, 114, 114))


def yolox(image: np.ndarray, size: Size):
    """preproc, before it transposes the axes."""
    padded = np.full((*size, 3), 114, np.uint8)
    r = min(size[0] / image.shape[0], size[1] / image.shape[1])
    sides = int(image.shape[1] * r), int(image.shape[0] * r)
    padded[: sides[1], : sides[0]] = cv2.resize(image, sides, interpolation=cv2.INTER_LINEAR)
    return padded


def mmdetection(image: np.ndarray, size: Size):
    """Resize(scale, keep_ratio=True), then Pad(size=size, pad_val=114)."""
    height, width = image.shape[:2]
    r = min(max(size) / max(height, width), min(size) / min(height, width))
    sides = int(width * float(r) + 0.5), int(height * float(r) + 0.5)
    image = cv2.resize(image, sides, interpolation=cv2.INTER_LINEAR)
    rest = size[0] - image.shape[0], size[1] - image.shape[1]
    return cv2.copyMakeBorder(image, 0, rest[0], 0, rest[1], cv2.BORDER_CONSTANT, value=(114,) * 3)


def efficientdet(image: np.ndarray, size: Size):
    """ResizePad(size, "bilinear", fill_color=(124, 116, 104))."""
    picture = PIL.Image.fromarray(image)
    scale = min(size[0] / picture.height, size[1] / picture.width)
    sides = int(picture.width * scale), int(picture.height * scale)
    framed = PIL.Image.new("RGB", (size[1], size[0]), color=(124, 116, 104))
    framed.paste(picture.resize((sides[0], sides[1]), PIL.Image.Resampling.BILINEAR))
    return np.asarray(framed)


def with_a_stride(image: np.ndarray, size: Size, stride: int = 32):
    """ultralytics' LetterBox(size, auto=True)."""
    height, width = image.shape[:2]
    r = min(size[0] / height, size[1] / width)
    unpadded = round(width * r), round(height * r)
    dw, dh = (size[1] - unpadded[0]) % stride / 2, (size[0] - unpadded[1]) % stride / 2
    if (width, height) != unpadded:
        image = cv2.resize(image, unpadded, interpolation=cv2.INTER_LINEAR)
    edges = round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1)
    return cv2.copyMakeBorder(image, *edges, cv2.BORDER_CONSTANT, value=(114, 114, 114))


BY_OPENCV = {"border_value": 114, "arithmetic": "opencv5"}
START = {"place": "start"}
FRAMES = {
    "ultralytics": (ultralytics, BY_OPENCV),
    "never larger": (partial(ultralytics, scaleup=False), BY_OPENCV | {"enlarge": False}),
    "from the start": (partial(ultralytics, center=False), BY_OPENCV | START),
    "yolox": (yolox, BY_OPENCV | START | {"rounding": "down"}),
    "mmdetection": (mmdetection, BY_OPENCV | START | {"rounding": "half_up"}),
    "efficientdet": (
        efficientdet,
        START | {"rounding": "down", "arithmetic": "pillow", "border_value": (124, 116, 104)},
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_letterbox_has_the_programs_pixels(name):
    program, options = FRAMES[name]
    draw, compared = random.Random(name), 0
    for n in range(60):
        sides = sorted(draw.randint(6, 260) for _ in range(4))
        tall = draw.random() < 0.5
        given, size = ((sides[0], sides[2]), (sides[1], sides[3]))
        if n % 5 == 0:
            # by nearly the same factor on both sides
            size = (given[0] * 2 // 3 + 3, given[1] * 2 // 3 + 3)
        if tall:
            given, size = given[::-1], size[::-1]
        if name != "mmdetection" and n % 2:
            size = size[::-1]
        pixels = np.random.default_rng(n).integers(0, 256, (*given, 3), dtype=np.uint8)
        fitted = [int(side * min(size[0] / given[0], size[1] / given[1])) for side in given]
        if 0 in fitted:
            with pytest.raises(ValueError, match="keep at least one pixel"):
                wk.letterbox(torch.zeros(3, *given), size, rounding="down")
            continue
        wanted = program(pixels, size)
        got = wk.letterbox(torch.from_numpy(pixels).permute(2, 0, 1), size, **options).image
        assert np.array_equal(got.permute(1, 2, 0).numpy(), wanted), (given, size)
        compared += wanted.size
    assert compared > 1_000_000


def test_sizes_on_which_the_programs_round_differently():
    sides = {
        rounding: wk.letterbox(torch.ones(1, 427, 640), (320, 320), rounding=rounding).matrix[1, 1]
        for rounding in ("even", "down", "half_up")
    }  # 213.5 rows
    rows = {name: round(float(scale) * 427) for name, scale in sides.items()}
    assert rows == {"even": 214, "down": 213, "half_up": 214}
    even = wk.letterbox(torch.ones(1, 425, 640), (320, 320)).matrix[1, 1]  # 212.5 rows
    assert round(float(even) * 425) == 212


@pytest.mark.parametrize("place", ["center", "start"])
def test_the_matrix_maps_boxes_there_and_back(place):
    image = torch.zeros(1, 60, 83)
    image[:, 20:40, 10:50] = 1.0
    frame, matrix = wk.letterbox(image, (200, 135), place=place, border_value=-1.0)
    corners = torch.tensor([[10.0, 20.0], [50.0, 40.0]])
    there = wk.transform_points(matrix, corners - 0.5) + 0.5
    inside = frame[0] > 0.5
    rows, columns = inside.any(1).nonzero(), inside.any(0).nonzero()
    found = torch.tensor([[columns[0], rows[0]], [columns[-1] + 1, rows[-1] + 1]])
    assert (there - found).abs().max() <= 1.0
    back = wk.transform_points(wk.invert(matrix), there - 0.5) + 0.5
    torch.testing.assert_close(back, corners, rtol=0, atol=1e-4)  # float32 at 200 pixels
    # the resized part is the image under the matrix, apart from antialiasing
    warped = wk.warp_affine(image, matrix, size=(200, 135), border="replicate")
    shown = frame[0] >= 0
    torch.testing.assert_close(frame[0][shown], warped[0][shown], rtol=0, atol=1e-4)
    whole = torch.tensor([[0.0, 0.0], [83.0, 60.0]])
    edges = wk.transform_points(matrix, whole - 0.5) + 0.5
    assert shown.sum() == (edges[1] - edges[0]).prod().round()


def test_batches_layouts_and_types():
    image = noise(2, 5, 3, 12, 20)
    frame = wk.letterbox(image, (30, 31), border_value=(0.5, 1.0, 2.0))
    assert frame.image.shape == (2, 5, 3, 30, 31)
    one = wk.letterbox(image[1, 4], (30, 31), border_value=(0.5, 1.0, 2.0))
    assert torch.equal(frame.image[1, 4], one.image)
    assert torch.equal(frame.matrix, one.matrix)
    assert frame.matrix.shape == (2, 3)
    assert frame.image[0, 0, :, 0, 0].tolist() == [0.5, 1.0, 2.0]
    last = image[0].contiguous(memory_format=torch.channels_last)
    found = wk.letterbox(last, (30, 31)).image
    assert found.is_contiguous(memory_format=torch.channels_last)
    for dtype in (torch.bool, torch.int64, torch.int16, torch.uint16, torch.uint8):
        labels = wk.letterbox(torch.ones(1, 2, 4).to(dtype), (4, 4), interpolation="nearest")
        assert labels.image.dtype == dtype
        assert labels.image.to(torch.int64).sum() == 8, dtype
    by_image = wk.letterbox(image[0], (30, 20), border_value=torch.arange(15.0).reshape(5, 3))
    assert torch.equal(by_image.image[..., 0, 0], torch.arange(15.0).reshape(5, 3).to(image))
    assert wk.letterbox(image[:, :0], (30, 31)).image.shape == (2, 0, 3, 30, 31)


def test_gradients():
    image = noise(2, 2, 3, 4).requires_grad_()
    border = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)

    def frame(image, border):
        return wk.letterbox(image, (4, 7), border_value=border, interpolation="bicubic").image

    one = image[:1].detach().requires_grad_()
    assert torch.autograd.gradcheck(frame, (one, border), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(frame, (one, border))
    eager = frame(image, border)
    assert torch.equal(torch.func.vmap(frame, in_dims=(0, None))(image, border), eager)
    compiled = torch.compile(frame, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(image, border), eager)
    eight = (image.detach() * 255).round().byte()
    kept = wk.letterbox(eight, (3, 4)).image
    assert torch.equal(kept, eight)
    assert kept.data_ptr() != eight.data_ptr()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": (0, 4)}, "letterbox: `size` must be (H, W)"),
        ({"size": 4}, "letterbox: `size` must be (H, W)"),
        ({"size": (4, 4), "place": "end"}, "letterbox: `place` must be one of"),
        ({"size": (4, 4), "rounding": "up"}, "letterbox: `rounding` must be one of"),
        ({"size": (4, 4), "enlarge": 1}, "letterbox: `enlarge` must be True or False"),
        ({"size": (4, 4), "border_value": (1, 2)}, "letterbox: `border_value` must be"),
        ({"size": (4, 4), "arithmetic": "cv2"}, "letterbox: `arithmetic` must be one of"),
        ({"size": (1, 1)}, "letterbox: `image` must be of sides that keep at least one pixel"),
    ],
)
def test_errors(options, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        wk.letterbox(torch.ones(3, 2, 9), **options)
    assert str(raised.value).startswith(words)


def test_the_guides_code_for_a_stride_matches_ultralytics():
    """The lines in docs/which-resize.md, compared with ultralytics."""
    guide = (Path(__file__).parents[2] / "docs/which-resize.md").read_text()
    code = next(part for part in guide.split("```") if "def with_stride" in part)
    names: dict = {"torch": torch, "wk": wk, "image": torch.zeros(3, 427, 640, dtype=torch.uint8)}
    exec(code.removeprefix("python"), names)
    draw = random.Random(3)
    for n in range(30):
        given, size = [(draw.randint(40, 200), draw.randint(40, 200)) for _ in range(2)]
        pixels = np.random.default_rng(n).integers(0, 256, (*given, 3), dtype=np.uint8)
        planes = torch.from_numpy(pixels).permute(2, 0, 1)
        got, matrix = names["with_stride"](planes, size)
        wanted = with_a_stride(pixels, size)
        assert np.array_equal(got.permute(1, 2, 0).numpy(), wanted), (given, size)
        first = wk.transform_points(matrix, torch.zeros(2) - 0.5) + 0.5
        rests = [(whole - side) % 32 for whole, side in zip(size, fitted(given, size), strict=True)]
        assert first.tolist() == pytest.approx([rests[1] // 2, rests[0] // 2], abs=1e-4), n


def fitted(given: Size, size: Size) -> list[int]:
    r = min(size[0] / given[0], size[1] / given[1])
    return [round(side * r) for side in given]
