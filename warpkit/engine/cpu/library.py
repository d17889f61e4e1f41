"""Finds, checks and opens the native library, or gives the reason why it cannot.

`opened` has the library of this process. The build also loads this module, for names and the
digest, so it imports only Python's standard library.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FILES = {"linux": "libwarpkit.so", "macos": "libwarpkit.dylib", "windows": "libwarpkit.dll"}
"""The library's name on each system."""
REASON = "libwarpkit.txt"
"""A file that replaces a library that could not be built, and says why."""

HERE = Path(__file__).parent
SOURCES = HERE / "native"
"""The library's sources, which a checkout has but a wheel lacks."""
SYSTEM = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
PATH = HERE / FILES[SYSTEM]

MACHINES = {62: "x86_64", 183: "aarch64"}
"""The names of processors in `platform`, by their number in an ELF file."""

Entry = Callable[[bytes], int]
"""A C function of one argument, an array of int64 numbers; it returns 1 if memory is missing."""


@dataclass(frozen=True)
class NativeLibrary:
    """The instruction set in use, the formats of calls, and the functions that run them."""

    isa: str
    families: dict[str, tuple[str, ...]]
    """The names of the numbers in a call's block, for each family of calls."""
    tasks: dict[str, int]
    """The number of each task."""
    run: Entry


class LibraryError(Exception):
    """Why the library cannot be used, and how to fix that."""


def open_file(path: Path) -> NativeLibrary:
    """The library in a file; raises only `LibraryError`."""
    try:
        if not path.exists():
            raise LibraryError(f"no native library{build_error()}: {mend()}")
        check_elf(path)
        handle = ctypes.CDLL(str(path))
        isa, source = text_function(handle, "warpkit_isa"), text_function(handle, "warpkit_source")
        if SOURCES.is_dir() and (source() or "").split()[:1] != [source_digest(SOURCES)]:
            raise LibraryError(f"{path.name} is not of the sources beside it: {mend()}")
        chosen = isa()
        if chosen is None:
            wish, names = os.environ.get("WARPKIT_ISA"), available(handle)
            if not names:
                raise LibraryError(f"{path.name} is for another processor: {mend()}")
            raise LibraryError(f"WARPKIT_ISA={wish}, where the processor has {names}")
        lines = (text_function(handle, "warpkit_families")() or "").splitlines()
        families = {name: tuple(fields) for name, *fields in map(str.split, lines)}
        tasks = (text_function(handle, "warpkit_tasks")() or "").split()
        numbers = {name: number for number, name in enumerate(tasks)}
        return NativeLibrary(chosen, families, numbers, entry(handle, "warpkit_run"))
    except (OSError, AttributeError) as error:  # ctypes raises AttributeError for a missing symbol
        raise LibraryError(f"{path.name} does not open ({error}): {mend()}") from error


def entry(handle: ctypes.CDLL, name: str) -> Entry:
    """A C function of one pointer, which returns 1 if it ran out of memory."""
    function = handle[name]
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
    return function


def text_function(handle: ctypes.CDLL, name: str) -> Callable[..., str | None]:
    """A C function that returns a string or null."""
    function = handle[name]
    function.restype = ctypes.c_char_p

    def call(*arguments: int) -> str | None:
        text = function(*arguments)
        return None if text is None else text.decode()

    return call


def available(handle: ctypes.CDLL) -> str:
    """The instruction sets of the processor."""
    nth, names = text_function(handle, "warpkit_isas"), []
    while (name := nth(len(names))) is not None:
        names.append(name)
    return ", ".join(names)


def check_elf(path: Path) -> None:
    """Raise an error if an ELF file is truncated or is for another processor.

    The system would map a truncated file, and the process would die of SIGBUS when it reads the
    missing part. For another processor, the system would report that no such file exists.
    """
    if SYSTEM != "linux":
        return
    with path.open("rb") as file:
        head, size = file.read(64), os.fstat(file.fileno()).st_size
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise LibraryError(f"{path.name} is no library: {mend()}")
    its, ours = int.from_bytes(head[18:20], "little"), platform.machine()
    if MACHINES.get(its, its) != ours and ours in MACHINES.values():
        raise LibraryError(f"{path.name} is {MACHINES.get(its, its)} code: {mend()}")
    # the section table is last: read where it starts, the size of an entry, and their number
    sections, each, count = (
        int.from_bytes(head[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62))
    )
    if size < sections + each * count:
        raise LibraryError(f"{path.name} is cut off: {mend()}")


def source_digest(folder: Path) -> str:
    """The digest of the C++ sources in a folder, which is stored in the library: takes under 1
    ms."""
    digest = hashlib.sha256()
    for path in sorted((*folder.rglob("*.cpp"), *folder.rglob("*.h"))):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def build_error() -> str:
    """The first line of the reason that a failed build has left."""
    try:
        return f" ({(HERE / REASON).read_text().splitlines()[0]})"
    except (OSError, IndexError):
        return ""


def mend() -> str:
    """The command that builds the library."""
    if SOURCES.is_dir():
        return "run scripts/build native"
    return "run pip install --force-reinstall --no-deps . in a checkout of warpkit"
