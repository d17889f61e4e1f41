"""`Preprocessing.to_code`: the text runs, and gives the program's numbers."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision.transforms as T
from PIL import Image

from tests.support.processors import picture
from tests.support.size_rules import RULES
from warpkit.validation import identify

IMAGENET = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def yolo(x: np.ndarray) -> np.ndarray:
    factor = 96 / max(x.shape[:2])
    height, width = (round(side * factor) for side in x.shape[:2])
    result = np.full((96, 96, 3), 114, np.uint8)
    top, left = (96 - height) // 2, (96 - width) // 2
    result[top : top + height, left : left + width] = cv2.resize(x, (width, height))
    return result[..., ::-1].transpose(2, 0, 1)[None] / np.float32(255)


PROGRAMS = {
    "torchvision of PIL images": (
        T.Compose([T.Resize(72), T.CenterCrop(64), T.ToTensor(), IMAGENET]),
        "pil",
        ("warpkit", "pillow"),
    ),
    "YOLO's letterbox": (yolo, "array", ("warpkit", "cv2")),
    "floats of torch": (
        lambda x: F.interpolate(x[None].float(), (60, 70), mode="bicubic").clamp(0, 255),
        "tensor",
        ("warpkit", "torch"),
    ),
    "cut floats": (
        lambda x: F.interpolate(x[None].float(), (60, 70), mode="bilinear").to(torch.uint8),
        "tensor",
        ("warpkit", "torch"),
    ),
    "kept": (
        lambda x: x[:, :, ::-1] - np.float32(127.5),
        "array",
        ("warpkit", "cv2", "pillow", "torch"),
    ),
    "OCR recogniser": (*RULES["OCR recogniser"][:2], ("warpkit", "cv2")),
    "PP-OCR, resize_long": (*RULES["PP-OCR, resize_long"][:2], ("warpkit", "cv2")),
    "Qwen2-VL": (*RULES["Qwen2-VL"][:2], ("warpkit", "pillow")),
    "lerobot": (*RULES["lerobot"][:2], ("warpkit", "torch")),
    "timm, not square": (*RULES["timm, not square"][:2], ("warpkit", "pillow")),
    "Keras, load_img": (*RULES["Keras, load_img"][:2], ("warpkit", "pillow")),
    "Keras, crop_to_aspect_ratio": (
        *RULES["Keras, crop_to_aspect_ratio"][:2],
        ("warpkit", "cv2"),
    ),
}
GIVEN = {
    "pil": Image.fromarray,
    "array": np.copy,
    "tensor": lambda x: torch.from_numpy(x).movedim(-1, 0).contiguous(),
}
TAKES = {"warpkit": "tensor", "torch": "tensor", "cv2": "array", "pillow": "pil"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_gives_the_programs_numbers(name):
    program, takes, libraries = PROGRAMS[name]
    found = identify(program, takes=takes)
    assert found.known, str(found)
    for library in TAKES:
        if library not in libraries:
            with pytest.raises(ValueError, match=f"to_code: library='{library}' has no"):
                found.to_code(library)
            continue
        scope: dict = {}
        exec(found.to_code(library), scope)
        for shape in ((301, 417), (530, 260), (120, 77)):
            image = picture(shape)
            wanted = np.asarray(program(GIVEN[takes](image)))
            for _ in range(2):
                made = np.asarray(scope["preprocess"](GIVEN[TAKES[library]](image)))
                assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
                level = np.abs(found.gain).min()
                apart = np.abs(made.astype(float) - wanted.astype(float))
                assert apart.max() < 0.002 * level + 1e-6


def test_the_code_of_an_unknown_program_is_refused():
    found = identify(lambda x: (x / 255.0) ** 2.2, takes="array")
    with pytest.raises(ValueError, match="to_code: `library` must be used on a program that is kn"):
        found.to_code()
    known = identify(lambda x: x, takes="array")
    with pytest.raises(ValueError, match="to_code: `library`"):
        known.to_code("jax")


def test_mean_and_deviation_are_named():
    found = identify(T.Compose([T.Resize((64, 64)), T.ToTensor(), IMAGENET]), takes="pil")
    assert "mean (0.485, 0.456, 0.406), std (0.229, 0.224, 0.225)" in str(found)
    half = identify(lambda x: cv2.resize(x, (64, 64)) / 127.5 - 1, takes="array")
    assert "mean 0.5, std 0.5" in str(half)
    unit = identify(lambda x: cv2.resize(x, (64, 64)) / 255, takes="array")
    assert "mean" not in str(unit)
