"""Pictures of the tutorial: tensors side by side, embedded in HTML."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from html import escape

import numpy as np
from PIL import Image
from torch import Tensor

LEAST = 256
"""The longer side, in pixels, to which small pictures are enlarged."""


def shown(images: Mapping[str, Tensor]) -> str:
    """A row of named images, each (C, H, W), uint8 or in [0, 1]."""
    figures = "".join(
        f'<figure><img src="{source(image)}" alt="{escape(name)}">'
        f"<figcaption>{escape(name)}</figcaption></figure>"
        for name, image in images.items()
    )
    return f'<div class="row">{figures}</div>'


def source(image: Tensor) -> str:
    """A PNG as a data URL."""
    if image.is_floating_point():
        image = (image.detach().clamp(0, 1) * 255).round().byte()
    times = max(1, LEAST // max(image.shape[-2:]))
    pixels = np.kron(image.permute(1, 2, 0).numpy(), np.ones((times, times, 1), np.uint8))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
