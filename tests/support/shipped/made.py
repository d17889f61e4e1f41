"""A program of a package: its name, the form in which it takes images, and the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Made(NamedTuple):
    """A program as a package makes it."""

    name: str
    takes: str
    function: Callable[[Any], Any]
