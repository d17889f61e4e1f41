"""Resize and RandomResizedCrop in a library's arithmetic, compared with that library."""

from __future__ import annotations

import warnings

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import tv_tensors
from torchvision.transforms import v2

from tests.support.installed_opencv import installed_opencv
from tests.support.installed_torch import beside_torch
from warpkit.transforms import (
    Fused,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    Resize,
)

MODES = ("L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I;16", "I", "F", "P", "1")
FILTERS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")
SIZES = (
    {"size": 12},
    {"size": [20]},
    {"size": (17, 40)},
    {"size": (31, 45)},  # the image's own size
    {"size": 60, "max_size": 64},
    {"size": None, "max_size": 24},
)


def picture(mode: str) -> PIL.Image.Image:
    random = np.random.default_rng(len(mode))
    if mode in ("I;16", "I", "F"):
        values = random.integers(0, 60_000, (31, 45))
        types = {"I;16": np.uint16, "I": np.int32, "F": np.float32}
        return PIL.Image.fromarray(values.astype(types[mode]))
    channels = len(PIL.Image.new(mode, (1, 1)).getbands())
    values = random.integers(0, 256, (31, 45, channels), dtype=np.uint8)
    if channels == 1:
        return PIL.Image.fromarray(values[..., 0]).convert(mode)
    return PIL.Image.frombytes(mode, (45, 31), values.tobytes())


def same_picture(one: PIL.Image.Image, other: PIL.Image.Image) -> bool:
    return (one.mode, one.size, one.tobytes()) == (other.mode, other.size, other.tobytes())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_pil_image_has_torchvisions_pixels(mode, name):
    image, filter_of = picture(mode), v2.InterpolationMode(name)
    for size in SIZES:
        wanted = v2.Resize(**size, interpolation=filter_of)
        ours = Resize(**size, interpolation=name, arithmetic="pillow")
        assert same_picture(ours(image), wanted(image)), size


def test_a_crop_of_a_pil_image_has_torchvisions_pixels():
    image = picture("RGB")
    ours = RandomResizedCrop((14, 19), arithmetic="pillow")
    theirs = v2.RandomResizedCrop((14, 19))
    for seed in range(20):
        torch.manual_seed(seed)
        out = ours(image)
        torch.manual_seed(seed)
        assert same_picture(out, theirs(image)), seed


@pytest.mark.parametrize("name", FILTERS)
def test_a_tensor_has_pillows_pixels(name):
    image = picture("RGB")
    tensor = v2.functional.pil_to_tensor(image)
    out = Resize((12, 50), name, arithmetic="pillow")(tv_tensors.Image(tensor))
    wanted = image.resize((50, 12), PIL.Image.Resampling[name.upper()])
    assert torch.equal(out, v2.functional.pil_to_tensor(wanted))


@pytest.mark.parametrize("name", ["bilinear", "area", "nearest", "lanczos4"])
def test_a_tensor_has_opencvs_pixels(name):
    cv2 = installed_opencv()
    flags = {"bilinear": 1, "area": 3, "nearest": 0, "lanczos4": 4}  # no wheel uses IPP for these
    arithmetic = "opencv5" if cv2.__version__.startswith("5") else "opencv4"
    pixels = np.asarray(picture("RGB"))
    wanted = torch.from_numpy(cv2.resize(pixels, (50, 12), interpolation=flags[name]))
    resize = Resize((12, 50), name, arithmetic=arithmetic)
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    assert torch.equal(resize(tensor).permute(1, 2, 0), wanted)
    assert np.array_equal(np.asarray(resize(picture("RGB"))), wanted)


