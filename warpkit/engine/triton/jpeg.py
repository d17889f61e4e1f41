"""JPEG files of images, and their gradient: `definitions/jpeg.py` in integers, the same values.

For a gradient, everything is computed again from the images: see `jpeg_blocks` and `jpeg_pixels`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from warpkit.engine.definitions import jpeg
from warpkit.engine.definitions.jpeg import BLOCK, SAMPLING
from warpkit.engine.triton.jpeg_blocks import blocks_kernel
from warpkit.engine.triton.jpeg_pixels import colours_kernel, gathered_kernel, shown_kernel
from warpkit.engine.triton.work import launch

BLOCKS = 4
"""Blocks of a program."""
PIXELS = 512
"""Pixels of a program without blocks."""


class Files:
    """The sizes of a call, and its launches."""

    def __init__(self, subsampling: str, images: Tensor, quality: Tensor) -> None:
        """images (N, 1 or 3, H, W), quality (N,)."""
        self.count, channels, self.height, self.width = images.shape
        self.images, self.quality = images.contiguous(), quality.contiguous()
        rows, columns = SAMPLING[subsampling] if channels == 3 else (1, 1)
        self.kind = {"CHANNELS": channels, "ROWS": rows, "COLUMNS": columns}
        self.blocks = self._blocks(self.height), self._blocks(self.width)
        # as many as colours of the image have, in whole blocks
        self.small = self._blocks(-(-self.height // rows)), self._blocks(-(-self.width // columns))

    @staticmethod
    def _blocks(side: int) -> int:
        return -(-side // BLOCK)

    def new_planes(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Planes of brightness (N, 1, h, w) and colours (N, 2, h, w), of whole blocks."""
        like = {"dtype": dtype, "device": self.images.device}
        (h, w), (rows, columns) = self.blocks, self.small
        count = self.count if self.kind["CHANNELS"] == 3 else 0
        brightness = torch.empty((self.count, 1, BLOCK * h, BLOCK * w), **like)
        return brightness, torch.empty((count, 2, BLOCK * rows, BLOCK * columns), **like)

    def through_blocks(self, planes: tuple[Tensor, Tensor], *, backward: bool) -> None:
        """Fills planes of bytes; or replaces the gradients of such planes."""
        for plane, (rows, columns) in zip(planes, (self.blocks, self.small), strict=True):
            groups = triton.cdiv(columns, BLOCKS)
            if programs := plane.shape[0] * rows * groups:
                launch(
                    blocks_kernel, programs, self.images, self.quality, plane, plane,
                    height=self.height, width=self.width, block_rows=rows, block_columns=columns,
                    groups=groups, PLANES=plane.shape[1], BACKWARD=backward, BLOCKS=BLOCKS,
                    **self.kind,
                )  # fmt: skip

    def sizes(self) -> dict[str, int]:
        """The sizes of planes, as kernels of pixels take them."""
        (rows, columns), (small_rows, small) = self.blocks, self.small
        return {
            "height": self.height, "width": self.width,
            "stride": BLOCK * columns, "rows": BLOCK * rows,
            "small": BLOCK * small, "small_rows": BLOCK * small_rows,
        }  # fmt: skip

    def of_pixels(self, kernel: Any, *arrays: Tensor, **options: Any) -> None:
        """Launches a kernel for the pixels of every image."""
        tiles = triton.cdiv(self.height * self.width, PIXELS)
        options |= {"tiles": tiles, "PIXELS": PIXELS, **self.sizes(), **self.kind}
        launch(kernel, self.count * tiles, *arrays, **options)


def forward(subsampling: str, images: Tensor, quality: Tensor) -> tuple[Tensor, None]:
    """As `jpeg.through_file`: images (N, 1 or 3, H, W), quality (N,), int32."""
    files = Files(subsampling, images, quality)
    result = torch.empty_like(files.images)
    if result.numel():
        planes = files.new_planes(torch.uint8)
        files.through_blocks(planes, backward=False)
        # arrays of gradients are not read
        files.of_pixels(shown_kernel, *planes, result, result, result, result, BACKWARD=False)
    return result, None


def backward(
    subsampling: str,
    kept: None,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradient of images (N, 1 or 3, H, W); that of float64 is the formula's."""
    images, quality = tensors
    if images.dtype == torch.float64:
        return jpeg.gradient(images, quality, subsampling, grads[0]), None
    files, grad = Files(subsampling, images, quality), grads[0].contiguous()
    result = torch.empty_like(files.images)
    if not result.numel():
        return result, None
    planes = files.new_planes(torch.uint8)
    files.through_blocks(planes, backward=False)
    brightness, colours = files.new_planes(torch.float32)
    brightness.zero_()  # gradients beyond the image
    enlarged = torch.empty_like(files.images[:, 1:])
    options = {"BACKWARD": True}
    files.of_pixels(shown_kernel, *planes, result, grad, brightness, enlarged, **options)
    if colours.numel():
        sizes, kind = files.sizes(), files.kind
        tiles = triton.cdiv(sizes["small"] * sizes["small_rows"], PIXELS)
        launch(
            gathered_kernel, 2 * files.count * tiles, enlarged, colours,
            height=files.height, width=files.width, tiles=tiles, small=sizes["small"],
            small_rows=sizes["small_rows"], ROWS=kind["ROWS"], COLUMNS=kind["COLUMNS"],
            PIXELS=PIXELS,
        )  # fmt: skip
    files.through_blocks((brightness, colours), backward=True)
    files.of_pixels(colours_kernel, brightness, colours, result)
    return result, None
