"""The coordinates of every pixel: the identity point field."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.definitions.maps import pixel_points


def pixel_grid(
    size: Sequence[int], *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    """The (x, y) of every pixel of an image of `size` (H, W): `warpkit.remap`'s identity.

    Returns (h, w, 2), pixels, of `dtype`, a floating type, by default torch's.

    >>> pixel_grid((1, 3))
    tensor([[[0., 0.],
             [1., 0.],
             [2., 0.]]])
    """
    name = "pixel_grid"
    height, width = checks.check_size(name, "size", size)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if dtype not in checks.FLOATS:
        wanted = f"one of {checks.names_of(checks.FLOATS)}"
        checks.fail(name, "dtype", wanted, dtype, TypeError)
    return pixel_points((height, width), dtype, device)