def test_masks_boxes_and_gradients_equal_those_under_exact():
    mask = tv_tensors.Mask(torch.arange(31 * 45).reshape(31, 45))
    boxes = tv_tensors.BoundingBoxes([[1.0, 2, 30, 20]], format="XYXY", canvas_size=(31, 45))
    for arithmetic in ("pillow", "opencv5"):
        resize = Resize((12, 50), arithmetic=arithmetic)
        assert torch.equal(resize(mask), Resize((12, 50))(mask))
        assert torch.equal(resize(boxes), Resize((12, 50))(boxes))
        image = torch.rand(3, 31, 45, requires_grad=True)
        resize(image).sum().backward()
        assert image.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Resize(5, arithmetic="pil"), "Resize: `arithmetic` must be one of 'exact'"),
        (lambda: Resize(5, "area", arithmetic="pillow"), "Resize: `interpolation` must be one of"),
        (
            lambda: RandomResizedCrop(5, antialias=False, arithmetic="pillow"),
            "RandomResizedCrop: `antialias` must be None or True",
        ),
        (
            lambda: Resize(5, arithmetic="pillow")(torch.zeros(3, 9, 9, dtype=torch.float64)),
            "resize: `image` must be of one of the types uint8, uint16, float32",
        ),
    ],
)
def test_options_that_an_arithmetic_lacks_are_rejected(build, text):
    with pytest.raises((ValueError, TypeError)) as error:
        build()
    assert str(error.value).startswith(text)


def test_an_arithmetic_in_a_run_is_used_or_a_warning_is_given():
    image = v2.functional.pil_to_tensor(picture("RGB"))
    resize = Resize((12, 50), arithmetic="pillow")
    flip, turn = RandomHorizontalFlip(p=1.0), RandomRotation((10, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(Fused([flip, resize])(image), resize(flip(image)))
        Fused([Resize((31, 45), arithmetic="pillow"), flip])(image)  # all pixels are copied
        Fused([resize, turn])(tv_tensors.Mask(image[0]))
        Fused([resize, v2.Identity(), turn])(image)
    one = Fused([flip, resize, turn])
    text = r"arithmetic='pillow' of Resize \(transforms\[1\]\) has no effect"
    with pytest.warns(UserWarning, match=text) as told:
        out = [one(image) for _ in range(2)]
    assert [warning.filename for warning in told] == [__file__]
    assert torch.equal(out[0], Fused([flip, Resize((12, 50)), turn])(image))
    crop = RandomResizedCrop(9, arithmetic="opencv5")
    with pytest.warns(UserWarning, match=r"arithmetic='opencv5' of RandomResizedCrop"):
        Fused([crop], per_image=True)(image[None])


@pytest.mark.parametrize("size", [{"size": 8, "max_size": 16}, {"size": None, "max_size": 16}])
def test_a_size_that_leaves_no_pixel_of_a_strip_is_rejected(size):
    for image in (torch.zeros(3, 200, 2), PIL.Image.new("RGB", (2, 200))):
        with pytest.raises(ValueError, match=r"got size \(200, 2\), which becomes \(16, 0\)"):
            Resize(**size)(image)


TORCH_FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos")


@beside_torch
@pytest.mark.parametrize("name", TORCH_FILTERS)
def test_a_tensor_has_torchvisions_pixels(name):
    filter_of = v2.InterpolationMode(name)
    tensor = v2.functional.pil_to_tensor(picture("RGB"))
    try:
        v2.Resize(7, interpolation=filter_of)(tensor)
    except (ValueError, NotImplementedError):
        pytest.skip("this torchvision has no lanczos of tensors")
    images = [tensor, tv_tensors.Image(tensor), tensor / 255, tv_tensors.Mask(tensor[0])]
    # torchvision resizes masks by nearest; its newest version by nearest-exact if that is named
    for image in images[: 3 if name == "nearest-exact" else 4]:
        for antialias in (True, False, None):
            if name == "lanczos" and not antialias:
                continue
            for size in SIZES:
                theirs = v2.Resize(**size, interpolation=filter_of, antialias=antialias)
                options = {"interpolation": filter_of, "antialias": antialias}
                out = Resize(**size, **options, arithmetic="torchvision")(image)
                assert torch.equal(out, theirs(image)), (size, antialias, type(image))
                assert type(out) is type(image)
            torch.manual_seed(3)
            crop = v2.RandomResizedCrop(9, interpolation=filter_of, antialias=antialias)(image)
            torch.manual_seed(3)
            ours = RandomResizedCrop(9, **options, arithmetic="torchvision")
            assert torch.equal(ours(image), crop)
