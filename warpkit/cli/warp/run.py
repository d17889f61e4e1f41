"""`warpkit warp` and `resize`: which file becomes which, one or many; progress and failures."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EISDIR, ENOTDIR
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Protocol

from rich.markup import escape

from warpkit.cli.errors import CommandError, cause_of
from warpkit.cli.image_files import (
    INPUTS,
    OUTPUTS,
    ImageFileError,
    check_folder,
    check_target,
    format_of,
    read_image,
    special,
    write_image,
)
from warpkit.cli.image_kinds import QUALITY_FORMATS, Picture, reason
from warpkit.cli.stderr import printable, say
from warpkit.core.progress import progress_bar


class Options(Protocol):
    """What a command does to each picture: of `warpkit warp`, `resize` or `undistort`."""

    def check(self) -> None:
        """Refuse before any work what cannot be right for any picture."""
        ...

    def apply(self, picture: Picture) -> Picture:
        """What becomes of a picture."""
        ...


@dataclass(frozen=True)
class Job:
    """One file to warp."""

    source: str
    target: str | Path
    kind: str
    """The format to write, by Pillow's name."""


def run(
    files: Sequence[str],
    folder: str | None,
    ending: str | None,
    quality: int | None,
    options: Options,
) -> int:
    """Warp IN to OUT, or all files into a folder; 1 where one of several failed."""
    options.check()
    if folder is None:
        job = single(files, ending)
        check_quality(quality, [job])
        check_target(job.target)
        do(job, quality, options)
        return 0
    return many(files, folder, ending, quality, options)


def do(job: Job, quality: int | None, options: Options) -> None:
    """Read, warp, write, and say what was converted."""
    picture = read_image(job.source)
    words = write_image(job.target, options.apply(picture), job.kind, quality)
    if words != picture.held:
        name = "standard input" if job.source in INPUTS else job.source
        say(f"{name}: {picture.held} converted to {words}")


def single(files: Sequence[str], ending: str | None) -> Job:
    """The job of `IN OUT`."""
    if len(files) < 2:
        raise CommandError(f"Missing argument '{('IN', 'OUT')[len(files)]}'.")
    if len(files) > 2:
        raise CommandError(
            f"takes IN and OUT, or --out DIR for several images, got {len(files)} files"
        )
    source, target = files
    if target in OUTPUTS:
        return Job(source, target, format_of(Path(f"-.{ending or 'png'}")))
    path = Path(target)
    if os.path.isdir(path):
        raise ImageFileError(f"{path}: Is a directory (--out takes one)")
    wanted = ending and format_of(Path(f"-.{ending}"))
    try:
        kind = format_of(path)
    except ImageFileError:
        if not (wanted or special(path)):
            raise
        return Job(source, path, wanted or "PNG")
    if wanted not in (None, kind):
        raise CommandError(f"--format {ending} does not go with {path}, which names {kind}")
    return Job(source, path, kind)


def many(
    files: Sequence[str],
    folder: str,
    ending: str | None,
    quality: int | None,
    options: Options,
) -> int:
    """Warp every file into a folder, which is made if need be; 1 where one failed."""
    if not files:
        raise CommandError("Missing argument 'IN'.")
    targets = targets_in(folder, files, ending)
    jobs: list[Job] = []
    failures: list[str] = []
    for source, target in zip(files, targets, strict=True):
        with noting(source, failures):
            if os.path.isdir(source):
                raise ImageFileError(f"{source}: {os.strerror(EISDIR)}")
            jobs.append(Job(source, target, format_of(target)))
    check_quality(quality, jobs)
    make(Path(folder))
    shown = sys.stderr is not None and sys.stderr.isatty()
    progress = progress_bar("warping", total=len(files), done=len(failures), shown=shown)
    with progress as advance, interruptions() as raise_again:
        for job in jobs:
            with noting(job.source, failures):
                do(job, quality, options)
            advance(escape(printable(Path(job.source).name)))
            raise_again()
    for failure in failures:
        say(failure)
    if failures:
        say(f"{len(failures)} of {len(files)} failed; {len(files) - len(failures)} are in {folder}")
    return 1 if failures else 0


@contextmanager
def interruptions() -> Iterator[Callable[[], None]]:
    """A function that raises KeyboardInterrupt once there was one, also one that got lost.

    Python drops what is raised while it frees memory, and hundreds of files would go on.
    """
    usual, came = signal.getsignal(signal.SIGINT), []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    def raise_again() -> None:
        if came:
            raise KeyboardInterrupt

    replaced = usual is signal.default_int_handler and current_thread() is main_thread()
    if replaced:
        signal.signal(signal.SIGINT, note)
    try:
        yield raise_again
    finally:
        if replaced:
            signal.signal(signal.SIGINT, usual)


@contextmanager
def noting(source: str, failures: list[str]) -> Iterator[None]:
    """Add to `failures` what a user is told of an error, with the name of the file."""
    try:
        yield
    except Exception as error:
        if (cause := cause_of(error)) is None:
            raise
        text = cause[0]
        failures.append(text if isinstance(error, ImageFileError) else f"{source}: {text}")


def targets_in(folder: str, files: Sequence[str], ending: str | None) -> list[Path]:
    """Where each file goes; refused where two would meet, or where one would be overwritten."""
    if folder in OUTPUTS:
        raise CommandError(f"--out takes a folder, got {folder}")
    inputs = {Path(name).resolve(): name for name in files}
    taken: dict[Path, str] = {}
    targets: list[Path] = []
    for source in files:
        if source in INPUTS:
            raise CommandError(f"{source} has no name for a file in {folder}: give OUT")
        name = Path(source).name
        target = Path(folder) / (f"{Path(name).stem}.{ending}" if ending else name)
        if target in taken:
            raise CommandError(f"{taken[target]} and {source} would both be written to {target}")
        if target.resolve() in inputs:
            overwritten = inputs[target.resolve()]
            raise CommandError(f"{overwritten} would be overwritten: --out takes another folder")
        taken[target] = source
        targets.append(target)
    return targets


def check_quality(quality: int | None, jobs: Sequence[Job]) -> None:
    """Refuse a quality that no file would have."""
    kinds = {job.kind for job in jobs}
    if quality is not None and kinds and not kinds & set(QUALITY_FORMATS):
        wanted = ", ".join(QUALITY_FORMATS)
        raise CommandError(f"--quality is for {wanted}, not {', '.join(sorted(kinds))}")


def make(folder: Path) -> None:
    """Make the folder where it is not there; say why it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder)
    except FileExistsError:
        raise ImageFileError(f"{folder}: {os.strerror(ENOTDIR)}") from None
    except OSError as error:
        raise ImageFileError(f"{folder}: {reason(error)}") from None
