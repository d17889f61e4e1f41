"""A second implementation of matching: float64 numpy, one pixel, place and channel at a time."""

from __future__ import annotations

import math

import numpy as np

from tests.support.naive_warp import axis

SLACK = 1e-6
FAR = 2.0**31


def sample(picture: np.ndarray, x: float, y: float, borders: tuple[str, str]) -> np.ndarray:
    """The channels of a picture (C, H, W) at a place, over 0; borders along y and x."""
    total = np.zeros(len(picture))
    if not (abs(x) < FAR and abs(y) < FAR):
        return total
    for row, wy in axis(y, picture.shape[1], "bilinear", borders[0]):
        for column, wx in axis(x, picture.shape[2], "bilinear", borders[1]):
            if wy * wx and row is not None and column is not None:
                total += wy * wx * picture[:, row, column]
    return total


def correlation(first, second, flow, radius, step, borders) -> np.ndarray:
    """first (C, h, w), second (C, H, W), flow (h, w, 2), radius (rows, columns)."""
    rows, columns = radius
    height, width = first.shape[1:]
    cost = np.zeros(((2 * rows + 1) * (2 * columns + 1), height, width))
    for v, u in np.ndindex(height, width):
        n = 0
        for dy in range(-rows, rows + 1):
            for dx in range(-columns, columns + 1):
                x, y = u + flow[v, u, 0] + step * dx, v + flow[v, u, 1] + step * dy
                if abs(x) < FAR and abs(y) < FAR:
                    cost[n, v, u] = np.mean(first[:, v, u] * sample(second, x, y, borders))
                n += 1
    return cost


def measured(measure: str, r: np.ndarray | None, samples: list[np.ndarray]) -> np.ndarray:
    """A measure of each channel."""
    if measure == "variance":
        return np.var([*([] if r is None else [r]), *samples], axis=0)
    each = {
        "correlation": lambda s: r * s,
        "difference": lambda s: r - s,
        "absolute": lambda s: abs(r - s),
        "squared": lambda s: (r - s) ** 2,
    }[measure]
    return np.mean([each(s) for s in samples], axis=0)


def sweep(view, sources, points, measure, groups, borders) -> tuple[np.ndarray, np.ndarray]:
    """view (C, h, w) or None, sources (V, C, H, W), points (V, D, h, w, 2): (groups, D, h, w) and
    (D, h, w)."""
    views, planes, h, w, _ = points.shape
    height, width = sources.shape[2:]
    cost, counts = np.zeros((groups, planes, h, w)), np.zeros((planes, h, w), int)
    for d, v, u in np.ndindex(planes, h, w):
        samples = []
        for k in range(views):
            x, y = points[k, d, v, u]
            inside = -SLACK <= x <= width - 1 + SLACK and -SLACK <= y <= height - 1 + SLACK
            counts[d, v, u] += inside
            if borders is not None:
                samples.append(sample(sources[k], x, y, borders))
            elif inside:
                x, y = (min(max(a, 0.0), n - 1.0) for a, n in ((x, width), (y, height)))
                samples.append(sample(sources[k], x, y, ("replicate", "replicate")))
        if samples:
            r = None if view is None else view[:, v, u]
            cost[:, d, v, u] = measured(measure, r, samples).reshape(groups, -1).mean(1)
    return cost, counts


def points_of(camera, pose, other, inverse_depths, size) -> np.ndarray:
    """Pixels (D, h, w, 2) of planes of 1 / z, of pinholes: K' (R K^-1 p + t / z)."""
    points = np.full((len(inverse_depths), *size, 2), math.nan)
    for d, v, u in np.ndindex(len(inverse_depths), *size):
        ray = np.linalg.solve(camera, [u, v, 1.0])
        at = other @ (pose[:3, :3] @ ray + pose[:3, 3] * inverse_depths[d])
        if inverse_depths[d] >= 0 and at[2] > 0:
            points[d, v, u] = at[:2] / at[2]
    return points
