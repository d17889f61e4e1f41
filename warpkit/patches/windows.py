"""The parts of images that crops read, in the type of the computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from warpkit.core.tracing import is_eager, wants_gradient
from warpkit.engine.definitions.maps import map_xy
from warpkit.engine.definitions.objects.canvases import Images, listed
from warpkit.engine.definitions.rules import TAPS, SamplingRule, borders_of

FAR = 1 << 24
"""Places further away are not moved: a sum could reach the limit of positions, or lose digits."""


def read_windows(
    images: Images,
    compute: Callable[[Tensor], Tensor],
    to_source: Tensor,
    index: Tensor,
    size: tuple[int, int],
    rule: SamplingRule,
) -> tuple[Images, Tensor, Tensor] | None:
    """The window of each box as an image of its own, with its map and its index.

    compute: turns images (B, C, H, W) into the type of the computation. to_source (N, 2 or 3, 3);
    index (N,), within the images. None if that is more than all images, or where images have a
    gradient, which would be as large as an image for each window, or values cannot be read.
    """
    sources = listed(images)
    if (
        sources[0].device.type != "cpu"
        or len(index) == 0
        or not is_eager(*sources, to_source, index)
    ):
        return None
    if wants_gradient(*sources):
        return None
    sides = torch.tensor([image.shape[-2:] for image in sources], device="cpu")
    sides = sides[index] if len(sources) > 1 else sides.expand(len(index), 2)
    ends = _ends(to_source.detach(), size, sides, rule)
    if ends is None:
        return None
    first, last = ends
    if int((last - first).prod(1).sum()) >= sum(image[..., 0, :, :].numel() for image in sources):
        return None
    parts = []
    for number, (top, left), (bottom, right) in zip(
        index.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        part = images[number][:, top:bottom, left:right]
        parts.append(compute(part[None])[0])
    corner = first.to(to_source.dtype)
    shifted = _shift(to_source, corner[:, 1], corner[:, 0])
    return tuple(parts), shifted, torch.arange(len(index), device="cpu")


def _ends(
    to_source: Tensor, size: Sequence[int], sides: Tensor, rule: SamplingRule
) -> tuple[Tensor, Tensor] | None:
    """The first row and column that each box may read, and the end of both: (N, 2), int64.

    sides (N, 2): the images'. An edge of an image is one of the window, or no tap reaches it, so
    that borders stay where they are; those that lead into the image read all of an axis.
    """
    height, width = size
    x = to_source.new_tensor([-0.5, width - 0.5, width - 0.5, -0.5])
    y = to_source.new_tensor([-0.5, -0.5, height - 0.5, height - 0.5])
    rows = [line[..., None].unbind(1) for line in to_source.unbind(1)]
    places = torch.stack(torch.broadcast_tensors(*map_xy(rows, x, y)[::-1]), -1)  # (N, 4, 2): y, x
    if not bool((places.abs() < FAR).all()):  # false for NaN
        return None
    reach = TAPS[rule.interpolation] // 2 + 1
    low, high = places.amin(1).floor().long() - reach, places.amax(1).ceil().long() + reach + 1
    inside = torch.zeros_like(low)
    first, last = low.clamp(min=0), torch.minimum(high, sides)
    first = torch.minimum(first, sides - 1)
    last = torch.maximum(last, first + 1)
    folds = torch.tensor(
        [name not in ("constant", "replicate") for name in borders_of(rule.border)], device="cpu"
    )
    beyond = folds & ((low < 0) | (high > sides))
    return torch.where(beyond, inside, first), torch.where(beyond, sides, last)


def _shift(to_source: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Maps (N, 2 or 3, 3) to places relative to (x, y), each (N,)."""
    rows = list(to_source.unbind(1))
    depth = rows[2] if len(rows) == 3 else to_source.new_tensor([0.0, 0, 1])
    return torch.stack([rows[0] - x[:, None] * depth, rows[1] - y[:, None] * depth, *rows[2:]], 1)
