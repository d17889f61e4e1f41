"""Errors about arguments: one format, and a traceback that ends at the public function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def fail(
    function: str,
    argument: str,
    wanted: str,
    got: object,
    error: type[Exception] = ValueError,
) -> NoReturn:
    """Raise the one form of error: ``function: `argument` must be wanted, got got``."""
    raise error(f"{function}: `{argument}` must be {wanted}, got {got}")


def end_at(function: Callable[..., object], error: Exception) -> None:
    """Drop the frames of the checks, four to seven, from the traceback of an error by `fail`.

    The wrapper of a public function calls this, so that the function's own frame is the last one.
    """
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if entries[-1].tb_frame.f_code is fail.__code__:
        for entry in entries:
            if entry.tb_frame.f_code is getattr(function, "__code__", None):
                entry.tb_next = None
                return
