"""`warpkit identify` and `warpkit compare`: programs by their functions' names, and data sets."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from warpkit import choices
from warpkit.cli.errors import CommandError, check_apart
from warpkit.cli.image_files import check_target, read_photograph, replacing
from warpkit.cli.options import one_of, option

KINDS: tuple[choices.Takes, ...] = get_args(choices.Takes)

Asked = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="package.module:function, or file.py:function; with RESULTS a folder of originals.",
        show_default=False,
    ),
]
Made = Annotated[
    Path | None,
    typer.Argument(
        metavar="RESULTS",
        help="A folder with the results of the originals, under the same names.",
        show_default=False,
    ),
]
First = Annotated[str, typer.Argument(metavar="A", help="As for identify.", show_default=False)]
Second = Annotated[str, typer.Argument(metavar="B", help="The other one.", show_default=False)]
Photographs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="IMAGE",
        help="Photographs for the comparison. [default: synthetic images]",
        show_default=False,
    ),
]
Takes = Annotated[
    choices.Takes,
    option(
        one_of(KINDS),
        "NAME",
        "Its input: auto, pil, array (H, W, 3), tensor (3, H, W), file (a path or bytes)",
    ),
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write what was found.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures.")
]


def identify(program: Asked, results: Made = None, takes: Takes = "auto", json: Json = None) -> int:
    """Describe a preprocessing program, by calling it or from its results.

    Finds its size, crop, padding, filter, arithmetic, rounding, channels, gain and offset, and
    verifies them on 200,000 values or more. The exit status is 1 if something is not known.

    With two folders, no program is called: every value of every result is compared with the results
    of known programs for the picture of the same name (without the suffix). The remaining
    candidates are listed.

    The program runs with your permissions: name only those of people you trust.
    """
    from warpkit import validation

    check_target(json)
    visible = sys.stderr.isatty()
    try:
        if results is not None:
            match = _of_folders(Path(program), results, takes)
        else:
            if Path(program).is_dir():
                raise CommandError(f"{program} is a folder: name a second one, of what was made")
            match = validation.identify(load(program), takes=takes, progress=visible)
    except ValueError as error:
        raise CommandError(_one_line(error)) from None
    print(match)
    if not match.known:
        for candidate in _candidates(match):
            print(candidate)
    _write(json, match.to_json)
    return 0 if match.known else 1


def _of_folders(images: Path, results: Path, takes: str) -> Any:
    """Identify the program that made the files of one folder from those of another."""
    from warpkit.validation.pairs.procedure import identify_folders

    for folder in (images, results):
        if not folder.is_dir():
            raise CommandError(f"{folder}: no such folder")
    if takes != "auto":
        raise CommandError("--takes says how a program is called: two folders call none")
    if images.resolve() == results.resolve():
        raise CommandError(f"{images} is named twice: RESULTS must be another folder")
    return identify_folders("identify", images, results, progress=sys.stderr.isatty())


def _candidates(match: Any) -> list[str]:
    """A line for each program that fits, or is nearest."""
    lines = []
    for number, (program, share, distance) in enumerate(match.candidates, 1):
        text = f"{number}. {program}"
        lines.append(f"{text} ({share:.3%} of values differ; {distance:.3g} levels apart)")
    return lines


def compare(
    first: First,
    second: Second,
    images: Photographs = None,
    takes_a: Takes = "auto",
    takes_b: Takes = "auto",
    html: Html = None,
    json: Json = None,
) -> int:
    """Identify two preprocessing programs and explain their differences, the worst first.

    Each finding says how many values it changes by itself; what could not be compared is a finding
    too. The exit status is 1 if more than the last bits differ.

    The programs run with your permissions: name only those of people you trust.
    """
    from warpkit import validation

    inputs = {f"IMAGE {k}": path for k, path in enumerate(images or [], 1)}
    check_apart({"--html": html, "--json": json}, inputs)
    for path in (html, json):
        check_target(path)
    pictures = [_photograph(path) for path in images or []]
    functions = [load(name) for name in (first, second)]
    try:
        result = validation.compare_pipelines(
            functions[0],
            functions[1],
            takes=(takes_a, takes_b),
            images=pictures or None,
            progress=sys.stderr.isatty(),
        )
    except ValueError as error:
        raise CommandError(_one_line(error)) from None
    result.names = (first, second)
    if images:
        result.pictures = list(map(str, images))
    print(f"A: {result.first}\n\nB: {result.second}\n\n{result}")
    _write(html, result.to_html)
    _write(json, result.to_json)
    return 0 if result.only_last_bits else 1


def load(name: str) -> Callable[[Any], Any]:
    """The function with a name such as package.module:function or file.py:function."""
    place, colon, path = name.rpartition(":")
    if not colon or not place or not path:
        wanted = "package.module:function or file.py:function"
        raise CommandError(f"{name!r} names no program: it must be {wanted}")
    try:
        value = _of_file(Path(place)) if place.endswith(".py") else _of_package(place)
    except CommandError:
        raise
    except Exception as error:
        raise CommandError(f"{place} raises {type(error).__name__}: {_one_line(error)}") from None
    for part in path.split("."):
        if not hasattr(value, part):
            raise CommandError(f"{place} has no {path}")
        value = getattr(value, part)
    if not callable(value):
        raise CommandError(f"{name} is {type(value).__name__}, which cannot be called")
    return value


def _of_file(path: Path) -> Any:
    """A file as a module with a unique name."""
    if not path.is_file():
        raise CommandError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"warpkit_program_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec.loader.exec_module(module)
    return module


def _of_package(name: str) -> Any:
    """A module by its dotted name, from the current folder or installed."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CommandError(f"{name}: {error}") from None


def _photograph(path: Path) -> Any:
    """A file as RGB (3, H, W) uint8."""
    pixels = read_photograph(path, "the comparison takes grey and RGB photographs").pixels
    return pixels.expand(3, -1, -1) if pixels.shape[-3] == 1 else pixels


def _write(path: Path | None, write: Callable[[str], None]) -> None:
    """Write a file, which gets its name when it is complete."""
    if path is None:
        return
    with replacing(path) as file:
        write(file.name)
    print(f"wrote {path}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
