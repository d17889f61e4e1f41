"""`warpkit parity`: runs the suite with a progress bar; prints the table and writes the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from torch import Tensor

from warpkit.cli.errors import check_apart
from warpkit.cli.image_files import check_target, read_photograph, replacing
from warpkit.types import FaceArithmetic
from warpkit.validation import ParityReport, parity_suite


def run(
    images: Sequence[Path], html: Path | None, json: Path | None, arithmetic: FaceArithmetic
) -> int:
    """Compare, print and write; 1 if a guaranteed pixel differs."""
    inputs = {f"IMAGE {k}": path for k, path in enumerate(images, 1)}
    check_apart({"--html": html, "--json": json}, inputs)
    for path in (html, json):
        check_target(path)
    report = parity_suite(photographs(images), progress=True, arithmetic=arithmetic)
    from warpkit.validation.table import show

    console = Console(highlight=False)
    show(report, console)
    for path, write in ((html, ParityReport.to_html), (json, ParityReport.to_json)):
        if path is not None:
            save(path, report, write)
            console.print(f"wrote {path}", markup=False, soft_wrap=True)
    return 0 if report.passed else 1


def photographs(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The files' pixels by name."""
    pictures: dict[str, Tensor] = {}
    for path in paths:
        picture = read_photograph(path, "the comparison takes grey and RGB photographs")
        name, count = path.name, 1
        while name in pictures:
            count += 1
            name = f"{path.name} ({count})"
        pictures[name] = picture.pixels
    return pictures


def save(path: Path, report: ParityReport, write: Callable[[ParityReport, str], None]) -> None:
    """Write a file, which gets its name when it is complete."""
    with replacing(path) as file:
        write(report, file.name)
