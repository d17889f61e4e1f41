"""What is painted over images, for whoever paints it: plain torch or a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

Plain = Callable[..., Tensor]
"""What a backend does, in plain torch: of the same tensors in the same order."""


class Layers(NamedTuple):
    """Images and the objects over them, in the order of the gradients."""

    images: Tensor
    """(B, C, H, W)."""
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
