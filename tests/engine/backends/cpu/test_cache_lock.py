"""Of processes that need the same kernel at once, one compiles it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from warpkit.engine.backends.cpu.runtime import cache_lock
from warpkit.engine.backends.cpu.runtime.cache_lock import CacheLock

pytestmark = pytest.mark.skipif(cache_lock.fcntl is None, reason="no locks on this system")

HOLD = """
import sys, time
from pathlib import Path
from warpkit.engine.backends.cpu.runtime.cache_lock import CacheLock
lock = CacheLock(Path(sys.argv[1]))
lock.take("one")
print("taken", flush=True)
sys.stdin.read()
"""

COMPILE = """
import os, sys
from kernels import ready, twice
readers = []
for _ in range(3):
    reader, writer = os.pipe()
    if os.fork() == 0:
        twice(1.0)
        os.write(writer, b"%d%d" % (sum(twice.stats.cache_misses.values()), twice(2.0)))
        os._exit(0)
    readers.append(reader)
for reader in readers:
    print(os.read(reader, 2).decode())
"""

KERNELS = """
from warpkit.engine.backends.cpu.runtime.compiler import kernel
def ready(x):
    return x * 2
twice = kernel(ready)
"""


def test_a_lock_is_waited_for_and_given_back_by_a_process_that_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        lock = CacheLock(tmp_path)
        assert not lock.take("two")
        assert not lock._has(cache_lock.crc32(b"one"))
        other.kill()
        other.wait()
        assert lock._has(cache_lock.crc32(b"one"))
        lock.release()


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_lock, "PATIENCE", 0.05)
    monkeypatch.setattr(CacheLock, "_has", lambda self, byte: False)
    begin = time.monotonic()
    lock = CacheLock(tmp_path)
    assert lock.take("one")
    assert time.monotonic() - begin < 5
    lock.release()


def test_where_there_are_no_locks_everyone_goes_on(tmp_path, monkeypatch):
    assert not CacheLock(tmp_path / "missing").take("one")
    monkeypatch.setattr(cache_lock, "fcntl", None)
    lock = CacheLock(tmp_path)
    assert not lock.take("one")
    lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_one_of_three_processes_compiles(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    paths = os.pathsep.join([str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    command = [sys.executable, "-c", COMPILE]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found = sorted(done.stdout.split())
    assert found == ["04", "04", "14"]
