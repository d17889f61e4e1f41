"""Photographs warped by the workers of a DataLoader: python -m tests.support.data_loader METHOD

METHOD is how the workers start. They warp after their parent has warped on threads. Two epochs of
persistent workers must have the parent's bits. Each worker has one thread and its own generator.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

import warpkit as wk

LARGE = 400
"""Pixels a side, enough that a warp of three channels wakes a second thread."""


class Warped(Dataset[tuple[Tensor, ...]]):
    """Items: a warp and a resize by the worker, its number of threads, and a random number."""

    generator: torch.Generator | None = None

    def __init__(self) -> None:
        self.image = torch.rand(3, LARGE, LARGE, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        matrix = wk.rotation_matrix(wk.image_center((LARGE, LARGE)), 10.0 * index)
        warped = wk.warp_affine(self.image, matrix)
        small = wk.resize((warped * 255).byte(), (64, 64), arithmetic="pillow")
        threads, numbers = (
            torch.tensor(torch.get_num_threads()),
            torch.rand(1, generator=self.generator),
        )
        return warped, small, threads, numbers


def give_generator(worker: int) -> None:
    """Seed a generator for each worker; copies of the data set's would all draw the same."""
    data = get_worker_info().dataset
    data.generator = torch.Generator().manual_seed(torch.initial_seed())


def main(method: str) -> None:
    """Run two epochs; the loader's timeout ends the run if a worker hangs."""
    torch.set_num_threads(2)
    data = Warped()
    own = [data[index] for index in range(len(data))]  # starts the parent's threads
    loader = DataLoader(
        data,
        batch_size=2,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=True,
        worker_init_fn=give_generator,
        timeout=60,
    )
    numbers: list[float] = []
    for _ in range(2):
        *results, threads, draws = (torch.cat(parts) for parts in zip(*loader, strict=True))
        for got, want in zip(results, zip(*own, strict=True), strict=False):
            assert torch.equal(got, torch.stack(want))
        assert threads.eq(1).all()
        numbers += draws.flatten().tolist()
    assert len(set(numbers)) == len(numbers)  # no worker or epoch repeats numbers
    again = data[0]
    assert torch.equal(again[0], own[0][0])  # the parent's threads still work
    print("the same bits")


if __name__ == "__main__":
    main(sys.argv[1])
