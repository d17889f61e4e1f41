"""The kinds of image processors that make tiles or search for sizes, as in `kinds`.

Their tables have the same entries. A step of tiles hands (N, tiles, C, h, w) to the next ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from warpkit.attacks.processors import grids, own_order, patch_sizes, searched_sizes, sizes
from warpkit.attacks.processors import outputs as out
from warpkit.attacks.processors import patches as cut
from warpkit.attacks.processors import tile_outputs as of
from warpkit.attacks.processors import tiles as make
from warpkit.attacks.processors.operations import crop, resize, resize_floats, values

crop_tiles = partial(make.by_tile, crop)

BY_ASPECT = {
    "grid": grids.grid_of_got,
    "steps": (make.by_rule, values),
    "outputs": (of.concatenated, of.num_patches),
}
DEEPSEEK = {
    "steps": (make.deepseek_whole, values),
    "also": {"pixel_values_local": (make.deepseek_local, values)},
}
IDEFICS3 = {
    "steps": (make.idefics3, values),
    "outputs": (of.by_prompt, of.of_idefics3),
    "prompts": True,
}
LLAVA = {"steps": (make.llava, values)}
MINICPM = {
    "steps": (own_order.minicpm,),
    "outputs": (of.of_minicpm,),
    "needs": ("do_resize",),
}
INKLING = {
    "rule": searched_sizes.part_of_long_edge,
    "steps": (resize, cut.pad_squares, values, cut.squares_of_pixels),
    "outputs": (out.squares,),
    "do_resize": True,
}

TILE_KINDS: dict[str, Mapping[str, Any]] = {
    # tiles of a canvas
    "Aria": {
        "steps": (make.aria, values),
        "outputs": (of.concatenated, of.most_crops),
    },
    "Llama4": {
        "steps": (make.llama, make.brain_floats),
        "outputs": (of.concatenated, of.aspect_ratios),
        "needs": ("do_resize",),
        "square": True,
    },
    "LlavaNext": {**LLAVA, "outputs": (of.filled_up, out.image_sizes)},
    "LlavaOnevision": {
        **LLAVA,
        "outputs": (of.filled_up, out.image_sizes, of.images_of_prompts),
        "prompts": True,
        "squares_several": True,
    },
    "Mllama": {
        "steps": (make.llama, values, make.fill_tiles),
        "outputs": (of.of_mllama,),
        "prompts": True,
        "needs": ("do_resize", "do_pad"),
        "square": True,
    },
    "Phi4Multimodal": {"steps": (own_order.phi4,), "outputs": (of.of_phi4,)},
    # tiles of a grid that the picture is squeezed into
    "Cohere2Vision": {**BY_ASPECT, "grid": grids.grid_of_cohere},
    "DeepseekOcr2": {**DEEPSEEK, "outputs": (of.of_deepseek,)},
    "GotOcr2": {**BY_ASPECT, "steps": (make.got, values)},
    "GraniteDocling": {
        **BY_ASPECT,
        "grid": grids.grid_of_granite,
        "outputs": (of.by_prompt, of.of_granite),
        "prompts": True,
        "always_tiles": True,
    },
    "Idefics3": IDEFICS3,
    "Ovis2": {
        "steps": (make.ovis, crop_tiles, values),
        "outputs": (of.concatenated, of.grids_of_ovis),
    },
    "PerceptionLM": {"steps": (make.perception, values)},
    "SmolVLM": IDEFICS3,
    "UltraVBert": IDEFICS3,
    "UnlimitedOcr": {**DEEPSEEK, "outputs": (of.of_unlimited,)},
    # crops of the picture itself
    "Eomt": {"steps": (make.eomt, values), "outputs": (of.of_eomt,)},
    "Gemma3": {"steps": (make.gemma3, values), "outputs": (of.concatenated, of.num_crops)},
    "Idefics2": {
        "rule": sizes.within_edges,
        "steps": (own_order.idefics2,),
        "outputs": (of.of_idefics2,),
        "prompts": True,
    },
    "Molmo2": {"steps": (own_order.molmo2,), "outputs": (of.of_molmo2,)},
    "Step3p7": {
        "steps": (own_order.step3_whole, values),
        "also": {"pixel_values_local": (own_order.step3_local, values)},
        "outputs": (of.of_step3,),
    },
    # rows of patches of several views
    "Lfm2Vl": {"steps": (own_order.lfm2,), "outputs": (of.of_lfm2,)},
    "MiniCPMOcr": {
        **MINICPM,
        "without": {"small_image_upsize": ("adaptive", "the glyphs in the picture decide")},
    },
    "MiniCPMV4_6": MINICPM,
    # rows of patches of a size that is searched for
    "Gemma4Unified": {
        "rule": patch_sizes.patch_count_floor,
        "steps": (resize, values, cut.patches_in_rows),
        "nearest": "nearest",
        "merges_pixels": True,
        "outputs": (out.stacked, out.positions),
    },
    "Glm5Next": {
        "steps": (cut.on_glm5_canvas, values, cut.patches),
        "outputs": (out.concatenated, out.grid_of_glm5),
    },
    "Inkling": {**INKLING, "frames": 2},
    "Inkling2": INKLING,
    "NemotronH_Omni_Reasoning_V3": {
        "rule": searched_sizes.patch_grid_of_nemotron,
        "steps": (resize_floats, values, cut.rows_of_channels),
        "of_call": searched_sizes.number_of_images,
        "outputs": (out.concatenated, out.grid_hw),
    },
    "NeoMME": {
        "rule": searched_sizes.within_side_and_area,
        "rounds_up": True,
        "steps": (resize, cut.pad_patches, values, cut.rows_of_pixels),
        "outputs": (out.concatenated, out.grid_hw),
    },
}
