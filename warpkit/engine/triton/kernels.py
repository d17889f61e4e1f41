"""Kernels are compiled once for pictures of all sizes.

Triton compiles integers that are 1, and those that 16 divides, apart: the gradients of 500 random
sizes took 130 compilations, of a second or two each. No load or store of these kernels is wider for
it, because the columns of a tile have no hints about neighbours (see `positions.tile_pixels`). Only
the steps between pixels stay apart: where they are 1, neighbours are adjacent.
"""

from __future__ import annotations

import triton

kernel = triton.jit(
    do_not_specialize=[
        "channels", "height", "width", "out_height", "out_width", "plane", "out_plane", "numbers",
        "tiles", "groups", "splits", "readers", "image_div", "image_mod", "mapping_div",
        "mapping_mod", "fill_item", "fill_channel", "fill_row", "fill_column", "count", "values",
        "area", "from_height", "from_width", "rows", "columns", "step", "blocks", "first_div",
        "first_mod", "second_div", "second_mod", "flow_div", "flow_mod", "depth_div", "depth_mod",
        "ray_div", "ray_mod", "image_height", "image_width", "to_height", "to_width", "to_area",
        "block_rows", "block_columns", "stride", "small", "small_rows", "items", "planes", "each",
        "chunks", "first_block", "view_div", "view_mod", "source_div", "source_mod",
    ]
)  # fmt: skip
