"""Cuts images into the rows of patches that image processors pass to their models.

(N, C, H, W) becomes (N, patches, D), or (N, patches, C * frames, p, p). The letters of a layout: c
channels, p pixels of a patch, m neighbours that a model merges (they are adjacent in the result), t
frames, which are all the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from warpkit.attacks.processors.operations import pad
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
    parts = _rows(picture, options).permute(0, 1, 2, 4, 5, 3)
    made = parts.reshape(len(picture), parts.shape[1] * parts.shape[2], -1)
    wanted = options.get("max_num_patches")
    if not wanted:
        wanted = options["max_soft_tokens"] * options["pooling_kernel_size"] ** 2
    return F.pad(made, (0, 0, 0, max(wanted - made.shape[1], 0)))


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
