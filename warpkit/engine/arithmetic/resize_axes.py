"""Code shared by OpenCV's and Pillow's resizes: the axes of a call, tables, moved pixels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.engine.arithmetic.resize_tables import Taps, on_device
from warpkit.engine.definitions.labels import as_signed, from_signed


class Axis(NamedTuple):
    """One axis of a call."""

    kind: str
    """The kind of table: see `resize_tables`."""
    length: int
    size: int
    factor: float
    """The output's size over the input's, or fx or fy."""

    @property
    def scale(self) -> float:
        """Input pixels per output pixel, as OpenCV rounds it."""
        return 1.0 / self.factor


def of_kind(way: str, kind_x: str, kind_y: str, across: Axis, down: Axis) -> tuple[str, Axis, Axis]:
    """An algorithm, and the axes with their kinds of table."""
    x = Axis(kind_x, across.length, across.size, across.factor)
    return way, x, Axis(kind_y, down.length, down.size, down.factor)


def taps_of(axis: Axis, device: torch.device) -> Taps:
    """The axis's table on a device."""
    return on_device(*axis, device=device)


def move(image: Tensor, x: Taps, y: Taps) -> Tensor:
    """The single pixel that each output pixel reads."""
    moved = as_signed(image).index_select(-2, y.pixel[:, 0]).index_select(-1, x.pixel[:, 0])
    return from_signed(moved, image.dtype)
