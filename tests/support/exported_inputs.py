"""Input tensors of exported calls, with dynamic sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Shape = tuple[int | str, ...]
"""Sides; a word is the name of one that may be any."""
GIVEN = {
    "batch": (2, 1, 5),
    "points": (7, 4, 11),
    "rows": (6, 3, 9),
    "boxes": (3, 1, 6),
    "height": (48, 90, 24),
    "width": (63, 40, 25),
}
"""How long such a side is in the export, and in two runs beside it."""


class Input(NamedTuple):
    """An input tensor."""

    shape: Shape
    make: Callable[[tuple[int, ...], torch.Generator], Tensor]

    def tensor(self, turn: int) -> Tensor:
        """The tensor in the export's sizes (turn 0), or in another run's."""
        sides = tuple(n if isinstance(n, int) else GIVEN[n][turn] for n in self.shape)
        return self.make(sides, torch.Generator().manual_seed(turn))

    @property
    def dynamic(self) -> dict[int, torch.export.Dim]:
        """The `dynamic_shapes` of the tensor for torch.onnx.export."""
        return {k: torch.export.Dim(n) for k, n in enumerate(self.shape) if isinstance(n, str)}


class ExportedCall(NamedTuple):
    """A call, one row of the table."""

    function: str
    """As a user writes it behind `warpkit.`."""
    words: str
    """Which of its options and types."""
    call: Callable[..., Any]
    inputs: Sequence[Input]
    """In a constructor's call, what the object is called with."""


def floats(*shape: int | str) -> Input:
    """Floats in [0, 1)."""
    return Input(shape, lambda sides, random: torch.rand(sides, generator=random))


def levels(*shape: int | str) -> Input:
    """Bytes."""
    return Input(
        shape,
        lambda sides, random: torch.randint(0, 256, sides, generator=random, dtype=torch.uint8),
    )


def labels(*shape: int | str) -> Input:
    """Integers of 64 bits."""
    return Input(
        shape, lambda sides, random: torch.randint(-(10**9), 10**9, sides, generator=random)
    )


def doubles(*shape: int | str) -> Input:
    """Floats in [0, 1), float64."""
    return Input(
        shape, lambda sides, random: torch.rand(sides, generator=random, dtype=torch.float64)
    )


def near(*values: Any, shape: Shape = ("batch",), noise: float = 0.05) -> Input:
    """Values with noise; their shape is the end of the tensor's shape."""
    middle = torch.tensor(values[0] if len(values) == 1 else values)

    def made(sides: tuple[int, ...], random: torch.Generator) -> Tensor:
        return middle + noise * torch.randn((*sides, *middle.shape), generator=random)

    def whole(sides: tuple[int, ...], random: torch.Generator) -> Tensor:
        return made(sides[: len(sides) - middle.ndim], random)

    return Input((*shape, *middle.shape), whole)


SIZE = (20, 25)
IMAGE = floats("batch", 3, 24, 31)
BYTES = levels("batch", 3, 24, 31)
LABELS = labels("batch", 3, 24, 31)
DOUBLES = doubles("batch", 3, 24, 31)
MATRIX = near([[0.9, 0.2, 0.3], [-0.15, 1.1, -0.4]])
HOMOGRAPHY = near([[1.1, 0.2, 0.3], [-0.15, 0.9, -0.4], [0.001, -0.002, 1.0]], noise=1e-4)
PLACES = Input(
    ("batch", "points", 2), lambda sides, random: torch.rand(sides, generator=random) * 20
)
FLOW = Input(("batch", 24, 31, 2), lambda sides, random: torch.randn(sides, generator=random))
CAMERA = near([[40.0, 0.0, 15.0], [0.0, 40.0, 12.0], [0.0, 0.0, 1.0]], noise=0.0)
LENS = near([-0.1, 0.02, 0.001, -0.001], noise=0.002)
FISHEYE = near([0.02, -0.01, 0.001, 0.0], noise=0.0)
PAIRS = (near([[2.0, 3.0], [25.0, 2.0], [27.0, 20.0], [3.0, 21.0], [14.0, 11.0]], noise=0.5),) * 2
QUAD = near([[2.0, 3.0], [25.0, 2.0], [27.0, 20.0], [3.0, 21.0]], noise=0.5)
BOXES = near([3.0, 4.0, 16.0, 14.0], shape=("boxes",), noise=0.5)
TURNED = near([12.0, 11.0, 9.0, 7.0, 20.0], shape=("boxes",), noise=0.5)
OBJECTS = near([[0.9, 0.1, 1.0], [-0.1, 0.9, 0.5]], shape=("boxes",))
LAID = near([[0.9, 0.1, 6.0], [-0.1, 0.9, 5.0]], shape=("boxes",))
WHICH = Input(("boxes",), lambda sides, random: torch.zeros(sides, dtype=torch.int64))
INDEX = Input(("rows",), lambda sides, random: torch.rand(sides, generator=random) * 8)
ROWS = floats(10, 4)
ANY = ("batch",)
FIELD = Input(("batch", *SIZE, 2), lambda sides, random: torch.rand(sides, generator=random) * 20)
