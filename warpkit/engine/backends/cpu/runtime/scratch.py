"""The memory kernels work in: made once a thread, since making it costs more than a small call."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

T = TypeVar("T")

_made: dict[tuple[object, ...], object] = {}


def of_this_thread(make: Callable[..., T], *arguments: object) -> T:
    """make(*arguments), made once a thread; whatever is in it was left there by the last call.

    By the system's number of the thread: to Python, a thread of OpenMP is a new one at each call,
    and would find `threading.local` empty. The next thread of a dead one's number has its memory.
    """
    key = (get_ident(), make, *arguments)
    if key not in _made:
        _made[key] = make(*arguments)
    return _made[key]  # pyright: ignore
