"""One table of views of images, for the tests that kernels read any strides in place."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.support.inputs import seeded

TYPES = (torch.uint8, torch.float32, torch.float16, torch.bfloat16)


def rows(height: int, width: int, dtype: torch.dtype) -> Tensor:
    """Pixels of four channels, (H, W, 4), as a decoder returns them."""
    numbers = torch.randint(0, 256, (height, width, 4), generator=seeded(2))
    return (numbers / 255).to(dtype) if dtype.is_floating_point else numbers.to(dtype)


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "planes": lambda a: a.permute(2, 0, 1)[:3].contiguous(),
    "rows of pixels": lambda a: a[..., :3].contiguous().permute(2, 0, 1),
    "a batch of rows of pixels": lambda a: a[..., :3].contiguous().permute(2, 0, 1)[None],
    "a video of rows of pixels": lambda a: a[None, None, ..., :3].contiguous().movedim(-1, 2),
    "columns of rows of pixels": lambda a: a[..., :3].contiguous().permute(2, 0, 1)[..., 9:],
    "three channels of four": lambda a: a.permute(2, 0, 1)[:3],
    "a batch of three channels of four": lambda a: a.permute(2, 0, 1)[None, :3],
    "three planes of four": lambda a: a.permute(2, 0, 1)[None].contiguous()[:, :3],
    "columns of planes": lambda a: a.permute(2, 0, 1).contiguous()[:3, 7:, 5:-60],
    "every second row and column": lambda a: a.permute(2, 0, 1)[:3, ::2, 1::2],
    "every second row of planes": lambda a: a.permute(2, 0, 1)[:3].contiguous()[:, ::2],
    "every second column of planes": lambda a: a.permute(2, 0, 1)[:3].contiguous()[..., ::2],
    "transposed planes": lambda a: a.permute(2, 0, 1)[:3].contiguous().mT,
    "transposed rows of pixels": lambda a: a[..., :3].contiguous().permute(2, 1, 0),
    "one channel for three": lambda a: a.permute(2, 0, 1)[1:2].expand(3, -1, -1),
    "one image for two": lambda a: a.permute(2, 0, 1)[None, :3].expand(2, -1, -1, -1),
}
"""A view (..., C, H, W) of pixels (H, W, 4)."""
