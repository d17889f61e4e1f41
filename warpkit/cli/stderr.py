"""Prints additional messages, one line each, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Collects the messages of `say` in this thread, instead of printing them."""
    lines: list[str] = []
    token = _collected.set(lines)
    try:
        yield lines
    finally:
        _collected.reset(token)


def say(message: str) -> None:
    """Print one line on stderr, even if it contains unusual file names."""
    if (lines := _collected.get()) is not None:
        lines.append(message)
    elif sys.stderr is not None:  # if it is closed, print() would write to stdout
        print("warpkit:", printable(message), file=sys.stderr)


def printable(text: str) -> str:
    """The text with control characters and invalid characters escaped.

    >>> printable("two\\nlines")
    'two\\\\nlines'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
