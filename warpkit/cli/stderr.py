"""What a command says beside its result: one line on stderr."""

from __future__ import annotations

import sys


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
