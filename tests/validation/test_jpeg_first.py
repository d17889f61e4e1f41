"""`identify` names a JPEG file that comes first, by its quality and subsampling, and no other."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps

from tests.support.processors import picture
from warpkit.validation import compare_pipelines, identify

SUBSAMPLINGS = ("4:2:0", "4:2:2", "4:4:4")
FACTORS = {
    "4:2:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "4:2:2": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "4:4:4": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
}


def by_pillow(image: Image.Image, quality: int, subsampling: str) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality, subsampling=subsampling)
    return Image.open(file).convert("RGB")


def by_cv2(bgr: np.ndarray, quality: int, subsampling: str) -> np.ndarray:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FACTORS[subsampling]]
    return cv2.imdecode(cv2.imencode(".jpg", bgr, options)[1], cv2.IMREAD_COLOR)


def kept(x, *file):
    return np.asarray(by_pillow(Image.fromarray(x), *file))


def resized_by_cv2(x, *file):
    rgb = by_cv2(np.ascontiguousarray(x[..., ::-1]), *file)[..., ::-1]
    return cv2.resize(rgb, (64, 48), interpolation=cv2.INTER_AREA)


def without_swapping(x, *file):
    """RGB is given to a function that takes BGR: red and blue are exchanged in the file."""
    return cv2.resize(by_cv2(x, *file), (64, 48))


def cropped_and_normalised(x, *file):
    image = by_pillow(Image.fromarray(x), *file)
    height, width = x.shape[:2]
    factor = 72 / min(height, width)
    size = [72 if side == min(height, width) else int(side * factor) for side in (width, height)]
    left, top = (round((side - 64) / 2) for side in size)
    small = image.resize((size[0], size[1]), Image.Resampling.BICUBIC)
    small = np.asarray(small.crop((left, top, left + 64, top + 64)), np.float32)
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    return ((small / 255 - mean) / std).transpose(2, 0, 1)


def letterboxed(x, *file):
    image = by_pillow(Image.fromarray(x), *file)
    return np.asarray(ImageOps.pad(image, (80, 60), color=(114, 114, 114)))


def grey(x, *file):
    return np.asarray(by_pillow(Image.fromarray(x), *file).convert("L").resize((60, 52)))


def in_floats(x, *file):
    image = torch.from_numpy(kept(x, *file).copy()).movedim(-1, 0)[None] / 255
    return F.interpolate(image, (56, 56), mode="bilinear", antialias=True)[0].numpy()


PROGRAMS: dict[str, tuple[Callable[..., np.ndarray], dict[str, object]]] = {
    "kept": (kept, {"rule": "keep"}),
    "resized by cv2": (resized_by_cv2, {"interpolation": "area", "size": (48, 64)}),
    "cropped and normalised": (
        cropped_and_normalised,
        {"rule": "shortest", "size": 72, "crop": (64, 64), "arithmetic": "pillow"},
    ),
    "letterboxed": (letterboxed, {"rule": "longest", "pad": ("center", 114)}),
    "grey": (grey, {"channels": "gray", "weights": (0.299, 0.587, 0.114)}),
    "in floats": (in_floats, {"arithmetic": "torch", "rounded": False}),
}
CASES = [
    *((name, 75, "4:2:0") for name in PROGRAMS),
    *(("resized by cv2", quality, "4:2:0") for quality in (1, 10, 30, 50, 90, 99, 100)),
    *(("cropped and normalised", quality, "4:4:4") for quality in (20, 60, 95)),
    *(("letterboxed", quality, "4:2:2") for quality in (40, 85)),
    *(("grey", 80, subsampling) for subsampling in SUBSAMPLINGS[1:]),
    *(("kept", 98, subsampling) for subsampling in SUBSAMPLINGS),
]


@cache
def found_of(name: str, quality: int, subsampling: str):
    function = PROGRAMS[name][0]
    return identify(lambda x: function(x, quality, subsampling), takes="array")


@pytest.mark.parametrize(("name", "quality", "subsampling"), CASES)
def test_a_file_is_named(name, quality, subsampling):
    function, expected = PROGRAMS[name]
    found = found_of(name, quality, subsampling)
    assert found.known, str(found)
    assert found.jpeg == (quality, subsampling)
    for attribute, value in expected.items():
        assert getattr(found, attribute) == value, attribute
    assert found.compared >= 200_000
    words = f"First it writes and reads a JPEG file of quality {quality}, {subsampling}."
    assert words in str(found)
    assert f"JPEG file of quality {quality}, {subsampling}; " in repr(found.pipeline)
    assert found.as_dict()["jpeg"] == (quality, subsampling)
    image = picture((211, 303))
    wanted = np.atleast_3d(function(image, quality, subsampling)).astype(float)
    wanted = wanted if found.layout == "CHW" else np.moveaxis(wanted, -1, 0)
    given = torch.from_numpy(image).movedim(-1, 0)[None]
    for _ in range(2):
        made = found.pipeline(given)[0].double().numpy()
        assert np.abs((made - wanted) / found.gain[0]).max() < 0.002
    floats = (given / 255).requires_grad_()
    found.pipeline(floats).sum().backward()
    assert float(floats.grad.abs().max()) > 0


OWN = {
    "resized by cv2": ("warpkit", "cv2"),
    "cropped and normalised": ("warpkit", "pillow"),
    "kept": ("warpkit", "cv2", "pillow", "torch"),
    "in floats": ("warpkit", "torch"),
}


@pytest.mark.parametrize(
    ("name", "library"), [(name, library) for name in OWN for library in OWN[name]]
)
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_a_file_as_code(name, library, subsampling):
    function = PROGRAMS[name][0]
    found = found_of(name, 75, subsampling)
    image = picture((211, 303))
    tensor = torch.from_numpy(image).movedim(-1, 0)
    given = {"cv2": image, "pillow": Image.fromarray(image)}.get(library, tensor)
    made: dict[str, object] = {}
    exec(found.to_code(library), made)
    got, wanted = np.asarray(made["preprocess"](given)), function(image, 75, subsampling)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert np.abs(got.astype(float) - wanted).max() / found.gain[0] < 0.002


def test_a_file_with_red_and_blue_exchanged_is_told_and_written():
    found = identify(lambda x: without_swapping(x, 90, "4:2:0"), takes="array")
    assert found.known, str(found)
    assert (found.jpeg, found.channels) == ((90, "4:2:0"), "kept")
    assert "quality 90, 4:2:0, red and blue exchanged" in str(found)
    image = picture((211, 303))
    wanted = without_swapping(image, 90, "4:2:0")
    for library in ("warpkit", "cv2"):
        made: dict[str, object] = {}
        exec(found.to_code(library), made)
        given = image if library == "cv2" else torch.from_numpy(image).movedim(-1, 0)
        assert np.array_equal(np.asarray(made["preprocess"](given)), wanted)
    swapped = by_cv2(np.ascontiguousarray(image), 90, "4:2:0")
    kept_size = identify(lambda x: by_cv2(x, 90, "4:2:0"), takes="array")
    for library in ("pillow", "torch"):
        made = {}
        exec(kept_size.to_code(library), made)
        tensor = torch.from_numpy(image).movedim(-1, 0)
        given = Image.fromarray(image) if library == "pillow" else tensor
        assert np.array_equal(np.asarray(made["preprocess"](given)), swapped)


def small(x):
    return cv2.resize(x, (64, 48))


def two_files(x):
    return small(kept(kept(x, 60, "4:2:0"), 90, "4:4:4"))


def own_tables(x):
    file = io.BytesIO()
    Image.fromarray(x).save(file, "JPEG", qtables=[list(range(3, 67)), [7] * 64])
    return small(np.asarray(Image.open(file)))


def webp(x):
    file = io.BytesIO()
    Image.fromarray(x).save(file, "WEBP", quality=80)
    return small(np.asarray(Image.open(file).convert("RGB")))


NO_FILE_FIRST = {
    "after a resize": lambda x: kept(small(x), 75, "4:2:0"),
    "between two resizes": lambda x: cv2.resize(
        kept(cv2.resize(x, (90, 90)), 75, "4:2:0"), (64, 64)
    ),
    "grey before the file": lambda x: np.asarray(
        by_pillow(Image.fromarray(x).convert("L").convert("RGB"), 75, "4:2:0").resize((64, 48))
    ),
    "two files": two_files,
    "own tables": own_tables,
    "WebP": webp,
    "five bits": lambda x: small(x // 8 * 8),
    "large pictures only": lambda x: cv2.resize(
        kept(x, 75, "4:2:0") if min(x.shape[:2]) > 150 else x, (48, 48)
    ),
}


@pytest.mark.parametrize("name", NO_FILE_FIRST)
def test_what_is_no_file_or_not_first_is_not_named_one(name):
    found = identify(NO_FILE_FIRST[name], takes="array")
    assert found.jpeg is None
    assert not found.known
    if name == "after a resize":
        assert "Where it resizes nothing, it writes and reads a JPEG file" in found.reasons[0]


@pytest.mark.parametrize("program", [lambda x: x, small])
def test_no_file_is_none(program):
    found = identify(program, takes="array")
    assert found.known
    assert found.jpeg is None
    assert "JPEG" not in str(found)


def test_a_file_is_a_finding_measured_by_itself(tmp_path):
    image = picture((211, 303))

    def filed(x, quality=75):
        return resized_by_cv2(x, quality, "4:2:0")

    def plain(x):
        return cv2.resize(x, (64, 48), interpolation=cv2.INTER_AREA)[..., ::-1]

    both = ("array", "array")
    result = compare_pipelines(filed, plain, takes=both, images=[image])
    kinds = {finding.kind: finding for finding in result.findings}
    assert set(kinds) == {"jpeg", "channels"}
    apart = filed(image) != plain(image)[..., ::-1]
    assert kinds["jpeg"].differing == int(apart.sum())
    assert "A writes a JPEG file of quality 75, 4:2:0 first, B writes no" in str(kinds["jpeg"])
    result = compare_pipelines(filed, lambda x: filed(x, 90), takes=both, images=[image])
    assert [finding.kind for finding in result.findings] == ["jpeg"]
    assert result.findings[0].differing == int((filed(image) != filed(image, 90)).sum())
    assert not result.only_last_bits
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "First it writes and reads a JPEG file of quality 90, 4:2:0." in page
    assert compare_pipelines(filed, filed, takes=both, images=[image]).equal
