"""The same warp by other libraries: kornia, torchvision and bare grid_sample.

Each library is called as its documentation says, and only for what it supports; None stands for
everything else. If it takes only floats, 8-bit images are converted to float32 and the result is
rounded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from warpkit.core.environment import versions_of
from warpkit.engine.definitions.maps import inverse_map, pixel_points, to_3x3
from warpkit.engine.definitions.reference import convert
from warpkit.geometry import to_theta

GRID_MODES = ("nearest", "bilinear", "bicubic")
GRID_BORDERS = {
    "constant": ("zeros", True),
    "replicate": ("border", True),
    "reflect": ("reflection", False),
    "reflect_101": ("reflection", True),
}
"""torch's name for a border, and the value of align_corners for which it has this meaning."""


class PeerTask(NamedTuple):
    """One warp of a batch: item k of `image` by item k of `where`."""

    kind: str
    image: Tensor
    """(B, C, H, W), uint8 or float; the result has its size."""
    where: Tensor
    """(B, 2, 3), (B, 3, 3) or (B, H, W, 2), float64."""
    parts: list[dict[str, Any]] | None
    """For "affine": the angle, scale, translation and center of each matrix."""
    interpolation: str
    border: str
    value: Tensor
    """(C,): the value of a constant border."""


def by_grid_sample(task: PeerTask) -> Tensor | None:
    """F.affine_grid and F.grid_sample; perspective maps and points are normalised here."""
    if task.interpolation not in GRID_MODES or task.border not in GRID_BORDERS:
        return None
    mode, corners = GRID_BORDERS[task.border]
    image, value = floats(task)
    height, width = image.shape[-2:]
    if task.kind == "affine":
        theta = to_theta(task.where, (height, width), (height, width), align_corners=corners)
        grid = F.affine_grid(theta.to(image.dtype), list(image.shape), align_corners=corners)
    else:
        points = task.where if task.kind == "remap" else carried(task.where, height, width)
        size = points.new_tensor([width, height]) - int(corners)
        shift = 0 if corners else 1
        grid = ((2 * points + shift) / size - 1).to(image.dtype)
    result = F.grid_sample(image - value, grid, task.interpolation, mode, align_corners=corners)
    return back(result + value, task)


def by_kornia(task: PeerTask) -> Tensor | None:
    """kornia.geometry.transform's warp_affine, warp_perspective and remap, in pixels."""
    # with align_corners=False kornia moves the pixels, so `reflect` cannot be expressed
    if task.interpolation not in GRID_MODES or task.border not in GRID_BORDERS:
        return None
    if task.border == "reflect":
        return None
    transform = import_module("kornia.geometry.transform")
    image, value = floats(task)
    options = {
        "mode": task.interpolation,
        "padding_mode": GRID_BORDERS[task.border][0],
        "align_corners": True,
    }
    where = task.where.to(image.dtype)
    size = tuple(image.shape[-2:])
    if task.kind == "remap":
        result = transform.remap(image - value, *where.unbind(-1), **options)
    else:
        function = {"affine": "warp_affine", "perspective": "warp_perspective"}[task.kind]
        result = getattr(transform, function)(image - value, where, size, **options)
    return back(result + value, task)


def by_torchvision(task: PeerTask) -> Tensor | None:
    """torchvision.transforms.v2.functional's affine and perspective."""
    if task.interpolation not in ("nearest", "bilinear") or task.border != "constant":
        return None
    if task.kind == "remap":
        return None
    functional = import_module("torchvision.transforms.v2.functional")
    modes = import_module("torchvision.transforms").InterpolationMode
    options = {"interpolation": modes(task.interpolation), "fill": task.value.tolist()}
    results = []
    for k, image in enumerate(task.image):
        if task.kind == "affine" and task.parts is not None:
            part = task.parts[k]
            center = [c + 0.5 for c in part["center"]]  # torchvision's edge coordinates
            call = (-part["angle"], list(part["translation"]), part["scale"], [0.0, 0.0])
            results.append(functional.affine(image, *call, center=center, **options))
        else:
            # destination -> source, also in edge coordinates
            where = to_3x3(task.where[k]).double()
            half = where.new_tensor([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
            matrix = half @ inverse_map(where) @ inverse_map(half)
            coefficients = (matrix / matrix[2, 2]).flatten()[:8].tolist()
            call = {"startpoints": None, "endpoints": None, "coefficients": coefficients}
            results.append(functional.perspective(image, **call, **options))
    return torch.stack(results)


PEERS = {"kornia": by_kornia, "torchvision": by_torchvision, "grid_sample": by_grid_sample}
PACKAGES = {"kornia": "kornia", "torchvision": "torchvision", "grid_sample": "torch"}


def versions() -> dict[str, str]:
    """The installed peers and their versions."""
    return versions_of(PACKAGES)


def floats(task: PeerTask) -> tuple[Tensor, Tensor]:
    """The image and the border value as floats.

    grid_sample pads with zeros only: another constant is subtracted before and added afterwards.
    """
    image = task.image if task.image.is_floating_point() else task.image.float()
    value = task.value if task.border == "constant" else torch.zeros_like(task.value)
    return image, value.to(image.dtype)[:, None, None]


def back(result: Tensor, task: PeerTask) -> Tensor:
    """Converts a result to the image's type, rounded and saturated."""
    return convert(result, task.image.dtype)


def carried(matrix: Tensor, height: int, width: int) -> Tensor:
    """The source points (B, H, W, 2) of matrices (B, 3, 3), source -> destination."""
    points = pixel_points((height, width), matrix.dtype, matrix.device)
    ones = torch.cat((points, torch.ones_like(points[..., :1])), dim=-1)
    points = torch.einsum("bij,hwj->bhwi", inverse_map(matrix), ones)
    return points[..., :2] / points[..., 2:]
