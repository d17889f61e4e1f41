"""One thread for torch's operators while small pieces of work run, whoever else does the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users = 0
_before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs torch on one thread: on busy cores, two threads took five times as long for small work.

    The number belongs to the process and to each of its threads. If several threads come here at
    once, only the first finds the caller's number: each of them restores that one."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = torch.get_num_threads()
        _users += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            torch.set_num_threads(_before)
