"""Cuts images into the rows of patches that image processors pass to their models.

(N, C, H, W) becomes (N, patches, D), or (N, patches, C * frames, p, p). The letters of a layout: c
channels, p pixels of a patch, m neighbours that a model merges (they are adjacent in the result), t
frames, which are all the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors.operations import as_floats, pad, pad_to, sides
from warpkit.attacks.processors.sampling import resample
from warpkit.attacks.processors.searched_sizes import canvas_of_glm5, inside_glm5
from warpkit.attacks.processors.sizes import Options, Size, up_to
from warpkit.core import checks


def patches(picture: Tensor, options: Options) -> Tensor:
    """Qwen2-VL: (c t p p) for each patch; m x m neighbours are adjacent."""
    return _merged(picture, options, "rows columns m m c t p p")


def patches_by_rows_of_blocks(picture: Tensor, options: Options) -> Tensor:
    """HunYuan-VL: the rows of a block of m x m keep their order in the picture."""
    return _merged(picture, options, "rows m columns m c t p p")


def patches_of_pixels(picture: Tensor, options: Options) -> Tensor:
    """Cosmos 3 Edge: (p p c t)."""
    return _merged(picture, options, "rows columns m m p p c t")


def _merged(picture: Tensor, options: Options, layout: str) -> Tensor:
    """The patches of (N, C, H, W), flattened in a layout's order: (N, patches, D)."""
    p, m = options["patch_size"], options.get("merge_size", 1)
    rows, columns = _grid(picture, (p * m, p * m))
    count, channels = picture.shape[:2]
    # n, c, rows, m, p, columns, m, p
    parts = picture.reshape(count, channels, rows, m, p, columns, m, p)
    places = {
        "rows columns m m c t p p": (0, 2, 5, 3, 6, 1, 4, 7),
        "rows m columns m c t p p": (0, 2, 3, 5, 6, 1, 4, 7),
        "rows columns m m p p c t": (0, 2, 5, 3, 6, 4, 7, 1),
    }
    frames = options.get("temporal_patch_size", 1)
    at = layout.split().index("t") + 1
    parts = parts.permute(places[layout]).unsqueeze(at)
    shape = list(parts.shape)
    shape[at] = frames
    return parts.expand(shape).reshape(count, rows * columns * m * m, -1)


def patches_in_rows(picture: Tensor, options: Options) -> Tensor:
    """Siglip 2 and Gemma 4: (p p c), row by row; zeros up to the largest number of patches."""
    if options.get("merges_pixels"):  # a patch is a whole block
        options = {**options, "patch_size": options["patch_size"] * options["pooling_kernel_size"]}
    parts = _rows(picture, options).permute(0, 1, 2, 4, 5, 3)
    rows = parts.flatten(3).flatten(1, 2)
    wanted = options.get("max_num_patches") or options["max_soft_tokens"]
    if "max_soft_tokens" in options and not options.get("merges_pixels"):
        wanted *= options["pooling_kernel_size"] ** 2
    return F.pad(rows, (0, 0, 0, max(wanted - rows.shape[1], 0)))


def pictures_in_rows(picture: Tensor, options: Options) -> Tensor:
    """PaddleOCR-VL and Kimi: small pictures (c t, p, p), row by row."""
    parts = _rows(picture, options)[:, :, :, :, None]
    frames, shape = options.get("temporal_patch_size", 1), parts.shape
    parts = parts.expand(*shape[:4], frames, *shape[5:])
    return parts.reshape(shape[0], shape[1] * shape[2], shape[3] * frames, *shape[5:])


def frames_in_rows(picture: Tensor, options: Options) -> Tensor:
    """Muse: (t c p p), row by row."""
    parts = _rows(picture, options)[:, :, :, None]
    shape = parts.shape
    parts = parts.expand(*shape[:3], options["temporal_patch_size"], *shape[4:])
    return parts.reshape(shape[0], shape[1] * shape[2], -1)


def pad_to_patches(picture: Tensor, options: Options) -> Tensor:
    """Kimi: pads both sides to whole patches."""
    step = options["patch_size"] * options["merge_size"]
    return pad(picture, {**options, "do_pad": True}, lambda h, w, _: up_to((h, w), step))


def rows_of_channels(picture: Tensor, options: Options) -> Tensor:
    """Nemotron-H: (c p p), row by row."""
    return _rows(picture, options).flatten(3).flatten(1, 2)


def rows_of_pixels(picture: Tensor, options: Options) -> Tensor:
    """NeoMME: (p p c), row by row."""
    return _rows(picture, options).movedim(3, -1).flatten(3).flatten(1, 2)


def squares_of_pixels(picture: Tensor, options: Options) -> Tensor:
    """Inkling: (p, p, c) for each patch; twice, as two frames, if the kind has frames."""
    patches = _rows(picture, {"patch_size": options["size"]}).movedim(3, -1).flatten(1, 2)
    frames = options.get("frames")
    return patches[:, :, None].expand(-1, -1, frames, -1, -1, -1) if frames else patches


def pad_patches(picture: Tensor, options: Options) -> Tensor:
    """NeoMME: pads with black to whole patches."""
    return pad_to(picture, up_to(sides(picture), options["patch_size"]))


def pad_squares(picture: Tensor, options: Options) -> Tensor:
    """Inkling: pads with the level -1 to whole squares; with frames, always a column more."""
    rows, columns = grid_of_squares(*sides(picture), options)
    side = options["size"]["height"]
    return pad_to(as_floats(picture), (rows * side, columns * side), value=-1.0)


def grid_of_squares(height: int, width: int, options: Options) -> Size:
    """Rows and columns of Inkling's squares."""
    side = options["size"]["height"]
    columns = width // side + 1 if options.get("frames") else -(-width // side)
    return -(-height // side), columns


def on_glm5_canvas(picture: Tensor, options: Options) -> Tensor:
    """GLM-5: resized, and padded with black to its canvas."""
    if not options["do_resize"]:
        return picture
    canvas = canvas_of_glm5(*sides(picture), options)
    return pad_to(resample(picture, inside_glm5(*sides(picture), options), options), canvas)


def _rows(picture: Tensor, options: Options) -> Tensor:
    """Patches as (N, rows, columns, C, p, p)."""
    patch = options["patch_size"]
    p = patch["height"] if isinstance(patch, Mapping) else patch
    rows, columns = _grid(picture, (p, p))
    return picture.reshape(*picture.shape[:2], rows, p, columns, p).permute(0, 2, 4, 1, 3, 5)


def _grid(picture: Tensor, block: Size) -> Size:
    """The number of whole blocks along each axis of a picture (N, C, H, W)."""
    height, width = picture.shape[-2:]
    if height % block[0] or width % block[1]:
        wanted = f"on, or the pictures a multiple of {block[0]} pixels high and wide"
        checks.fail("from_processor", "do_resize", wanted, f"{height} x {width}")
    return height // block[0], width // block[1]
