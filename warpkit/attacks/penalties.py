"""Penalties on the patch itself, for objectives of the form ``objective(views, patch=...)``."""

from __future__ import annotations

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.gradients.surrogates import check_floating
from warpkit.types import MatrixLike


def total_variation(patch: Tensor) -> Tensor:
    """The roughness of a patch, the mean difference of neighbours, which printers and cameras blur.

    patch (..., C, h, w), floating. Returns a scalar: the mean of |difference| of horizontal
    neighbours, plus that of vertical neighbours; 0 for a patch of one pixel a side. Gradients: to
    the patch, the signs; 0 for equal neighbours. Raises TypeError or ValueError for anything but a
    floating image.

    >>> total_variation(torch.tensor([[[0.0, 1.0], [0.0, 0.5]]]))
    tensor(1.)
    """
    checks.check_image("total_variation", "patch", patch)
    check_floating("total_variation", "patch", patch)
    steps = [patch.diff(dim=dim) for dim in (-1, -2)]
    means = [step.abs().mean() for step in steps if step.numel() > 0]
    return sum(means, patch.new_zeros(()))


def nonprintability(patch: Tensor, colours: MatrixLike) -> Tensor:
    """The distance of a patch from printable colours: the mean distance to the nearest colour.

    patch (..., C, h, w), floating; colours (K, C), at least one, such as those measured on a
    printed chart, in the units of the patch. Returns a scalar: the mean over the pixels of the
    Euclidean distance to the nearest colour. Gradients: to the patch and the colours; 0 where the
    distance is 0. Raises TypeError or ValueError, with the argument.

    >>> patch = torch.tensor([0.0, 0.5, 1.0]).expand(3, 1, 3)
    >>> nonprintability(patch, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    tensor(0.2887)
    """
    name = "nonprintability"
    checks.check_image(name, "patch", patch)
    check_floating(name, "patch", patch)
    table = checks.as_float(name, "colours", colours, patch.device)
    checks.check_device(name, "colours", table, patch.device)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] != patch.shape[-3]:
        wanted = f"of shape (K, {patch.shape[-3]}), at least one colour of the patch's channels"
        checks.fail(name, "colours", wanted, checks.shape_of(table))
    pixels = patch.movedim(-3, -1).flatten(0, -2)
    with torch.no_grad():  # keeps no differences
        squares = pixels.square().sum(-1, keepdim=True) + table.square().sum(-1)
        nearest = (squares - 2 * pixels @ table.to(pixels).mT).argmin(-1)
    return torch.linalg.vector_norm(pixels - table.to(pixels)[nearest], dim=-1).mean()
