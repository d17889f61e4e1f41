"""Layers over images, for plain torch and for backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from warpkit.engine.compositing.canvases import Images

Plain = Callable[..., Any]
"""A backend's operation in plain torch, with the same tensors in the same order. Crops are a
tensor, and painted images have the type of the images below."""


class Layers(NamedTuple):
    """Images and the objects painted over them."""

    images: Images
    to_source: Tensor
    """(N, 2 or 3, 3), float64: maps pixels relative to the boxes' corners."""
    patches: Tensor | None = None
    """(N or 1, C, h, w), or None if objects show the images' content in their boxes."""
    mask: Tensor | None = None
    """(N or 1, 1, h, w), or (1, P) for the pixels of all boxes."""
    opacity: Tensor | None = None
    """() or (N,)."""
    fill: Tensor | None = None
    """(C, 1 or N): the value of missing taps in opaque boxes, which have neither mask nor opacity.

    None: missing parts of an object show what is below.
    """
