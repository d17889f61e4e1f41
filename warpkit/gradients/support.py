"""Which entries of an input get a gradient, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.definitions.rule_names import parse_rule
from warpkit.gradients.reasons import ReadPixels, fixed_weights
from warpkit.gradients.surrogates import check_floating
from warpkit.types import Border, ImageGradient, Interpolation, MatrixLike, PointsLike
from warpkit.warp_options import IMAGE_GRADIENTS


@dataclass(frozen=True)
class GradientSupport:
    """Which entries of an input get a gradient; printed as one line of text."""

    nonzero: int
    total: int
    fraction: float
    mask: Tensor
    """True where the gradient is not zero (NaN counts as not zero); of the input's shape."""

    def __repr__(self) -> str:
        return f"{self.nonzero:,} of {self.total:,} entries ({self.fraction:.1%}) get a gradient"

    def explain(
        self,
        where: MatrixLike | PointsLike,
        *,
        size: Sequence[int] | None = None,
        interpolation: Interpolation = "bilinear",
        border: Border = "constant",
        inverse: bool = False,
        antialias: bool | int = False,
        image_gradient: ImageGradient = "exact",
    ) -> str:
        """The reasons why the other entries of a warped image get no gradient, with counts.

        The input must be the image (..., C, H, W); where is the matrix (..., 2, 3) or (..., 3, 3)
        of the warp, or the points (..., h, w, 2) of `remap`; the options are the warp's options
        that decide which pixels are read.

        >>> image = torch.rand(1, 4, 4, requires_grad=True)
        >>> matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
        >>> from warpkit import warp_affine
        >>> print(gradient_support(warp_affine(image, matrix), image).explain(matrix))
        8 of 16 entries (50.0%) get a gradient
               4  are not visible: no output pixel reads them
               4  are read with weight 0 only: image_gradient="straight_through" reaches them
        16 output pixels: 8 show the border alone, 0 have no source point (NaN, or 2^31 and beyond)
        """
        checks.check_name("explain", "image_gradient", image_gradient, IMAGE_GRADIENTS)
        rule = parse_rule("explain", interpolation, border, "exact")
        reads = ReadPixels(self.mask, where, size, rule, inverse, antialias)
        lines = [str(self)]
        for reason, entries in reads.reasons(image_gradient).items():
            count = int((entries & ~self.mask).sum())
            lines += [f"{count:8,}  {reason}"] if count else []
        return "\n".join([*lines, reads.output()])


def gradient_support(output: Tensor, input: Tensor) -> GradientSupport:
    """Which entries of `input` the gradient of `output` reaches.

    output has any shape, a loss or an image; input has any shape and is part of output's graph,
    which is kept. The gradient is that of a fixed weighting of the outputs (1 for a single number),
    so that gradients of different outputs do not cancel. Raises ValueError if there is no graph.

    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> print(gradient_support(x[:2].prod(), x))
    2 of 3 entries (66.7%) get a gradient
    """
    for argument, tensor in (("output", output), ("input", input)):
        check_floating("gradient_support", argument, tensor)
        checks.check_held("gradient_support", argument, tensor)
        if not tensor.requires_grad:
            wanted = "part of an autograd graph"
            checks.fail("gradient_support", argument, wanted, "requires_grad=False")
    weight = fixed_weights(output)
    (grad,) = torch.autograd.grad(output, input, weight, retain_graph=True, allow_unused=True)
    mask = torch.zeros_like(input, dtype=torch.bool) if grad is None else grad != 0
    nonzero, total = int(mask.sum()), mask.numel()
    return GradientSupport(nonzero, total, nonzero / max(total, 1), mask)
