"""JPEG files: the pixels that libjpeg-turbo reads from the file that it has written.

Huffman coding loses nothing, so the file of an image is arithmetic on integers: colours, means of
colours, cosines, quotients, and the way back. `through_file` does it in int32 for uint8, and in
float64 for floats, where each value is the same integer and each rounding has a slope.

The arithmetic is that of the accurate integer transform ("islow"), of fancy upsampling, and of the
vector code, which saturates.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from warpkit.engine.definitions.reference import with_gradient_of

SAMPLING = {"4:4:4": (1, 1), "4:2:2": (1, 2), "4:2:0": (2, 2)}
"""Rows and columns of brightness per row and column of colour."""
BLOCK = 8

# ITU-T T.81, tables K.1 and K.2, row by row: the steps of the coefficients at quality 50
BRIGHTNESS = (
    *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
)
COLOUR = (
    *(17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99),
    *(24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99),
    *([99] * 32),
)
COSINES = (
    (8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192),
    (11363, 9633, 6437, 2260, -2260, -6437, -9633, -11363),
    (10703, 4433, -4433, -10703, -10703, -4433, 4433, 10703),
    (9633, -2259, -11362, -6436, 6436, 11362, 2259, -9633),
    (8192, -8192, -8192, 8192, 8192, -8192, -8192, 8192),
    (6437, -11362, 2261, 9633, -9633, -2261, 11362, -6437),
    (4433, -10704, 10704, -4433, -4433, 10704, -10704, 4433),
    (2260, -6436, 9633, -11363, 11363, -9633, 6436, -2260),
)
"""(frequency, position): sqrt(8) * 8192 times the orthonormal cosine transform. 16 entries differ
by 1 from the rounded cosines: libjpeg adds products of rounded constants, these are their sums."""


def through_file(images: Tensor, quality: Tensor, subsampling: str) -> Tensor:
    """Images (N, 1 or 3, H, W) as a JPEG file of each shows them.

    uint8; or floats in [0, 1], which are rounded to levels, with the file's levels / 255. quality
    (N,), int32, from 1 to 100.

    The gradient is that of the same steps with straight lines for roundings: of slope 1, and where
    a coefficient is rounded of `kept_share`. A clip has slope 1 from 0 to 255, and 0 beyond.
    """
    if images.dtype == torch.uint8:
        return of_levels(images.int(), quality, subsampling).to(torch.uint8)
    levels = images.double() * 255
    levels = of_levels(straight(levels, _level), quality, subsampling)
    return (levels / 255).to(images.dtype)


def gradient(images: Tensor, quality: Tensor, subsampling: str, grad: Tensor) -> Tensor:
    """The gradient of images (N, 1 or 3, H, W), from that of their files."""
    with torch.enable_grad():
        leaf = images.detach().requires_grad_()
        pixels = through_file(leaf, quality, subsampling)
    return torch.autograd.grad(pixels, leaf, grad)[0]


def of_levels(levels: Tensor, quality: Tensor, subsampling: str) -> Tensor:
    """The same for levels (N, 1 or 3, H, W) from 0 to 255, int32 or float64; quality (N,)."""
    (height, width), (rows, columns) = levels.shape[2:], SAMPLING[subsampling]
    brightness_steps, colour_steps = steps_of(quality)
    if levels.shape[1] == 1:
        return through_blocks(levels, brightness_steps)
    brightness, colours = planes_of(levels)
    small = through_blocks(means(colours, rows, columns), colour_steps)
    small = small[..., : -(-width // columns)]
    colours = enlarged(small, rows, columns)[..., :height, :width]
    return rgb_of(through_blocks(brightness, brightness_steps), colours)


def steps_of(quality: Tensor) -> tuple[Tensor, Tensor]:
    """The steps of brightness and of colour (N, 8, 8), int32, for qualities (N,)."""
    high = torch.div(torch.full_like(quality, 5000), quality, rounding_mode="floor")
    percent = torch.where(quality < 50, high, 200 - 2 * quality)
    tables = torch.tensor((BRIGHTNESS, COLOUR), dtype=torch.int32, device=quality.device)
    scaled = torch.div(tables * percent[:, None, None] + 50, 100, rounding_mode="floor")
    scaled = scaled.clamp(1, 255)
    brightness, colour = scaled.unflatten(-1, (BLOCK, BLOCK)).unbind(1)
    return brightness, colour


# -- roundings, of floats with a slope --


def shifted(x: Tensor, bits: int) -> Tensor:
    """floor(x / 2^bits), with the slope of the quotient."""
    return straight(x / 2**bits, torch.floor) if x.is_floating_point() else x >> bits


def straight(x: Tensor, rounding: Callable[[Tensor], Tensor]) -> Tensor:
    """x rounded, with slope 1."""
    return with_gradient_of(rounding(x.detach()), x)


def _level(x: Tensor) -> Tensor:
    return x.round().clamp(0, 255)


def clipped(x: Tensor) -> Tensor:
    """x within 0 and 255, with slope 1 from 0 to 255; torch.clamp's at the ends varies."""
    return torch.where(x < 0, torch.zeros_like(x), torch.where(x > 255, torch.full_like(x, 255), x))


def kept_share(quotient: Tensor) -> Tensor:
    """The slope of a rounded coefficient: 0.1 where it becomes 0, up to 1 where it is kept.

    With slope 1, the cosines and tables would cancel, and an attack would put its perturbation
    where the file removes it. With 0, a flat image would have no gradient.
    """
    return (0.1 + 1.8 * quotient.abs()).clamp(max=1)


