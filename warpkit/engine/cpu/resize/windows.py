"""The windows of images that kernels cannot read in place: see native/resize/resize_windows.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpkit.engine.cpu.resize.axes import Axis


class Windows(NamedTuple):
    """The parts of an image that the bands of a result read."""

    rows: np.ndarray
    """The image's rows in the window of each band, one band after the other, int32."""
    starts: np.ndarray
    """The index of each band's first row, int32, and the end."""
    slots: np.ndarray
    """The rows of a window that each tap along y reads, int32; or 0, 1, 2, ..."""
    columns: np.ndarray
    """The image's columns that windows have."""
    widest: int
    """The largest number of columns in a window."""

    @property
    def highest(self) -> int:
        """The largest number of rows in a window."""
        return int(np.diff(self.starts).max(initial=0))


def windows_of_bands(
    bands: Sequence[np.ndarray], slots: np.ndarray | None, columns: np.ndarray, widest: int
) -> Windows:
    """bands: the rows that each of them reads."""
    starts = np.cumsum([0, *map(len, bands)])
    if slots is None:
        slots = np.arange(max(map(len, bands), default=0))
    rows = np.concatenate(bands) if bands else np.zeros(0)
    rows, starts, slots = (a.astype(np.int32) for a in (rows, starts, slots))
    return Windows(rows, starts, slots, columns.astype(np.int32), widest)


def windows_of_taps(down: Axis, band: int, columns: np.ndarray, widest: int) -> Windows:
    """Of kernels whose taps along y are rows of the image; band: the rows of a band."""
    bands, slots = [], np.zeros_like(down.pixel)
    for y in range(0, down.size, band):
        taps = slice(down.begin[y], down.end[min(y + band, down.size) - 1])
        rows, places = np.unique(down.pixel[taps], return_inverse=True)
        slots[taps] = places.reshape(-1)
        bands.append(rows)
    return windows_of_bands(bands, slots, columns, widest)


def windows_of_cells(size: int, height: int, width: int) -> Windows:
    """Of means over cells of `height` rows, where a band is one row of the result."""
    bands = list(np.arange(size * height).reshape(size, height))
    return windows_of_bands(bands, None, np.arange(width), width)
