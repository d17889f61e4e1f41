"""Remote files such as s3://bucket/photo.jpg: all addresses that pyarrow can read, as in Ray."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from PIL import Image

ATOMIC = ("s3", "gcs", "abfs")
"""pyarrow's names of file systems in which a new file is invisible until it is complete."""


def is_address(name: str | Path) -> bool:
    """Whether a name is an address; a Path never is, because it merges two slashes into one.

    >>> is_address("s3://bucket/a.png"), is_address("folder/a.png"), is_address("://a.png")
    (True, False, False)
    """
    return isinstance(name, str) and name.partition("://")[0].isalnum() and "://" in name


def local(name: str) -> str:
    """The path of an address on this machine; other names are unchanged.

    >>> local("file:///tmp/a%20b.png"), local("s3://bucket/a.png")
    ('/tmp/a b.png', 's3://bucket/a.png')
    """
    return unquote(urlsplit(name).path) if name.startswith("file://") else name


def inside(folder: str, name: str) -> str | Path:
    """The name of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_address(folder) else Path(folder) / name


def place(name: str | Path) -> str | Path:
    """An absolute name, with links followed: the same for all names of one file."""
    return name if is_address(name) else Path(name).resolve()


def images_of(names: list[str]) -> list[str]:
    """The names; a folder is replaced by the images in it, sorted.

    Raises OSError if a folder cannot be listed.
    """
    paths: list[str] = []
    for name in map(local, names):
        inner = _list(name) if is_address(name) else _entries(Path(name))
        paths += [name] if inner is None else inner
    return paths


def exists(name: str | Path) -> bool:
    """Whether a file exists."""
    if not is_address(name):
        return Path(name).exists()
    system, path = _system(str(name))
    return system.get_file_info(path).is_file


def read(name: str) -> bytes:
    """The contents of a file."""
    system, path = _system(name)
    with system.open_input_stream(path) as file:
        return file.read()


def write(name: str, data: bytes) -> None:
    """Writes a file, which gets its name when it is complete."""
    system, path = _system(name)
    atomic = system.type_name in ATOMIC
    partial = path if atomic else f"{path}.{os.getpid()}.part"
    with system.open_output_stream(partial) as file:
        file.write(data)
    if not atomic:
        system.move(partial, path)


def _system(name: str) -> tuple[Any, str]:
    """pyarrow's file system, and the path within it."""
    try:
        from pyarrow import fs  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise OSError("needs pyarrow, which warpkit's extra `ray` brings") from None
    return fs.FileSystem.from_uri(name)


def _entries(folder: Path) -> list[str] | None:
    """The images in a local folder; None if it is no folder."""
    if not folder.is_dir():
        return None
    return sorted(str(path) for path in folder.iterdir() if _is_image(path.name) and path.is_file())


def _list(name: str) -> list[str] | None:
    """The images in a remote folder; None if it is no folder."""
    system, path = _system(name)
    from pyarrow import fs  # pyright: ignore[reportMissingImports]

    if system.get_file_info(path).type != fs.FileType.Directory:
        return None
    inner = system.get_file_info(fs.FileSelector(path))
    names = sorted(info.base_name for info in inner if info.is_file and _is_image(info.base_name))
    return [f"{name.rstrip('/')}/{base}" for base in names]


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in Image.registered_extensions()