# -- colours --


def planes_of(rgb: Tensor) -> tuple[Tensor, Tensor]:
    """Brightness (N, 1, H, W) and colours (N, 2, H, W), 0 to 255, of RGB (N, 3, H, W)."""
    r, g, b = rgb.unbind(1)
    half, middle = 1 << 15, (128 << 16) + (1 << 15) - 1  # less 1, so that 255.5 becomes 255
    brightness = shifted(19595 * r + 38470 * g + 7471 * b + half, 16)
    blue = shifted(32768 * b - 11059 * r - 21709 * g + middle, 16)
    red = shifted(32768 * r - 27439 * g - 5329 * b + middle, 16)
    return brightness[:, None], torch.stack((blue, red), 1)


def rgb_of(brightness: Tensor, colours: Tensor) -> Tensor:
    """RGB (N, 3, H, W) of brightness (N, 1, H, W) and colours (N, 2, H, W)."""
    y, (blue, red), half = brightness[:, 0], (colours - 128).unbind(1), 1 << 15
    r = y + shifted(91881 * red + half, 16)
    g = y + shifted(half - 22554 * blue - 46802 * red, 16)
    b = y + shifted(116130 * blue + half, 16)
    return clipped(torch.stack((r, g, b), 1))


def means(x: Tensor, rows: int, columns: int) -> Tensor:
    """Means of 1 x 2 or 2 x 2 pixels of x (N, 2, H, W), halves down and up in turn.

    Columns are repeated before the mean, up to whole blocks; `through_blocks` repeats rows of
    means.
    """
    if columns == 1:
        return x
    x = extended(extended(x, -2, -x.shape[-2] % rows), -1, -x.shape[-1] % (BLOCK * columns))
    total = x[..., ::2] + x[..., 1::2]
    total = total if rows == 1 else total[..., ::2, :] + total[..., 1::2, :]
    turns = torch.arange(total.shape[-1], device=x.device) % 2 + rows - 1
    return shifted(total + turns.to(x.dtype), rows)


def enlarged(x: Tensor, rows: int, columns: int) -> Tensor:
    """Colours x (N, 2, h, w) in `rows` and `columns` times the size.

    A pixel between two has 3/4 of the near one and 1/4 of the far one; a plane of 2 columns or
    less is repeated.
    """
    if columns == 1:
        return x
    if x.shape[-1] <= 2:
        return x.repeat_interleave(2, -1).repeat_interleave(rows, -2)
    if rows == 2:
        x = torch.stack(_between(x, -2), -2).flatten(-3, -2)
    bits, first, second = (4, 8, 7) if rows == 2 else (2, 1, 2)
    left, right = _between(x, -1)
    return torch.stack((shifted(left + first, bits), shifted(right + second, bits)), -1).flatten(-2)


def _between(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """3 x + the neighbour before, and 3 x + the one after; ends are their own neighbours."""
    count = x.shape[axis]
    before = torch.cat((x.narrow(axis, 0, 1), x.narrow(axis, 0, count - 1)), axis)
    after = torch.cat((x.narrow(axis, 1, count - 1), x.narrow(axis, count - 1, 1)), axis)
    return 3 * x + before, 3 * x + after


def extended(x: Tensor, axis: int, count: int) -> Tensor:
    """x with its last row (axis -2) or column (-1) repeated `count` times.

    F.pad does not replicate integers.
    """
    last = x.narrow(axis, x.shape[axis] - 1, 1)
    return torch.cat((x, *[last] * count), axis) if count else x


# -- blocks --


def through_blocks(x: Tensor, steps: Tensor) -> Tensor:
    """Planes x (N, P, H, W), 0 to 255, after their coefficients are rounded to steps (N, 8, 8)."""
    n, count, height, width = x.shape
    x = extended(extended(x, -2, -height % BLOCK), -1, -width % BLOCK) - 128
    rows, columns = x.shape[-2] // BLOCK, x.shape[-1] // BLOCK
    blocks = x.reshape(n, count, rows, BLOCK, columns, BLOCK).transpose(3, 4)
    cosines = torch.tensor(COSINES, dtype=torch.float64, device=x.device)
    waves = _times(cosines, _times(cosines, blocks.mT, 11).mT, 15)  # rows first
    coefficients = rounded(waves, steps[:, None, None, None])
    blocks = _times(cosines.T, _times(cosines.T, coefficients, 11).mT, 18).mT  # columns first
    x = blocks.transpose(3, 4).reshape(n, count, rows * BLOCK, columns * BLOCK)
    return clipped(x + 128)[..., :height, :width]


def _times(matrix: Tensor, x: Tensor, bits: int) -> Tensor:
    """matrix @ x / 2^bits for x (..., 8, 8), halves up.

    Sums of integers in float64 are exact in any order, and torch multiplies no integers on CUDA.
    """
    return shifted(matrix @ x.double() + 2 ** (bits - 1), bits).to(x.dtype)


def rounded(x: Tensor, step: Tensor) -> Tensor:
    """8-fold coefficients x (..., 8, 8) as multiples of their steps, halves away from 0."""
    if not x.is_floating_point():
        count = torch.div(x.abs() + 4 * step, 8 * step, rounding_mode="floor")
        return x.sign() * count * step
    quotient = x / (8 * step)
    whole = quotient.sign() * (quotient.abs() + 0.5).floor()
    return with_gradient_of(whole.detach(), kept_share(quotient).detach() * quotient) * step
