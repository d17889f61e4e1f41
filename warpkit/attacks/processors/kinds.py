"""The supported kinds of image processors as tables of steps, and why others are refused.

A kind is the name of a class of transformers without its ending: CLIP stands for
CLIPImageProcessor, ...Fast, ...Pil and CLIPFeatureExtractor. A kind that states no steps has
`STANDARD` ones, and a resize by the keys of its size. Its other entries replace the
configuration's. "steps" may depend on the library; "also" has the steps of other pixels beside
`pixel_values`, by their name. "outputs" makes what the processor returns for a call, "of_call" the
options that depend on all its images; "prompts" says that images may be grouped by prompts.
"library" says that the kind has only one. "off" lists options that are not supported, and what they
would do, "without" a value of an option; "needs" those without which the processor fails; "square"
says that `size` must be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from warpkit.attacks.processors import outputs as out
from warpkit.attacks.processors import patch_sizes, sizes
from warpkit.attacks.processors import patches as cut
from warpkit.attacks.processors.operations import (
    both_sizes,
    clamp,
    crop,
    crop_part,
    crop_square,
    divide_again,
    gray,
    larger_size,
    normalize,
    pad,
    pad_frame,
    pad_line,
    pad_multiple,
    pad_page,
    pad_reflected,
    pad_square,
    pad_symmetric,
    pad_with_value,
    rescale,
    resize,
    resize_floats,
    resize_or_fit,
    reverse,
    second_page,
    turn,
    values,
)
from warpkit.attacks.processors.tile_kinds import TILE_KINDS

Kind = Mapping[str, Any]

STANDARD = (resize, crop, values, pad)
UNCROPPED = (resize, values, pad)
"""The steps of kinds without a crop, whatever do_center_crop says."""

NO_ANTIALIAS = {"antialias": False}
SQUARED = {"rule": sizes.long_half_even, "steps": (resize, pad_square, values)}
MASKED = {"outputs": (out.padded, out.pixel_mask)}
MASKS = {"rule": sizes.keys_up, "steps": UNCROPPED, "do_pad": True, **MASKED}
PACKED = {"outputs": (out.concatenated, out.grid_thw)}
ONE_VIDEO = {"outputs": (out.frames,)}
QWEN = {
    "rule": patch_sizes.pixel_count,
    "steps": (resize, values, cut.patches),
    "highest_aspect": 200,
    **PACKED,
}
EMU = {
    "rule": patch_sizes.pixel_count,
    "highest_aspect": 200,
    "outputs": (out.padded, out.resized_image_sizes),
}
GLM = {**QWEN, "counts_frames": True}
HUNYUAN = {**QWEN, "steps": (resize, values, cut.patches_by_rows_of_blocks), "resample": 3}
PAGE = {
    "steps": (
        turn,
        partial(resize, rule=sizes.page),
        partial(resize, rule=sizes.thumbnail, key="do_thumbnail", filter_number=3, gap=2.0),
        pad_page,
        values,
    ),
    "off": {"do_crop_margin": "a crop that depends on what the picture shows"},
}

READ = {"off": {"apply_ocr": "words and their boxes, read from the picture"}}

STANDARD_NAMES = """Beit Bit Blip CLIP Chameleon ChineseCLIP DeiT Flava Idefics MobileNetV1
    MobileNetV2 OwlViT PI0 PPChart2Table Pvt Siglip Tipsv2 Tipsv2Dpt ViT"""
UNCROPPED_NAMES = "RTDetr SegGpt Segformer"
MASKED_NAMES = "ConditionalDetr DeformableDetr Detr GroundingDino"
QWEN_NAMES = """CohereCompass Ernie4_5_VLMoe Ernie4_5_VL_Moe MiniMaxM3VL Qwen2VL"""

KINDS: dict[str, Kind] = {
    **TILE_KINDS,
    **{name: {} for name in STANDARD_NAMES.split()},
    **{name: {"steps": UNCROPPED} for name in UNCROPPED_NAMES.split()},
    **{name: {"steps": UNCROPPED, **MASKED} for name in MASKED_NAMES.split()},
    "OneFormer": {"steps": UNCROPPED, "do_pad": True, "pad_size": None, **MASKED},
    "Sam2": {"outputs": (out.stacked, out.original_sizes)},
    "Sam3": {"outputs": (out.stacked, out.original_sizes)},
    "VideoLlava": {"library": "pillow", "outputs": (out.of_video_llava,)},
    "VideoMAE": ONE_VIDEO,
    "Vivit": {"library": "pillow", **ONE_VIDEO},
    # another size
    "BridgeTower": {"rule": sizes.short_rounded_down, "crops": True, **MASKED},
    "CHMv2": {"rule": sizes.nearer_scale, "steps": (resize, crop, values, pad_multiple)},
    "ConvNext": {
        "rule": sizes.larger_by_crop,
        "squeeze_from": 384,
        "steps": (resize, crop_square, crop, values),
    },
    "DPT": {
        "rule": sizes.nearer_scale,
        "steps": {
            "pillow": (resize, values, pad_multiple),
            "torchvision": (resize, crop, values, pad_multiple),
        },
    },
    "DeepseekVL": SQUARED,
    "DeepseekVLHybrid": {
        **SQUARED,
        "steps": (both_sizes,),
        "also": {"high_res_pixel_values": (larger_size,)},
    },
    "Apertus1p5": EMU,
    "Emu3": {**EMU, "library": "pillow", "do_pad": True},
    "GLPN": {"rule": sizes.own_down, "steps": (resize, values)},
    "Janus": SQUARED,
    "Levit": {"rule": sizes.larger_by_256},
    "Mask2Former": MASKS,
    "MaskFormer": MASKS,
    "Pixtral": {
        "rule": patch_sizes.whole_patches,
        "outputs": (out.padded, out.resized_image_sizes),
    },
    "PoolFormer": {"rule": sizes.larger_by_crop},
    "PromptDepthAnything": {"rule": sizes.nearer_scale, "steps": (resize, values, pad_multiple)},
    "Sam": {
        "rule": sizes.long_half_up,
        "outputs": (out.padded, out.original_sizes, out.reshaped_sizes),
    },
    "TextNet": {"rule": sizes.keys_up},
    "Tvp": {
        "rule": sizes.long_cut,
        "steps": (resize, crop, values, pad_frame, reverse),
        **ONE_VIDEO,
    },
    "Vilt": {"rule": sizes.short_rounded_down, "steps": UNCROPPED, **MASKED},
    "Yolos": {
        "rule": sizes.keys_down_to_16,
        "always_by_ratio": True,
        "steps": UNCROPPED,
        **MASKED,
    },
    # another place or colour of the padding
    "Donut": {
        "steps": (turn, partial(resize, rule=sizes.page), second_page, pad_page, crop, values),
    },
    "Fuyu": {
        "rule": sizes.only_smaller,
        "steps": (resize, pad_with_value, values),
        "outputs": (out.of_fuyu,),
    },
    "Llava": {"steps": (pad_square, resize, crop, values)},
    "Nougat": PAGE,
    "PPFormulaNet": PAGE,
    "Swin2SR": {"steps": (rescale, pad_symmetric)},
    # another order
    "DINOv3ViT": {"steps": (rescale, resize, crop, normalize)},
    "DepthPro": {"steps": (values, resize), **NO_ANTIALIAS},
    "EfficientNet": {"steps": (resize, crop, values, divide_again)},
    "ImageGPT": {
        "steps": {"pillow": UNCROPPED, "torchvision": STANDARD},
        "off": {"do_color_quantize": "indices of colours, which have no gradient"},
    },
    "LayoutLMv2": {"steps": (resize, reverse), **READ},
    "LayoutLMv3": READ,
    "MobileViT": {"steps": (resize, rescale, crop, reverse)},
    "Perceiver": {"steps": (crop_part, resize, values)},
    "RfDetr": {"steps": (rescale, resize, normalize), **NO_ANTIALIAS, **MASKED},
    "SuperPoint": {
        "steps": {"pillow": (resize, rescale, gray), "torchvision": (gray, resize, rescale)}
    },
    "Sapiens2": {"steps": (resize_or_fit, crop, values)},
    "UVDoc": {
        "steps": (values, reverse, resize),
        "aligned": True,
        "resample": 2,
        "also": {"original_images": (values, reverse)},
        "outputs": (out.of_uvdoc,),
    },
    "ZoeDepth": {
        "rule": sizes.nearer_scale,
        "steps": (rescale, pad_reflected, resize, normalize),
        "aligned": True,
    },
    # PaddlePaddle's
    "PPDocLayoutV2": NO_ANTIALIAS,
    "PPDocLayoutV3": NO_ANTIALIAS,
    "PPDocLayoutV4": {"steps": (rescale, resize, clamp, normalize), **NO_ANTIALIAS},
    "PPLCNet": {"rule": sizes.short_half_even, "steps": (resize, crop, values, reverse)},
    "PPOCRV5ServerDet": {
        "rule": sizes.text_lines,
        "steps": (resize_floats, values, reverse),
        "outputs": (out.stacked, out.target_sizes),
    },
    "PPOCRV5ServerRec": {
        "rule": sizes.text_line,
        "of_call": sizes.widest,
        "steps": (resize_floats, crop, values, pad_line),
    },
    "PPOCRV6SmallRec": {
        "rule": sizes.text_line,
        "of_call": sizes.widest,
        "steps": (resize, reverse, crop, values, pad_line),
        **NO_ANTIALIAS,
    },
    # rows of patches
    **dict.fromkeys(QWEN_NAMES.split(), QWEN),
    "VideoLlama3": {**QWEN, "outputs": (*PACKED["outputs"], out.merge_sizes)},
    "Glm46V": GLM,
    "Glm4v": GLM,
    "Glmga": GLM,
    "Cosmos3Edge": {**GLM, "steps": (resize, values, cut.patches_of_pixels)},
    "Gemma4": {
        "rule": patch_sizes.patch_count_floor,
        "steps": (resize, values, cut.patches_in_rows),
        "nearest": "nearest",
        "outputs": (out.stacked, out.positions),
    },
    "GlmImage": {**QWEN, "rule": patch_sizes.within_square_roots, "highest_aspect": 4},
    "HYV4VL": HUNYUAN,
    "HunYuanVL": HUNYUAN,
    "Kimi_K25": {
        "rule": patch_sizes.patch_count_cut,
        "rounds_up": True,
        **PACKED,
        "steps": (resize, cut.pad_to_patches, values, cut.pictures_in_rows),
    },
    "MuseGlimmer": {
        "rule": patch_sizes.nearest_grid,
        **PACKED,
        "steps": (resize, values, cut.frames_in_rows),
    },
    "PaddleOCRVL": {
        **QWEN,
        "grows_first": True,
        "steps": (resize, values, cut.pictures_in_rows),
    },
    "Siglip2": {
        "rule": patch_sizes.patch_count_halving,
        "steps": (resize, values, cut.patches_in_rows),
        "outputs": (out.stacked, out.spatial_shapes),
    },
}

_PAIRS = "it takes two pictures and returns pairs"
_OWN_STATISTICS = "it normalises by the picture's own mean and deviation, and adds rows and columns"
REFUSED: dict[str, str] = {
    "EfficientLoFTR": _PAIRS,
    **dict.fromkeys(("Kosmos2_5", "Pix2Struct"), _OWN_STATISTICS),
    "LightGlue": _PAIRS,
    "Owlv2": "it blurs before it resizes, by scipy in one library and by torchvision in the other",
    "SLANeXt": "it resizes by an 11-bit bilinear of its own",
    "SuperGlue": _PAIRS,
    "VitMatte": "it takes a trimap beside the picture",
    "VitPose": "it takes boxes beside the picture, and warps each",
}
