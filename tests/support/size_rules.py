"""Programs with rules of sizes as libraries write them, by name, with what `identify` must say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image


class Ruled(NamedTuple):
    """A program, the form in which it takes images, and its true attributes."""

    function: Callable[[Any], Any]
    takes: str
    expected: dict[str, Any]


def mtcnn(x: torch.Tensor, scale: float = 0.6 * 0.709) -> torch.Tensor:
    """One level of facenet-pytorch's pyramid: imresample(imgs, (int(h * scale + 1), ...))."""
    h, w = x.shape[-2:]
    size = (int(h * scale + 1), int(w * scale + 1))
    data = F.interpolate(x[None].float(), size=size, mode="area")
    return (data - 127.5) * 0.0078125


def rounded_down(x: np.ndarray, factor: float = 0.709) -> np.ndarray:
    """MTCNN of TensorFlow: int(h * scale)."""
    h, w = x.shape[:2]
    return cv2.resize(x, (int(w * factor), int(h * factor)), interpolation=cv2.INTER_AREA)


def recogniser(x: np.ndarray, size: tuple[int, int] = (48, 320)) -> np.ndarray:
    """resize_norm_img of PaddleOCR's predict_rec."""
    img_h, img_w = size
    h, w = x.shape[:2]
    ratio = w / float(h)
    resized_w = img_w if math.ceil(img_h * ratio) > img_w else math.ceil(img_h * ratio)
    resized = cv2.resize(x, (resized_w, img_h)).astype("float32")
    resized = resized.transpose((2, 0, 1)) / 255
    resized -= 0.5
    resized /= 0.5
    padding = np.zeros((3, img_h, img_w), dtype=np.float32)
    padding[:, :, 0:resized_w] = resized
    return padding


def fixed_height(x: np.ndarray) -> np.ndarray:
    """A height of 32, the width by int()."""
    h, w = x.shape[:2]
    return cv2.resize(x, (int(32 * w / h), 32))


def detector_type0(x: np.ndarray, limit: int, kind: str) -> np.ndarray:
    """DetResizeForTest.resize_image_type0 of PaddleOCR."""
    h, w = x.shape[:2]
    if kind == "max":
        ratio = float(limit) / max(h, w) if max(h, w) > limit else 1.0
    elif kind == "min":
        ratio = float(limit) / min(h, w) if min(h, w) < limit else 1.0
    else:
        ratio = float(limit) / max(h, w)
    resize_h, resize_w = int(h * ratio), int(w * ratio)
    resize_h = max(int(round(resize_h / 32) * 32), 32)
    resize_w = max(int(round(resize_w / 32) * 32), 32)
    return cv2.resize(x, (resize_w, resize_h))


def detector_type2(x: np.ndarray, resize_long: int = 256) -> np.ndarray:
    """DetResizeForTest.resize_image_type2: the longer side, then up to multiples of 128."""
    h, w = x.shape[:2]
    ratio = float(resize_long) / h if h > w else float(resize_long) / w
    resize_h, resize_w = int(h * ratio), int(w * ratio)
    resize_h = (resize_h + 128 - 1) // 128 * 128
    resize_w = (resize_w + 128 - 1) // 128 * 128
    return cv2.resize(x, (resize_w, resize_h))


