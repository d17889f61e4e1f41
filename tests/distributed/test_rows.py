"""A worker's rows, without Ray: formats of images, groups of one shape, failures."""

from __future__ import annotations

import io
import subprocess
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import warpkit as wk
from tests.support.forks import python
from warpkit.distributed.rows import PROBE, Worker, picture_of

half = partial(wk.resize, size=(12, 17), arithmetic="pillow")


def worker(pipeline: Any) -> Worker:
    return Worker(pipeline, "image", "pixel_values", "cpu")


def photograph(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(picture: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, kind)
    return file.getvalue()


def pillows(picture: np.ndarray) -> np.ndarray:
    small = Image.fromarray(picture).resize((17, 12), Image.Resampling.BILINEAR)
    return np.asarray(small).transpose(2, 0, 1)


def test_images_of_many_sizes_have_pillows_pixels_and_keep_their_order():
    pictures = [photograph(20 + k % 3, 30 + k % 2, k) for k in range(12)]
    results = worker(half).results(pictures)
    for picture, result in zip(pictures, results, strict=True):
        np.testing.assert_array_equal(result.array, pillows(picture))
        assert result.error is None
        assert result.array is not None
        assert result.array.base is None or result.array.flags.c_contiguous


def test_images_of_one_size_share_one_call():
    sizes = []

    def noted(images: torch.Tensor) -> torch.Tensor:
        sizes.append(tuple(images.shape))
        return half(images)

    worker(noted).results([photograph(20, 30), photograph(9, 9), photograph(20, 30)])
    assert sorted(sizes) == [(1, 3, 9, 9), (2, 3, 20, 30)]


FORMS = {
    "array": lambda rgb: rgb,
    "not contiguous": lambda rgb: np.repeat(rgb, 2, axis=1)[:, ::2],
    "file": encoded,
    "Hugging Face's": lambda rgb: {"bytes": encoded(rgb), "path": None},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_image_is_read(form: str):
    rgb = photograph(20, 30)
    np.testing.assert_array_equal(picture_of(FORMS[form](rgb)), rgb)
    result = worker(half).results([FORMS[form](rgb)])[0]
    np.testing.assert_array_equal(result.array, pillows(rgb))


def test_channels_are_kept_and_files_are_rgb():
    grey = photograph(5, 7)[..., 0]
    assert picture_of(grey).shape == picture_of(grey[..., None]).shape == (5, 7, 1)
    assert picture_of(encoded(grey)).shape == (5, 7, 3)
    assert picture_of(np.zeros((5, 7, 4), np.uint8)).shape == (5, 7, 4)
    assert picture_of(np.ones((1, 1, 3), np.float32)).dtype == np.float32


BAD = {
    "None": (None, "TypeError: no picture: an array or an image file's bytes, got None"),
    "no file": (b"hello", "UnidentifiedImageError: cannot identify image file"),
    "cut": (encoded(photograph(40, 40))[:400], "OSError: image file is truncated"),
    "planes": (
        np.zeros((3, 8, 9), np.uint8),
        (
            "ValueError: no picture: an array must be of shape (H, W), (H, W, 1), (H, W, 3) or "
            "(H, W, 4), got (3, 8, 9)"
        ),
    ),
    "empty": (np.zeros((0, 8, 3), np.uint8), "ValueError: no picture: an array must be of shape"),
    "a list": ([1, 2], "TypeError: no picture: an array or an image file's bytes, got list"),
    "text": ("a.png", "TypeError: no picture: an array or an image file's bytes, got str"),
    "no bytes": ({"bytes": None}, "TypeError: no picture"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_has_its_error_and_the_others_their_results(name: str):
    value, said = BAD[name]
    rgb = photograph(20, 30)
    results = worker(half).results([rgb, value, rgb])
    assert results[1].array is None
    assert results[1].error is not None
    assert results[1].error.startswith(said)
    assert "\n" not in results[1].error
    for result in (results[0], results[2]):
        np.testing.assert_array_equal(result.array, pillows(rgb))


def test_the_failing_image_of_a_group_is_found():
    pictures = [photograph(20, 30, k) for k in range(5)]
    pictures[3][0, 0] = 0

    def picky(images: torch.Tensor) -> torch.Tensor:
        if (images[..., 0, 0] == 0).all(1).any():
            raise ValueError("a black\ncorner")
        return half(images)

    results = worker(picky).results(pictures)
    said = [result.error for result in results]
    assert said == [None] * 3 + ["ValueError: a black corner", None]
    np.testing.assert_array_equal(results[4].array, pillows(pictures[4]))


MADE = {
    "float32": lambda images: half(images).float() / 255,
    "bfloat16, which numpy has not": lambda images: half(images).bfloat16(),
    "an array": lambda images: half(images).numpy(),
    "a list": lambda images: list(half(images)),
}


@pytest.mark.parametrize("name", MADE)
def test_every_type_that_a_pipeline_may_return(name: str):
    rgb = photograph(20, 30)
    results = worker(MADE[name]).results([rgb, rgb])
    wanted = torch.as_tensor(np.stack([pillows(rgb)] * 2))
    wanted = {"float32": wanted.float() / 255}.get(name, wanted)
    for result, expected in zip(results, wanted, strict=True):
        array = np.asarray(result.array)
        assert array.dtype == (np.float32 if "float" in name else np.uint8)
        if "bfloat16" not in name:  # its 8 bits of mantissa hold every level up to 256
            np.testing.assert_array_equal(array, expected)
        np.testing.assert_array_equal(array, expected.bfloat16().float() if "b" in name else array)


@pytest.mark.parametrize(
    ("made", "got"),
    [(lambda images: images[:1], "(1, 3, 20, 30)"), (lambda images: None, "NoneType")],
)
def test_a_wrong_number_of_results_is_an_error_in_every_row(made: Any, got: str):
    def pipeline(images: torch.Tensor) -> Any:
        return made(images) if len(images) > 1 else "text"

    with pytest.raises((TypeError, ValueError), match="prepare: `pipeline` must be a function"):
        worker(made)._call([photograph(20, 30)] * 2 if got != "NoneType" else [PROBE])
    errors = [result.error for result in worker(pipeline).results([photograph(20, 30)] * 2)]
    assert all(error is not None and error.endswith("got str") for error in errors)


def test_ray_is_not_imported():
    code = (
        "import sys, warpkit.distributed.ray; "
        "print([m for m in sys.modules if m.split('.')[0] in ('ray', 'pyarrow', 'pandas')]); "
        "sys.modules['ray'] = None\n"
        "try: warpkit.distributed.ray.prepare(1, 2)\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True)
    said = "prepare needs Ray: pip install '.[ray]' in a checkout"
    assert done.stdout.splitlines() == ["[]", said]
