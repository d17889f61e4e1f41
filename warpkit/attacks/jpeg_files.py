"""JPEG compression: Pillow's own result as the value, the same steps in torch for the gradient."""

from __future__ import annotations

import io
import math
from functools import cache
from typing import get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.core.environment import import_optional
from warpkit.core.lasting import lasting
from warpkit.core.numbers import check_count
from warpkit.engine.sampling.reference import with_gradient_of
from warpkit.types import Subsampling

SUBSAMPLING = {
    "4:4:4": (1, 1),
    "4:2:2": (1, 2),
    "4:2:0": (2, 2),
}
"""Rows and columns of luminance per row and column of colour."""
BLOCK = 8

# Tables K.1 and K.2 of ITU-T T.81, row by row; libjpeg scales them by the quality
LUMINANCE = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
CHROMINANCE = (
    *(17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99),
    *(24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99),
    *([99] * 32),
)


def check_quality(name: str, quality: object, subsampling: object) -> tuple[int, Subsampling]:
    """The validated arguments; ModuleNotFoundError without Pillow."""
    whole = check_count(name, "quality", quality, 1, 100)
    names: tuple[Subsampling, ...] = get_args(Subsampling)
    chosen = checks.check_name(name, "subsampling", subsampling, names)
    import_optional("PIL.Image", name, "a JPEG file")
    return whole, chosen


def check_colours(images: Tensor) -> None:
    """Checks that images are grey (N, 1, H, W) or RGB (N, 3, H, W)."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        wanted = "of shape (N, 3, H, W) or (N, 1, H, W), RGB or grey"
        checks.fail("jpeg", "images", wanted, checks.shape_of(images))


def encode_and_decode(images: Tensor, quality: int, subsampling: str) -> Tensor:
    """uint8 images (N, C, H, W), encoded and decoded by Pillow."""
    from PIL import Image

    exports.refuse(
        "attacks.jpeg",
        "because it encodes a JPEG file",
        "leave it out of the pipeline that is exported",
    )
    check_colours(images)
    checks.check_held("jpeg", "images", images)
    if len(images) == 0:
        return images.clone()
    made = []
    for array in images.permute(0, 2, 3, 1).cpu().numpy():
        file = io.BytesIO()
        picture = Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)
        picture.save(file, "JPEG", quality=quality, subsampling=subsampling)
        with Image.open(file) as again:
            made.append(np.array(again).reshape(array.shape))
    return torch.from_numpy(np.stack(made)).permute(0, 3, 1, 2).contiguous().to(images.device)


def stand_in(images: Tensor, quality: int, subsampling: str) -> Tensor:
    """JPEG compression of floats (N, C, H, W) in [0, 1], within a level or two of Pillow's.

    The forward value rounds the coefficients as the file does; see `rounded` for the gradient.
    """
    check_colours(images)
    height, width = images.shape[-2:]
    rows, columns = SUBSAMPLING[subsampling] if images.shape[1] == 3 else (1, 1)
    bottom, right = (-n % (BLOCK * by) for n, by in ((height, rows), (width, columns)))
    padded = F.pad(images * 255, (0, right, 0, bottom), mode="replicate")
    tables = (scaled(table, quality) for table in (LUMINANCE, CHROMINANCE))
    luminance, chrominance = (table.to(padded) for table in tables)
    if images.shape[1] == 1:
        kept = through_blocks(padded - 128, luminance) + 128
    else:
        planes = torch.einsum("dc,nchw->ndhw", colours().to(padded), padded)
        grey = through_blocks(planes[:, :1] - 128, luminance) + 128
        small = F.avg_pool2d(planes[:, 1:], (rows, columns))
        size = planes.shape[-2:]
        tint = F.interpolate(through_blocks(small, chrominance), size, mode="bilinear")
        back = torch.linalg.inv(colours()).to(padded)
        kept = torch.einsum("dc,nchw->ndhw", back, torch.cat((grey, tint), 1))
    return kept[..., :height, :width] / 255


def through_blocks(planes: Tensor, table: Tensor) -> Tensor:
    """Planes (N, C, H, W), multiples of 8 a side, after their coefficients are rounded.

    table (8, 8): the steps of the coefficients.
    """
    cosines = transform().to(planes)
    blocks = planes.unflatten(-1, (-1, BLOCK)).unflatten(-3, (-1, BLOCK))  # n c Y y X x
    coefficients = torch.einsum("uy,vx,ncYyXx->ncYuXv", cosines, cosines, blocks)
    kept = rounded(coefficients / table[:, None, :]) * table[:, None, :]
    blocks = torch.einsum("uy,vx,ncYuXv->ncYyXx", cosines, cosines, kept)
    return blocks.flatten(-2).flatten(-3, -2)


def rounded(x: Tensor) -> Tensor:
    """x rounded, with gradient 1, even for values that become 0.

    Otherwise details that an image lacks could never appear: a flat image would stay flat.
    """
    return with_gradient_of(x.detach().round(), x)


@cache
@lasting
def transform() -> Tensor:
    """The orthonormal cosine transform (8, 8): row u is the wave of frequency u, in float64."""
    x = torch.arange(BLOCK, dtype=torch.float64, device="cpu")
    u = x[:, None]
    waves = torch.cos((2 * x + 1) * u * math.pi / (2 * BLOCK)) / 2
    return torch.where(u == 0, waves / math.sqrt(2), waves)


@cache
@lasting
def colours() -> Tensor:
    """RGB -> luminance and two differences of colour (3, 3), ITU-R BT.601 at full range."""
    red, blue = 0.299, 0.114
    grey = (red, 1 - red - blue, blue)
    first = [(g - (i == 2)) / (2 * (blue - 1)) for i, g in enumerate(grey)]
    second = [(g - (i == 0)) / (2 * (red - 1)) for i, g in enumerate(grey)]
    return torch.tensor([grey, first, second], dtype=torch.float64, device="cpu")


def scaled(table: tuple[int, ...], quality: int) -> Tensor:
    """A table for a quality from 1 to 100, as libjpeg scales it: (8, 8)."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = [min(max((step * percent + 50) // 100, 1), 255) for step in table]
    return torch.tensor(steps, dtype=torch.float64, device="cpu").reshape(BLOCK, BLOCK)
