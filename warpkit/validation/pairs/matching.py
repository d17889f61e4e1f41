"""Matches the files of two folders or lists by their names without the suffix."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warpkit.core import checks


class Matched(NamedTuple):
    """The indices of pairs in two lists, and sentences about items without a match."""

    pairs: list[tuple[int, int]]
    left_out: list[str]


def is_file(item: object) -> bool:
    """Whether an item of a list is a file name."""
    return isinstance(item, (str, os.PathLike))


def files_in(folder: Path, unread: list[str]) -> list[Path]:
    """All files below a folder, except hidden ones, sorted by name.

    A folder that cannot be read is named in `unread`.
    """
    paths = []

    def say(error: OSError) -> None:
        unread.append(f"{error.filename} (a folder that cannot be read: {error.strerror})")

    for root, folders, names in os.walk(folder, onerror=say):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [Path(root) / name for name in sorted(names) if not name.startswith(".")]
    return paths


def match_folders(name: str, images: Path, results: Path) -> tuple[list[Path], list[Path], Matched]:
    """The files of two folders, and which of them match.

    Raises ValueError if the folders have no name in common."""
    unread: list[str] = []
    lists = files_in(images, unread), files_in(results, unread)
    keys = [
        [path.relative_to(root).with_suffix("").as_posix() for path in paths]
        for root, paths in zip((images, results), lists, strict=True)
    ]
    matched = _match(lists, keys)
    if not matched.pairs:
        wanted = f"have files of the same names (without the suffix) as `images` ({images})"
        got = f"{results}: {_join(keys[1])} beside {_join(keys[0])}"
        raise ValueError("; ".join([f"{name}: `results` must {wanted}, got {got}", *unread]))
    return *lists, matched._replace(left_out=unread + matched.left_out)


def match_lists(name: str, images: Sequence[Any], results: Sequence[Any]) -> Matched:
    """Matches files by name, if any names are common, and everything else by position.

    Raises ValueError for lists of different lengths that cannot be matched by name."""
    if all(map(is_file, images)) and all(map(is_file, results)):
        lists = [[Path(item) for item in items] for items in (images, results)]
        matched = _match(lists, [_keys(paths) for paths in lists])
        if matched.pairs:
            return matched
    if len(images) != len(results):
        checks.fail(name, "results", f"one result for each of {len(images)} images", len(results))
    return Matched([(k, k) for k in range(len(images))], [])


def _keys(paths: Sequence[Path]) -> list[str]:
    """Names without the suffix, relative to the folder that contains all files."""
    root = os.path.commonpath([os.path.abspath(path.parent) for path in paths])
    return [Path(os.path.relpath(path, root)).with_suffix("").as_posix() for path in paths]


def _match(lists: Sequence[Sequence[Path]], keys: Sequence[Sequence[str]]) -> Matched:
    """Names that occur exactly once in both lists."""
    counts = [Counter(names) for names in keys]
    places = {key: k for k, key in enumerate(keys[1])}
    pairs = [
        (k, places[key])
        for k, key in enumerate(keys[0])
        if counts[0][key] == 1 and counts[1][key] == 1
    ]
    left_out = []
    for number, (what, other) in enumerate((("image", "result"), ("result", "image"))):
        counted = counts[number], counts[1 - number]
        for path, key in zip(lists[number], keys[number], strict=True):
            if not counted[1][key]:
                left_out.append(f"{path} (no {other} of this name)")
            elif counted[0][key] > 1:
                left_out.append(f"{path} (another {what} has this name, too)")
            elif counted[1][key] > 1:
                left_out.append(f"{path} (several {other}s have this name)")
    return Matched(pairs, left_out)


def _join(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    if not names:
        return "no files"
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
