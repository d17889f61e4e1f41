"""What the backends of compiled kernels share: from a call to their torch operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from warpkit.core.tracing import has_tangents
from warpkit.engine.sampling import reference
from warpkit.engine.sampling.rules import Rule


class Operator:
    """`warp` and `sample` of a backend, by a function that loads its operator on first use.

    Tangents are the reference's business, and so is whatever is differentiated after them.
    """

    def __init__(self, call: Callable[..., Tensor]) -> None:
        self.call = call

    def warp(
        self, image: Tensor, inverse: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
    ) -> Tensor:
        """As `reference.warp`."""
        if has_tangents():
            return reference.warp(image, inverse, size, outside, rule)
        return self._call(image, inverse.double(), size, outside, rule)

    def sample(self, image: Tensor, points: Tensor, outside: Tensor, rule: Rule) -> Tensor:
        """As `reference.sample`."""
        if has_tangents():
            return reference.sample(image, points, outside, rule)
        points = points.to(reference.compute_dtype(points.dtype))
        return self._call(image, points, points.shape[-3:-1], outside, rule)

    def _call(
        self, image: Tensor, where: Tensor, size: Sequence[int], outside: Tensor, rule: Rule
    ) -> Tensor:
        if rule.interpolation == "nearest":  # it has no slope, and autograd should say so
            where = where.detach()
        return self.call(image, where, outside, size, rule.interpolation, rule.border)
