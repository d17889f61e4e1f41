"""The twin of a program that warps: one matrix for all pictures, or one that follows their size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.jpeg import through_file
from warpkit.validation.programs.matrices import Corners, centred
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import Values
from warpkit.warp import warp_affine, warp_perspective

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Warp:
    """A warp in `warp_affine`'s words."""

    size: tuple[int, int]
    matrix: tuple[tuple[float, ...], ...] | None
    """(2, 3), or (3, 3) of a perspective, source -> result; None if it follows the picture's
    size."""
    part: float | None
    """Then: how much larger than the whole picture the centred region is that the result shows."""
    corners: Corners | None
    """Or: four points of the picture, and where a perspective takes them."""
    interpolation: str
    border: str
    arithmetic: str
    rounded: bool

    def matrix_at(self, height: int, width: int) -> Array:
        """The matrix for a picture of this size."""
        if self.matrix is not None:
            return np.array(self.matrix)
        if self.corners is not None:
            return self.corners.matrix((height, width))
        assert self.part is not None
        return centred((height, width), self.size, self.part)


@dataclass(frozen=True)
class WarpTwin(Twin):
    """A warp and values; `padding` is the border value in levels, one for each channel."""

    warp: Warp = Warp((1, 1), None, 1.0, None, "bilinear", "constant", "exact", True)

    @classmethod
    def of(cls, warp: Warp, values: Values, padding: tuple[float, ...]) -> WarpTwin:
        """The twin of a warp."""
        return cls(Geometry("fixed", warp.size), None, values, padding, warp=warp)

    def levels(self, picture: Picture) -> Tensor:
        """The program's result in levels, (C, h, w) float64, for a picture (H, W, 3) uint8."""
        image = through_file(torch.from_numpy(picture).movedim(-1, 0)[None], self.jpeg)[0]
        return self._levels(self.values.reorder(image).contiguous()).double()

    def _levels(self, image: Tensor) -> Tensor:
        """An image (3, H, W) uint8, in the order of the result's channels, as (C or 1, h, w)."""
        values = self.values
        image = values.gray(image) if values.is_gray and values.gray_first else image
        warped = self._warped(image if self.warp.rounded else image.float(), self.warp.arithmetic)
        if not values.is_gray or values.gray_first:
            return warped
        if values.sum != "floats" and not self.warp.rounded:
            warped = warped.clamp(0, 255).round().to(torch.uint8)
        return values.gray(warped)

    def _warped(self, image: Tensor, arithmetic: str, matrix: Array | None = None) -> Tensor:
        warp, shape = self.warp, image.shape[-2:]
        array = warp.matrix_at(shape[0], shape[1]) if matrix is None else matrix
        function = warp_affine if len(array) == 2 else warp_perspective
        return function(
            image,
            torch.from_numpy(array).to(image.device),
            size=warp.size,
            interpolation=cast(Any, warp.interpolation),
            border=cast(Any, warp.border),
            border_value=self.padding[0] if self.values.is_gray else self.padding,
            arithmetic=cast(Any, arithmetic),
        )

    def warped(self, picture: Picture, matrix: Array) -> Array:
        """The levels under another matrix, in exact arithmetic and not rounded."""
        image = self.values.reorder(torch.from_numpy(picture).movedim(-1, 0)).double()
        image = self.values.gray_floats(image) if self.values.is_gray else image
        return self._warped(image.contiguous(), "exact", matrix).numpy()

    def numbers(self, images: Tensor) -> Tensor:
        """The program's numbers (N, C, h, w) for images (N, 3, H, W) uint8."""
        decoded = self.values.reorder(through_file(images.cpu(), self.jpeg)).contiguous()
        levels = torch.stack([self._levels(image) for image in decoded]).double()
        return self.values.as_numbers(levels).float().to(images.device)

    def surrogate(self, images: Tensor) -> Tensor:
        """The same without rounding, for floats (N, 3, H, W) in [0, 1]."""
        levels = self.values.reorder(through_file(images, self.jpeg) * 255)
        levels = self.values.gray_floats(levels) if self.values.is_gray else levels
        return self.values.as_numbers(self._warped(levels, "exact"))

    def steps(self) -> str:
        """Its steps in a few words."""
        unresized = replace(self, resampling=None, geometry=replace(self.geometry, rule="keep"))
        words = f"warp to {self.warp.size[0]} x {self.warp.size[1]} by {self.warp.arithmetic}'s "
        return f"{words}{self.warp.interpolation}; {Twin.steps(unresized)}"
