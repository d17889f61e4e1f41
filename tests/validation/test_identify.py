"""`identify`: programs are named completely, traps never; errors name the image."""

from __future__ import annotations

import math
import sys

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps

from tests.support import hostile_programs
from tests.support.processors import picture
from tests.support.programs import LIBRARIES, apart, draw, installed, mistakes, traps
from warpkit.validation import identify, pages
from warpkit.validation.programs import weights

TORCH = ("pillow", "opencv", "torchvision", "torch")


@pytest.mark.parametrize("seed", range(500, 524))
def test_random_programs_are_named_completely(seed):
    drawn = draw(seed, tuple(name for name in TORCH if name in installed()))
    found = identify(drawn.function, takes=drawn.takes)
    assert found.known, str(found)
    assert mistakes(drawn, found) == []
    # float16 gives the gain to half a last bit, which is 0.1 levels of white
    assert apart(drawn, found, seed) <= (0.5 if found.dtype == "float16" else 0.002)


TRAPS = traps()
HOSTILE = ("whole scales", "first at most 4096", "those without colours blurred", "reducing gap 3")
ASKED = [name for name in TRAPS if name not in hostile_programs.PROGRAMS][::2]


@pytest.mark.parametrize("name", [*ASKED, *HOSTILE])
def test_unknown_programs_are_not_named(name):
    found = identify(TRAPS[name].function, takes="array")
    assert found.arithmetic is None
    assert found.jpeg is None
    assert not found.known
    assert found.reasons
    assert found.differing != 0


def square(image: np.ndarray) -> np.ndarray:
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def padded(image: Image.Image) -> Image.Image:
    side = max(image.size)
    whole = Image.new("RGB", (side, side), (122, 116, 104))
    whole.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return whole


def limited(image: Image.Image) -> np.ndarray:
    short, long = sorted(image.size)
    other = int(96 * long / short)
    new = (96, other) if other <= 160 else (int(160 * 96 / other), 160)
    return np.asarray(image.resize(new if image.width <= image.height else new[::-1]))


