"""Which pixels of an image a warp reads, and with which weights: why a gradient is zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.definitions import antialias as antialiased
from warpkit.engine.definitions.antialias import check_antialias
from warpkit.engine.definitions.maps import output_points
from warpkit.engine.definitions.reference import sum_of_taps
from warpkit.engine.definitions.rules import LIMIT, SamplingRule
from warpkit.engine.operators.inverse import inverse_map


class ReadPixels:
    """Which pixels of an image of a mask's shape a warp reads."""

    def __init__(
        self,
        mask: Tensor,
        where: Any,
        size: Sequence[int] | None,
        rule: SamplingRule,
        inverse: bool,
        antialias: bool | int,
    ) -> None:
        name = "explain"
        if mask.ndim < 3 or min(mask.shape[-3:]) < 1:
            wanted = "of an image (..., C, H, W), at least one channel and one pixel a side"
            checks.fail(name, "mask", wanted, f"shape {checks.shape_of(mask)}")
        where = checks.as_float(name, "where", where, mask.device)
        checks.check_device(name, "where", where, mask.device)
        where = where.detach().double()
        checks.check_bool(name, "inverse", inverse)
        self.image = torch.ones(mask.shape, dtype=torch.float64, device=mask.device)
        self.size = (
            (mask.shape[-2], mask.shape[-1])
            if size is None
            else checks.check_size(name, "size", size)
        )
        self.antialias = check_antialias(name, antialias)
        self.map = None
        if where.ndim >= 3 and where.shape[-1] == 2:
            self.points = where
        else:
            checks.check_matrix_shape(name, "where", where, (2, 3))
            self.map = where if inverse else inverse_map(where)
            self.points = output_points(self.map, self.size)
        checks.broadcast_batch(name, mask=mask.shape[:-3], where=self.points.shape[:-3])
        self.rule = rule
        self.outside = self.image.new_zeros(())

    def mask(self, rule: SamplingRule, weighted: bool) -> Tensor:
        """The pixels that some output pixel reads; if `weighted`, with a weight other than 0."""
        image = self.image.clone().requires_grad_()
        with torch.enable_grad():
            result = self.warp(image, rule, weighted)
        (grad,) = torch.autograd.grad(result, image, fixed_weights(result))
        return grad != 0

    def warp(self, image: Tensor, rule: SamplingRule, weighted: bool) -> Tensor:
        """The warp of `image` with border 0; if not `weighted`, the plain sum of taps."""
        if self.map is None:
            return sum_of_taps(image, self.points, self.outside, rule, weighted=weighted)

        def plain_warp(
            image: Tensor, inverse: Tensor, fill: Tensor, size: tuple[int, int]
        ) -> Tensor:
            """Arguments as of `antialias.warp`."""
            points = output_points(inverse, size)
            return sum_of_taps(image, points, fill, rule, weighted=weighted)

        if self.antialias is False:
            return plain_warp(image, self.map, self.outside, self.size)
        arguments = (image, self.map, self.size, self.outside, self.rule, self.antialias)
        return antialiased.warp("explain", plain_warp, *arguments)

    def reasons(self, image_gradient: str) -> dict[str, Tensor]:
        """Every reason why a pixel may get no gradient, and the pixels that it applies to."""
        weighted = self.mask(self.rule, weighted=True)
        present = self.mask(self.rule, weighted=False)
        beside = present
        if self.rule.interpolation == "nearest":
            beside = self.mask(self.rule._replace(interpolation="bilinear"), weighted=False)
        unweighted = "are read with weight 0 only"
        if image_gradient == "exact":
            unweighted += ': image_gradient="straight_through" reaches them'
        else:
            weighted = present
        return {
            "are not visible: no output pixel reads them": ~beside & ~present,
            "lie between the pixels that nearest picks: bilinear reads them": beside & ~present,
            unweighted: present & ~weighted,
            "are read, but the output does not depend on them": weighted,
        }

    def output(self) -> str:
        """A summary of the output pixels, in one line."""
        near = (self.points.abs() < LIMIT).all(-1)  # false for NaN
        weights = self.warp(self.image, self.rule, weighted=True)
        border = (weights[..., 0, :, :] == 0) & near
        total, nowhere = border.numel(), int((~near).expand(border.shape).sum())
        text = f"{total:,} output pixels: {int(border.sum()):,} show the border alone, "
        return text + f"{nowhere:,} have no source point (NaN, or 2^31 and beyond)"


def fixed_weights(output: Tensor) -> Tensor:
    """Fixed weights in [0.5, 1.5), all different; 1 for a single number."""
    if output.numel() == 1:
        return torch.ones_like(output)
    # drawn on the CPU, independent of torch's default device
    generator = torch.Generator("cpu").manual_seed(0)
    options: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    weights = torch.rand(output.shape, generator=generator, **options) + 0.5
    return weights.to(output.device, output.dtype)