def smart_resize(height: int, width: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """Qwen2-VL's."""
    h_bar, w_bar = round(height / factor) * factor, round(width / factor) * factor
    if h_bar * w_bar > most:
        beta = math.sqrt((height * width) / most)
        h_bar = max(factor, math.floor(height / beta / factor) * factor)
        w_bar = max(factor, math.floor(width / beta / factor) * factor)
    elif h_bar * w_bar < least:
        beta = math.sqrt(least / (height * width))
        h_bar = math.ceil(height * beta / factor) * factor
        w_bar = math.ceil(width * beta / factor) * factor
    return h_bar, w_bar


def qwen(image: Image.Image, most: int = 28 * 28 * 256) -> np.ndarray:
    """Qwen2-VL's sizes, in Pillow's bicubic."""
    w, h = image.size
    if max(h, w) / min(h, w) > 200:
        raise ValueError("absolute aspect ratio must be smaller than 200")
    h, w = smart_resize(max(h, 28), max(w, 28), 28, 56 * 56, most)
    return np.asarray(image.resize((w, h), Image.Resampling.BICUBIC))


def lerobot(x: torch.Tensor, width: int = 224, height: int = 224) -> torch.Tensor:
    """resize_with_pad of lerobot's policies, which pads left and above."""
    img = x[None].float()
    cur_height, cur_width = img.shape[2:]
    ratio = max(cur_width / width, cur_height / height)
    resized_height, resized_width = int(cur_height / ratio), int(cur_width / ratio)
    resized = F.interpolate(
        img, size=(resized_height, resized_width), mode="bilinear", align_corners=False
    )
    pad_height, pad_width = max(0, int(height - resized_height)), max(0, int(width - resized_width))
    return F.pad(resized, (pad_width, 0, pad_height, 0), value=0)


def openpi(image: Image.Image, height: int = 96, width: int = 128) -> np.ndarray:
    """_resize_with_pad_pil of openpi-client."""
    cur_width, cur_height = image.size
    if cur_width == width and cur_height == height:
        return np.asarray(image)
    ratio = max(cur_width / width, cur_height / height)
    resized_height, resized_width = int(cur_height / ratio), int(cur_width / ratio)
    resized = image.resize((resized_width, resized_height), resample=Image.BILINEAR)
    zero = Image.new(resized.mode, (width, height), 0)
    pad_height = max(0, int((height - resized_height) / 2))
    pad_width = max(0, int((width - resized_width) / 2))
    zero.paste(resized, (pad_width, pad_height))
    return np.asarray(zero)


def timm_eval(image: Image.Image, size: tuple[int, int] = (224, 149)) -> np.ndarray:
    """timm's ResizeKeepRatio and CenterCropOrPad for an input that is not square."""
    target_h, target_w = (math.floor(side / 0.875) for side in size)
    img_w, img_h = image.size
    ratio = min(img_h / target_h, img_w / target_w)
    new_h, new_w = round(img_h / ratio), round(img_w / ratio)
    x = np.asarray(image.resize((new_w, new_h), Image.Resampling.BICUBIC))
    top, left = round((new_h - size[0]) / 2.0), round((new_w - size[1]) / 2.0)
    return x[top : top + size[0], left : left + size[1]]


def keras_load_img(image: Image.Image, target_size: tuple[int, int]) -> np.ndarray:
    """load_img(keep_aspect_ratio=True, interpolation="bilinear") of Keras."""
    width, height = image.size
    target_width, target_height = target_size
    crop_height = (width * target_height) // target_width
    crop_width = (height * target_width) // target_height
    crop_height, crop_width = min(height, crop_height), min(width, crop_width)
    crop_box_hstart = (height - crop_height) // 2
    crop_box_wstart = (width - crop_width) // 2
    crop_box = [
        crop_box_wstart,
        crop_box_hstart,
        crop_box_wstart + crop_width,
        crop_box_hstart + crop_height,
    ]
    return np.asarray(image.resize(target_size, Image.Resampling.BILINEAR, box=crop_box))


def fitted(image: Image.Image) -> np.ndarray:
    from PIL import ImageOps

    return np.asarray(ImageOps.fit(image, (120, 80), Image.Resampling.BICUBIC))


def keras_crop(x: np.ndarray) -> np.ndarray:
    """crop_to_aspect_ratio of Keras, with OpenCV's resize."""
    h, w = x.shape[:2]
    rows, columns = min(h, w * 80 // 120), min(w, h * 120 // 80)
    top, left = (h - rows) // 2, (w - columns) // 2
    return cv2.resize(x[top : top + rows, left : left + columns], (120, 80))


RULES = {
    "MTCNN": Ruled(mtcnn, "tensor", {"rule": "factor", "interpolation": "area"}),
    "MTCNN, rounded down": Ruled(rounded_down, "array", {"rule": "factor", "size": 0.709}),
    "OCR recogniser": Ruled(
        recogniser,
        "array",
        {
            "rule": "height",
            "size": 48,
            "sides": "ceil",
            "limit": 320,
            "pad": ("end", 127.5),
            "canvas": (48, 320),
        },
    ),
    "fixed height": Ruled(
        fixed_height,
        "array",
        {"rule": "height", "size": 32, "sides": "floor", "limit": None, "pad": None},
    ),
    "PP-OCR, largest side": Ruled(
        lambda x: detector_type0(x, 960, "max"),
        "array",
        {"rule": "longest", "size": 960, "multiple": 32, "enlarge": False},
    ),
    "PP-OCR, least side": Ruled(
        lambda x: detector_type0(x, 224, "min"),
        "array",
        {"rule": "shortest", "size": 224, "multiple": 32, "shrink": False},
    ),
    "PP-OCR, resize_long": Ruled(
        lambda x: detector_type0(x, 320, "long"),
        "array",
        {"rule": "longest", "size": 320, "multiple": 32, "enlarge": True},
    ),
    "PP-OCR, type 2": Ruled(
        detector_type2, "array", {"rule": "longest", "size": 256, "multiple": 128}
    ),
    "Qwen2-VL": Ruled(
        qwen, "pil", {"rule": "area", "size": (56 * 56, 28 * 28 * 256), "multiple": 28}
    ),
    "lerobot": Ruled(
        lerobot,
        "tensor",
        {"rule": "longest", "size": 224, "pad": ("start", 0), "canvas": (224, 224)},
    ),
    "openpi": Ruled(
        openpi,
        "pil",
        {"rule": "longest", "size": (96, 128), "pad": ("center", 0), "canvas": (96, 128)},
    ),
    "timm, not square": Ruled(
        timm_eval, "pil", {"rule": "shortest", "size": (256, 170), "crop": (224, 149)}
    ),
    "Keras, load_img": Ruled(
        lambda image: keras_load_img(image, (96, 96)),
        "pil",
        {"rule": "fixed", "size": (96, 96), "before": ("box", "square"), "crop": None},
    ),
    "Keras, load_img, not square": Ruled(
        lambda image: keras_load_img(image, (120, 80)),
        "pil",
        {"rule": "fixed", "size": (80, 120), "before": ("box", "aspect")},
    ),
    "ImageOps.fit, not square": Ruled(
        fitted, "pil", {"rule": "fixed", "size": (80, 120), "before": ("box", "aspect")}
    ),
    "Keras, crop_to_aspect_ratio": Ruled(
        keras_crop, "array", {"rule": "fixed", "size": (80, 120), "before": ("crop", "aspect")}
    ),
}
