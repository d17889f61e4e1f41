"""Remote files such as s3://bucket/photo.jpg: the addresses that Ray reads, by pyarrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from PIL import Image

ATOMIC = ("s3", "gcs", "abfs")
"""Where a file that is being written has no name before it is complete, by pyarrow's names."""


def is_address(name: str | Path) -> bool:
    """Whether a name is an address; a Path never is, as it keeps one slash of two.

    >>> is_address("s3://bucket/a.png"), is_address("folder/a.png"), is_address("://a.png")
    (True, False, False)
    """
    return isinstance(name, str) and name.partition("://")[0].isalnum() and "://" in name


def local(name: str) -> str:
    """An address of a file of this machine as its path; another name as it is.

    >>> local("file:///tmp/a%20b.png"), local("s3://bucket/a.png")
    ('/tmp/a b.png', 's3://bucket/a.png')
    """
    return unquote(urlsplit(name).path) if name.startswith("file://") else name


def inside(folder: str, name: str) -> str | Path:
    """The place of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_address(folder) else Path(folder) / name


def place(name: str | Path) -> str | Path:
    """The same for all names of one file, links followed."""
    return name if is_address(name) else Path(name).resolve()


def images_of(names: list[str]) -> list[str]:
    """The names, and in place of a folder those of the images in it, sorted.

    Raises OSError where a folder cannot be looked into.
    """
    found: list[str] = []
    for name in map(local, names):
        inner = _listed(name) if is_address(name) else _entries(Path(name))
        found += [name] if inner is None else inner
    return found


def exists(name: str | Path) -> bool:
    """Whether a file is there."""
    if not is_address(name):
        return Path(name).exists()
    system, path = _system(str(name))
    return system.get_file_info(path).is_file


def read(name: str) -> bytes:
    """All of a file."""
    system, path = _system(name)
    with system.open_input_stream(path) as file:
        return file.read()


def write(name: str, data: bytes) -> None:
    """A file that has its name when it is complete."""
    system, path = _system(name)
    atomic = system.type_name in ATOMIC
    partial = path if atomic else f"{path}.{os.getpid()}.part"
    with system.open_output_stream(partial) as file:
        file.write(data)
    if not atomic:
        system.move(partial, path)


def _system(name: str) -> tuple[Any, str]:
    """pyarrow's file system, and the path in it."""
    try:
        from pyarrow import fs  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise OSError("needs pyarrow, which warpkit's extra `ray` brings") from None
    return fs.FileSystem.from_uri(name)


def _entries(folder: Path) -> list[str] | None:
    """The images of a folder of this machine; None where it is none."""
    if not folder.is_dir():
        return None
    return sorted(str(path) for path in folder.iterdir() if _is_image(path.name) and path.is_file())


def _listed(name: str) -> list[str] | None:
    """The images of a folder that lies elsewhere; None where it is none."""
    system, path = _system(name)
    from pyarrow import fs  # pyright: ignore[reportMissingImports]

    if system.get_file_info(path).type != fs.FileType.Directory:
        return None
    inner = system.get_file_info(fs.FileSelector(path))
    names = sorted(info.base_name for info in inner if info.is_file and _is_image(info.base_name))
    return [f"{name.rstrip('/')}/{base}" for base in names]


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in Image.registered_extensions()
