"""Record calls of the native library, and replay them in a program.

A record holds the library's input: a block of numbers, and the arrays that it points to.
replay.cpp, compiled together with the kernels, repeats the call under a sanitizer, with several
threads, or on an emulated processor, without Python and torch.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from warpkit.engine.cpu import backward_schedule, calls

LEAST, MOST = 1 << 40, 1 << 47
"""Numbers of a block in this range are addresses."""

assert calls.LIBRARY is not None
LIBRARY = calls.LIBRARY
TASKS = {number: name for name, number in LIBRARY.tasks.items()}
HOSTED = ctypes.CDLL(None)
HOSTED.malloc_usable_size.argtypes = [ctypes.c_void_p]
HOSTED.malloc_usable_size.restype = ctypes.c_size_t


class Recorded(NamedTuple):
    """A recorded call of the library."""

    name: str
    task: str
    tape: bytes
    """The call in the format of replay.cpp."""
    after: bytes
    """The contents of its arrays after the call."""
    units: int

    def __str__(self) -> str:
        return f"{self.task} of {self.name}"


class Recorder:
    """Records the library's calls from its creation on."""

    def __init__(self) -> None:
        self.found: list[Recorded] = []
        self.name = ""
        """The name of the function that makes the calls."""
        self.refused: list[str] = []
        self.sizes: dict[int, int] = {}
        """The bytes of tensors by address, which may lie within an array."""
        backward_schedule.BANDED = calls.INLINE = 1  # split small images as large ones
        calls.RUN_BLOCK = self.run
        plain = torch.Tensor.data_ptr

        def address_of(tensor: torch.Tensor) -> int:
            storage, address = tensor.untyped_storage(), plain(tensor)
            self.sizes[address] = storage.data_ptr() + storage.nbytes() - address
            return address

        torch.Tensor.data_ptr = address_of  # pyright: ignore

    def run(self, block: bytes) -> int:
        """Make a call and record it. The C library knows the sizes of numpy's arrays."""
        numbers = list(struct.unpack(f"{len(block) // 8}q", block))
        numbers[calls.THREADS], numbers[calls.TEAM] = 1, 0  # TEAM is OpenMP's function
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
        code = LIBRARY.run(block)
        after = b"".join(ctypes.string_at(*array) for array in zip(arrays, sizes, strict=True))
        task, units = TASKS[numbers[calls.TASK]], numbers[calls.END] - numbers[calls.FIRST]
        self.found.append(Recorded(self.name, task, tape, after, units))
        return code

    def recorded(
        self, table: Mapping[str, Callable[[], Any]], pattern: str = ""
    ) -> Iterator[Recorded]:
        """Make the calls of a table whose names match, and yield their records."""
        for name, call in table.items():
            if not re.search(pattern, name):
                continue
            self.name = name
            try:
                call()
            except (
                TypeError,
                ValueError,
                NotImplementedError,
            ) as error:  # an invalid combination of arguments
                self.refused.append(f"{name}: {error}")
            calls, self.found = self.found, []
            yield from calls


class Replayer:
    """A running program, compiled from replay.cpp and the kernels, that waits for calls."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.command, self.environment = command, environment
        self.process: subprocess.Popen[bytes] | None = None

    def make(self, call: Recorded, ways: int = 1) -> list[bytes] | None:
        """The contents of the call's arrays after each way to make it; None after a crash."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        results = b""
        try:
            self.process.stdin.write(call.tape)
            self.process.stdin.flush()
            results = self.process.stdout.read(ways * len(call.after))
        except BrokenPipeError:
            pass
        if len(results) < ways * len(call.after):
            self.process.kill()
            self.process.communicate()
            self.process = None  # the next call starts a new one
            return None
        each = len(call.after)
        return [results[n * each : (n + 1) * each] for n in range(ways)]

    def close(self) -> int:
        """End the program, and return its exit status."""
        if self.process is None:
            return 0
        self.process.communicate()
        return self.process.returncode
