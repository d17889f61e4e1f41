"""Encodes a candidate with the tables of a JPEG file before the comparison."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """The settings with which a JPEG file was compressed."""

    quantization: dict[int, list[int]]
    subsampling: int
    """Pillow's number: 0 is 4:4:4, 1 4:2:2, 2 4:2:0; -1 for gray and for all other settings."""
    mode: str
    """"L" or "RGB"."""

    def written(self, levels: Levels) -> Levels:
        """Levels (C, h, w) after writing them with these tables and reading the file."""
        from PIL import Image

        pixels = np.clip(np.round(levels), 0, 255).astype(np.uint8)
        if self.mode == "L":
            image = Image.fromarray(pixels[0])
        else:
            wide = np.broadcast_to(pixels, (3, *pixels.shape[1:]))
            image = Image.fromarray(np.ascontiguousarray(np.moveaxis(wide, 0, -1)))
        memory = io.BytesIO()
        image.save(memory, "JPEG", qtables=self.quantization, subsampling=self.subsampling)
        with Image.open(memory) as file:
            array = np.asarray(file, np.float64)
        return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)


def tables_of(image: Any) -> Tables | None:
    """The tables of a PIL image that was read from a JPEG file; None for other images."""
    quantization = getattr(image, "quantization", None)
    if image.format not in ("JPEG", "MPO") or not quantization or image.mode not in ("L", "RGB"):
        return None
    from PIL import JpegImagePlugin

    sampling = JpegImagePlugin.get_sampling(image)
    tables = {int(k): [int(v) for v in table] for k, table in quantization.items()}
    return Tables(tables, sampling, image.mode)
