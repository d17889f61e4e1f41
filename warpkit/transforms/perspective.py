"""Perspective transforms: RandomPerspective."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2._utils import query_size

from warpkit.core import checks
from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.engine.operators.inverse import inverse_map
from warpkit.geometry.arguments import as_result
from warpkit.transforms.arguments import AnyInterpolation, Fill, check_border, check_fill, mode_name
from warpkit.transforms.base import Geometric
from warpkit.transforms.images import Rows, has_pixels, warp
from warpkit.types import Border


class RandomPerspective(Geometric, v2.RandomPerspective):
    """torchvision.transforms.v2.RandomPerspective, warped by warpkit.

    Args:
        distortion_scale: in [0, 1]: how far the corners move, relative to half the image.
        p: the probability of the transform.
        interpolation, fill, border: as in `RandomAffine`.

    >>> RandomPerspective(0.0, p=1.0)(torch.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: AnyInterpolation = "bilinear",
        fill: Fill = 0,
        *,
        border: Border = "constant",
    ) -> None:
        name = mode_name("RandomPerspective", interpolation, INTERPOLATIONS)
        super().__init__(distortion_scale, p, fill=check_fill("RandomPerspective", fill))
        self.interpolation = name
        self.border = check_border("RandomPerspective", border)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """torchvision's draw, which solves for the matrix of four distinct corners."""
        try:
            return super().make_params(flat_inputs)
        except torch.linalg.LinAlgError:  # pyright: ignore
            size = query_size(flat_inputs)
            wanted = "large enough for its four corners to stay apart"
            checks.fail("RandomPerspective", "inpt", wanted, f"size {tuple(size)}")

    def matrix(self, params: dict[str, Any], size: Sequence[int] | None = None) -> Tensor:
        """The matrix of `params` for images of `size` (H, W): (3, 3), source -> destination.

        Without `size`, which is deprecated, the matrix maps destination -> source.
        """
        to_source = torch.tensor(self._rows(params), dtype=torch.float64, device="cpu")
        if size is not None:
            return as_result(inverse_map(to_source), torch.float64)
        text = "RandomPerspective.matrix(params) maps destination -> source; "
        text += "matrix(params, size) maps source -> destination, as every matrix in warpkit"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return to_source

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """The map of images of `size` (H, W): (3, 3), source -> destination."""
        return self.matrix(params, size)

    def _rows(self, params: dict[str, Any]) -> Rows:
        """Numbers, as RandomAffine's; torchvision's map destination -> source, between edges."""
        a, b, c, d, e, f, g, h = params["coefficients"]
        w = 1 + (g + h) / 2
        x, y = c + (a + b) / 2 - w / 2, f + (d + e) / 2 - w / 2
        return (a - g / 2, b - h / 2, x), (d - g / 2, e - h / 2, y), (g, h, w)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        return warp(self, inpt, lambda size: self._rows(params))
