"""OpenCV's arithmetics as backends: OpenCV's values, and the gradients of an exact backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from warpkit.engine import cpu
from warpkit.engine.arithmetic import opencv
from warpkit.engine.binding.plan import Plan
from warpkit.engine.cpu import opencv as cpu_opencv
from warpkit.engine.definitions import reference
from warpkit.engine.definitions.exact_gradient import Values, with_exact_gradient
from warpkit.engine.definitions.maps import added_to_pixels
from warpkit.engine.definitions.rules import SamplingRule


class OpenCVBackend:
    """A `Backend`, and what OpenCV's values have beyond it.

    border_value: as in `arithmetic.opencv.warp`. values_at: the map or the points of the values, if
    OpenCV rounds those of the gradient; they have the same shape.
    """

    def __init__(self, values: Any, exact: Any, fused: bool) -> None:
        self.values, self.exact, self.fused = values, exact, fused
        """The modules of both; fused: as in `with_exact_gradient`."""

    def unsupported_reasons(self, image: Tensor, rule: SamplingRule) -> list[str]:
        """The reasons why the values or their gradient are not available."""
        return opencv.unsupported_reasons(image) + self.exact.unsupported_reasons(image, rule)

    def warp(
        self,
        image: Tensor,
        to_source: Tensor,
        size: Sequence[int],
        fill: Tensor,
        rule: SamplingRule,
        *,
        border_value: Tensor | None = None,
        values_at: Tensor | None = None,
    ) -> Tensor:
        """As `Backend.warp`."""
        at = to_source if values_at is None else values_at
        values = partial(self.values.warp, image, at, size, fill, rule, border_value)
        exact = partial(self.exact.warp, image, to_source, size, fill)
        return self._join(values, exact, rule, image, to_source, fill)

    def warp_forward(
        self,
        image: Tensor,
        matrix: Tensor,
        size: Sequence[int],
        fill: Tensor,
        rule: SamplingRule,
        *,
        border_value: Tensor | None = None,
    ) -> Tensor:
        """As `Backend.warp_forward`."""

        def values() -> Tensor:
            at = self.values.inverse_map(matrix.detach().double())
            return self.values.warp(image, at, size, fill, rule, border_value)

        exact = partial(self.exact.warp_forward, image, matrix, size, fill)
        return self._join(values, exact, rule, image, matrix, fill)

    def sample(
        self,
        image: Tensor,
        points: Tensor,
        fill: Tensor,
        rule: SamplingRule,
        *,
        border_value: Tensor | None = None,
        values_at: Tensor | None = None,
        fixed_map: bool = False,
    ) -> Tensor:
        """As `Backend.sample`; fixed_map: as in `arithmetic.opencv.sample`."""
        at = points if values_at is None else values_at
        values = partial(self.values.sample, image, at, fill, rule, border_value, fixed_map)
        return self._join(
            values, partial(self.exact.sample, image, points, fill), rule, image, points, fill
        )

    def sample_offsets(
        self,
        image: Tensor,
        offsets: Tensor,
        fill: Tensor,
        rule: SamplingRule,
        *,
        border_value: Tensor | None = None,
    ) -> Tensor:
        """`sample` at every pixel's own position plus its offset, which OpenCV adds in the offsets'
        own type.

        offsets (*P, h, w, 2), pixels; the others as in `Backend`.
        """

        def values() -> Tensor:
            at = opencv.added_to_pixels(offsets)
            return self.values.sample(image, at, fill, rule, border_value, False)

        if self.fused:
            exact = partial(self.exact.sample_offsets, image, offsets, fill)
        else:
            exact = partial(self.exact.sample, image, added_to_pixels(offsets), fill)
        return self._join(values, exact, rule, image, offsets, fill)

    def prepare(self, *given: Any, **options: bool) -> Plan | None:
        """As `cpu.prepare`."""
        if not self.fused:
            return None
        return cpu.prepare(*given, **options, kernels=cpu_opencv.planned)

    def inverse_map(self, matrix: Tensor) -> Tensor:
        """As `Backend.inverse_map`; OpenCV's values have an inverse of their own."""
        return self.exact.inverse_map(matrix)

    def _join(
        self, values: Values, exact: Callable[..., Tensor], rule: SamplingRule, *inputs: Tensor
    ) -> Tensor:
        """inputs: image (*I, C, H, W), map and fill, as in `Backend`."""
        # rules are made anew because Dynamo could not trace _replace before torch 2.8
        exact = partial(exact, rule=SamplingRule(rule.interpolation, rule.border))
        return with_exact_gradient(values, exact, *inputs, fused=self.fused)


REFERENCE = OpenCVBackend(opencv, reference, fused=False)
CPU = OpenCVBackend(cpu_opencv, cpu, fused=True)
