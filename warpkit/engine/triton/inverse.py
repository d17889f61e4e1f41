"""Inverts matrices in one kernel: `maps.inverse_map` takes 30 launches, longer than a warp."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from warpkit.engine.definitions.maps import inverse_vjp
from warpkit.engine.triton.kernels import kernel
from warpkit.engine.triton.positions import AFFINE, INFINITY, finite
from warpkit.engine.triton.work import launch

MATRICES = 128
"""Matrices per program: one per thread."""


@kernel
def invert_kernel(matrix, to_source, count, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """As `maps.inverse_map`, in its order of operations."""
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = n < count
    m, to = matrix + n * (3 * KIND), to_source + n * (3 * KIND)
    a, b, c = tl.load(m, mask=live), tl.load(m + 1, mask=live), tl.load(m + 2, mask=live)
    d, e, f = tl.load(m + 3, mask=live), tl.load(m + 4, mask=live), tl.load(m + 5, mask=live)
    g, h, i = a * 0, a * 0, a * 0 + 1
    if KIND == AFFINE:
        det = a * e - b * d
        per = 1 / det
        k, p, q, r = e * per, b * -per, d * -per, a * per
        s, t = -k * c - p * f, -q * c - r * f
    else:
        g, h, i = tl.load(m + 6, mask=live), tl.load(m + 7, mask=live), tl.load(m + 8, mask=live)
        det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
        per = 1 / det
        k, p, s = (e * i - f * h) * per, (c * h - b * i) * per, (b * f - c * e) * per
        q, r, t = (f * g - d * i) * per, (a * i - c * g) * per, (c * d - a * f) * per
    good = finite((a, b, c, d, e, f, g, h, i)) & (tl.abs(det) < INFINITY) & (tl.abs(per) < INFINITY)
    tl.store(to, tl.where(good, k, float("nan")), mask=live)
    tl.store(to + 1, tl.where(good, p, float("nan")), mask=live)
    tl.store(to + 2, tl.where(good, s, float("nan")), mask=live)
    tl.store(to + 3, tl.where(good, q, float("nan")), mask=live)
    tl.store(to + 4, tl.where(good, r, float("nan")), mask=live)
    tl.store(to + 5, tl.where(good, t, float("nan")), mask=live)
    if KIND != AFFINE:
        tl.store(to + 6, tl.where(good, (d * h - e * g) * per, float("nan")), mask=live)
        tl.store(to + 7, tl.where(good, (b * g - a * h) * per, float("nan")), mask=live)
        tl.store(to + 8, tl.where(good, (a * e - b * d) * per, float("nan")), mask=live)


def forward(singular: float, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """As `maps.inverse_map` of float64 matrices (..., 2 or 3, 3); also the result again.

    singular: NaN.
    """
    matrix = matrix.contiguous()
    to_source, rows = torch.empty_like(matrix), matrix.shape[-2]
    count = matrix.numel() // (3 * rows)
    if count:
        options = {"count": count, "KIND": rows, "BLOCK": MATRICES}
        launch(invert_kernel, triton.cdiv(count, MATRICES), matrix, to_source, **options)
    return to_source, to_source.detach()


def backward(
    singular: float,
    to_source: Tensor,
    grads: tuple[Tensor, ...],
    tensors: tuple[Tensor, ...],
    wanted: tuple[bool, ...],
) -> list[Tensor]:
    """The gradient of matrices (..., 2 or 3, 3) from that of their inverses."""
    return [inverse_vjp(to_source, grads[0])]