def strided(image: np.ndarray) -> np.ndarray:
    factor = 96 / max(image.shape[:2])
    height, width = (int(side * factor + 0.5) for side in image.shape[:2])
    result = np.zeros((-(-height // 32) * 32, -(-width // 32) * 32, 3), np.uint8)
    result[:height, :width] = cv2.resize(image, (width, height))
    return result


def floats_by_pillow(image: Image.Image) -> np.ndarray:
    channels = [
        channel.convert("F").resize((60, 50), Image.Resampling.BICUBIC) for channel in image.split()
    ]
    return np.stack([np.asarray(channel) for channel in channels], -1).clip(0, 255)


def multiples(image: np.ndarray) -> np.ndarray:
    height, width = (side // 32 * 32 for side in image.shape[:2])
    return np.asarray(Image.fromarray(image).resize((max(32, width), max(32, height)), 2))


def up_to_multiples(x: np.ndarray, *, even: bool = False) -> np.ndarray:
    """TextNet's sizes: integer sides first, then multiples."""
    short = min(x.shape[:2])
    whole = [round(v * (160 / short)) if even else 160 * v // short for v in x.shape[:2]]
    height, width = (-(-side // 8) * 8 for side in whole)
    return cv2.resize(x, (width, height))


def resize_with_pad(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """tf.image.resize_with_pad's sizes and offsets in float32, with OpenCV's resize."""
    sides = [np.float32(side) for side in x.shape[:2]]
    ratio = max(side / np.float32(n) for side, n in zip(sides, size, strict=True))
    height, width = (math.floor(side / ratio) for side in sides)
    top, left = (
        max(0, math.floor((np.float32(n) - side / ratio) / 2))
        for side, n in zip(sides, size, strict=True)
    )
    result = np.zeros((*size, 3), np.uint8)
    result[top : top + height, left : left + width] = cv2.resize(x, (width, height))
    return result


def pad_to_aspect_ratio(x: np.ndarray) -> np.ndarray:
    """Keras's square, which lacks a pixel if the remainder is odd."""
    top, left = ((max(x.shape[:2]) - side) // 2 for side in x.shape[:2])
    return cv2.resize(np.pad(x, ((top, top), (left, left), (0, 0))), (90, 90))


WORDS = {
    "YOLOv5 classify": (
        lambda x: cv2.resize(square(x), (96, 96)),
        "array",
        {"before": ("crop", "square"), "rule": "fixed", "size": (96, 96), "crop": None},
    ),
    "ImageOps.fit": (
        lambda image: ImageOps.fit(image, (96, 96)),
        "pil",
        {"before": ("box", "square"), "rule": "fixed", "arithmetic": "pillow"},
    ),
    "LLaVA": (
        lambda image: np.asarray(padded(image).resize((84, 84))),
        "pil",
        {"before": ("pad", (122, 116, 104)), "rule": "fixed", "pad": None},
    ),
    "DETR": (limited, "pil", {"rule": "shortest", "size": 96, "limit": 160, "canvas": None}),
    "stride 32": (strided, "array", {"rule": "longest", "canvas": 32, "pad": ("end", 0)}),
    "clean-fid": (floats_by_pillow, "pil", {"clamped": True, "rounded": False}),
    "GLPN": (multiples, "array", {"rule": "keep", "multiple": 32, "enlarge": True}),
    "blobFromImage, crop": (
        lambda x: cv2.dnn.blobFromImage(x, 1 / 255, (96, 64), (104, 117, 123), True, True),
        "array",
        {"scale": "factor", "rule": "shortest", "size": (64, 96), "channels": "reversed"},
    ),
    "cv2 by a factor": (
        lambda x: cv2.resize(x, None, fx=0.5, fy=0.5),
        "array",
        {"rule": "factor", "size": 0.5, "scale": "factor"},
    ),
    "TextNet": (up_to_multiples, "array", {"rule": "shortest", "size": 160, "multiple": 8}),
    "TextNet, half to even": (
        lambda x: up_to_multiples(x, even=True),
        "array",
        {"rule": "shortest", "size": 160, "multiple": 8},
    ),
    "rectangle": (
        lambda image: ImageOps.pad(image, (96, 64), color=(1, 2, 3)),
        "pil",
        {"rule": "longest", "size": (64, 96), "pad": ("center", (1, 2, 3)), "canvas": (64, 96)},
    ),
    "TensorFlow's pad": (
        lambda x: resize_with_pad(x, (112, 112)),
        "array",
        {"rule": "longest", "size": 112, "pad": ("center", 0), "canvas": (112, 112)},
    ),
    "TensorFlow's pad, a rectangle": (
        lambda x: resize_with_pad(x, (90, 150)),
        "array",
        {"rule": "longest", "size": (90, 150), "pad": ("center", 0), "canvas": (90, 150)},
    ),
    "Keras' pad": (
        pad_to_aspect_ratio,
        "array",
        {"before": ("pad", 0), "rule": "fixed", "size": (90, 90), "pad": None},
    ),
    "never enlarged": (
        lambda x: cv2.resize(x, _at_most(x, 80), interpolation=cv2.INTER_AREA),
        "array",
        {"rule": "longest", "size": 80, "enlarge": False},
    ),
    "corners": (
        lambda x: F.interpolate(x[None].float(), (60, 70), mode="bilinear", align_corners=True),
        "tensor",
        {"aligned": "corners", "rounded": False, "arithmetic": "torch"},
    ),
    "cut to 8 bits": (
        lambda x: F.interpolate(x[None].float(), (60, 70), mode="bilinear").to(torch.uint8),
        "tensor",
        {"rounded": "down", "arithmetic": "torch", "batched": True},
    ),
    "gray of BGR": (
        lambda x: cv2.cvtColor(cv2.resize(x, (70, 60)), cv2.COLOR_BGR2GRAY),
        "array",
        {"channels": "gray reversed", "weights": (0.299, 0.587, 0.114), "layout": "HW"},
    ),
    "BT.709": (
        lambda x: (
            np.asarray(Image.fromarray(x).resize((70, 60)), np.float32)
            @ np.float32([0.2125, 0.7154, 0.0721])
        ),
        "array",
        {"channels": "gray", "weights": (0.2125, 0.7154, 0.0721)},
    ),
    "float16": (
        lambda x: cv2.resize(x, (70, 60)).astype(np.float16) / 255,
        "array",
        {"dtype": "float16", "rounded": True, "interpolation": "bilinear"},
    ),
}


def _at_most(x: np.ndarray, longest: int) -> tuple[int, int]:
    factor = min(1.0, longest / max(x.shape[:2]))
    return round(x.shape[1] * factor), round(x.shape[0] * factor)


@pytest.mark.parametrize("name", WORDS)
def test_every_option_of_the_contract_is_found(name):
    function, takes, expected = WORDS[name]
    found = identify(function, takes=takes)
    assert found.known, str(found)
    for attribute, value in expected.items():
        assert getattr(found, attribute) == value, attribute
    assert found.compared >= 200_000
    if name == "TextNet":  # 256 and not 264: 261 becomes 256.2
        assert found.twin.geometry.placement(163, 261).size == (160, 256)
        assert found.twin.geometry.placement(200, 201).size == (160, 160)  # 160.8 becomes 160
    assert str(found).count(".") >= 4


@pytest.mark.parametrize(
    ("code", "rule"), [(ImageOps.contain, "longest"), (ImageOps.cover, "shortest")]
)
def test_a_rectangle_longer_than_the_first_images_is_found(code, rule):
    found = identify(lambda image: code(image, (224, 48)), takes="pil")
    assert found.known, str(found)
    assert (found.rule, found.size) == (rule, (48, 224))


def tensorflow_bilinear(x: np.ndarray, *, start: bool = False) -> np.ndarray:
    """tf.image.resize of TensorFlow 2 and 1, as in their kernels: two lerps in float32."""
    result = x.astype(np.float32)
    for axis, wanted in ((1, 70), (0, 60)):
        scale = np.float32(x.shape[axis]) / np.float32(wanted)
        at = np.arange(wanted, dtype=np.float32)
        at = at * scale if start else (at + np.float32(0.5)) * scale - np.float32(0.5)
        low = np.floor(at)
        share = (at - low).reshape((-1, 1) if axis == 0 else (1, -1))[..., None]
        first, second = (
            result.take(np.clip(low + k, 0, x.shape[axis] - 1).astype(int), axis) for k in (0, 1)
        )
        result = first + (second - first) * share
    return result


def skimage_resize(x: np.ndarray, *, blurred: bool = True) -> np.ndarray:
    """The calls of scipy in skimage.transform.resize."""
    from scipy import ndimage

    factors = np.array(x.shape) / np.array((60, 70, 3))
    sigma = np.maximum(0, (factors - 1) / 2) * blurred
    image = ndimage.gaussian_filter(x / 255, sigma, mode="mirror")
    return ndimage.zoom(image, 1 / factors, order=1, mode="mirror", grid_mode=True)


def test_tensorflow_and_scikit_image_are_identified_by_their_formulas():
    found = identify(lambda x: tensorflow_bilinear(x, start=True), takes="array")
    assert (found.arithmetic, found.aligned, found.differing) == ("tensorflow", "start", 0)
    found = identify(tensorflow_bilinear, takes="array")
    assert (found.interpolation, found.aligned, found.differing) == ("bilinear", "centers", 0)
    found = identify(skimage_resize, takes="array")
    assert (found.arithmetic, found.antialias, found.differing) == ("skimage", True, 0)
    found = identify(lambda x: skimage_resize(x, blurred=False), takes="array")
    assert (found.arithmetic, found.antialias, found.differing) == ("skimage", False, 0)


ZOOMS = [
    (0, "corners", "nearest"),
    (2, "centers", "spline2"),
    (3, "corners", "spline3"),
    (3, "centers", "spline3"),
    (4, "corners", "spline4"),
    (5, "corners", "spline5"),
]


@pytest.mark.parametrize(("order", "aligned", "name"), ZOOMS)
@pytest.mark.parametrize("floats", [False, True])
def test_scipys_zooms_are_identified_and_written_as_code(order, aligned, name, floats):
    ndimage = pytest.importorskip("scipy.ndimage")

    def program(x):
        factors = np.array((60, 71, 3)) / x.shape
        x = x.astype(np.float64) / 255 if floats else x
        how = {"order": order, "mode": "mirror", "grid_mode": aligned == "centers"}
        return ndimage.zoom(x, factors, **how)

    found = identify(program, takes="array")
    assert found.known, str(found)
    assert (found.interpolation, found.aligned) == (name, aligned)
    assert found.arithmetic == "scipy"
    made: dict = {}
    exec(found.to_code("warpkit"), made)
    image = np.random.default_rng(5).integers(0, 256, (90, 101, 3), dtype=np.uint8)
    got = np.asarray(made["preprocess"](torch.from_numpy(image).movedim(-1, 0)))
    apart = np.abs(got.astype(np.float64) - program(image))
    assert apart.max() <= (1e-5 if floats else 1)
    assert floats or (apart > 0).mean() < 1e-3


def test_scipys_default_floats_are_identified():
    ndimage = pytest.importorskip("scipy.ndimage")
    for order, mode, name in ((1, "mirror", "bilinear"), (3, "constant", "spline3")):

        def program(x, order=order, mode=mode):
            return ndimage.zoom(x / 255.0, np.array((60, 71, 3)) / x.shape, order=order, mode=mode)

        found = identify(program, takes="array")
        assert (found.interpolation, found.aligned) == (name, "corners"), str(found)


@pytest.mark.parametrize("antialias", [True, False])
def test_scikit_images_splines_are_identified(antialias):
    ndimage = pytest.importorskip("scipy.ndimage")

    def program(x):
        x = x / 255
        factors = np.array(x.shape) / np.array((60, 70, 3))
        sigma = np.maximum(0, (factors - 1) / 2) * antialias
        image = ndimage.gaussian_filter(x, sigma, mode="mirror")
        found = ndimage.zoom(image, 1 / factors, order=3, mode="mirror", grid_mode=True)
        return np.clip(found, x.min(), x.max())

    found = identify(program, takes="array")
    assert found.known, str(found)
    how = (found.interpolation, found.arithmetic, found.antialias)
    assert how == ("spline3", "skimage", antialias)
    text = found.to_code("warpkit")
    assert f"interpolation='spline3', arithmetic='skimage', antialias={antialias}" in text


TENSORFLOW = {
    "bilinear": {(91, 95, 0): 159.4534912109375, (127, 124, 1): 128.95501708984375},
    "bicubic": {(36, 124, 2): 124.67415618896484, (52, 84, 2): 126.62776184082031},
}
"""What tf.image.resize of TensorFlow 2.21 makes of `picture((174, 221))` with antialias, where it
matters that the scale is 1 / float32(o / n)."""


@pytest.mark.parametrize("name", TENSORFLOW)
def test_tensorflows_antialiased_resize_has_its_own_float32_arithmetic(name):
    image = torch.from_numpy(picture((174, 221))).movedim(-1, 0).float()
    made = weights.resized(image, (128, 128), f"antialiased_{name}")
    for (y, x, channel), wanted in TENSORFLOW[name].items():
        assert abs(float(made[channel, y, x]) - wanted) < 2e-4


def test_the_twin_gives_the_programs_values_and_gradients():
    def program(image):
        resized = image.resize((48, 40), Image.Resampling.BICUBIC)
        return (np.asarray(resized, np.float32).transpose(2, 0, 1) / 255 - 0.5) / np.float32(0.25)

    found = identify(program)
    assert found.takes == "pil"
    generator = np.random.default_rng(0)
    picture = generator.integers(0, 256, (90, 77, 3), dtype=np.uint8)
    image = (torch.from_numpy(picture).movedim(-1, 0)[None] / 255).requires_grad_()
    result = found.pipeline(image)
    wanted = program(Image.fromarray(picture))
    torch.testing.assert_close(result[0].detach(), torch.from_numpy(wanted), rtol=0, atol=2e-6)
    result.sum().backward()
    assert image.grad.isfinite().all()
    # the filter's weights sum to one, so one more level everywhere adds 4 values in each channel
    torch.testing.assert_close(image.grad.sum(), torch.tensor(4.0 * 3 * 48 * 40), rtol=1e-4, atol=0)


def test_programs_that_return_a_dict_or_list_or_change_their_argument():
    def program(image):
        resized = cv2.resize(image, (50, 40))
        image[:] = 0
        return {"pixel_values": [resized]}

    found = identify(program, takes="array")
    assert (found.rule, found.size, found.batched) == ("fixed", (40, 50), True)
    assert "It changes the picture that it is given." in found.reasons
    assert not found.known
    assert found.differing == 0


def test_nondeterministic_programs_and_invalid_results_are_reported():
    generator = np.random.default_rng(0)
    found = identify(lambda x: x + generator.normal(size=x.shape), takes="array")
    assert "random" in found.reasons[0]
    sides = iter(range(30, 60))
    found = identify(lambda x: cv2.resize(x, (40, next(sides))), takes="array")
    assert "another shape when it is given again ((31, 40, 3), not (30, 40, 3))" in found.reasons[0]
    assert "no picture" in identify(lambda x: "words", takes="array").reasons[0]
    assert "2 pictures" in identify(lambda x: np.stack([x, x]), takes="array").reasons[0]
    assert "not finite" in identify(lambda x: np.full((9, 9, 3), np.nan), takes="array").reasons[0]


def test_a_program_that_raises_is_reported_with_the_image():
    def program(image):
        raise OSError("no network")

    with pytest.raises(ValueError, match="raises OSError on a picture of 480 x 640") as caught:
        identify(program)
    assert "'pil' and 'array' and 'tensor'" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(TypeError, match="identify: `pipeline` must be"):
        identify(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes"):
        identify(program, takes="numpy")


def test_the_error_for_each_kind_of_image_is_reported():
    def program(image):
        resized = cv2.resize(image, (64, 64))  # rejects PIL images and tensors
        raise OSError(f"no network for {resized.shape}")

    with pytest.raises(ValueError, match="taken as 'array': no network for") as caught:
        identify(program)
    said = str(caught.value)
    assert "raises error on a picture of 480 x 640 taken as 'pil'" in said
    assert "\n" not in said
    assert len(said) < 1000
    with pytest.raises(TypeError, match="identify: `progress` must be True or False"):
        identify(program, progress=1)  # type: ignore[arg-type]


def test_images_that_a_program_rejects_are_reported():
    def program(image):
        if image.shape[0] < 40:
            raise ValueError(f"at least 40 rows, got {image.shape[0]}")
        return cv2.resize(image, (60, 50))

    found = identify(program, takes="array")
    assert found.known
    assert "It raises ValueError on a picture of " in found.raised
    assert "at least 40 rows, got " in found.raised
    assert found.raised in str(found)
    assert identify(lambda x: cv2.resize(x, (60, 50)), takes="array").raised is None


def test_results_whose_form_depends_on_the_image_are_unknown():
    def by_type(x):
        return cv2.resize(x, (60, 50)).astype(np.float32 if x.shape[0] % 2 else np.uint8)

    def by_axes(x):
        return cv2.resize(x, (60, 50))[None if x.shape[0] % 2 else ...]

    for program, words in (
        (by_type, "3 axes of uint8, then 3 axes of float32"),
        (by_axes, "3 axes of uint8, then 4 axes of uint8"),
    ):
        found = identify(program, takes="array")
        assert not found.known
        assert words in found.reasons[0]


def test_calls_are_counted_and_bounded(monkeypatch):
    found = identify(lambda x: cv2.resize(x, (140, 120)), takes="array")
    assert found.known
    assert found.calls <= 110
    monkeypatch.setattr("warpkit.validation.programs.program.MAX_CALLS", 20)
    found = identify(lambda x: cv2.resize(x, (140, 120)), takes="array")
    assert found.calls == 20
    assert "20 calls" in found.reasons[0]


def test_an_interrupt_is_not_caught():
    def program(image):
        raise KeyboardInterrupt

    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        identify(program, takes="array", progress=True)
    assert torch.get_num_threads() == threads


def test_json_holds_all_findings(tmp_path):
    found = identify(lambda x: cv2.resize(x, (70, 60)), takes="array")
    found.to_json(tmp_path / "found.json")
    text = (tmp_path / "found.json").read_text()
    assert '"interpolation": "bilinear"' in text
    assert "pipeline" not in text


def test_programs_of_arrays_are_identified_without_pillow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    found = identify(lambda image: np.ascontiguousarray(image[..., ::-1]))
    assert (found.channels, found.differing) == ("reversed", 0)
    with pytest.raises(ModuleNotFoundError, match=r"^identify: takes='pil' needs Pillow"):
        identify(lambda image: image, takes="pil")
    with pytest.raises(ModuleNotFoundError, match=r"^to_html: a report with pictures needs Pillow"):
        pages.png_address(np.zeros((2, 3), np.uint8))


def test_a_resize_by_a_library_without_boxes_is_no_box():
    """A box and a crop give nearest the same pixels, but F.interpolate has no box."""
    drawn = draw(740_357, LIBRARIES)
    assert (drawn.library, drawn.expected["before"]) == ("torch", ("crop", "square"))
    found = identify(drawn.function, takes=drawn.takes)
    assert found.known, str(found)
    assert mistakes(drawn, found) == []
