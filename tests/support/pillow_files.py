"""JPEG files written and read by Pillow."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor


def by_pillow(image: Tensor, quality: int, subsampling: str) -> Tensor:
    """The file of an image (C, H, W), uint8, grey or RGB."""
    array = image.permute(1, 2, 0).numpy()
    file = io.BytesIO()
    picture = Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)
    picture.save(file, "JPEG", quality=quality, subsampling=subsampling)
    read = np.array(Image.open(file)).reshape(array.shape)
    return torch.from_numpy(read).permute(2, 0, 1)
