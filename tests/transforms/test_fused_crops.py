"""torchvision's Pad and RandomCrop in a Fused: copies bit for bit, one border, one sampling."""

from __future__ import annotations

import random
import warnings

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import warpkit as wk
from tests.support.inputs import noise
from tests.support.runs_by_hand import picture, smooth
from tests.support.tolerances import TOLERANCE
from tests.transforms.test_transforms import HAS_KEYPOINTS, both
from warpkit.transforms import (
    CenterCrop,
    Fused,
    RandomAffine,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)

SIZE = (20, 28)
MODES = ("constant", "edge", "reflect", "symmetric")
FILLS = {tv_tensors.Mask: 3, tv_tensors.Image: (9, 8, 7), "others": 5}
CASES = {
    **{f"pad, {mode}": v2.Pad((3, 5, 2, 4), padding_mode=mode) for mode in MODES},
    **{f"crop, {mode}": v2.RandomCrop((18, 30), 6, padding_mode=mode) for mode in MODES},
    "pad by one number": v2.Pad(4, fill=7),
    "pad by one in a list": v2.Pad([4]),
    "pad by two": v2.Pad((2, 5), fill=7),
    "pad by less than nothing": v2.Pad((-2, 3, 1, -4)),
    "pad, fills": v2.Pad((2, 5), fill=FILLS),
    "crop": v2.RandomCrop(9),
    "crop of all": v2.RandomCrop(SIZE),
    "crop, padded by four": v2.RandomCrop((25, 31), (4, 3, 2, 5), fill=1),
    "crop, padded by two": v2.RandomCrop((21, 9), (4, 2)),
    "crop, pad_if_needed": v2.RandomCrop((30, 31), pad_if_needed=True, fill=FILLS),
    "crop, both": v2.RandomCrop((40, 5), 2, pad_if_needed=True, padding_mode="edge"),
}


def ours_and_theirs(*middle) -> tuple[Fused, v2.Compose]:
    """Fused and Compose of a transform between two flips, one of which is drawn."""
    ours = Fused([RandomHorizontalFlip(0.5), *middle, RandomVerticalFlip(1.0)])
    theirs = [v2.RandomHorizontalFlip(0.5), *middle, v2.RandomVerticalFlip(1.0)]
    return ours, v2.Compose(theirs)


def images(size: tuple[int, int]) -> dict:
    """One input of every kind that has pixels."""
    return {
        "image": tv_tensors.Image(noise(3, *size, dtype=torch.uint8)),
        "video": tv_tensors.Video(noise(2, 3, *size)),
        "mask": tv_tensors.Mask(noise(*size, dtype=torch.uint8)),
        "masks": tv_tensors.Mask(torch.randint(0, 2, (4, *size)).bool()),
        "pil": PIL.Image.fromarray(noise(*size, 3, dtype=torch.uint8).numpy()),
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES)
def test_copies_match_torchvision_bit_for_bit(case: str, seed: int):
    ours, theirs = ours_and_theirs(CASES[case])
    given = images(SIZE)
    if "fills" in case or "needed" in case:
        del given["pil"], given["video"]  # torchvision reads one fill of a PIL image as an index
    got, wanted = both(ours, theirs, given, seed=seed)
    for name in given:
        assert type(got[name]) is type(wanted[name])
        if name == "pil":
            assert np.array_equal(np.asarray(got[name]), np.asarray(wanted[name]))
        else:
            assert torch.equal(got[name], wanted[name]), name
    alone, itself = both(Fused([CASES[case]]), CASES[case], given["image"], seed=seed)
    assert torch.equal(alone, itself)


