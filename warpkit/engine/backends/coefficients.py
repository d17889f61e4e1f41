"""The coefficients of a spline through an image, which a warp then samples in place of the pixels.

The filter is linear: it is a resize whose result has as many pixels, or 12 more on each side along
an axis that its border continues (`engine/definitions/splines`). It runs once for an image, however
many maps sample it. Under border constant the value is subtracted before and added after it, since
the weights sum to 1: so it may be another one for each channel and item, and has a gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, is_readable, wants_derivative
from warpkit.engine.backends import Backend, backend_module
from warpkit.engine.backends import resizing as resizes
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.definitions.resize import ResizeRule
from warpkit.engine.definitions.rules import SamplingRule, borders_of
from warpkit.engine.definitions.splines import continued


class Coefficients(NamedTuple):
    """What a warp samples, and where."""

    image: Tensor
    """(*I, C, H, W), in the type of the computation."""
    right: int
    """The pixels by which it begins further to the left than the image."""
    down: int
    """The same upwards."""

    def matrix(self, to_source: Tensor) -> Tensor:
        """A matrix (*M, 2 or 3, 3), float64, destination -> source, to coefficients."""
        if not (self.right or self.down):
            return to_source
        if to_source.shape[-2] == 2:
            return to_source + to_source.new_tensor([[0, 0, self.right], [0, 0, self.down]])
        last = to_source[..., 2:, :]
        return to_source + torch.cat((last * self.right, last * self.down, last * 0), -2)

    def points(self, points: Tensor) -> Tensor:
        """Points (*P, h, w, 2) of the image as points of the coefficients."""
        if not (self.right or self.down):
            return points
        return points.double() + torch.tensor(
            [self.right, self.down], dtype=torch.float64, device=points.device
        )


def coefficients(backend: Backend, image: Tensor, fill: Tensor, rule: SamplingRule) -> Coefficients:
    """The coefficients of an image (*I, C, H, W) for a backend's warp; fill: the border's value."""
    along_y, along_x = borders_of(rule.border)
    down, right = continued(along_y), continued(along_x)
    values = image.to(compute_dtype(image.dtype))
    has_value = "constant" in (along_y, along_x) and not _is_zero(fill)
    name = "cpu" if backend is backend_module("cpu") else "reference"
    how = ResizeRule(rule.interpolation, False, "coefficients", rule.border)
    size = (image.shape[-2] + 2 * down, image.shape[-1] + 2 * right)
    module = resizes.backend_module(name, how)
    found = module.resize(values - fill if has_value else values, size, how, None)
    return Coefficients(found + fill if has_value else found, right, down)


def _is_zero(fill: Tensor) -> bool:
    """Whether the border's value is known to be 0 and has no derivative."""
    if fill.numel() != 1 or not is_eager(fill) or wants_derivative(fill) or not is_readable(fill):
        return False
    return fill.item() == 0
