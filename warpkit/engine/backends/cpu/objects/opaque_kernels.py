"""Opaque objects over images, there and back: the kernels of `opaque`.

Images are flat, (B, C, H, W); the affine maps (N, 2, 3) and the border values (C, 1 or N) too.
Boxes (N, 4) are left, top, right and bottom, exclusive, within their image. The objects of image b
are order[starts[b] : starts[b + 1]], the last one on top.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, inline, kernel
from warpkit.engine.backends.cpu.runtime.rules import clear, inside, map_point
from warpkit.engine.backends.cpu.runtime.simd import max_signed, min_signed
from warpkit.engine.sampling.layout import AFFINE
from warpkit.engine.sampling.rules import LIMIT

BAND = 32
"""Rows of an image that are found and painted at once."""


class OpaquePlan(NamedTuple):
    """The sizes of one call."""

    channels: int
    height: int
    width: int
    values: int
    """Border values a channel: 1, or one for each object."""
    bands: int
    """Bands that the gradient to one image is cut into."""
    needs_grad_images: bool
    """Which gradients are wanted."""
    needs_grad_to_source: bool
    needs_grad_fill: bool


@inline
def show(top_object, free, boxes, order, first, last, base, rows, width):
    """Which object each pixel of `rows` shows, -1 for none; `base` is its image's first pixel.

    From the topmost down, each object takes what is free. free[x] leads from a taken place towards
    the next free one, so that the time grows with rows of boxes and with pixels, not with areas.
    """
    for p in range((rows[1] - rows[0]) * width):
        top_object[np.uint64(base + rows[0] * width + p)] = -1
        free[np.uint64(p)] = p % width
    for n in range(last - 1, first - 1, -1):
        o = order[n]
        left, top, right, bottom = boxes[o, 0], boxes[o, 1], boxes[o, 2], boxes[o, 3]
        for y in range(max_signed(top, rows[0]), min_signed(bottom, rows[1])):
            line, place = (y - rows[0]) * width, base + y * width
            x = left
            while x < right:
                ahead = np.int64(free[np.uint64(line + x)])
                if ahead == x:
                    top_object[np.uint64(place + x)] = o
                    free[np.uint64(line + x)] = right
                    ahead += 1
                x = ahead
            free[np.uint64(line + left)] = x


@inline
def end_of_run(top_object, p, stop):
    """The first place after p, up to `stop`, that shows another object."""
    o = top_object[np.uint64(p)]
    p += 1
    while p < stop and top_object[np.uint64(p)] == o:
        p += 1
    return p


@inline
def first_tap(kind, to_source, o, x, y):
    """The source point of pixel (x, y) of an object: first tap and fractions; off it for none."""
    u, v = map_point(kind, to_source, 3 * kind * o, x, y)
    near = (abs(u) < LIMIT) & (abs(v) < LIMIT)  # false for NaN
    u, v = u if near else -2.0, v if near else -2.0
    i, j = np.int64(u), np.int64(v)
    i, j = i - np.int64(u < i), j - np.int64(v < j)
    return i, j, u - i, v - j


@inline
def paint_run(images, to_source, fill, result, plan, o, box, image_start, y, columns):
    """Paint columns[0] .. columns[1] of row y, which show object o, of the image at image_start."""
    left, top, right, bottom = box
    box_width, box_height, width = right - left, bottom - top, plan.width
    area, one = np.uint64(plan.height * width), images.dtype.type(1)
    for x in range(columns[0], columns[1]):
        i, j, fx, fy = first_tap(AFFINE, to_source, o, x - left, y - top)
        tx, ty = images.dtype.type(fx), images.dtype.type(fy)
        q, p = (
            np.uint64(image_start + (top + j) * width + left + i),
            np.uint64(image_start + y * width + x),
        )
        if inside(i, box_width - 1) & inside(j, box_height - 1):
            r = q + np.uint64(width)
            for _c in range(plan.channels):
                above = (one - tx) * images[q] + tx * images[q + np.uint64(1)]
                below = (one - tx) * images[r] + tx * images[r + np.uint64(1)]
                result[p] = (one - ty) * above + ty * below
                p, q, r = p + area, q + area, r + area
            continue
        x0, x1, y0, y1 = (
            inside(i, box_width),
            inside(i + 1, box_width),
            inside(j, box_height),
            inside(j + 1, box_height),
        )
        for c in range(plan.channels):
            v = fill[c * plan.values + (o if plan.values > 1 else 0)]
            if (x0 | x1) & (y0 | y1):
                r = q + np.uint64(width)
                v00 = images[q] if x0 & y0 else v
                v01 = images[q + np.uint64(1)] if x1 & y0 else v
                v10 = images[r] if x0 & y1 else v
                v11 = images[r + np.uint64(1)] if x1 & y1 else v
                above, below = (one - tx) * v00 + tx * v01, (one - tx) * v10 + tx * v11
                v = (one - ty) * above + ty * below
            result[p] = v
            p, q = p + area, q + area


@cache
def forward_kernel() -> Any:
    """The kernel that paints."""
    digest = DIGEST

    def forward(
        images, to_source, fill, result, top_object, boxes, order, starts, plan, begin, end
    ):  # fmt: skip
        """Bands begin .. end of BAND rows of all images, counted through. Fills `top_object`."""
        _ = digest
        width, area = plan.width, plan.height * plan.width
        bands = (plan.height + BAND - 1) // BAND
        free = np.empty(BAND * width, np.int32)
        for unit in range(begin, end):
            b, y0 = unit // bands, unit % bands * BAND
            rows = (y0, min_signed(y0 + BAND, plan.height))
            show(top_object, free, boxes, order, starts[b], starts[b + 1], b * area, rows, width)
            image_start = b * plan.channels * area
            for y in range(rows[0], rows[1]):
                line, x = b * area + y * width, 0
                while x < width:
                    stop = end_of_run(top_object, line + x, line + width) - line
                    o = np.int64(top_object[np.uint64(line + x)])
                    if o < 0:
                        for c in range(plan.channels):
                            at = image_start + c * area + y * width
                            for k in range(x, stop):
                                result[np.uint64(at + k)] = images[np.uint64(at + k)]
                    else:
                        box = (boxes[o, 0], boxes[o, 1], boxes[o, 2], boxes[o, 3])
                        paint_run(images, to_source, fill, result, plan, o, box, image_start, y,
                                  (x, stop))  # fmt: skip
                    x = stop

    return kernel(forward, makes_arrays=True)


@inline
def add_run_gradients(arrays, grads, plan, o, box, image_start, y, columns, band):
    """Backward pass of `paint_run`: the pixels columns[0] .. columns[1] of row y, of object o.

    Adds w g, the weight times the incoming gradient, to every tap of the object that lies in the
    image's rows `band`. If the object begins in them, also adds to its map's gradient (the sums
    over the run of g times the value's derivative by the point, alone and times the pixel's x and
    y) and to its border value's (what the missing taps weigh). So an object on the line between two
    bands is gone through twice, and every sum has one owner and one order: row by row, pixel by
    pixel.

    arrays, grads: as of `backward_kernel`. The same as the vjp of `over.paint_topmost`.
    """
    (gradient, images, to_source, fill), (grad_images, grad_to_source, grad_fill) = arrays, grads
    left, top, right, bottom = box
    box_width, box_height, width = right - left, bottom - top, plan.width
    area, one = np.uint64(plan.height * width), images.dtype.type(1)
    owner = inside(top - band[0], band[1] - band[0])
    first, rows = band[0] - top, band[1] - band[0]  # the band, counted from the box's top
    moment_x = sum_x = moment_y = sum_y = 0.0
    for x in range(columns[0], columns[1]):
        i, j, fx, fy = first_tap(AFFINE, to_source, o, x - left, y - top)
        tx, ty = images.dtype.type(fx), images.dtype.type(fy)
        sx, sy = one - tx, one - ty
        q, p = (
            np.uint64(image_start + (top + j) * width + left + i),
            np.uint64(image_start + y * width + x),
        )
        r = q + np.uint64(width)
        slope_x = slope_y = images.dtype.type(0)
        in0, in1 = inside(j - first, rows), inside(j + 1 - first, rows)
        if inside(i, box_width - 1) & inside(j, box_height - 1) & in0 & in1:
            for _c in range(plan.channels):
                g = gradient[p]
                if plan.needs_grad_images:
                    grad_images[q] += g * (sy * sx)
                    grad_images[q + np.uint64(1)] += g * (sy * tx)
                    grad_images[r] += g * (ty * sx)
                    grad_images[r + np.uint64(1)] += g * (ty * tx)
                if plan.needs_grad_to_source:
                    v00, v01 = images[q], images[q + np.uint64(1)]
                    v10, v11 = images[r], images[r + np.uint64(1)]
                    slope_x += g * (sy * (v01 - v00) + ty * (v11 - v10))
                    slope_y += g * (sx * (v10 - v00) + tx * (v11 - v01))
                p, q, r = p + area, q + area, r + area
        else:
            x0, x1 = inside(i, box_width), inside(i + 1, box_width)
            y0, y1 = inside(j, box_height), inside(j + 1, box_height)
            any_ = (x0 | x1) & (y0 | y1)
            for c in range(plan.channels):
                g, lost = gradient[p], images.dtype.type(0)
                v00 = v01 = v10 = v11 = fill[c * plan.values + (o if plan.values > 1 else 0)]
                for t in range(4):
                    seen = (x1 if t & 1 else x0) & (y1 if t & 2 else y0)
                    at = (r if t & 2 else q) + np.uint64(t & 1)
                    share = g * ((ty if t & 2 else sy) * (tx if t & 1 else sx))
                    if not seen:
                        lost += share
                        continue
                    if plan.needs_grad_images and (in1 if t & 2 else in0):
                        grad_images[at] += share
                    if plan.needs_grad_to_source:
                        v = images[at]
                        v00, v01 = (v if t == 0 else v00), (v if t == 1 else v01)
                        v10, v11 = (v if t == 2 else v10), (v if t == 3 else v11)
                if owner and plan.needs_grad_fill:
                    grad_fill[c, o] += lost if any_ else g
                if any_:
                    slope_x += g * (sy * (v01 - v00) + ty * (v11 - v10))
                    slope_y += g * (sx * (v10 - v00) + tx * (v11 - v01))
                p, q, r = p + area, q + area, r + area
        moment_x, sum_x = moment_x + slope_x * (x - left), sum_x + slope_x
        moment_y, sum_y = moment_y + slope_y * (x - left), sum_y + slope_y
    if owner and plan.needs_grad_to_source:
        grad_to_source[o, 0] += moment_x
        grad_to_source[o, 1] += sum_x * (y - top)
        grad_to_source[o, 2] += sum_x
        grad_to_source[o, 3] += moment_y
        grad_to_source[o, 4] += sum_y * (y - top)
        grad_to_source[o, 5] += sum_y


@inline
def rows_touched(boxes, order, first, last, band):
    """The rows of the objects that have rows in `band`, and those of the band."""
    low, high = band
    for n in range(first, last):
        top, bottom = boxes[order[n], 1], boxes[order[n], 3]
        if top < band[1] and bottom > band[0]:
            low, high = min_signed(low, top), max_signed(high, bottom)
    return low, high


@cache
def backward_kernel() -> Any:
    """The kernel of the gradients; those to maps and border values are added to zeros."""
    digest = DIGEST

    def backward(arrays, grads, objects, plan, begin, end):
        """Units begin .. end: unit u is band u % bands of the gradient to image u // bands.

        arrays: incoming gradient, images, maps, fill. grads: to images, maps and fill, of which the
        last two are added to. objects: which one each pixel shows, boxes, order, starts.
        """
        _ = digest
        gradient, grad_images = arrays[0], grads[0]
        top_object, boxes, order, starts = objects
        width, area = plan.width, plan.height * plan.width
        for unit in range(begin, end):
            b, part = unit // plan.bands, unit % plan.bands
            band = (plan.height * part // plan.bands, plan.height * (part + 1) // plan.bands)
            low, high = rows_touched(boxes, order, starts[b], starts[b + 1], band)
            image_start = b * plan.channels * area
            if plan.needs_grad_images:
                clear(grad_images, plan.channels, area, image_start, width, band)
            for y in range(low, high):
                line, x, mine = b * area + y * width, 0, inside(y - band[0], band[1] - band[0])
                while x < width:
                    stop = end_of_run(top_object, line + x, line + width) - line
                    o = np.int64(top_object[np.uint64(line + x)])
                    if o >= 0:
                        box = (boxes[o, 0], boxes[o, 1], boxes[o, 2], boxes[o, 3])
                        if box[1] < band[1] and box[3] > band[0]:
                            add_run_gradients(arrays, grads, plan, o, box, image_start, y,
                                              (x, stop), band)  # fmt: skip
                    elif mine and plan.needs_grad_images:
                        for c in range(plan.channels):
                            at = image_start + c * area + y * width
                            for k in range(x, stop):
                                grad_images[np.uint64(at + k)] += gradient[np.uint64(at + k)]
                    x = stop

    return kernel(backward)
