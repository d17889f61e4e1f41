"""Photographs warped by the workers of a DataLoader: python -m tests.support.data_loader METHOD

METHOD is how the workers start. They warp after their parent has, on threads; two epochs by
workers that stay must be the parent's bits.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import warpkit as wk

LARGE = 400
"""Pixels a side, enough that a warp of three channels wakes a second thread."""


class Warped(Dataset[tuple[Tensor, Tensor]]):
    """Items whose warps and resizes the worker computes."""

    def __init__(self) -> None:
        self.image = torch.rand(3, LARGE, LARGE, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        matrix = wk.rotation_matrix(wk.image_center((LARGE, LARGE)), 10.0 * index)
        warped = wk.warp_affine(self.image, matrix)
        small = wk.resize((warped * 255).byte(), (64, 64), arithmetic="pillow")
        return warped, small


def main(method: str) -> None:
    """Two epochs; a worker that waits for ever ends the run by the loader's timeout."""
    torch.set_num_threads(2)
    data = Warped()
    own = [data[index] for index in range(len(data))]  # the parent's threads have run
    loader = DataLoader(
        data,
        batch_size=2,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=True,
        timeout=60,
    )
    for _ in range(2):
        found = [torch.cat(parts) for parts in zip(*loader, strict=True)]
        for got, want in zip(found, zip(*own, strict=True), strict=True):
            assert torch.equal(got, torch.stack(want))
    again = data[0]
    assert torch.equal(again[0], own[0][0])  # the parent's threads go on
    print("the same bits")


if __name__ == "__main__":
    main(sys.argv[1])
