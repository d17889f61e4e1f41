"""A JPEG file that a program writes and reads before everything else."""

from __future__ import annotations

from typing import NamedTuple, cast

from torch import Tensor

from warpkit.attacks.compression import jpeg
from warpkit.types import Subsampling


class Jpeg(NamedTuple):
    """The settings of a file."""

    quality: int
    subsampling: str
    order: str = "RGB"
    """ "BGR": red and blue are exchanged in the file, as `cv2.imencode` does with RGB arrays."""

    def __str__(self) -> str:
        order = "" if self.order == "RGB" else ", red and blue exchanged"
        return f"a JPEG file of quality {self.quality}, {self.subsampling}{order}"


def through_file(images: Tensor, file: Jpeg | None) -> Tensor:
    """RGB images (N, 3, H, W), uint8 or in [0, 1], as a file shows them; None: as they are."""
    if file is None:
        return images
    step = jpeg(file.quality, subsampling=cast(Subsampling, file.subsampling))
    if file.order == "BGR":
        return step.function(images.flip(-3)).flip(-3)
    return step.function(images)
