"""Exact transforms, by torchvision's own code: flips and the centre crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

from warpkit.transforms.arguments import check_lengths
from warpkit.transforms.base import Geometric
from warpkit.transforms.images import check_planes, check_sides, has_pixels


class RandomHorizontalFlip(Geometric, v2.RandomHorizontalFlip):
    """torchvision.transforms.v2.RandomHorizontalFlip, with a `map`.

    Args:
        p: the probability of a flip.

    >>> RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input, flipped."""
        if has_pixels(inpt):
            check_planes("RandomHorizontalFlip", inpt)
        return super().transform(inpt, params)

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        rows = [[-1.0, 0.0, size[1] - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        return torch.tensor(rows, dtype=torch.float64, device="cpu")


class RandomVerticalFlip(Geometric, v2.RandomVerticalFlip):
    """torchvision.transforms.v2.RandomVerticalFlip, with a `map`.

    Args:
        p: the probability of a flip.

    >>> RandomVerticalFlip(p=1.0)(torch.tensor([[[1], [2]]]))
    tensor([[[2],
             [1]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input, flipped."""
        if has_pixels(inpt):
            check_planes("RandomVerticalFlip", inpt)
        return super().transform(inpt, params)

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        rows = [[1.0, 0.0, 0.0], [0.0, -1.0, size[0] - 1.0], [0.0, 0.0, 1.0]]
        return torch.tensor(rows, dtype=torch.float64, device="cpu")


class CenterCrop(Geometric, v2.CenterCrop):
    """torchvision.transforms.v2.CenterCrop, with a `map`.

    Args:
        size: (h, w), or one number for a square. Smaller images are padded with 0.

    >>> CenterCrop((1, 2))(torch.tensor([[[1, 2, 3, 4]]]))
    tensor([[[2, 3]]])
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__(check_lengths("CenterCrop", size))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The centre of one input."""
        if has_pixels(inpt):
            check_planes("CenterCrop", inpt)
            check_sides("CenterCrop", v2.functional.get_size(inpt))
        return super().transform(inpt, params)

    def output_size(self, params: dict[str, Any], size: Sequence[int]) -> tuple[int, int]:
        """(H, W) of what images of `size` (H, W) become."""
        height, width = self.size  # pyright: ignore
        return height, width

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        down, right = (
            float((new - old) // 2 if new > old else -round((old - new) / 2))
            for old, new in zip(size, self.size, strict=True)  # pyright: ignore
        )
        rows = [[1.0, 0.0, right], [0.0, 1.0, down], [0.0, 0.0, 1.0]]
        return torch.tensor(rows, dtype=torch.float64, device="cpu") + 0.0
