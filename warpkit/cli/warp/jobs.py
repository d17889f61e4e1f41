"""Processes one file: reads, warps and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from warpkit.cli.errors import CommandError
from warpkit.cli.image_files import INPUTS, read_image, write_image
from warpkit.cli.image_kinds import QUALITY_FORMATS, Picture
from warpkit.cli.stderr import say


class Options(Protocol):
    """What a command does with each picture: `warpkit warp`, `resize`, `undistort` or `view`."""

    def check(self) -> None:
        """Reject options that are invalid for every picture."""
        ...

    def apply(self, picture: Picture) -> Picture:
        """The result for a picture."""
        ...


@dataclass(frozen=True)
class Job:
    """One file to warp."""

    source: str
    target: str | Path
    kind: str
    """Pillow's name of the format to write; "" if the target does not determine it."""


@dataclass(frozen=True)
class Outcome:
    """The result of one job."""

    seconds: float
    lines: list[str]
    """The messages about the file."""
    error: str | None = None


def do(job: Job, quality: int | None, options: Options) -> None:
    """Read, warp, write, and report conversions."""
    picture = read_image(job.source)
    words = write_image(job.target, options.apply(picture), job.kind, quality)
    if words != picture.description:
        name = "standard input" if job.source in INPUTS else job.source
        say(f"{name}: {picture.description} converted to {words}")


def check_quality(quality: int | None, jobs: Sequence[Job]) -> None:
    """Reject a quality that applies to none of the files."""
    kinds = {job.kind for job in jobs}
    if quality is not None and kinds and not kinds & set(QUALITY_FORMATS):
        wanted = ", ".join(QUALITY_FORMATS)
        raise CommandError(f"--quality is for {wanted}, not {', '.join(sorted(kinds))}")
