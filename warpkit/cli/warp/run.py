"""`warpkit warp`, `resize` and `undistort`: processes one file, or starts the batch of many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from warpkit.cli.errors import CommandError, check_apart
from warpkit.cli.image_files import OUTPUTS, ImageFileError, check_target, format_of, special
from warpkit.cli.warp.jobs import Job, Options, check_quality, do
from warpkit.cli.warp.many import Folder, many


def run(
    files: Sequence[str],
    folder: Folder,
    ending: str | None,
    quality: int | None,
    options: Options,
) -> int:
    """Warp IN to OUT, or all files into a folder; 1 if one of several failed."""
    options.check()
    if folder.out is not None:
        return many(files, folder, ending, quality, options)
    if name := folder.option_of_many():
        raise CommandError(f"{name} is for --out DIR")
    job = single(files, ending)
    if isinstance(job.target, Path):
        check_apart({"OUT": job.target}, {"IN": job.source})
    check_quality(quality, [job])
    check_target(job.target)
    do(job, quality, options)
    return 0


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
