"""Errors that a user can cause."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from warpkit.cli.image_files import INPUTS, ImageFileError


class CommandError(Exception):
    """Incompatible options, or values that a command cannot use."""


def cause_of(error: Exception) -> tuple[str, int] | None:
    """The message and exit status of an error that a user caused; None for a bug of the program.

    A step of a `Pipeline` raises errors with its own name; the cause has the command's message.
    """
    for raised in (error, error.__cause__):
        if isinstance(raised, CommandError):
            return str(raised), 2
    if isinstance(error, ImageFileError):
        return str(error), 1
    phrases = ("allocate memory", "overflow", "Unable to cast")  # a size beyond int64
    of_torch = isinstance(error, RuntimeError) and any(text in str(error) for text in phrases)
    if of_torch or isinstance(error, (MemoryError, OverflowError)):
        return "not enough memory for images of this size", 1
    return None


def check_apart(
    outputs: Mapping[str, Path | None], inputs: Mapping[str, str | Path | None] | None = None
) -> None:
    """Reject an output that is also another output or an input; `names` are the command line's.

    A link counts as the file that it points to.
    """
    names: dict[Path, str] = {}
    for name, path in (inputs or {}).items():
        if path is not None and str(path) not in INPUTS:
            names.setdefault(Path(path).resolve(), name)
    for name, path in outputs.items():
        if path is None:
            continue
        if (first := names.setdefault(path.resolve(), name)) != name:
            raise CommandError(f"{name} is {path}, and so is {first}: give another name")
