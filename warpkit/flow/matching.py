"""Local correlation: features of two pictures compared around every pixel's place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.integers import WHOLE_NUMBERS, plain_integer
from warpkit.core.mistakes import warn_if_points
from warpkit.core.sharding import batched
from warpkit.engine.definitions import features
from warpkit.engine.definitions.correlation import Square
from warpkit.engine.definitions.reference import compute_dtype
from warpkit.engine.operators import correlation as operator
from warpkit.geometry.arguments import floats
from warpkit.types import Border, FlowLike


@batched(first=3, second=3, flow=3)
def correlation(
    first: Tensor,
    second: Tensor,
    flow: FlowLike | None = None,
    *,
    radius: int | Sequence[int] = 4,
    step: float = 1.0,
    border: Border = "constant",
) -> Tensor:
    """Local correlation: each pixel's features with those around its place in another picture.

    Args:
        first: (..., C, h, w), of a floating type.
        second: (..., C, H, W), of the same type, of any size.
        flow: (..., h, w, 2), the offset (dx, dy) in pixels from each pixel p of `first` to its
            place in `second`; None is 0. Of places (x, y), as RAFT's coordinates are,
            `flow.from_points` makes one.
        radius: of the square of offsets, a whole number from 0 or a pair, (rows, columns).
        step: between neighbouring offsets, a finite number above 0, in pixels.
        border: what stands outside `second`, as in `warpkit.remap`; "constant" is 0.

    Returns:
        (..., (2 rows + 1)(2 columns + 1), h, w), of the features' type, the offsets by rows (dy
        slowest): at p and (dx, dy) the mean over the channels of first(p) times second, sampled
        bilinearly at p + flow(p) + step (dx, dy). Places are float64; one that is not finite, or
        2^31 and more away, is none: the result is 0 there, without a gradient. Halves are computed
        in float32. All batches broadcast, and nothing of the size of C times the result is stored.
        The same bits for any number of threads.

    Gradients: all orders, forward and reverse, to both pictures and the flow.

    Without a flow PWC-Net's correlation layer; with radius=10, step=2 FlowNetC's. RAFT divides by
    the root of C, and has dx slowest.

    >>> first, second = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[10.0, 20.0, 40.0]]])
    >>> correlation(first, second, radius=(0, 1))
    tensor([[[  0.,  20.,  60.]],
    <BLANKLINE>
            [[ 10.,  40., 120.]],
    <BLANKLINE>
            [[ 20.,  80.,   0.]]])
    >>> correlation(first, second, [[[0.5, 0.0], [0.5, 0.0], [0.5, 0.0]]], radius=0)
    tensor([[[15., 60., 60.]]])
    """
    name = "correlation"
    first = features.as_features(name, "first", first, features.PICTURE, empty=True)
    second = features.as_features(name, "second", second, features.PICTURE)
    features.check_alike(name, "second", second, "first", first)
    options = Square(_radius(name, radius), _step(name, step), features.named_border(name, border))
    size = (first.shape[-2], first.shape[-1])
    tensors = [first, second]
    if flow is not None:
        tensors.append(_flow(name, flow, size, first.device))
        warn_if_points(name, tensors[2], second.shape[-2:])
    shapes = zip(("first", "second", "flow"), tensors, strict=False)
    checks.broadcast_batch(name, **{argument: t.shape[:-3] for argument, t in shapes})
    kind = compute_dtype(first.dtype)
    return operator.correlation(options, *(t.to(kind) for t in tensors[:2]), *tensors[2:]).to(
        first.dtype
    )


def _radius(name: str, radius: Any) -> tuple[int, int]:
    """The radius along rows and columns."""
    pair = radius if isinstance(radius, checks.LISTS) else (radius, radius)
    whole = all(isinstance(n, WHOLE_NUMBERS) and not isinstance(n, bool) for n in pair)
    if len(pair) != 2 or not whole or min(pair) < 0:
        wanted = "a whole number from 0, or a pair, (rows, columns)"
        checks.fail(name, "radius", wanted, f"{radius!r:.60}")
    rows, columns = map(plain_integer, pair)
    return rows, columns


def _step(name: str, step: Any) -> float:
    number = isinstance(step, Real) and not isinstance(step, bool)
    if not number or not 0 < float(step) < math.inf:
        checks.fail(name, "step", "a finite number above 0", f"{step!r:.60}")
    return float(step)


def _flow(name: str, value: Any, size: tuple[int, int], device: torch.device) -> Tensor:
    """A flow (..., h, w, 2) of `size`, which may be empty; numbers in float64."""
    flow = floats(name, "flow", value, device)
    last = tuple(flow.shape[-3:])
    if last != (*size, 2):
        got = f"{checks.shape_of(flow)}"
        if last == (2, *size):
            got += ": (..., 2, h, w) is flow.movedim(-3, -1)"
        wanted = f"of shape (..., {size[0]}, {size[1]}, 2), an offset for every pixel of `first`"
        checks.fail(name, "flow", wanted, got)
    return flow
