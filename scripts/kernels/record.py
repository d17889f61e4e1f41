"""Calls of the native library: recorded as this process makes them, made again by a program.

What is recorded is what the library is handed: a block of numbers, and the arrays it points to.
replay.cpp, compiled together with the kernels, makes the call again wherever it runs: under a
sanitizer, by several threads, or on an emulated processor. Neither Python nor torch is there.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from warpkit.engine.backends.cpu import calls, jobs

LEAST, MOST = 1 << 40, 1 << 47
"""Numbers of a block between these are addresses."""

assert calls.LIBRARY is not None
LIBRARY = calls.LIBRARY
TASKS = {number: name for name, number in LIBRARY.tasks.items()}
HOSTED = ctypes.CDLL(None)
HOSTED.malloc_usable_size.argtypes = [ctypes.c_void_p]
HOSTED.malloc_usable_size.restype = ctypes.c_size_t


class Recorded(NamedTuple):
    """A call of the library."""

    name: str
    task: str
    tape: bytes
    """As replay.cpp reads it."""
    after: bytes
    """What its arrays hold then."""
    units: int

    def __str__(self) -> str:
        return f"{self.task} of {self.name}"


class Recorder:
    """Notes the calls of the library from now on, as they are made."""

    def __init__(self) -> None:
        self.found: list[Recorded] = []
        self.name = ""
        """Of what makes them."""
        self.refused: list[str] = []
        self.sizes: dict[int, int] = {}
        """The bytes of tensors whose addresses were asked for: they may begin within an array."""
        jobs.BANDED = calls.INLINE = 1  # small images are split as large ones are
        calls.LIBRARY = replace(LIBRARY, run=self.run)  # pyright: ignore
        plain = torch.Tensor.data_ptr

        def address_of(tensor: torch.Tensor) -> int:
            storage, address = tensor.untyped_storage(), plain(tensor)
            self.sizes[address] = storage.data_ptr() + storage.nbytes() - address
            return address

        torch.Tensor.data_ptr = address_of

    def run(self, block: bytes) -> None:
        """Make a call and note it. Arrays of numpy's are as large as the C library says."""
        numbers = list(struct.unpack(f"{len(block) // 8}q", block))
        numbers[calls.THREADS], numbers[calls.TEAM] = 1, 0  # the second is OpenMP's function
        block = struct.pack(f"{len(numbers)}q", *numbers)
        places = [n for n, number in enumerate(numbers) if LEAST < number < MOST]
        arrays = {address: n for n, address in enumerate(dict.fromkeys(numbers[n] for n in places))}
        sizes = [self.sizes.get(each) or HOSTED.malloc_usable_size(each) for each in arrays]
        assert max(sizes) < 1 << 26, (self.name, TASKS[numbers[calls.TASK]], places, sizes)
        tape = struct.pack("3q", len(numbers), len(arrays), len(places)) + block
        for address, size in zip(arrays, sizes, strict=True):
            tape += struct.pack("2q", size, address % 64) + ctypes.string_at(address, size)
        for n in places:
            tape += struct.pack("2q", n, arrays[numbers[n]])
        self.sizes.clear()
        LIBRARY.run(block)
        after = b"".join(ctypes.string_at(*array) for array in zip(arrays, sizes, strict=True))
        task, units = TASKS[numbers[calls.TASK]], numbers[calls.END] - numbers[calls.FIRST]
        self.found.append(Recorded(self.name, task, tape, after, units))

    def recorded(
        self, table: Mapping[str, Callable[[], Any]], pattern: str = ""
    ) -> Iterator[Recorded]:
        """Make the calls of a table whose names match, and yield what the library was handed."""
        for name, call in table.items():
            if not re.search(pattern, name):
                continue
            self.name = name
            try:
                call()
            except (TypeError, ValueError, NotImplementedError) as error:  # there is no such call
                self.refused.append(f"{name}: {error}")
            found, self.found = self.found, []
            yield from found


class Replayer:
    """A program made of replay.cpp and the kernels, which waits for calls."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command, self.environment = command, environment
        self.process: subprocess.Popen[bytes] | None = None

    def make(self, call: Recorded, ways: int = 1) -> list[bytes] | None:
        """What the call's arrays hold after each way to make it; None where the program ended."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        found = b""
        try:
            self.process.stdin.write(call.tape)
            self.process.stdin.flush()
            found = self.process.stdout.read(ways * len(call.after))
        except BrokenPipeError:
            pass
        if len(found) < ways * len(call.after):
            self.process.kill()
            self.process.communicate()
            self.process = None  # the next call has one of its own
            return None
        each = len(call.after)
        return [found[n * each : (n + 1) * each] for n in range(ways)]

    def close(self) -> int:
        """What the program ends with where there are no more calls."""
        if self.process is None:
            return 0
        self.process.communicate()
        return self.process.returncode
