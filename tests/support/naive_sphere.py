"""A second implementation of the sphere: float64 numpy, one pixel and one tap at a time."""

from __future__ import annotations

import math

import numpy as np

from tests.support.naive_warp import axis


def turn(yaw=0.0, pitch=0.0, roll=0.0):
    """The rotation of a view turned right and up and tilted to the right, in degrees."""
    a, b, c = np.radians([yaw, pitch, roll])
    forward = np.array([np.cos(b) * np.sin(a), -np.sin(b), np.cos(b) * np.cos(a)])
    right = np.array([np.cos(a), 0, -np.sin(a)])
    down = np.cross(forward, right)
    return np.stack(
        [right * np.cos(c) + down * np.sin(c), down * np.cos(c) - right * np.sin(c), forward]
    )


def place(direction, size):
    """The pixel position of a direction on a sphere of `size` (H, W)."""
    (x, y, z), (height, width) = direction, size
    lon = math.degrees(math.atan2(x, z))
    lat = math.degrees(math.atan2(y, math.hypot(x, z)))
    return (lon / 360 + 0.5) * width - 0.5, (lat / 180 + 0.5) * height - 0.5


def read(sphere, direction, interpolation):
    """The values (C,) of a sphere (C, H, W) in a direction."""
    height, width = sphere.shape[1:]
    x, y = place(direction, (height, width))
    total = np.zeros(len(sphere))
    for row, wy in _rows(y, interpolation):
        column = x
        while not 0 <= row < height:
            row, column = (-1 - row if row < 0 else 2 * height - 1 - row), column + width / 2
        for tap, wx in axis(column, width, interpolation, "wrap"):
            total += wy * wx * sphere[:, row, tap]
    return total


def _rows(y, interpolation):
    """(row, weight) of the taps around y; rows may be outside the image."""
    above = 1024  # even, so that ties stay ties
    return [(i - above, w) for i, w in axis(y + above, 10**6, interpolation, "constant")]


def ray(pixel, size, field=90.0, camera=None, fisheye=None):
    """The direction of a pixel (x, y) of a view of `size` (h, w), in the view's coordinates.

    fisheye: None, or the four coefficients.
    """
    height, width = size
    if camera is None:
        half = math.radians(field) / 2
        f = (width / 2) / (math.tan(half) if fisheye is None else half)
        camera = np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])
    camera = np.asarray(camera)
    u, v = (pixel[0] - camera[0, 2]) / camera[0, 0], (pixel[1] - camera[1, 2]) / camera[1, 1]
    if fisheye is None:
        return np.array([u, v, 1.0])
    r = math.hypot(u, v)
    low, high = 0.0, math.pi
    for _ in range(200):  # bisection: the angle whose image has this radius
        middle = (low + high) / 2
        bent = middle * (1 + sum(k * middle ** (2 * i + 2) for i, k in enumerate(fisheye)))
        low, high = (middle, high) if bent < r else (low, middle)
    if r == 0:
        return np.array([0.0, 0, 1])
    return np.array([u * math.sin(low) / r, v * math.sin(low) / r, math.cos(low)])


def view(sphere, size, rotation=None, interpolation="bilinear", samples=1, **camera):
    """A view (C, h, w) of a sphere (C, H, W); samples: number per pixel along an axis."""
    rotation = np.eye(3) if rotation is None else np.asarray(rotation)
    result = np.zeros((len(sphere), *size))
    offsets = [(k + 0.5) / samples - 0.5 for k in range(samples)]
    for i, j in np.ndindex(*size):
        for dy in offsets:
            for dx in offsets:
                direction = rotation.T @ ray((j + dx, i + dy), size, **camera)
                result[:, i, j] += read(sphere, direction, interpolation) / samples**2
    return result


def directions(size):
    """The directions of a sphere's pixels, (H, W, 3)."""
    height, width = size
    result = np.zeros((height, width, 3))
    for i, j in np.ndindex(height, width):
        lat, lon = ((i + 0.5) / height - 0.5) * np.pi, ((j + 0.5) / width - 0.5) * 2 * np.pi
        result[i, j] = np.cos(lat) * np.sin(lon), np.sin(lat), np.cos(lat) * np.cos(lon)
    return result
