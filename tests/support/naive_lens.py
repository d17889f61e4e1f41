"""Lenses in float64 numpy, written from OpenCV's documentation, one direction at a time."""

from __future__ import annotations

import numpy as np


def shown(direction, k):
    """The image of a direction under the Brown model, with up to 14 coefficients."""
    k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4, tx, ty = [*k, *[0.0] * (14 - len(k))]
    x, y = direction
    r = np.hypot(x, y)
    f = (1 + k1 * r**2 + k2 * r**4 + k3 * r**6) / (1 + k4 * r**2 + k5 * r**4 + k6 * r**6)
    u = x * f + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2) + s1 * r**2 + s2 * r**4
    v = y * f + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y + s3 * r**2 + s4 * r**4
    about_x = np.array([[1, 0, 0], [0, np.cos(tx), np.sin(tx)], [0, -np.sin(tx), np.cos(tx)]])
    about_y = np.array([[np.cos(ty), 0, -np.sin(ty)], [0, 1, 0], [np.sin(ty), 0, np.cos(ty)]])
    turn = about_y @ about_x
    flat = np.array([[turn[2, 2], 0, -turn[0, 2]], [0, turn[2, 2], -turn[1, 2]], [0, 0, 1]])
    a, b, w = flat @ turn @ [u, v, 1]
    return np.array([a / w, b / w])


def shown_by_fisheye(direction, k):
    """The image of a direction under Kannala and Brandt's model."""
    r = np.hypot(*direction)
    t = np.arctan(r)
    d = t * (1 + k[0] * t**2 + k[1] * t**4 + k[2] * t**6 + k[3] * t**8)
    return np.array(direction) * (d / r if r > 0 else 1.0)


def fold(k):
    """The radius at which the radial part first decreases, by its slope on a fine grid."""
    k1, k2, _, _, k3, k4, k5, k6 = [*k[:8], *[0.0] * (8 - len(k[:8]))]
    r = np.linspace(0, 30, 3_000_001)
    bottom = 1 + k4 * r**2 + k5 * r**4 + k6 * r**6
    d = r * (1 + k1 * r**2 + k2 * r**4 + k3 * r**6) / bottom
    bad = np.flatnonzero((np.diff(d) <= 0) | (bottom[1:] <= 0))
    return r[bad[0]] if len(bad) else np.inf
