"""JPEG files as a step of a pipeline, on the images' device, without files."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from warpkit.attacks.pipeline_steps import Step
from warpkit.core import checks, tracing
from warpkit.core.numbers import check_count
from warpkit.engine.operators.jpeg import through_file
from warpkit.types import Subsampling

QUALITIES = (1, 100)
WANTED = "an integer from 1 to 100, or a tensor of them (N,), one for each image"


def jpeg(quality: int | Tensor = 75, *, subsampling: Subsampling = "4:2:0") -> Step:
    """A step of a `Pipeline`: an image after it was written to a JPEG file and read again.

    quality: an integer from 1 to 100, or a tensor (N,) of integers, one for each image;
    subsampling of the colours: "4:2:0", "4:2:2" or "4:4:4". For images (N, 3, H, W), RGB, or (N, 1,
    H, W), grey, the value is that of libjpeg-turbo, which Pillow, OpenCV and torchvision use, bit
    for bit: that of PIL.Image.save(quality=quality, subsampling=subsampling) and PIL.Image.open. It
    is computed on the images' device, without a file and without Pillow, also under torch.compile,
    torch.export (a batch of any size) and in ONNX.

    The gradient is that of the same steps with straight lines for roundings: of slope 1, and where
    a coefficient is rounded of min(1, 0.1 + 1.8 |q|), with q the coefficient divided by its step.
    Clips have slope 1 from 0 to 255, and 0 beyond. Raises ValueError or TypeError for other
    qualities, their wrong number, and images that are neither grey nor RGB.

    >>> grey = torch.full((1, 3, 8, 8), 0.5)
    >>> jpeg(90)(grey)[0, :, 0, 0] * 255
    tensor([128., 128., 128.])
    """
    name = "jpeg"
    chosen = checks.check_name(name, "subsampling", subsampling, get_args(Subsampling))
    return File(check_quality(name, quality), chosen)


def check_quality(name: str, quality: object) -> int | Tensor:
    """A validated quality, or qualities (N,), int32; reads the values of a tensor, if it can."""
    if not isinstance(quality, Tensor):
        return check_count(name, "quality", quality, *QUALITIES)
    checks.check_no_dtensor(name, "quality", quality)
    checks.check_held(name, "quality", quality)
    if quality.is_floating_point() or quality.is_complex() or quality.dtype == torch.bool:
        checks.fail(name, "quality", WANTED, quality.dtype, TypeError)
    if quality.ndim != 1:
        checks.fail(name, "quality", WANTED, f"a tensor of shape {checks.shape_of(quality)}")
    if tracing.is_eager(quality):
        low, high = QUALITIES
        bad = (quality < low) | (quality > high)
        if bool(bad.any()):
            checks.fail(name, "quality", WANTED, int(quality[bad][0]))
    return quality.to(torch.int32, copy=True)


class File(Step):
    """The step, for a quality or for qualities (N,), int32."""

    def __init__(self, quality: int | Tensor, subsampling: Subsampling) -> None:
        amount = f"{len(quality)} qualities" if isinstance(quality, Tensor) else quality
        self.quality, self.subsampling = quality, subsampling
        super().__init__(self.read, "uint8", self.read, f"jpeg({amount})")

    def read(self, images: Tensor) -> Tensor:
        """Images (N, 1 or 3, H, W), uint8 or floats in [0, 1], as their files show them."""
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            wanted = "of shape (N, 3, H, W) or (N, 1, H, W), RGB or grey"
            checks.fail("jpeg", "images", wanted, checks.shape_of(images))
        checks.check_held("jpeg", "images", images)
        count, quality = images.shape[0], self.quality
        if not isinstance(quality, Tensor):
            quality = torch.full((count,), quality, dtype=torch.int32, device=images.device)
        elif quality.shape[0] != count:
            wanted = f"one for each of {count} images"
            checks.fail("jpeg", "quality", wanted, f"{quality.shape[0]} qualities")
        checks.check_device("jpeg", "quality", quality, images.device)
        return through_file(images, quality, self.subsampling)
