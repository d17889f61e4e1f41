"""Chains of transforms with handwritten matrices in edge coordinates, and an image by formula."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from warpkit import transforms
from warpkit.transforms import Fused

SMALL = (20, 28)
"""(H, W)."""
LONG = [
    ("RandomRotation", {"degrees": 40, "expand": True}),
    ("RandomPerspective", {"distortion_scale": 0.4, "p": 0.5}),
    ("RandomHorizontalFlip", {}),
    ("RandomAffine", {"degrees": 20, "translate": (0.1, 0.1), "scale": (0.8, 1.3), "shear": 10}),
    ("RandomResizedCrop", {"size": (18, 22), "scale": (0.4, 1.0)}),
    ("RandomVerticalFlip", {}),
    ("Resize", {"size": (16, 24)}),
    ("CenterCrop", {"size": (14, 20)}),
]


def smooth(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """An image defined everywhere, with waves of 9 pixels and more."""
    return 0.5 + 0.2 * np.sin(0.6 * x + 0.3 * y) + 0.2 * np.cos(0.2 * x - 0.65 * y)


def picture(height: int, width: int) -> Tensor:
    """`smooth` at the pixels, (1, H, W), float64."""
    y, x = np.mgrid[:height, :width].astype(float)
    return torch.from_numpy(smooth(x, y))[None]


def by_hand(fused: Fused, draws: list, size: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int]]:
    """The composed matrix of a run in edge coordinates, from the transforms' documented effects."""

    def around(linear: list, old: tuple, new: tuple, shift: tuple = (0, 0)) -> np.ndarray:
        (h, w), (h2, w2) = old, new
        move, back = np.eye(3), np.eye(3)
        back[:2, 2] = -w / 2, -h / 2
        move[:2, 2] = w2 / 2 + shift[0], h2 / 2 + shift[1]
        return move @ np.block([[np.array(linear), np.zeros((2, 1))], [np.zeros((1, 2)), 1]]) @ back

    total = np.eye(3)
    for transform, params in zip(fused.transforms, draws, strict=True):
        if params is None:
            continue
        h, w = size
        name = type(transform).__name__
        if name == "RandomRotation":  # counter-clockwise, with y pointing down
            a = np.radians(params["angle"])
            turn = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
            new = transform.output_size(params, size)
            matrix = around(turn, size, new)
        elif name == "RandomAffine":  # rotated (clockwise), sheared, scaled, then translated
            a, s = np.radians(params["angle"]), params["scale"]
            tx, ty = np.tan(np.radians(params["shear"]))
            turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
            linear = s * turn @ [[1, 0], [-ty, 1]] @ [[1, -tx], [0, 1]]
            new, matrix = size, around(linear, size, size, params["translate"])
        elif name == "RandomPerspective":
            new, matrix = size, np.linalg.inv(np.array([*params["coefficients"], 1]).reshape(3, 3))
        elif name.endswith("Flip"):
            signs = [-1, 1] if "Horizontal" in name else [1, -1]
            new, matrix = size, around(np.diag(signs), size, size)
        elif name == "CenterCrop":
            new = tuple(transform.size)
            top, left = round((h - new[0]) / 2), round((w - new[1]) / 2)
            matrix = np.array([[1.0, 0, -left], [0, 1, -top], [0, 0, 1]])
        else:
            p = params or {"left": 0, "top": 0, "width": w, "height": h}
            new = tuple(transform.size)
            x, y = new[1] / p["width"], new[0] / p["height"]
            matrix = np.array([[x, 0, -x * p["left"]], [0, y, -y * p["top"]], [0, 0, 1]])
        total, size = matrix @ total, new
    return total, size


def long_run(**options) -> Fused:
    """A run of most kinds of transforms, bilinear."""
    steps = []
    for name, arguments in LONG:
        takes = {} if name.endswith(("Flip", "Crop")) and "Resized" not in name else options
        steps.append(getattr(transforms, name)(**arguments, **takes))
    return Fused(steps)


def drawn(fused: Fused, size: tuple[int, int], seed: int) -> dict:
    """The parameters drawn from a seed."""
    torch.manual_seed(seed)
    return fused.make_params([torch.empty(1, *size)])


def carried(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (..., 2) under a matrix (3, 3)."""
    result = np.concatenate((points, np.ones_like(points[..., :1])), -1) @ matrix.T
    return result[..., :2] / result[..., 2:]
