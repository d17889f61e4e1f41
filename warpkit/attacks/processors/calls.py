"""The images of one call of a processor: their sizes, and which of them share a prompt."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpkit.attacks.processors.sizes import Size


class Call(NamedTuple):
    """What a processor knows of the images of one call besides their pixels."""

    sizes: tuple[Size, ...]
    """(height, width) of each image."""
    prompts: tuple[int, ...] | None
    """How many images each prompt has; None for a flat list."""
    device: torch.device

    def numbers(self, values: Any, dtype: torch.dtype = torch.int64) -> Tensor:
        """A tensor of numbers beside the pixels, on the images' device."""
        return torch.tensor(values, dtype=dtype, device=self.device)

    def ones(self, *shape: int) -> Tensor:
        """A mask in float32, on the images' device."""
        return torch.ones(*shape, dtype=torch.float32, device=self.device)

    def by_prompt(self, parts: list[Any]) -> list[list[Any]]:
        """One entry for each image, as a list for each prompt; a flat list is one prompt."""
        rest = iter(parts)
        return [list(islice(rest, count)) for count in self.prompts or (len(parts),)]

    @property
    def neighbours(self) -> tuple[int, ...]:
        """How many images the prompt of each image has; of a flat list, each has its own."""
        if self.prompts is None:
            return (1,) * len(self.sizes)
        return tuple(count for count in self.prompts for _ in range(count))
