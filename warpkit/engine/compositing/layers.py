"""Layers over images, for plain torch and the backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from warpkit.engine.compositing.canvases import Images

Plain = Callable[..., Any]
"""What a backend does, in plain torch: of the same tensors in the same order. Crops are a tensor,
and what is painted is images like those below."""


class Layers(NamedTuple):
    """Images and the objects over them."""

    images: Images
    to_source: Tensor
    """(N, 2 or 3, 3), float64: from pixels counted from the boxes' corners."""
    patches: Tensor | None = None
    """(N or 1, C, h, w), or None where objects show what the images have in their boxes."""
    mask: Tensor | None = None
    """(N or 1, 1, h, w), or (1, P) for the pixels of all boxes."""
    opacity: Tensor | None = None
    """() or (N,)."""
    fill: Tensor | None = None
    """(C, 1 or N): what missing taps show of opaque boxes, which have neither mask nor opacity.

    None: where an object is missing, it shows what is below.
    """