@pytest.mark.parametrize("kind", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("case", CASES)
def test_labels_match_torchvision(case: str, kind: str):
    """Modes other than "constant", which torchvision rejects for labels, treat them like it."""
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor([[1.0, 2, 17.5, 9.25], [0, 0, 28, 20]]), format="XYXY", canvas_size=SIZE
    )
    given = [v2.functional.convert_bounding_box_format(boxes, new_format=kind)]
    given.append(tv_tensors.wrap(given[0].as_subclass(Tensor).int(), like=given[0]))
    if HAS_KEYPOINTS:
        given.append(tv_tensors.KeyPoints(torch.rand(2, 3, 2) * 18, canvas_size=SIZE))
    ours, theirs = ours_and_theirs(CASES[case])
    if CASES[case].padding_mode != "constant":
        with pytest.raises(ValueError, match="is not supported with"):
            theirs(*given)
        constant = CASES[case].__class__(**plain(CASES[case]))
        _, theirs = ours_and_theirs(constant)
    for got, wanted in zip(*both(ours, theirs, given, seed=4), strict=True):
        assert got.canvas_size == wanted.canvas_size
        assert got.dtype == wanted.dtype
        # torchvision rounds the middle of an integer box at every step
        near = 1 if kind == "CXCYWH" and not got.is_floating_point() else 1e-5
        got, wanted = got.as_subclass(Tensor), wanted.as_subclass(Tensor)
        torch.testing.assert_close(got, wanted, rtol=0, atol=near)


def plain(crop) -> dict:
    """A transform's arguments, in padding mode "constant"."""
    if isinstance(crop, v2.Pad):
        return {"padding": crop.padding}
    left, right, top, bottom = crop.padding
    padding = [left, top, right, bottom]
    return {"size": crop.size, "padding": padding, "pad_if_needed": crop.pad_if_needed}


def test_500_random_calls_match_torchvision():
    """Draws, pixels, boxes, points and masks, in a run with flips or alone."""
    rng = random.Random(0)
    for seed in range(500):
        height, width = rng.randint(4, 24), rng.randint(4, 24)
        mode = rng.choice(MODES)
        padding = [rng.randint(0, 3) for _ in range(rng.choice((1, 2, 4)))]
        options = {"fill": rng.choice((0, 3, None)), "padding_mode": mode}
        if rng.random() < 0.4:
            made = v2.Pad(padding, **options)
        else:
            size = rng.randint(1, height + 2), rng.randint(1, width + 2)
            options["padding"] = rng.choice((None, padding))
            made = v2.RandomCrop(size, pad_if_needed=True, **options)
        ours, theirs = ours_and_theirs(made)
        image = noise(2, height, width, dtype=torch.uint8, seed=seed)
        given = [tv_tensors.Image(image), tv_tensors.Mask(image[0])]
        if mode == "constant":
            box = torch.tensor([[1.0, 1, 3, 2.5]])
            size = {"canvas_size": (height, width)}
            given.append(tv_tensors.BoundingBoxes(box, format="XYXY", **size))
            if HAS_KEYPOINTS:
                given.append(tv_tensors.KeyPoints(torch.tensor([[1.5, 2.0]]), **size))
        for got, wanted in zip(*both(ours, theirs, given, seed=seed), strict=True):
            got, wanted = got.as_subclass(Tensor), wanted.as_subclass(Tensor)
            if got.is_floating_point():
                assert (got - wanted).abs().max() <= 1e-5, (seed, made)
            else:
                assert torch.equal(got, wanted), (seed, made)


@pytest.mark.parametrize("mode", MODES)
def test_a_crop_and_a_rotation_are_sampled_once(mode: str):
    """By the matrix by hand and the border that the padding mode names; a mask has its own fill."""
    border = dict(zip(MODES, ("constant", "replicate", "reflect_101", "reflect"), strict=True))
    fills = {tv_tensors.Mask: 3, "others": 0.5}
    options = {"fill": fills if mode == "constant" else 0}
    crop = v2.RandomCrop((26, 30), (4, 3, 2, 5), padding_mode=mode, **options)
    turn = RandomAffine((20, 20), interpolation="bilinear", border=border[mode], **options)
    fused = Fused([crop, turn])
    image = picture(*SIZE)
    torch.manual_seed(1)
    params = fused.make_params([image])
    torch.manual_seed(1)
    drawn = crop.make_params([image])
    move = torch.eye(3, dtype=torch.float64)
    move[0, 2], move[1, 2] = 4 - drawn["left"], 3 - drawn["top"]
    c, s = np.cos(np.radians(20)), np.sin(np.radians(20))  # clockwise, about the canvas's middle
    rows = [[c, -s, 14.5 - 14.5 * c + 12.5 * s], [s, c, 12.5 - 14.5 * s - 12.5 * c]]
    matrix = torch.tensor(rows, dtype=torch.float64) @ move
    np.testing.assert_allclose(fused.map(params, SIZE)[:2], matrix, rtol=0, atol=1e-12)
    assert fused.output_size(params, SIZE) == (26, 30)
    fill = 0.5 if mode == "constant" else 0.0
    look = {"size": (26, 30), "border": border[mode]}
    wanted = wk.warp_affine(image, matrix, border_value=fill, antialias=True, **look)
    torch.testing.assert_close(fused.transform(image, params), wanted, rtol=0, atol=1e-12)
    mask = tv_tensors.Mask(noise(*SIZE, dtype=torch.uint8))
    fill = 3 if mode == "constant" else 0
    look["interpolation"] = "nearest"
    wanted = wk.warp_affine(mask.as_subclass(Tensor)[None], matrix, border_value=fill, **look)[0]
    assert torch.equal(fused.transform(mask, params), wanted)


