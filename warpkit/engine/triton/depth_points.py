"""Kernels of a view's points in another camera, and their gradients: `definitions/depth.py`.

A program takes some pixels of an item. Rays, depths and points stay in registers; for a gradient
they are computed again.
"""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

import triton
import triton.language as tl

from warpkit.engine.definitions import depth as definition
from warpkit.engine.triton.depth_lenses import (
    FISHEYE,
    OWN,
    POSE,
    SOUND,
    TILT,
    K,
    bent,
    fisheye_at,
    ideal_of,
    near,
    tilted,
)
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import INFINITY, ROUND

WHOLE = tl.constexpr(definition.WHOLE)
RAY, INVERSE = (tl.constexpr(definition.KINDS.index(kind)) for kind in ("ray", "inverse"))


@triton.jit
def ray_at(rays, row, x, y, pixel, live, area, KIND: tl.constexpr, PINHOLE: tl.constexpr):
    """The rays of pixels, their a and b on a pinhole, what makes them unit, and which there are."""
    if PINHOLE:
        own = row + OWN
        a = (x.to(tl.float64) - tl.load(own + 2)) / tl.load(own)
        b = (y.to(tl.float64) - tl.load(own + 3)) / tl.load(own + 1)
        good = near(a) & near(b)
        a, b = tl.where(good, a, 0.0), tl.where(good, b, 0.0)
        per = a * 0 + 1
        if KIND == RAY:
            per = 1 / tl.sqrt(a * a + b * b + 1)
        return a * per, b * per, per, a, b, per, good
    p = tl.load(rays + pixel, mask=live, other=0.0)
    q = tl.load(rays + area + pixel, mask=live, other=0.0)
    r = tl.load(rays + 2 * area + pixel, mask=live, other=1.0)
    good = (p - p == 0) & (q - q == 0) & (r - r == 0)
    p, q, r = tl.where(good, p, 0.0), tl.where(good, q, 0.0), tl.where(good, r, 1.0)
    return p, q, r, p, q, p * 0 + 1, good


@triton.jit
def share_of(depth, KIND: tl.constexpr):
    """The factors of ray and translation; the depth, 1 where it is missing; which there are.

    Also where the depth is below 1 (INVERSE: above 1), and where it is infinite.
    """
    if KIND == INVERSE:
        good = (depth >= 0) & (depth < INFINITY)
        depth = tl.where(good, depth, 1.0)
        close = depth > 1
        over = 1 / tl.where(close, depth, 1.0)
        return over, tl.where(close, 1.0, depth), depth, good, close, close & (depth < 0)
    good = depth > 0
    depth = tl.where(good, depth, 1.0)
    close = depth < 1
    over = 1 / tl.where(close, 1.0, depth)
    return tl.where(close, depth, 1.0), over, depth, good, close, depth == INFINITY


@triton.jit
def turned_by(row, x, y, z):
    """A pose's turn of rays."""
    p = row + POSE
    return (
        tl.load(p) * x + tl.load(p + 1) * y + tl.load(p + 2) * z,
        tl.load(p + 4) * x + tl.load(p + 5) * y + tl.load(p + 6) * z,
        tl.load(p + 8) * x + tl.load(p + 9) * y + tl.load(p + 10) * z,
    )


@triton.jit
def moved_by(row, x, y, z, nearer, far, good):
    """Turned rays as points in the other camera, (0, 0, 1) where there is none; which there are."""
    p = row + POSE
    x = x * nearer + tl.load(p + 3) * far
    y = y * nearer + tl.load(p + 7) * far
    z = z * nearer + tl.load(p + 11) * far
    sound = tl.load(row + SOUND) + tl.zeros_like(x)  # a mask of one number confuses interpreters
    good = good & near(x) & near(y) & near(z) & (sound != 0)
    return tl.where(good, x, 0.0), tl.where(good, y, 0.0), tl.where(good, z, 1.0), good


