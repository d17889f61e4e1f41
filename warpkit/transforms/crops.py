"""torchvision's own Pad and RandomCrop as parts of a run: shifts by whole pixels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

from warpkit.types import BorderName

CROPS = (v2.Pad, v2.RandomCrop)
MODES: dict[str, BorderName] = {
    "constant": "constant",
    "edge": "replicate",
    "reflect": "reflect_101",
    "symmetric": "reflect",
}
"""torchvision's padding modes, and warpkit's names of the borders."""


def shows_border(transform: Any) -> bool:
    """Whether a Pad or a RandomCrop may show pixels outside the image."""
    if isinstance(transform, v2.RandomCrop):
        return bool(transform.pad_if_needed) or max(transform.padding or (0,)) > 0
    return max(_sides(transform.padding)) > 0


def offset_of(transform: Any, params: dict[str, Any]) -> tuple[int, int]:
    """How far the image's pixels move under the drawn `params`: (right, down)."""
    if isinstance(transform, v2.RandomCrop):
        left, top, _, _ = params["padding"]
        return left - params["left"], top - params["top"]
    left, top, _, _ = _sides(transform.padding)
    return left, top


def output_size(transform: Any, params: dict[str, Any], size: tuple[int, int]) -> tuple[int, int]:
    """(H, W) of the result for images of `size` (H, W)."""
    if isinstance(transform, v2.RandomCrop):
        return params["height"], params["width"]
    left, top, right, bottom = _sides(transform.padding)
    return top + size[0] + bottom, left + size[1] + right


def map_of(transform: Any, params: dict[str, Any]) -> Tensor:
    """The map: (3, 3), source -> destination."""
    right, down = offset_of(transform, params)
    rows = [[1.0, 0.0, right], [0.0, 1.0, down], [0.0, 0.0, 1.0]]
    return torch.tensor(rows, dtype=torch.float64, device="cpu")


def _sides(padding: Any) -> tuple[int, int, int, int]:
    """A Pad's (left, top, right, bottom), from the one, two or four numbers that it takes."""
    sides = [padding] if isinstance(padding, int) else padding
    left, top, right, bottom = sides if len(sides) == 4 else (*sides, *sides, *sides, *sides)[:4]
    return left, top, right, bottom
