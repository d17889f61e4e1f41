"""Affine transforms: RandomAffine, RandomRotation."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin, tan
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2.functional._geometry import (
    _compute_affine_output_size,
    _get_inverse_affine_matrix,
)

from warpkit.core import checks
from warpkit.engine.definitions.rules import INTERPOLATIONS
from warpkit.transforms.arguments import (
    AnyInterpolation,
    Fill,
    check_border,
    check_center,
    check_fill,
    check_ranges,
    mode_name,
)
from warpkit.transforms.base import Geometric
from warpkit.transforms.composed import compose
from warpkit.transforms.images import Rows, has_pixels, matrix_of, warp
from warpkit.transforms.labels import EDGES, LABELS, move_boxes, move_keypoints
from warpkit.types import Border


class RandomAffine(Geometric, v2.RandomAffine):
    """torchvision.transforms.v2.RandomAffine, warped by warpkit.

    Args:
        degrees: (low, high), or a number for (-degrees, degrees); clockwise, as in torchvision.
        translate: (x, y), the largest shifts as fractions of width and height.
        scale: (low, high).
        shear: a number, (low, high) along x, or four numbers, in degrees.
        interpolation: as in `warp_affine`, or torchvision's InterpolationMode, or Pillow's number
            (2: bilinear); masks are nearest.
        fill: a number, one for each channel, or a dictionary by type; for border="constant".
        center: (x, y) of the rotation, from the top-left corner; None is the image's centre.
        border: as in `warp_affine`, also a pair, except "transparent".

    A pixel on the image's edge is blended with `fill` by the share that is outside; torchvision
    applies that share twice, unless fill is None.

    Takes and returns the same as torchvision's: tensors of every integer and float type and bool,
    PIL images, tv_tensors, and structures of them, in which images, videos, masks, boxes and
    keypoints move together.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    >>> import torch
    >>> RandomAffine((90, 90))(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[3, 1],
             [4, 2]]], dtype=torch.uint8)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: AnyInterpolation = "nearest",
        fill: Fill = 0,
        center: Sequence[float] | None = None,
        *,
        border: Border = "constant",
    ) -> None:
        name = mode_name("RandomAffine", interpolation, INTERPOLATIONS)
        super().__init__(
            degrees,  # pyright: ignore
            translate,
            scale,
            shear,  # pyright: ignore
            fill=check_fill("RandomAffine", fill),
            center=check_center("RandomAffine", center),
        )
        check_ranges("RandomAffine", degrees=self.degrees, scale=self.scale, shear=self.shear)
        self.interpolation = name
        self.border = check_border("RandomAffine", border)

    def matrix(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """The matrix of `params` for images of `size` (H, W): (2, 3), source -> destination."""
        return self.map(params, size)[:2]

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        return matrix_of(self._rows(params, size))

    def _rows(self, params: dict[str, Any], size: Sequence[int]) -> Rows:
        """Numbers: a matrix made of tensors takes ten times as long as warping a small image."""
        height, width = size
        x, y = self.center or (width / 2, height / 2)
        x, y = x - 0.5, y - 0.5  # torchvision's are edges
        angle, scale, (right, down) = radians(params["angle"]), params["scale"], params["translate"]
        tx, ty = (tan(radians(shear)) for shear in params["shear"])
        c, s = cos(angle) * scale, sin(angle) * scale
        # rotation [[c, -s], [s, c]] after shear y [[1, 0], [-ty, 1]] after shear x [[1, -tx], [0,
        # 1]]
        a, d = c + s * ty, s - c * ty
        b, e = -s - a * tx, c - d * tx
        return (a, b, x - a * x - b * y + right), (d, e, y - d * x - e * y + down)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        return warp(self, inpt, lambda size: self._rows(params, size))


class RandomRotation(Geometric, v2.RandomRotation):
    """torchvision.transforms.v2.RandomRotation, warped by warpkit.

    Args:
        degrees: (low, high), or a number for (-degrees, degrees); counter-clockwise, as in
            torchvision's RandomRotation (its RandomAffine turns clockwise).
        interpolation, fill, center, border: as in `RandomAffine`.
        expand: enlarge the result to hold the whole rotated image; `center` is then ignored. The
            result has the size of torchvision's tensor. Boxes and key points move by `map`, as the
            image does; torchvision moves them up to a pixel off its image.

    Rotations by multiples of 90 degrees about the centre move pixels without blending.

    >>> import torch
    >>> RandomRotation((90, 90))(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[2, 4],
             [1, 3]]], dtype=torch.uint8)
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: AnyInterpolation = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Fill = 0,
        *,
        border: Border = "constant",
    ) -> None:
        function = "RandomRotation"
        name = mode_name(function, interpolation, INTERPOLATIONS)
        checks.check_bool(function, "expand", expand)
        super().__init__(
            degrees,  # pyright: ignore
            expand=expand,
            center=check_center(function, center),
            fill=check_fill(function, fill),
        )
        check_ranges(function, degrees=self.degrees)
        self.interpolation = name
        self.border = check_border(function, border)

    def map(self, params: dict[str, Any], size: Sequence[int]) -> Tensor:
        """Where pixels of images of `size` (H, W) go: (3, 3), source -> destination."""
        return matrix_of(self._rows(params, size))

    def output_size(self, params: dict[str, Any], size: Sequence[int]) -> tuple[int, int]:
        """(H, W) of what images of `size` (H, W) become."""
        height, width = size
        angle = params["angle"] % 360
        if not self.expand or angle in (0, 180):
            return height, width
        if angle in (90, 270):
            return width, height
        still: dict[str, Any] = {"translate": [0.0, 0.0], "scale": 1.0, "shear": [0.0, 0.0]}
        rows = _get_inverse_affine_matrix([0.0, 0.0], -angle, **still)
        with torch.device("cpu"):  # it makes tensors on torch's default device, and reads them
            width, height = _compute_affine_output_size(rows, width, height)
        return height, width

    def _rows(self, params: dict[str, Any], size: Sequence[int]) -> Rows:
        """Numbers, as RandomAffine's."""
        height, width = size
        angle = params["angle"]
        quarter = angle % 90 == 0  # whose cosine in floating point is not 0
        c, s = (f(radians(angle)) for f in (cos, sin))
        c, s = (round(c), round(s)) if quarter else (c, s)
        x, y = (width / 2, height / 2) if self.expand or not self.center else self.center
        out = self.output_size(params, size)
        right, down = (out[1] / 2, out[0] / 2) if self.expand else (x, y)
        x, y, right, down = x - 0.5, y - 0.5, right - 0.5, down - 0.5  # torchvision's are edges
        return (c, s, right - c * x - s * y), (-s, c, down + s * x - c * y)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One input under the drawn `params`."""
        if self.expand and isinstance(inpt, LABELS):
            return self._turned(inpt, params)
        if not has_pixels(inpt):
            return super().transform(inpt, params)
        size = v2.functional.get_size(inpt)
        out = self.output_size(params, size) if self.expand else None
        return warp(self, inpt, lambda size: self._rows(params, size), out)

    def _turned(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Move boxes or key points onto an expanded canvas, by the image's own map.

        torchvision puts the rotated corners of the image at 0. Its image, on a whole number of
        pixels, starts up to a pixel before them, and ours up to half a pixel.
        """
        size = inpt.canvas_size
        turned = compose([self.map(params, size)], self.output_size(params, size))
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return move_boxes(inpt, turned, clamps=True)
        return move_keypoints(inpt, turned, [EDGES])
