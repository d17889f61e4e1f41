"""A lock on disk: of processes that need the same code at once, one compiles it.

Four processes of one machine that started together compiled every kernel four times: 53 tests of
shards took 220 CPU seconds, and take half of that.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from zlib import crc32

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows: everyone compiles
    fcntl = None

NAME = "warpkit.lock"
PATIENCE, PAUSE = 60.0, 0.01
"""Seconds to wait for another process at most, and between two looks."""


class CacheLock:
    """A file in the folder of compiled code, each byte of which is the lock of one name.

    A process that ends gives its bytes back, and a fork does not inherit them. Where there are no
    locks, or where another process keeps one for too long, everyone goes on.
    """

    def __init__(self, folder: Path) -> None:
        self._file = None
        if fcntl is not None:
            with suppress(OSError):
                self._file = (folder / NAME).open("ab")

    def take(self, name: str) -> bool:
        """Wait for the lock of this name; whether another process had it."""
        waited, end = False, time.monotonic() + PATIENCE
        while not self._has(crc32(name.encode())) and time.monotonic() < end:
            waited = True
            time.sleep(PAUSE)
        return waited

    def _has(self, byte: int) -> bool:
        if self._file is None or fcntl is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # either, by the system
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def release(self) -> None:
        """Let the others have all that was taken."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.release()  # of a compilation that failed
