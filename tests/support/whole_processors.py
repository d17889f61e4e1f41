"""Calls of the processors of transformers with lists of images: configurations, sizes, comparison.

The sizes are random, with planted ties of the rules that choose grids, and one pixel wide.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.support import ROOT
from tests.support import processors as asked
from warpkit.attacks.processors.kinds import KINDS

Sizes = list[tuple[int, int]]

PLANS = [[40, 80], [80, 40], [80, 80], [120, 40], [40, 120]]
SMALL_QWEN = {"size": {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 12}}
SPLIT_40 = {"size": {"longest_edge": 160}, "max_image_size": {"longest_edge": 40}}
GOT_40 = {"size": {"height": 40, "width": 40}}

CHANGED: dict[str, list[dict[str, Any]]] = {
    "Aria": [
        {
            "split_image": True,
            "max_image_size": 490,
            "split_resolutions": [[490, 980], [980, 490], [980, 980], [490, 700]],
        },
        {"max_image_size": 490},
    ],
    "Cohere2Vision": [
        {**GOT_40, "max_patches": 6},
        {"size": {"height": 40, "width": 30}, "max_patches": 4},
        {"crop_to_patches": False, "size": {"height": 40, "width": 30}},
    ],
    "DeepseekOcr2": [
        {"size": {"height": 80, "width": 80}, "tile_size": 40},
        {"size": {"height": 80, "width": 80}, "tile_size": 50, "crop_to_patches": False},
        {"size": {"height": 64, "width": 64}, "tile_size": 40, "min_patches": 1},
    ],
    "DeepseekVLHybrid": [asked.SMALL["DeepseekVLHybrid"]],
    "DepthPro": [asked.SMALL["DepthPro"]],
    "Detr": [{"size": asked.EDGES}, {"size": asked.EDGES, "do_pad": False}],
    "Donut": [asked.SMALL["Donut"]],
    "Eomt": [
        {"do_split_image": True, "do_pad": True, "size": asked.EDGES | {"longest_edge": 80}},
        {"size": {"shortest_edge": 50, "longest_edge": 60}},
    ],
    "Fuyu": [asked.SMALL["Fuyu"], {"size": {"height": 60, "width": 90}}],
    "Gemma3": [
        {
            **GOT_40,
            "do_pan_and_scan": True,
            "pan_and_scan_min_crop_size": 20,
            "pan_and_scan_max_num_crops": 4,
            "pan_and_scan_min_ratio_to_activate": 1.2,
        },
        {**GOT_40},
    ],
    "Gemma4": [{"max_soft_tokens": 70}],
    "Gemma4Unified": [{"max_soft_tokens": 70}],
    "Glm4v": [{"size": {"shortest_edge": 2000, "longest_edge": 60000}}],
    "Glm5Next": [
        {"max_image_tokens": 30, "min_image_tokens": 4},
        {"patch_expand_factor": 2, "max_image_tokens": 12, "min_image_tokens": 2},
        {"do_resize": True, "min_image_tokens": 40, "max_image_tokens": 60, "merge_size": 1},
    ],
    "GotOcr2": [
        {**GOT_40, "crop_to_patches": True, "max_patches": 9},
        {"size": {"height": 40, "width": 30}, "crop_to_patches": True, "min_patches": 3},
        {**GOT_40, "crop_to_patches": True, "max_patches": 1},
        {**GOT_40},
    ],
    "GraniteDocling": [
        {**GOT_40, "max_patches": 6},
        {
            **GOT_40,
            "max_patches": 4,
            "dense_max_patches": 9,
            "dense_min_aspect": 1.1,
            "dense_max_aspect": 2.0,
            "fine_route": True,
        },
        {**GOT_40, "max_patches": 4, "dense_max_patches": 9, "dense_max_scale": 0.9},
        {**GOT_40, "crop_to_patches": False},
    ],
    "Idefics2": [
        {"size": {"shortest_edge": 30, "longest_edge": 60}, "do_image_splitting": True},
        {"size": {"shortest_edge": 30, "longest_edge": 60}},
    ],
    "Idefics3": [
        SPLIT_40,
        {**SPLIT_40, "return_row_col_info": True},
        {**SPLIT_40, "do_image_splitting": False},
    ],
    "Inkling": [{}, {"rescale_image_frac": 1.5, "rescale_image_max_upscaled_long_edge": 120}],
    "Inkling2": [{}],
    "Lfm2Vl": [
        {"tile_size": 64, "max_image_tokens": 16, "min_image_tokens": 4, "max_tiles": 6},
        {
            "tile_size": 64,
            "max_image_tokens": 16,
            "min_image_tokens": 4,
            "do_image_splitting": False,
        },
        {
            "tile_size": 64,
            "max_image_tokens": 12,
            "min_image_tokens": 4,
            "use_thumbnail": False,
            "min_tiles": 1,
            "return_row_col_info": True,
        },
    ],
    "Llama4": [
        {"size": {"height": 40, "width": 40}, "max_patches": 6},
        {"size": {"height": 40, "width": 40}, "max_patches": 9, "resize_to_max_canvas": True},
        {"size": {"height": 28, "width": 28}, "max_patches": 16, "do_normalize": False},
    ],
    "LlavaNext": [
        {
            "size": {"shortest_edge": 40},
            "crop_size": {"height": 40, "width": 40},
            "image_grid_pinpoints": PLANS,
        },
        {
            "size": {"shortest_edge": 30},
            "crop_size": {"height": 30, "width": 30},
            "image_grid_pinpoints": PLANS,
            "do_pad": False,
        },
    ],
    "LlavaOnevision": [
        {**GOT_40, "image_grid_pinpoints": PLANS},
        {"size": {"height": 36, "width": 36}, "image_grid_pinpoints": PLANS},
    ],
    "MaskFormer": [{"size": asked.EDGES}, {"size": asked.EDGES, "size_divisor": 0}],
    "MiniCPMOcr": [
        {"scale_resolution": 112},
        {"scale_resolution": 112, "small_image_upsize": "never", "slice_mode": False},
    ],
    "MiniCPMV4_6": [
        {"scale_resolution": 112},
        {"scale_resolution": 112, "downsample_mode": "4x", "max_slice_nums": 4},
        {"scale_resolution": 112, "slice_mode": False},
    ],
    "Mllama": [
        {"size": {"height": 40, "width": 40}},
        {"size": {"height": 28, "width": 28}, "max_image_tiles": 6},
    ],
    "Molmo2": [
        {"size": {"height": 112, "width": 112}, "overlap_margins": [2, 2]},
        {"size": {"height": 98, "width": 98}, "overlap_margins": [1, 2], "pooling_size": [2, 3]},
        {"size": {"height": 112, "width": 112}, "overlap_margins": [0, 0], "max_crops": 4},
    ],
    "NemotronH_Omni_Reasoning_V3": [
        {"min_num_patches": 16, "max_num_patches": 64},
        {"min_num_patches": 16, "max_num_patches": 0, "max_model_len": 20},
    ],
    "NeoMME": [
        {"patch_size": 16},
        {"patch_size": 16, "max_side": 90},
        {"patch_size": 16, "size": {"min_pixels": 4000, "max_pixels": 9000}},
        {"patch_size": 16, "max_side": 70, "size": {"min_pixels": 6000, "max_pixels": 9000}},
    ],
    "Ovis2": [
        {**GOT_40, "crop_to_patches": True},
        {**GOT_40, "crop_to_patches": True, "use_covering_area_grid": False, "max_patches": 6},
        {**GOT_40, "crop_to_patches": True, "max_patches": 1},
        {**GOT_40},
    ],
    "PerceptionLM": [
        {"tile_size": 40, "max_num_tiles": 9},
        {"tile_size": 40, "max_num_tiles": 16},
        {"tile_size": 40, "vision_input_type": "vanilla"},
    ],
    "Phi4Multimodal": [
        {"size": {"height": 56, "width": 56}, "dynamic_hd": 9},
        {"size": {"height": 42, "width": 42}, "dynamic_hd": 4, "resample": 2},
    ],
    "Pixtral": [{"size": {"longest_edge": 90}}, {"size": {"longest_edge": 90}, "do_pad": False}],
    "Qwen2VL": [SMALL_QWEN, {"do_resize": True, "patch_size": 16, "merge_size": 1}],
    "Sam": [asked.SMALL["Sam"]],
    "Siglip2": [{"max_num_patches": 49}],
    "Step3p7": [
        {"size": {"height": 60, "width": 60}, "patch_size": 40, "max_image_size": 150},
        {"size": {"height": 80, "width": 80}, "patch_size": 50, "max_image_size": 300},
    ],
    "UltraVBert": [
        {**SPLIT_40, "max_image_tiles": 9},
        {**SPLIT_40, "max_image_tiles": 9, "do_image_splitting": False},
    ],
    "UnlimitedOcr": [
        {"size": {"height": 80, "width": 80}, "tile_size": 40},
        {"size": {"height": 80, "width": 80}, "tile_size": 40, "crop_to_patches": False},
        {"size": {"height": 700, "width": 700}, "crop_to_patches": False},
    ],
}
"""The configurations that are compared besides the defaults, small ones."""
CHANGED["SmolVLM"] = CHANGED["Idefics3"]

PLANTED: Sizes = [
    (80, 80),
    (40, 40),
    (64, 80),
    (80, 100),
    (60, 60),
    (120, 120),
    (56, 112),
    (112, 56),
    (335, 335),
    (28, 28),
    (40, 1),
    (1, 40),
    (2, 3),
    (200, 2),
]
"""Squares and aspects of 5 to 4, where rules tie, and thin pictures."""
EXTREME: Sizes = [(1, 1000), (1000, 1), (1000, 2), (3, 600)]


def configurations(kind: str) -> list[dict[str, Any]]:
    """The options of the compared calls of a kind."""
    changed = CHANGED.get(kind, [asked.SMALL.get(kind, {})])
    return [{**needed(kind), **options} for options in changed]


def needed(kind: str) -> dict[str, Any]:
    """The options without which a processor returns no pixels, or asks for Tesseract."""
    return {k: v for k, v in asked.WITHOUT.get(kind, {}).items() if k not in asked.TILED}


def calls(kind: str, count: int, seed: int = 0) -> list[Any]:
    """Lists of one to three sizes, for kinds with prompts also lists of lists."""
    random_numbers = random.Random(f"{kind} {seed}")

    def size() -> tuple[int, int]:
        draw = random_numbers.random()
        if draw < 0.25:
            return random_numbers.choice(PLANTED if kind in CHANGED else PLANTED[:10])
        if draw < 0.3 and kind in CHANGED:  # others, such as TextNet, make a gigapixel of them
            return random_numbers.choice(EXTREME)
        return random_numbers.randint(3, 260), random_numbers.randint(3, 260)

    sizes_of: list[Any] = []
    for number in range(count):
        sizes = [size() for _ in range(random_numbers.randint(1, 3))]
        if KINDS[kind].get("prompts") and number % 2:
            sizes_of.append([sizes, [size() for _ in range(random_numbers.randint(1, 2))]])
        else:
            sizes_of.append(sizes)
    return sizes_of


def mapped(function: Any, parts: Any) -> Any:
    """A function of sizes on a list, or on a list of lists."""
    return [mapped(function, x) if isinstance(x, list) else function(x) for x in parts]


RECORDED = ROOT / "data" / "processors" / "outputs.json"
RECORDED_CALLS: list[Any] = [[(61, 84), (53, 37)], [(80, 80), (40, 1)]]
"""Of the recorded outputs; the last one with prompts, where a kind has them."""


def recorded_calls(kind: str) -> list[Any]:
    prompts = [[[(61, 84), (53, 37)], [(80, 80)]]] if KINDS[kind].get("prompts") else []
    return RECORDED_CALLS + prompts


def recorded() -> dict[str, list[dict[str, Any]]]:
    """For each kind a row of each configuration: its options, and for each library the calls."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def summary(value: Any) -> Any:
    """An output in short: small whole numbers themselves, others as by `processors.summary`."""
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, Tensor):
        if value.numel() <= 40 and not value.is_floating_point():
            return [str(value.dtype), value.tolist()]
        holds_pixels = value.is_floating_point() or value.dtype == torch.uint8
        kind = "floats" if holds_pixels else str(value.dtype)
        return [kind, *asked.summary(value.double().numpy())]
    return [summary(part) for part in value] if isinstance(value, list | tuple) else value


