"""The loops of `windows_cpu`. Flat images are (C, B H W); objects are numbered as in `top`."""

from __future__ import annotations

import numpy as np
from numba import njit

from warpkit.kernels.rules import LIMIT

OPTIONS = {"nogil": True, "error_model": "numpy"}


@njit(inline="always", **OPTIONS)
def locate(matrix, x, y, left, top, right, bottom):
    """The source point of pixel (x, y) of an object: its first tap, fractions, and what is there.

    The first tap is counted from the object's corner. Fractions are -1 where there is no point.
    """
    u = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
    v = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
    if not (abs(u) < LIMIT and abs(v) < LIMIT):  # NaN too
        return 0, 0, -1.0, -1.0, False, False, False, False
    i, j = np.floor(u), np.floor(v)
    column, row = int(i), int(j)
    first_x, second_x = 0 <= column < right - left, -1 <= column < right - left - 1
    first_y, second_y = 0 <= row < bottom - top, -1 <= row < bottom - top - 1
    return column, row, u - i, v - j, first_x, second_x, first_y, second_y


def _compiled(function):
    """Compiled once for all processes where the code can be kept on disk."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no directory to keep it in can be written to
        return njit(**OPTIONS)(function)


@_compiled
def forward(images, inverse, outside, result, shown, _, left, top, right, bottom):
    """Copy the images, with every object's own pixels at the places that show it."""
    channels = images.shape[0]
    batch, height, width = shown.shape
    for line in range(batch * height):
        b, y = line // height, line % height
        for x in range(width):
            p, o = line * width + x, shown[b, y, x]
            if o < 0:
                for c in range(channels):
                    result[c, p] = images[c, p]
                continue
            k = o if outside.shape[1] > 1 else 0
            column, row, tx, ty, x0, x1, y0, y1 = locate(
                inverse[o], x - left[o], y - top[o], left[o], top[o], right[o], bottom[o]
            )
            if tx < 0 or not ((x0 or x1) and (y0 or y1)):
                for c in range(channels):
                    result[c, p] = outside[c, k]
                continue
            q = (b * height + top[o] + row) * width + left[o] + column
            for c in range(channels):
                border = outside[c, k]
                v00 = images[c, q] if x0 and y0 else border
                v01 = images[c, q + 1] if x1 and y0 else border
                v10 = images[c, q + width] if x0 and y1 else border
                v11 = images[c, q + width + 1] if x1 and y1 else border
                above, below = (1 - tx) * v00 + tx * v01, (1 - tx) * v10 + tx * v11
                result[c, p] = (1 - ty) * above + ty * below


@_compiled
def backward(
    gradient, images, inverse, outside, to_images, to_inverse, to_outside,
    shown, _, left, top, right, bottom,
):  # fmt: skip
    """The gradients to images, inverse and outside, added to what is there."""
    channels = images.shape[0]
    batch, height, width = shown.shape
    for line in range(batch * height):
        b, y = line // height, line % height
        for x in range(width):
            p, o = line * width + x, shown[b, y, x]
            if o < 0:
                for c in range(channels):
                    to_images[c, p] += gradient[c, p]
                continue
            k = o if outside.shape[1] > 1 else 0
            u, v = x - left[o], y - top[o]
            column, row, tx, ty, x0, x1, y0, y1 = locate(
                inverse[o], u, v, left[o], top[o], right[o], bottom[o]
            )
            if tx < 0 or not ((x0 or x1) and (y0 or y1)):
                for c in range(channels):
                    to_outside[c, k] += gradient[c, p]
                continue
            q = (b * height + top[o] + row) * width + left[o] + column
            slope_x = slope_y = 0.0
            for c in range(channels):
                g, border = gradient[c, p], outside[c, k]
                v00 = v01 = v10 = v11 = border
                w00, w01 = g * (1 - ty) * (1 - tx), g * (1 - ty) * tx
                w10, w11 = g * ty * (1 - tx), g * ty * tx
                lost = w00 + w01 + w10 + w11
                if x0 and y0:
                    v00, lost = images[c, q], lost - w00
                    to_images[c, q] += w00
                if x1 and y0:
                    v01, lost = images[c, q + 1], lost - w01
                    to_images[c, q + 1] += w01
                if x0 and y1:
                    v10, lost = images[c, q + width], lost - w10
                    to_images[c, q + width] += w10
                if x1 and y1:
                    v11, lost = images[c, q + width + 1], lost - w11
                    to_images[c, q + width + 1] += w11
                if not (x0 and x1 and y0 and y1):
                    to_outside[c, k] += lost
                slope_x += g * ((1 - ty) * (v01 - v00) + ty * (v11 - v10))
                slope_y += g * ((1 - tx) * (v10 - v00) + tx * (v11 - v01))
            to_inverse[o, 0, 0] += slope_x * u
            to_inverse[o, 0, 1] += slope_x * v
            to_inverse[o, 0, 2] += slope_x
            to_inverse[o, 1, 0] += slope_y * u
            to_inverse[o, 1, 1] += slope_y * v
            to_inverse[o, 1, 2] += slope_y
