"""The results of a parity suite: all rows, and their totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from warpkit.validation.resizes import ResizeRow
from warpkit.validation.suite import Row


class RowPictures(NamedTuple):
    """The pictures of one row, each (C, H, W) of the row's type."""

    row: Row
    source: Tensor
    opencv: Tensor
    others: dict[str, Tensor]
    """The results of warpkit, and of the peers that support the setting."""


@dataclass(frozen=True, repr=False)
class Results:
    """The rows of a suite; a report adds ways to read and store them."""

    rows: tuple[Row, ...]
    arithmetic: str
    environment: dict[str, str]
    """Versions, the machine and the date."""
    images: tuple[str, ...]
    """The names of the warped images."""
    scenes: tuple[RowPictures, ...]
    """The rows with the largest differences, shown as pictures on the page."""
    resizes: tuple[ResizeRow, ...] = ()
    """The rows of `resize`, each compared with its own library."""

    @property
    def broken(self) -> tuple[Row, ...]:
        """The rows of warps that break a guarantee."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def broken_resizes(self) -> tuple[ResizeRow, ...]:
        """The rows of `resize` that break a guarantee."""
        return tuple(row for row in self.resizes if not row.passed)

    @property
    def promised(self) -> tuple[Row, ...]:
        """The rows for which something is guaranteed."""
        return tuple(row for row in self.rows if row.promise.where != "nowhere")

    @property
    def passed(self) -> bool:
        """Whether all guaranteed pixels are equal to the library's own."""
        return not self.broken and not self.broken_resizes

    @property
    def verdict(self) -> str:
        """The outcome in one or two sentences."""
        warps = self._verdict_of_warps
        promised = sum(row.promise.where != "nowhere" for row in self.resizes)
        if self.broken_resizes:
            return f"{warps}; {len(self.broken_resizes):,} of {promised:,} resizes differ"
        if promised:
            return f"{warps}; of {promised:,} resizes every value is its library's own"
        return warps

    @property
    def _verdict_of_warps(self) -> str:
        version, count = self.environment["opencv"], len(self.promised)
        if not count:
            reason = self.rows[0].promise.reason if self.rows else "no rows"
            return f"nothing is promised beside OpenCV {version} ({reason})"
        if self.broken:
            return f"{len(self.broken):,} of {count:,} settings differ from OpenCV {version}"
        return f"{count:,} settings, and every promised pixel is that of OpenCV {version}"
