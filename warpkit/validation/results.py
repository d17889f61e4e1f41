"""The results of a parity suite: all rows, and their totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from warpkit.validation.resizes import ResizeRow
from warpkit.validation.suite import Row


class RowPictures(NamedTuple):
    """One row's pictures, each (C, H, W) of the row's type."""

    row: Row
    source: Tensor
    opencv: Tensor
    others: dict[str, Tensor]
    """warpkit's, and the peers' that can do the same."""


@dataclass(frozen=True, repr=False)
class Results:
    """The rows of a suite; a report is these, and ways to read and store them."""

    rows: tuple[Row, ...]
    arithmetic: str
    environment: dict[str, str]
    """Versions, the machine and the day."""
    images: tuple[str, ...]
    """The names of what was warped."""
    scenes: tuple[RowPictures, ...]
    """The rows with the largest differences, for the pictures of the page."""
    resizes: tuple[ResizeRow, ...] = ()
    """The rows of `resize`, beside each library's own."""

    @property
    def broken(self) -> tuple[Row, ...]:
        """The warps' rows that do not keep what is promised."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def broken_resizes(self) -> tuple[ResizeRow, ...]:
        """The rows of `resize` that do not keep what is promised."""
        return tuple(row for row in self.resizes if not row.passed)

    @property
    def promised(self) -> tuple[Row, ...]:
        """The rows of which something is promised."""
        return tuple(row for row in self.rows if row.promise.where != "nowhere")

    @property
    def passed(self) -> bool:
        """Whether no pixel differs that is promised to be a library's own."""
        return not self.broken and not self.broken_resizes

    @property
    def verdict(self) -> str:
        """The outcome in one sentence, or two."""
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
