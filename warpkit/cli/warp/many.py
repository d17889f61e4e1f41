"""Processes many files into a folder: in parallel, in order, with a report, resumable."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from errno import EISDIR, ENOTDIR
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

import torch
from rich.markup import escape

from warpkit.cli.addresses import exists, images_of, inside, is_address, local, place
from warpkit.cli.errors import CommandError, cause_of, check_apart
from warpkit.cli.image_files import (
    INPUTS,
    OUTPUTS,
    ImageFileError,
    check_folder,
    check_target,
    format_of,
    naming,
)
from warpkit.cli.image_kinds import reason
from warpkit.cli.stderr import collecting, printable, say
from warpkit.cli.warp.jobs import Job, Options, Outcome, check_quality, do
from warpkit.core.progress import progress_bar
from warpkit.core.torch_threads import one_thread

AHEAD = 2
"""Submitted files per worker: one is read while another is reported."""


@dataclass(frozen=True)
class Folder:
    """Where many results are written, and how."""

    out: str | None
    workers: int | None
    """The number of files to process at once; None is the number of cores."""
    report: Path | None
    resume: bool
    ray: str | None = None
    """The address of a Ray cluster that does the work; None for this process."""

    def option_of_many(self) -> str | None:
        """The first option that does not apply to a single file."""
        options = {"--workers": self.workers, "--report": self.report, "--resume": self.resume}
        options["--ray"] = self.ray
        return next((name for name, value in options.items() if value), None)


def many(
    files: Sequence[str],
    folder: Folder,
    ending: str | None,
    quality: int | None,
    options: Options,
) -> int:
    """Warp every file into a folder, which is created if necessary; 1 if one failed."""
    if not files:
        raise CommandError("Missing argument 'IN'.")
    assert folder.out is not None
    out, files = folder.out, list(files)
    if folder.ray is not None:
        out, named, files = local(out), files, []
        for name in named:
            with naming(name):
                files += images_of([name])
    for name in (out, *files):
        if folder.ray is None and is_address(name) and not os.path.exists(name):
            raise CommandError(f"{name} is an address, which --ray reads and writes")
    jobs = jobs_into(out, files, ending)
    check_quality(quality, [job for job in jobs if job.kind])
    places = {name: name for job in jobs for name in (job.source, str(job.target))}
    check_apart({"--report": folder.report}, places)
    if not is_address(out):  # buckets have no folders
        make(Path(out))
    check_target(folder.report)
    finished = {job.source for job in jobs if folder.resume and exists(job.target)}
    failures: list[str] = []
    visible = sys.stderr is not None and sys.stderr.isatty()
    with ExitStack() as stack:
        write = folder.report and stack.enter_context(reporting(folder.report, folder.resume))
        advance = stack.enter_context(progress_bar("images", total=len(files), visible=visible))
        raise_again = stack.enter_context(interruptions())
        waiting = [job for job in jobs if job.source not in finished]
        if folder.ray is not None:
            from warpkit.cli.warp.on_ray import working_on_ray

            work = partial(outcome_of, quality=quality, options=options)
            workers = working_on_ray(work, waiting, folder.ray, folder.workers)
        else:
            workers = working(waiting, quality, options, folder.workers or cores())
        outcomes = stack.enter_context(workers)
        for job in jobs:
            outcome = Outcome(0.0, []) if job.source in finished else next(outcomes)
            for line in outcome.lines:
                say(line)
            if outcome.error is not None:
                failures.append(outcome.error)
            if write:
                write(json.dumps(row(job, outcome, job.source in finished)) + "\n")
            advance(escape(printable(Path(job.source).name)))
            raise_again()
    for failure in failures:
        say(failure)
    if finished:
        say(f"{len(finished)} of {len(files)} were in {out} before")
    if failures:
        count = len(files) - len(failures)
        say(f"{len(failures)} of {len(files)} failed; {count} are in {out}")
    return 1 if failures else 0


@contextmanager
def reporting(path: Path, resume: bool) -> Iterator[Callable[[str], None]]:
    """A function that writes a line to a report, which has it when the function returns."""
    with naming(path):
        file = path.open("ab" if resume else "wb", buffering=0)  # no rest is left to close()

    def write(line: str) -> None:
        left = line.encode()
        with naming(path):
            while left:
                left = left[file.write(left) :]

    with file:
        yield write


def row(job: Job, outcome: Outcome, skipped: bool) -> dict[str, str | float | bool]:
    """A row of the report."""
    if outcome.error is not None:
        return {"file": job.source, "error": outcome.error}
    result = {"file": job.source, "result": str(job.target), "seconds": round(outcome.seconds, 4)}
    return {**result, "skipped": True} if skipped else result


@contextmanager
def working(
    jobs: Sequence[Job], quality: int | None, options: Options, workers: int
) -> Iterator[Iterator[Outcome]]:
    """The outcomes of jobs in order, computed by threads, so codecs and kernels overlap.

    Each worker computes on one thread, because there are as many workers as cores.
    """
    if workers == 1 or len(jobs) < 2:
        yield (outcome_of(job, quality, options) for job in jobs)
        return
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[Outcome]] = deque()

    def outcomes() -> Iterator[Outcome]:
        for job in jobs:
            waiting.append(pool.submit(outcome_of, job, quality, options))
            if len(waiting) == AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    with one_thread():
        try:
            yield outcomes()
        finally:
            pool.shutdown(cancel_futures=True)


def outcome_of(job: Job, quality: int | None, options: Options) -> Outcome:
    """Do one job; errors that a user can cause become its outcome, and others are raised."""
    start = time.perf_counter()
    with collecting() as lines:
        try:
            if os.path.isdir(job.source):
                raise ImageFileError(f"{job.source}: {os.strerror(EISDIR)}")
            if not job.kind:
                format_of(Path(job.target))  # raises the reason
            do(job, quality, options)
        except Exception as error:
            if (cause := cause_of(error)) is None:
                raise
            text = cause[0]
            text = text if isinstance(error, ImageFileError) else f"{job.source}: {text}"
            return Outcome(time.perf_counter() - start, lines, text)
    return Outcome(time.perf_counter() - start, lines)


@contextmanager
def interruptions() -> Iterator[Callable[[], None]]:
    """A function that raises KeyboardInterrupt if there was one, even if Python lost it.

    Python drops exceptions raised while it frees memory, and would process hundreds more files.
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


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def jobs_into(folder: str, files: Sequence[str], ending: str | None) -> list[Job]:
    """The jobs for all files; two equal targets, or a target that is an input, are errors."""
    if folder in OUTPUTS:
        raise CommandError(f"--out takes a folder, got {folder}")
    inputs = {place(name): name for name in files}
    source_of: dict[str | Path, str] = {}
    jobs: list[Job] = []
    for source in files:
        if source in INPUTS:
            raise CommandError(f"{source} has no name for a file in {folder}: give OUT")
        name = Path(source).name
        target = inside(folder, f"{Path(name).stem}.{ending}" if ending else name)
        if target in source_of:
            raise CommandError(
                f"{source_of[target]} and {source} would both be written to {target}"
            )
        if place(target) in inputs:
            overwritten = inputs[place(target)]
            raise CommandError(f"{overwritten} would be overwritten: --out takes another folder")
        source_of[target] = source
        try:
            kind = format_of(Path(target))
        except ImageFileError:
            kind = ""
        jobs.append(Job(source, target, kind))
    return jobs


def make(folder: Path) -> None:
    """Create the folder if necessary; raise an error if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder)
    except FileExistsError:
        raise ImageFileError(f"{folder}: {os.strerror(ENOTDIR)}") from None
    except OSError as error:
        raise ImageFileError(f"{folder}: {reason(error)}") from None
