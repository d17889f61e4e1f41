"""Notes besides the result: one line on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)


@contextmanager
def collecting() -> Iterator[list[str]]:
    """What `say` is told meanwhile, in this thread, in place of stderr."""
    lines: list[str] = []
    token = _collected.set(lines)
    try:
        yield lines
    finally:
        _collected.reset(token)


def say(message: str) -> None:
    """One line on stderr, whatever a file is called."""
    if (lines := _collected.get()) is not None:
        lines.append(message)
    elif sys.stderr is not None:  # closed: print() would take stdout
        print("warpkit:", printable(message), file=sys.stderr)


def printable(text: str) -> str:
    """The text with what moves a terminal's cursor or is no character written as an escape.

    >>> printable("two\\nlines")
    'two\\\\nlines'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
