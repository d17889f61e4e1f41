"""A second implementation of rotated boxes and quads: float64 numpy, pixel by pixel."""

from __future__ import annotations

import numpy as np


def corners(box: np.ndarray) -> np.ndarray:
    """The corners (4, 2) of (cx, cy, w, h, angle), or of four corners themselves."""
    if box.shape == (4, 2):
        return box
    x, y, w, h, a = box
    cos, sin = np.cos(np.radians(a)), np.sin(np.radians(a))
    own = [(-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2)]
    return np.array([(x + u * cos + v * sin, y - u * sin + v * cos) for u, v in own])


def unit_map(quad: np.ndarray) -> np.ndarray:
    """The matrix that maps the unit square to a quad, by its eight equations."""
    rows, values = [], []
    for (s, t), (x, y) in zip([(0, 0), (1, 0), (1, 1), (0, 1)], quad, strict=True):
        rows += [[s, t, 1, 0, 0, 0, -x * s, -x * t], [0, 0, 0, s, t, 1, -y * s, -y * t]]
        values += [x, y]
    return np.append(np.linalg.solve(rows, values), 1).reshape(3, 3)


def carried(matrix: np.ndarray, x: float, y: float) -> tuple[float, float]:
    u, v, w = matrix @ (x, y, 1)
    return u / w, v / w


def own_sides(box: np.ndarray) -> tuple[float, float]:
    """Width and height in own pixels."""
    p = corners(box)
    sides = np.hypot(*(np.roll(p, -1, 0) - p).T)
    return (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2


def value_at(image: np.ndarray, x: float, y: float, there=None, fill=0.0) -> np.ndarray:
    """The bilinear value of (C, H, W) at a position; taps not `there` have the value `fill`."""
    _, height, width = image.shape
    left, top = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(len(image))
    for i, j in [(left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)]:
        weight = (1 - abs(x - i)) * (1 - abs(y - j))
        inside = 0 <= i < width and 0 <= j < height and (there is None or there(i, j))
        total += weight * (image[:, j, i] if inside else fill)
    return total


def crop(image: np.ndarray, box: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """`crop_patches` of one box, constant 0."""
    height, width = size
    to_image = unit_map(corners(box))
    picture = np.zeros((len(image), height, width))
    for i in range(height):
        for j in range(width):
            x, y = carried(to_image, (j + 0.5) / width, (i + 0.5) / height)
            picture[:, i, j] = value_at(image, x - 0.5, y - 0.5)
    return picture


def roi_align_rotated(
    image: np.ndarray, box: np.ndarray, size: tuple[int, int], samples: int
) -> np.ndarray:
    """RoIAlignRotated with `samples` x `samples` per bin, as in detectron2 and mmcv (aligned).

    A sample more than a pixel outside is 0; one less far outside is clamped to the edge.
    """
    (height, width), (channels, rows, columns) = size, image.shape
    cx, cy, w, h, angle = box
    theta = np.radians(angle)
    cos, sin = np.cos(theta), np.sin(theta)
    sums = np.zeros((channels, height, width))
    for i in range(height):
        for j in range(width):
            for iy in range(samples):
                for ix in range(samples):
                    yy = -h / 2 + i * h / height + (iy + 0.5) * h / height / samples
                    xx = -w / 2 + j * w / width + (ix + 0.5) * w / width / samples
                    y = yy * cos - xx * sin + cy - 0.5
                    x = yy * sin + xx * cos + cx - 0.5
                    if -1 <= y <= rows and -1 <= x <= columns:
                        y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
                        sums[:, i, j] += value_at(image, x, y) / samples**2
    return sums


def transform(
    images: np.ndarray,
    boxes: np.ndarray,
    matrices: np.ndarray,
    index: np.ndarray,
    fill: float,
    masks: np.ndarray | None = None,
) -> np.ndarray:
    """`transform_patches`, bilinear, constant; masks (N, 1, H, W) cover the whole image."""
    result = images.copy()
    _, _, height, width = images.shape
    for box, matrix, b, n in zip(boxes, matrices, index, range(len(index)), strict=True):
        quad, (w, h) = corners(box), own_sides(box)
        unit = unit_map(quad)
        whole = np.vstack((matrix, (0, 0, 1)))
        scale = np.array([[1 / w, 0, 0.5 / w], [0, 1 / h, 0.5 / h], [0, 0, 1]])
        half = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]])
        outwards = half @ unit @ scale  # own pixel -> image pixel
        look = outwards @ np.linalg.inv(whole) @ np.linalg.inv(outwards)

        def there(x: int, y: int, unit: np.ndarray = unit) -> bool:
            s, t = carried(np.linalg.inv(unit), x + 0.5, y + 0.5)
            return 0 <= s < 1 and 0 <= t < 1

        layers = images[b] if masks is None else np.concatenate((images[b] * masks[n], masks[n]))
        for y in range(height):
            for x in range(width):
                if not there(x, y):
                    continue
                colours = value_at(
                    layers, *carried(look, x, y), there, fill if masks is None else 0
                )
                if masks is not None:
                    colours = colours[:-1] + (1 - colours[-1]) * result[b, :, y, x]
                result[b, :, y, x] = colours
    return result
