"""Least squares of point pairs in float64 numpy, written from their definitions."""

from __future__ import annotations

import numpy as np


def affine(src, dst, weights):
    """The affine matrix (2, 3) by numpy's least squares."""
    rows = np.concatenate((src, np.ones((len(src), 1))), 1) * np.sqrt(weights)[:, None]
    return np.linalg.lstsq(rows, dst * np.sqrt(weights)[:, None], rcond=None)[0].T


def umeyama(src, dst, weights, *, mirrors=False):
    """The similarity (2, 3) of Umeyama (1991), equations 40 to 42, with weights.

    mirrors: without its sign, so that it may be a reflection.
    """
    w = weights / weights.sum()
    centre_src, centre_dst = w @ src, w @ dst
    a, b = src - centre_src, dst - centre_dst
    u, d, vt = np.linalg.svd((b * w[:, None]).T @ a)
    turns = 1.0 if mirrors else np.sign(np.linalg.det(u) * np.linalg.det(vt))
    sign = np.diag([1.0, turns])
    turn = u @ sign @ vt
    scale = np.trace(np.diag(d) @ sign) / (w @ (a**2).sum(1))
    return np.column_stack((scale * turn, centre_dst - scale * turn @ centre_src))


def homography(src, dst, weights):
    """The homography (3, 3) by Hartley's normalised direct linear transform, with last entry 1."""

    def moved(points):
        centre = weights @ points / weights.sum()
        distance = weights @ np.linalg.norm(points - centre, axis=1) / weights.sum()
        s = np.sqrt(2) / distance
        matrix = np.array([[s, 0, -s * centre[0]], [0, s, -s * centre[1]], [0, 0, 1]])
        return (points - centre) * s, matrix

    (a, to_a), (b, to_b) = moved(src), moved(dst)
    rows = []
    for (x, y), (u, v), w in zip(a, b, np.sqrt(weights), strict=True):
        rows.append(w * np.array([x, y, 1, 0, 0, 0, -u * x, -u * y, -u]))
        rows.append(w * np.array([0, 0, 0, x, y, 1, -v * x, -v * y, -v]))
    h = np.linalg.svd(np.array(rows), full_matrices=True)[2][-1].reshape(3, 3)
    whole = np.linalg.inv(to_b) @ h @ to_a
    return whole / whole[2, 2]
