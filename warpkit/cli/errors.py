"""Errors that a user can cause, and the one line on stderr that tells of each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from warpkit.cli.image_files import ImageFileError


class CommandError(Exception):
    """Options that do not go together, or values that a command cannot use."""


def cause_of(error: Exception) -> tuple[str, int] | None:
    """What a user is told of an error, and the exit status; None for one that is the program's."""
    if isinstance(error, CommandError):
        return str(error), 2
    if isinstance(error, ImageFileError):
        return str(error), 1
    known = ("allocate memory", "overflow", "Unable to cast")  # a size beyond int64
    of_torch = isinstance(error, RuntimeError) and any(text in str(error) for text in known)
    if of_torch or isinstance(error, (MemoryError, OverflowError)):
        return "not enough memory for images of this size", 1
    return None


def check_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two files of one name, by what the command line calls them."""
    seen: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        if (known := seen.setdefault(path.resolve(), option)) != option:
            raise CommandError(f"{option} is {path}, and so is {known}: give another name")


def say(message: str) -> None:
    """One line on stderr, whatever a file is called."""
    if sys.stderr is not None:  # closed: print() would take stdout
        print("warpkit:", printable(message), file=sys.stderr)


def printable(text: str) -> str:
    """The text with what moves a terminal's cursor or is no character written as an escape.

    >>> printable("two\\nlines")
    'two\\\\nlines'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