def flat(parts: Sequence[Any]) -> list[Any]:
    return [y for x in parts for y in (x if isinstance(x, list) else [x])]


def image(size: tuple[int, int]) -> Tensor:
    """(3, H, W), uint8."""
    return asked.tensor(asked.picture(size))[0]


def called(processor: Any, kind: str, sizes: list[Any]) -> dict[str, Any]:
    """What a processor returns for images of these sizes, without texts.

    Pixels of unequal shapes, for which it refuses return_tensors, are lists.
    """
    from PIL import Image

    images = mapped(lambda size: Image.fromarray(asked.picture(size)), sizes)
    texts = {"task_inputs": ["semantic"] * len(images)} if kind == "OneFormer" else {}
    try:
        outputs = processor(images, return_tensors="pt", **texts)
    except Exception:
        outputs = processor(images, **texts)
        outputs = {key: _with_tensors(value) for key, value in outputs.items()}
    if isinstance(outputs, Tensor):
        return {"pixel_values": outputs}
    return {key: value for key, value in outputs.items() if key != "task_inputs"}


def _with_tensors(value: Any) -> Any:
    """Lists of sizes as tensors; pixels as they are."""
    has_pixels = isinstance(value, list) and value and isinstance(value[0], Tensor | np.ndarray)
    return torch.tensor(value) if isinstance(value, list) and value and not has_pixels else value


