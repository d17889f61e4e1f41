"""The image processors of the installed transformers, their options, and images of odd sizes.

The script that records their values and the tests that compare with them share this file.
transformers is imported only when processors are requested.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.support import ROOT
from warpkit.attacks.processors.configuration import ENDINGS

SIZES = ((301, 417), (512, 300), (224, 224), (299, 400), (37, 53), (300, 37), (41, 400), (24, 1))
"""Of pictures (H, W): odd, as large as a crop, smaller than it, and one pixel wide."""
RECORDED = ROOT / "data" / "processors" / "expected.json"
RECORDED_SIZES = ((61, 84), (53, 37))
PLACES = 12
"""How many values of a result are recorded."""

WITHOUT: dict[str, dict[str, Any]] = {
    "Cohere2Vision": {"crop_to_patches": False},
    "Idefics3": {"do_image_splitting": False},
    "ImageGPT": {"do_color_quantize": False},
    "LayoutLMv2": {"apply_ocr": False},
    "LayoutLMv3": {"apply_ocr": False},
    "Nougat": {"do_crop_margin": False},
    "PPFormulaNet": {"do_crop_margin": False},
    "SmolVLM": {"do_image_splitting": False},
    "UltraVBert": {"do_image_splitting": False},
}
"""Options that a processor is asked without for one picture: it would hand tiles or something else,
or ask for Tesseract."""
TILED = {"crop_to_patches", "do_image_splitting"}
"""Those of them that make tiles."""
DETECTORS = """ConditionalDetr DeformableDetr Detr GroundingDino Mask2Former MaskFormer OneFormer
    Yolos"""
EDGES = {"shortest_edge": 80, "longest_edge": 133}
SMALL: dict[str, dict[str, Any]] = {
    **{name: {"size": EDGES} for name in DETECTORS.split()},
    "Aria": {"max_image_size": 490},
    "DeepseekVLHybrid": {"high_res_size": {"height": 400, "width": 400}},
    "DepthPro": {"size": {"height": 154, "width": 130}},
    "Donut": {"size": {"height": 256, "width": 192}},
    "Fuyu": {"size": {"height": 108, "width": 192}},
    "Sam": {"size": {"longest_edge": 100}, "pad_size": {"height": 100, "width": 100}},
    "Sam2": {"size": {"height": 102, "width": 102}},
    "Sam3": {"size": {"height": 101, "width": 101}},
    "Sapiens2": {"size": {"height": 102, "width": 77}},
}
"""Options of the recorded calls, where a default makes more than a million values."""

NEEDS_A_LIST = """DeepseekOcr2 Gemma4Unified Glm5Next GraniteDocling Inkling Inkling2 Lfm2Vl
    Llama4 LlavaNext LlavaOnevision MiniCPMOcr MiniCPMV4_6 Mllama Molmo2
    NemotronH_Omni_Reasoning_V3 NeoMME PerceptionLM Phi4Multimodal Step3p7 UnlimitedOcr"""
"""Kinds whose results for one picture are not recorded here, but in `whole_processors`."""
VIDEOS = ("Tvp", "VideoMAE", "Vivit")
KEYS = {"Fuyu": "images", "VideoLlava": "pixel_values_images"}
ROWS = """CohereCompass Cosmos3Edge Ernie4_5_VLMoe Ernie4_5_VL_Moe Glm46V Glm4v GlmImage Glmga
    HYV4VL HunYuanVL Kimi_K25 MiniMaxM3VL MuseGlimmer PaddleOCRVL Qwen2VL VideoLlama3"""
"""Kinds whose first axis has the patches of all pictures."""
ROWS_OF_SEARCHED_SIZES = """Gemma4Unified Glm5Next Inkling Inkling2 MiniCPMOcr MiniCPMV4_6
    NemotronH_Omni_Reasoning_V3 NeoMME"""
TILE_OPTIONS = (
    "crop_to_patches",
    "do_image_splitting",
    "do_pan_and_scan",
    "do_split_image",
    "split_image",
)
"""The options that make tiles."""


def picture(size: tuple[int, int]) -> NDArray[np.uint8]:
    """Noise (H, W, 3) from a formula."""
    y, x, channel = np.ogrid[: size[0], : size[1], :3]
    number = (y * 7919 + x * 104729 + channel * 1299709 + 17).astype(np.uint64)
    number = (number ^ (number >> np.uint64(5))) * np.uint64(2654435761)
    return ((number >> np.uint64(9)) & np.uint64(255)).astype(np.uint8)


def tensor(array: NDArray[np.uint8]) -> Tensor:
    """(H, W, 3) as (1, 3, H, W)."""
    return torch.from_numpy(array).permute(2, 0, 1)[None].contiguous()


def kind_name(class_name: str) -> str:
    """The kind of a class, whether supported or not."""
    for ending in ENDINGS:
        class_name = class_name.removesuffix(ending)
    return class_name


def processor_classes() -> dict[str, type]:
    """Every image processor class of transformers by its name; nothing is downloaded."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    from transformers.image_processing_utils import BaseImageProcessor

    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    classes = {}
    for package in pkgutil.iter_modules([str(next(iter(transformers.models.__path__)))]):
        folder = f"transformers.models.{package.name}"
        where = importlib.import_module(folder).__path__
        for module in pkgutil.iter_modules(where):
            if not module.name.startswith("image_processing_") or package.name == "auto":
                continue
            name = f"{folder}.{module.name}"
            for key, value in vars(importlib.import_module(name)).items():
                is_class = isinstance(value, type) and value.__module__ == name
                if is_class and issubclass(value, BaseImageProcessor):
                    classes[key] = value
    return dict(sorted(classes.items()))


def library_of(processor: Any) -> str:
    """The library that resizes; a processor with neither backend uses Pillow."""
    return "torchvision" if getattr(processor, "backend", "") == "torchvision" else "pillow"


def made_by(processor: Any, kind: str, array: NDArray[np.uint8]) -> NDArray[Any]:
    """The output of a processor of transformers for one image: (C, h, w), or rows of patches."""
    from PIL import Image

    image = Image.fromarray(array)
    options = {"task_inputs": ["semantic"]} if kind == "OneFormer" else {}
    result = processor([image] if kind in VIDEOS else image, return_tensors="np", **options)
    values = np.asarray(result if kind == "Idefics" else result[KEYS.get(kind, "pixel_values")])
    if kind in ROWS.split():
        return values
    while values.ndim > (2 if kind in ("Gemma4", "Siglip2") else 3):
        values = values[0]
    return values


def summary(values: NDArray[Any]) -> list[Any]:
    """Shape, mean, deviation, and values at positions spread over all axes."""
    flat = values.astype(np.float64).ravel()
    at = [(k * 2654435761 + 12345) % flat.size for k in range(PLACES)]
    numbers = [flat.mean(), flat.std(), *flat[at]]
    return [list(values.shape), *(float(f"{number:.9g}") for number in numbers)]


def recorded() -> dict[str, dict[str, Any]]:
    """The record of `scripts/record processors`: for each kind, its options and summaries."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))
