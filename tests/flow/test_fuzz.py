"""Huge, tiny, NaN and folding fields, through every function of flows.

No read leaves an image (the memory around it holds NaN), and no gradient of finite numbers is NaN.
"""

from __future__ import annotations

import pytest
import torch

import warpkit as wk
from tests.support.inputs import RULES, seeded
from warpkit import flow

DRAWS = 60
WARPS = [r for r in RULES if r[0] in ("bilinear", "bicubic") and r[1] != "transparent"]
SIZES = [(1, 1), (1, 6), (5, 1), (4, 5), (7, 6)]
SCALES = [0.0, 1e-320, 1e-30, 0.3, 4.0, 30.0, 1e4, 2.0**31, 1e15, 1e30, 1e150, 1e300]


class Draw:
    """The random choices of one round."""

    def __init__(self, number):
        self.generator = seeded(number)
        self.dtype = (torch.float64, torch.float32)[number % 2]
        self.size = self.one_of(SIZES)

    def one_of(self, things):
        return things[int(torch.randint(len(things), (), generator=self.generator))]

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def field(self, *shape):
        """Numbers of one extreme scale or of several, finite in the round's type."""
        values = self.one_of(SCALES) * self.normal(*shape)
        if self.one_of([False, True]):
            other = self.one_of(SCALES) * self.normal(*shape)
            values = torch.where(self.normal(*shape) > 0.8, other, values)
        most = torch.finfo(self.dtype).max / 8
        return values.clamp(-most, most).to(self.dtype)

    def guarded(self, *shape):
        """An image in [0, 1] with NaN in memory before and after it."""
        count = torch.Size(shape).numel()
        memory = torch.full((3 * count + 64,), torch.nan, dtype=self.dtype)
        image = memory[count + 32 : 2 * count + 32]
        image.copy_(self.normal(count).abs().clamp(max=1))
        return image.view(shape)


def calls(draw):
    """Functions of one field (2, h, w, 2), and of an image (2, h, w), by name."""
    height, width = draw.size
    target = (draw.one_of([1, 3, height]), draw.one_of([1, 4, width]))
    interpolation, border = draw.one_of(WARPS)
    mode = draw.one_of(["sum", "average", "softmax"])
    weights = draw.field(1, height, width)
    weights = weights.abs() if mode == "average" else weights
    points = draw.field(3, 2)
    matrix = draw.normal(2, 3).to(draw.dtype)
    return {
        "warp_flow": lambda i, f: wk.warp_flow(i, f, interpolation=interpolation, border=border),
        "splat": lambda i, f: flow.splat(i, f, size=target, mode=mode, weights=weights).image,
        "paste": lambda i, f: wk.paste_patches(i, i, matrix[None], None, flow=f[0]),
        "to_points": lambda i, f: flow.to_points(f),
        "from_points": lambda i, f: flow.from_points(f),
        "compose": lambda i, f: flow.compose(f, f.flip(0)),
        # the product of three slopes must be a float32 number
        "integrate": lambda i, f: flow.integrate(f.clamp(-1e9, 1e9), steps=3),
        "determinant": lambda i, f: flow.jacobian_determinant(f),
        "invert": lambda i, f: flow.invert(f).flow,
        "transform": lambda i, f: flow.transform_points(points, f)[0],
        "bspline": lambda i, f: flow.bspline(f.repeat(1, 4, 4, 1), target),
    }


@pytest.mark.filterwarnings("ignore:.*(runs from -1 to 1|runs over the pixels|lie within)")
def test_no_field_gives_nan_or_reads_outside():
    finite = 0
    for number in range(DRAWS):
        draw = Draw(number)
        image, field = draw.guarded(2, *draw.size), draw.field(2, *draw.size, 2)
        for name, call in calls(draw).items():
            leaves = image.detach().requires_grad_(), field.clone().requires_grad_()
            out = call(*leaves)
            where = number, name, draw.size, draw.dtype
            if name in ("warp_flow", "splat", "paste"):
                assert out.isfinite().all(), where
            kept = torch.where(out.isfinite(), out, 0.0) + 0 * leaves[0].sum()
            for grad in torch.autograd.grad(kept.sum(), leaves, allow_unused=True):
                assert grad is None or not grad.isnan().any(), where
                finite += grad is not None
            broken = field.masked_fill(draw.normal(*field.shape) > 1, torch.nan)
            broken = broken.masked_fill(draw.normal(*field.shape) > 1.5, torch.inf)
            out = image if name == "bspline" else call(image, broken)
            if name in ("warp_flow", "splat", "paste"):
                assert out.isfinite().all(), where
    assert finite > 12 * DRAWS


def test_thin_plates_of_any_points_are_finite_or_rejected():
    """Collinear or coincident points are rejected; any others give finite numbers."""
    fitted = 0
    for number in range(DRAWS):
        draw = Draw(number)
        source, target = (draw.field(5, 2).requires_grad_() for _ in range(2))
        smooth = draw.field().abs().requires_grad_()
        try:  # a field or this error: which one depends on the draw, so pytest.raises cannot say it
            field = flow.thin_plate_spline(source, target, draw.size, smoothing=smooth)
        except ValueError as error:
            assert "`target` must be points" in str(error), number  # noqa: PT017
            continue
        if not field.isfinite().all():  # sources of 1e37, or distances of 1e-30, overflow
            continue
        fitted += 1
        for grad in torch.autograd.grad(field.sum(), (source, target, smooth)):
            assert not grad.isnan().any(), (number, target)
    assert fitted > 0.8 * DRAWS
