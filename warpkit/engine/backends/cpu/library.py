"""The native library: found beside this file, opened when first asked for, or the reason why not.

It is opened once in a process, and a fork keeps it. `open_library` never raises: whatever is wrong
with the file, the reference serves instead, after one warning. The build loads this file by itself,
without the package, for the names and the digest: it imports nothing but Python's own modules.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

FILES = {"linux": "libwarpkit.so", "macos": "libwarpkit.dylib", "windows": "libwarpkit.dll"}
"""The library's name on each system."""
REASON = "libwarpkit.txt"
"""Stands in its place where it could not be built, and says why."""

HERE = Path(__file__).parent
SOURCES = HERE / "native"
"""Its sources: in a checkout, and not in a wheel."""
SYSTEM = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
PATH = HERE / FILES[SYSTEM]

MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""Processors by their number in an ELF file."""

Entry = Callable[[int], None]
"""A C function of one argument, the address of an array of int64 numbers."""


@dataclass(frozen=True)
class NativeLibrary:
    """The instruction set in use, and an entry point of each name: ``warpkit_probe`` is `probe`."""

    isa: str
    probe: Entry


ENTRIES = tuple(field.name for field in fields(NativeLibrary) if field.name != "isa")


class LibraryError(Exception):
    """Why the library cannot be used."""


@cache
def open_library() -> NativeLibrary | None:
    """The library, or None after a warning that names the reason and what mends it."""
    try:
        return open_file(PATH)
    except LibraryError as error:
        warnings.warn(f"warpkit: {error}; {mend()}", RuntimeWarning, stacklevel=2)
    return None


def open_file(path: Path) -> NativeLibrary:
    """The library in a file; raises `LibraryError`, and nothing else."""
    try:
        if not path.exists():
            raise LibraryError(
                f"no native library, so that the CPU runs the slow reference{built_why()}"
            )
        check_elf(path)
        handle = ctypes.CDLL(str(path))
        isa, source = text_function(handle, "warpkit_isa"), text_function(handle, "warpkit_source")
        if SOURCES.is_dir() and source() != source_digest():
            raise LibraryError(f"{path.name} is not of the sources beside it, and is not used")
        chosen = isa()
        if chosen is None:
            wish = os.environ.get("WARPKIT_ISA")
            raise LibraryError(f"WARPKIT_ISA is {wish!r}: this processor has {available(handle)}")
        return NativeLibrary(chosen, **{name: entry(handle, name) for name in ENTRIES})
    except (
        OSError,
        AttributeError,
    ) as error:  # ctypes says with the second that a symbol is missing
        raise LibraryError(f"{path.name} does not open: {error}") from error


def entry(handle: ctypes.CDLL, name: str) -> Entry:
    function = handle[f"warpkit_{name}"]
    function.argtypes, function.restype = [ctypes.c_void_p], None
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
    """The instruction sets that the processor has."""
    nth, names = text_function(handle, "warpkit_isas"), []
    while (name := nth(len(names))) is not None:
        names.append(name)
    return ", ".join(names)


def check_elf(path: Path) -> None:
    """Raise where an ELF file is cut off or of another processor.

    The system maps the first kind and dies of SIGBUS on what is missing; of the second it says that
    there is no such file.
    """
    if SYSTEM != "linux":
        return
    with path.open("rb") as file:
        head, size = file.read(64), os.fstat(file.fileno()).st_size
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise LibraryError(f"{path.name} is no library")
    with open(sys.executable, "rb") as file:
        ours = file.read(20)
    if ours[:4] == b"\x7fELF" and head[4:6] + head[18:20] != ours[4:6] + ours[18:20]:
        its = int.from_bytes(head[18:20], "little")
        raise LibraryError(f"{path.name} is of another processor ({MACHINES.get(its, its)})")
    # the table of sections stands at the end: where it starts, and how many of which size it has
    sections, each, count = (
        int.from_bytes(head[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62))
    )
    if size < sections + each * count:
        raise LibraryError(f"{path.name} is cut off")


def source_digest(folder: Path = SOURCES) -> str:
    """The digest of the C++ sources, which the library is built with: 1 ms."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.cpp"), *folder.glob("*.h"))):
        digest.update(f"{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def built_why() -> str:
    """What the build left where it could not: its first line."""
    try:
        return f" ({(HERE / REASON).read_text().splitlines()[0]})"
    except (OSError, IndexError):
        return ""


def mend() -> str:
    if SOURCES.is_dir():
        return "run scripts/build_native, or: python hatch_build.py"
    return "reinstall it: pip install --force-reinstall --no-deps warpkit"
