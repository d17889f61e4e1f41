"""Reads and writes image files and streams; a file is replaced only by a complete one."""

from __future__ import annotations

import io
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EISDIR
from pathlib import Path
from threading import get_ident
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from warpkit.cli.addresses import is_address, read, write
from warpkit.cli.image_kinds import Picture, decode, encode, reason
from warpkit.cli.stderr import say

# Pillow logs some errors before it raises them, such as that of a TIFF file with 210 samples per
# pixel. Without a handler, Python would print them above the command's one line
logging.getLogger("PIL").addHandler(logging.NullHandler())

INPUTS, OUTPUTS = ("-", "/dev/stdin"), ("-", "/dev/stdout")
"""Names of standard input and output; `./-` is a file."""


class ImageFileError(Exception):
    """A file that cannot be read or written as an image; the text is one line and names it."""


def read_image(path: str | Path) -> Picture:
    """Read the first image of a file, or of standard input if the name is "-".

    If there are more images, a line on stderr says so.
    """
    name = "standard input" if str(path) in INPUTS else path
    try:
        with Image.open(stream(path)) as file:
            picture = decode(file)
    except UnidentifiedImageError:
        raise ImageFileError(f"{name}: not an image that Pillow can read") from None
    except MemoryError:
        raise
    except Exception as error:  # a broken file can raise nearly any error in Pillow
        raise ImageFileError(f"{name}: {reason(error)}") from None
    if picture.frames > 1:
        say(f"{name}: has {picture.frames} images: using the first one only")
    return picture


def read_photograph(path: Path, wanted: str) -> Picture:
    """Read a grey or RGB image; other images raise an error with the words `wanted`."""
    picture = read_image(path)
    if picture.mode in ("CMYK", "I", "F"):
        raise ImageFileError(f"{path}: {wanted}")
    if picture.dropped:
        raise ImageFileError(
            f"{path}: 16 bits per channel, of which Pillow reads 8 (grey may have 16)"
        )
    return picture


def stream(path: str | Path) -> Path | BinaryIO:
    """A file, or the whole content of a pipe, since Pillow seeks."""
    if str(path) in INPUTS:
        if sys.stdin is None or sys.stdin.isatty():
            raise OSError("closed, or a terminal: no image comes from it")
        return io.BytesIO(sys.stdin.buffer.read())
    if is_address(path):
        return io.BytesIO(read(str(path)))
    path = Path(path)
    return io.BytesIO(path.read_bytes()) if path.is_fifo() else path


def format_of(path: Path) -> str:
    """The format for a file name's suffix."""
    name = Image.registered_extensions().get(path.suffix.lower())
    if name is None or name not in Image.SAVE:
        ending = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise ImageFileError(f"{path}: {ending}, which names no image format to write (try .png)")
    return name


def check_figure(path: Path, what: str = "the figure") -> None:
    """Raise an error before the work if a figure, which is a PNG, cannot be written."""
    if format_of(path) != "PNG":
        raise ImageFileError(f"{path}: {what} is a PNG: its name must end in .png")
    check_target(path)


def write_image(path: str | Path, picture: Picture, kind: str, quality: int | None = None) -> str:
    """Write an image in the format `kind`; return a description of the file's content."""
    name = "standard output" if str(path) in OUTPUTS else path
    try:
        data, words = encode(picture, kind, quality)
    except ValueError as error:
        raise ImageFileError(f"{name}: {reason(error)}") from None
    if str(path) in OUTPUTS:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:  # typer would hide a broken pipe
            leave_stdout()
            raise ImageFileError(f"{name}: {reason(error)}") from None
        return words
    if is_address(path):
        try:
            write(str(path), data)
        except Exception as error:  # each kind of bucket has errors of its own
            raise ImageFileError(f"{name}: {reason(error)}") from None
        return words
    with replacing(Path(path)) as file:
        file.write(data)
    return words


def leave_stdout() -> None:
    """Detach a full or closed standard output, to which Python would write again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_target(path: str | Path | None) -> None:
    """Raise an error before the work if a file cannot be written."""
    if path is None:
        return
    if str(path) in OUTPUTS:
        if sys.stdout is None or sys.stdout.isatty():
            raise ImageFileError("standard output: closed, or a terminal: no place for an image")
        return
    path = Path(path)
    with naming(path):
        with suppress(FileNotFoundError):
            os.stat(path)  # raises if the name is too long or the folder not accessible
        if special(path):
            return
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        check_folder(path.resolve().parent)


def check_folder(folder: Path) -> None:
    """Raise OSError if no file can be created in a folder."""
    os.stat(os.path.join(folder, ""))  # raises if it is no folder
    effective_ids = os.access in os.supports_effective_ids
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective_ids):
        raise PermissionError(EACCES, os.strerror(EACCES))


def special(path: Path) -> bool:
    """Whether it is a device or a pipe, such as /dev/full, which no file can replace."""
    return os.path.exists(path) and not (path.is_file() or path.is_dir())


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Turns a system's error into one that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise ImageFileError(f"{path}: {reason(error)}") from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` to write to; it gets this name when it is complete.

    It has the owner and the permissions of the file that it replaces. Devices and pipes are written
    directly.
    """
    target = path.resolve()  # a link stays a link
    # at most 255 bytes; threads may write files whose names begin alike
    partial = target.with_name(f".{target.name[:50]}.{os.getpid()}.{get_ident()}.part")
    with naming(path):
        if special(path):
            with path.open("wb") as file:
                yield file
            return
        try:
            with open(partial, "xb", opener=closed_to_others if target.exists() else None) as file:
                yield file
            if target.exists():
                take_permissions(target, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


def closed_to_others(path: str, flags: int) -> int:
    """Open a new file that nobody else may read."""
    return os.open(path, flags, 0o600)


def take_permissions(source: Path, target: Path) -> None:
    """Give `target` the owner, the group and the permissions of `source`, as far as allowed."""
    wanted = source.stat()
    if hasattr(os, "chown"):
        for owner in (-1, wanted.st_uid):  # the group alone may be allowed
            with suppress(PermissionError):
                os.chown(target, owner, wanted.st_gid)
    target.chmod(stat.S_IMODE(wanted.st_mode))  # after the owner, whose change clears bits