def test_pixels_cut_by_a_crop_reappear_in_a_later_pad():
    """Compose pads the crop; a single sampling shows the image there, and pads beyond it."""
    steps = [CenterCrop((8, 8)), v2.Pad((4, 8), fill=9)]
    got = Fused(steps)(picture(*SIZE))[0]
    y, x = np.mgrid[-2:22, 6:22].astype(float)
    wanted = torch.from_numpy(smooth(x, y))
    wanted[:2] = wanted[-2:] = 9
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos4"])
def test_a_resize_next_to_a_pad_keeps_its_own_filter(interpolation: str):
    """The bits are Compose's: the resize does not blend into the padding, which is a copy."""
    image = noise(3, *SIZE)
    resize = Resize((33, 41), interpolation)
    for steps in (
        [resize, v2.Pad((3, 1, 2, 5), fill=2)],
        [v2.Pad(2, padding_mode="reflect"), resize, v2.RandomCrop(9)],
        [v2.Pad(2), RandomResizedCrop((9, 8), interpolation=interpolation)],
    ):
        got, wanted = both(Fused(steps), v2.Compose(steps), image)
        assert torch.equal(got, wanted), steps


def test_padding_with_another_border_runs_alone_with_a_warning():
    turn = RandomRotation(30, "bilinear", fill=1)
    crop, flip = v2.RandomCrop((24, 30), 4, padding_mode="reflect"), RandomHorizontalFlip()
    text = (
        r"Fused: transforms\[2\] is torchvision's RandomCrop, whose padding is not fused: "
        r"border='reflect_101', and border='constant', fill=1.0 in RandomRotation"
    )
    with pytest.warns(UserWarning, match=text) as said:
        fused = Fused([flip, turn, crop, RandomVerticalFlip()])
    assert len(said) == 1
    assert said[0].filename == __file__
    image = picture(*SIZE)
    got, wanted = both(fused, v2.Compose(fused.transforms), image)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="which needs one run, got 3 runs, of two"):
        fused.make_params([image])
    # a barrier avoids the warning, and a transform that pads nothing has no border
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fused([turn, v2.Identity(), crop, v2.Identity()])
        assert Fused([turn, v2.RandomCrop(8), v2.Pad(0, fill=9)]).make_params([image])


def test_each_image_of_a_batch_draws_its_crop():
    """In the order of single images; boxes on whole pixels are copies."""
    crop = v2.RandomCrop((18, 22), 6, padding_mode="symmetric")
    for steps in ([crop], [RandomHorizontalFlip(), crop], [v2.Pad(3, fill=7)]):
        fused = Fused(steps, per_image=True)
        batch = noise(5, 3, *SIZE, dtype=torch.uint8)
        torch.manual_seed(0)
        got = fused(batch)
        torch.manual_seed(0)
        wanted = torch.stack([Fused(steps)(image) for image in batch])
        assert torch.equal(got, wanted), steps
    turn = RandomAffine(30, interpolation="bilinear", border="reflect")
    batch = noise(5, 3, *SIZE)
    torch.manual_seed(0)
    got = Fused([crop, turn], per_image=True)(batch)
    torch.manual_seed(0)
    one = Fused([crop, turn])
    wanted = torch.stack([one(image) for image in batch])
    torch.testing.assert_close(got, wanted, rtol=0, atol=TOLERANCE["torchvision float64"])