def difference(wanted: Any, got: Any, name: str) -> float:
    """The largest difference of two outputs; AssertionError for other shapes or types."""
    if isinstance(wanted, np.ndarray):
        wanted = torch.as_tensor(wanted)
    if isinstance(wanted, Tensor):
        assert isinstance(got, Tensor), (name, type(got))
        assert got.shape == wanted.shape, (name, tuple(got.shape), tuple(wanted.shape))
        holds_pixels = ("pixel" in name and "mask" not in name) or name.endswith("images")
        assert holds_pixels or got.dtype == wanted.dtype, (name, got.dtype, wanted.dtype)
        return float((got.double() - wanted.double()).abs().max()) if got.numel() else 0.0
    if isinstance(wanted, list | tuple):
        assert isinstance(got, list | tuple), (name, type(got))
        assert len(got) == len(wanted), (name, len(got), len(wanted))
        pairs = zip(wanted, got, strict=True)
        return max((difference(*pair, name) for pair in pairs), default=0.0)
    assert got == wanted, (name, got, wanted)
    return 0.0


def compared(processor: Any, kind: str, pipeline: Any, sizes: list[Any]) -> float | str:
    """The largest difference of all outputs of a call; "refused" if both refuse it, and the error
    of the processor if it alone does."""
    images = mapped(image, sizes)
    try:
        wanted = called(processor, kind, sizes)
    except Exception as error:
        try:
            pipeline.outputs(images)
        except ValueError:
            return "refused"
        return f"{type(error).__name__}: {error}"
    got = pipeline.outputs(images)
    assert set(got) == set(wanted), (set(got), set(wanted))
    return max(difference(wanted[key], got[key], key) for key in wanted)