@triton.jit
def point_of(
    depth, rays, row, pixel, live, width, area,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """The places (u, v) of depths in the other camera, NaN where it shows none, and where it does.

    Also the points (x, y, z), and of `share_of`: the translation's factor, the depths, and which
    are close and endless.
    """
    nearer, far, depth, good, close, endless = share_of(depth, KIND)
    x, y, z, _, _, _, found = ray_at(
        rays, row, pixel % width, pixel // width, pixel, live, area, KIND, PINHOLE
    )
    x, y, z = turned_by(row, x, y, z)
    x, y, z, good = moved_by(row, x, y, z, nearer, far, good & found)
    if COUNT == FISHEYE:
        factor, _, _, _, _, good = fisheye_at(row, x, y, z, good)
        u, v = x * factor, y * factor
    else:
        u, v, _, good = ideal_of(row, x, y, z, good, COUNT)
        if COUNT > 0:
            u, v, _, _, _, _, _, _ = bent(row + K, u, v, COUNT)
        if COUNT >= 14:
            u, v, _, _ = tilted(row + TILT, u, v)
    u = tl.where(good, tl.load(row) * u + tl.load(row + 2), float("nan"))
    v = tl.where(good, tl.load(row + 1) * v + tl.load(row + 3), float("nan"))
    return u, v, good, x, y, z, far, depth, close, endless


@triton.jit
def reach_of(x, y, z, good, KIND: tl.constexpr):
    """Points' distances from the other camera, as `KIND` counts them, and which have one."""
    reach = z
    if KIND == RAY:
        reach = x * x + y * y + z * z
    ahead = good & (reach > 0)
    reach = tl.where(ahead, reach, 1.0)
    if KIND == RAY:
        reach = tl.sqrt(reach)
    return reach, ahead


@triton.jit
def inside_of(v, length, FIRST: tl.constexpr, LAST: tl.constexpr, NEAREST: tl.constexpr):
    """Whether all taps with weight lie along an axis of `length` pixels; false for NaN."""
    whole = (v + ROUND) - ROUND  # far out it is wrong, and outside
    v = tl.where(tl.abs(v - whole) <= WHOLE, whole, v)
    if NEAREST:
        return (whole >= 0) & (whole < length)
    low = tl.floor(v)
    some = (low + FIRST >= 0) & (low + LAST < length)
    return ((v == low) & (v >= 0) & (v < length)) | ((v != low) & some)


@kernel
def points_kernel(
    depths, rays, rows, points, owns, insides, width, area, tiles,
    depth_div, depth_mod, ray_div, ray_mod, image_height, image_width,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr, NUMBERS: tl.constexpr,
    HAS_OWN: tl.constexpr, HAS_INSIDE: tl.constexpr,
    FIRST: tl.constexpr, LAST: tl.constexpr, NEAREST: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """Points (items, area, 2) of `depth.points`; own depths and a mask (items, area) if wanted."""
    program = tl.program_id(0)
    tile, item = program % tiles, (program // tiles).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    live, row = pixel < area, rows + item * NUMBERS
    depths += (item // depth_div % depth_mod) * area
    rays += (item // ray_div % ray_mod) * (3 * area)
    depth = tl.load(depths + pixel, mask=live, other=float("nan")).to(tl.float64)
    u, v, good, x, y, z, far, depth, close, endless = point_of(
        depth, rays, row, pixel, live, width, area, KIND, PINHOLE, COUNT
    )
    place = item * area + pixel
    tl.store(points + 2 * place, u, mask=live)
    tl.store(points + 2 * place + 1, v, mask=live)
    if HAS_OWN:
        reach, ahead = reach_of(x, y, z, good, KIND)
        if KIND == INVERSE:
            own = far / reach
        else:
            own = reach * tl.where(close | endless, 1.0, depth)
            own = tl.where(endless, INFINITY, own)
        tl.store(owns + place, tl.where(ahead, own, float("nan")), mask=live)
    if HAS_INSIDE:
        both = inside_of(u, image_width, FIRST, LAST, NEAREST)
        both = both & inside_of(v, image_height, FIRST, LAST, NEAREST)
        tl.store(insides + place, both, mask=live)


@triton.jit
def add(sums, number, value, good):
    """Writes a program's sum of values."""
    tl.store(sums + number, tl.sum(tl.where(good, value, 0.0), 0))


@triton.jit
def add_coefficients(sums, x, y, gu, gv, factor, bottom, good, COUNT: tl.constexpr):
    """The sums of a brown lens's coefficients, by the gradient of its distorted directions."""
    xx, yy, xy = x * x, y * y, 2 * x * y
    q, top = xx + yy, (gu * x + gv * y) / bottom
    add(sums, K, top * q, good)
    add(sums, K + 1, top * q * q, good)
    add(sums, K + 2, gu * xy + gv * (q + 2 * yy), good)
    add(sums, K + 3, gu * (q + 2 * xx) + gv * xy, good)
    if COUNT >= 5:
        add(sums, K + 4, top * q * q * q, good)
    if COUNT >= 8:
        low = -top * factor
        add(sums, K + 5, low * q, good)
        add(sums, K + 6, low * q * q, good)
        add(sums, K + 7, low * q * q * q, good)
    if COUNT >= 12:
        add(sums, K + 8, gu * q, good)
        add(sums, K + 9, gu * q * q, good)
        add(sums, K + 10, gv * q, good)
        add(sums, K + 11, gv * q * q, good)


@triton.jit
def through_tilt(sums, m, u, v, gu, gv, good):
    """The gradient before the tilt of a sensor, whose sums it writes."""
    a, b, per, whole = tilted(m, u, v)  # a and b are quotients
    ra, rb, rw = gu * whole, gv * whole, -(gu * a + gv * b) * per
    for i in tl.static_range(3):
        part = rw
        if i == 0:
            part = ra
        if i == 1:
            part = rb
        add(sums, TILT + 3 * i, part * u, good)
        add(sums, TILT + 3 * i + 1, part * v, good)
        add(sums, TILT + 3 * i + 2, part, good)
    return (
        ra * tl.load(m) + rb * tl.load(m + 3) + rw * tl.load(m + 6),
        ra * tl.load(m + 1) + rb * tl.load(m + 4) + rw * tl.load(m + 7),
    )


@kernel
def points_backward_kernel(
    depths, rays, rows, grad_points, grad_owns, to_depths, to_rays, sums, width, area, tiles,
    depth_div, depth_mod, ray_div, ray_mod,
    KIND: tl.constexpr, PINHOLE: tl.constexpr, COUNT: tl.constexpr, NUMBERS: tl.constexpr,
    HAS_OWN: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """Gradients of depths and rays, and of an item's numbers the sums of a program's pixels."""
    program = tl.program_id(0)
    tile, item = program % tiles, (program // tiles).to(tl.int64)
    pixel = tile * PIXELS + tl.arange(0, PIXELS)
    live, row = pixel < area, rows + item * NUMBERS
    sums += program.to(tl.int64) * NUMBERS
    depths += (item // depth_div % depth_mod) * area
    rays += (item // ray_div % ray_mod) * (3 * area)
    depth = tl.load(depths + pixel, mask=live, other=float("nan")).to(tl.float64)
    nearer, far, depth, good, close, endless = share_of(depth, KIND)
    rx, ry, rz, a, b, unit, found = ray_at(
        rays, row, pixel % width, pixel // width, pixel, live, area, KIND, PINHOLE
    )
    tx, ty, tz = turned_by(row, rx, ry, rz)
    x, y, z, good = moved_by(row, tx, ty, tz, nearer, far, good & found)
    place = item * area + pixel
    gu = tl.load(grad_points + 2 * place, mask=live, other=0.0)
    gv = tl.load(grad_points + 2 * place + 1, mask=live, other=0.0)
    fx, fy = tl.load(row), tl.load(row + 1)
    if COUNT == FISHEYE:
        factor, slope, by_z, ratio, square, good = fisheye_at(row, x, y, z, good)
        gu, gv = tl.where(good, gu, 0.0), tl.where(good, gv, 0.0)
        add(sums, 0, gu * x * factor, good)
        add(sums, 1, gv * y * factor, good)
        add(sums, 2, gu, good)
        add(sums, 3, gv, good)
        gu, gv = gu * fx, gv * fy
        along = gu * x + gv * y
        part = along * ratio
        for i in tl.static_range(4):
            part = part * square
            add(sums, K + i, part, good)
        to_x, to_y = gu * factor + along * slope * x, gv * factor + along * slope * y
        to_z = along * by_z
    else:
        u, v, per, good = ideal_of(row, x, y, z, good, COUNT)
        gu, gv = tl.where(good, gu, 0.0), tl.where(good, gv, 0.0)
        shown_u, shown_v = u, v
        if COUNT > 0:
            bent_u, bent_v, ux, uy, vx, vy, factor, bottom = bent(row + K, u, v, COUNT)
            shown_u, shown_v = bent_u, bent_v
            if COUNT >= 14:
                shown_u, shown_v, _, _ = tilted(row + TILT, bent_u, bent_v)
        add(sums, 0, gu * shown_u, good)
        add(sums, 1, gv * shown_v, good)
        add(sums, 2, gu, good)
        add(sums, 3, gv, good)
        gu, gv = gu * fx, gv * fy
        if COUNT > 0:
            if COUNT >= 14:
                gu, gv = through_tilt(sums, row + TILT, bent_u, bent_v, gu, gv, good)
            add_coefficients(sums, u, v, gu, gv, factor, bottom, good, COUNT)
            gu, gv = gu * ux + gv * vx, gu * uy + gv * vy
        to_x, to_y = gu * per, gv * per
        to_z = -(to_x * u + to_y * v)
    to_near, to_far, to_back = z * 0, z * 0, z * 0
    if HAS_OWN:
        reach, ahead = reach_of(x, y, z, good, KIND)
        ahead = tl.where(endless, endless != endless, ahead)  # Triton 3.3 interprets no `~`
        h = tl.load(grad_owns + place, mask=live, other=0.0)
        h = tl.where(ahead, h, 0.0)
        if KIND == INVERSE:
            to_far = h / reach
            h = -to_far * far / reach
        else:
            to_back = h * reach
            h = h * tl.where(close | endless, 1.0, depth)
        if KIND == RAY:
            h = h / reach
            to_x, to_y, to_z = to_x + h * x, to_y + h * y, to_z + h * z
        else:
            to_z = to_z + h
    to_x, to_y = tl.where(good, to_x, 0.0), tl.where(good, to_y, 0.0)
    to_z = tl.where(good, to_z, 0.0)
    for i in tl.static_range(3):
        part = to_z
        if i == 0:
            part = to_x
        if i == 1:
            part = to_y
        add(sums, POSE + 4 * i, part * nearer * rx, good)
        add(sums, POSE + 4 * i + 1, part * nearer * ry, good)
        add(sums, POSE + 4 * i + 2, part * nearer * rz, good)
        add(sums, POSE + 4 * i + 3, part * far, good)
    p = row + POSE
    to_near = to_x * tx + to_y * ty + to_z * tz
    to_far += to_x * tl.load(p + 3) + to_y * tl.load(p + 7) + to_z * tl.load(p + 11)
    if KIND == INVERSE:
        to_depth = tl.where(close, -to_near * nearer * nearer, to_far)
    else:
        to_depth = tl.where(endless, 0.0, to_back) - to_far * far * far
        to_depth = tl.where(close, to_near, to_depth)
    tl.store(to_depths + place, tl.where(good, to_depth, 0.0), mask=live)
    bx = (to_x * tl.load(p) + to_y * tl.load(p + 4) + to_z * tl.load(p + 8)) * nearer
    by = (to_x * tl.load(p + 1) + to_y * tl.load(p + 5) + to_z * tl.load(p + 9)) * nearer
    bz = (to_x * tl.load(p + 2) + to_y * tl.load(p + 6) + to_z * tl.load(p + 10)) * nearer
    if PINHOLE:
        if KIND == RAY:
            along = bx * rx + by * ry + bz * rz
            bx, by = unit * (bx - along * rx), unit * (by - along * ry)
        own_fx, own_fy = tl.load(row + OWN), tl.load(row + OWN + 1)
        add(sums, OWN, -bx * a / own_fx, good)
        add(sums, OWN + 1, -by * b / own_fy, good)
        add(sums, OWN + 2, -bx / own_fx, good)
        add(sums, OWN + 3, -by / own_fy, good)
    else:
        to = to_rays + item * (3 * area) + pixel
        tl.store(to, bx, mask=live)
        tl.store(to + area, by, mask=live)
        tl.store(to + 2 * area, bz, mask=live)
