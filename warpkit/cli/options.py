"""The options of the command line: names, values and help texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from warpkit import choices
from warpkit.choices import (
    ALIGNMENT_LOSSES,
    ALIGNMENT_MODELS,
    ARITHMETICS,
    INTERPOLATIONS,
    RESIZE_ARITHMETICS,
)

Name = TypeVar("Name", bound=str)

GATHERED = {
    "--angle",
    "--border-value",
    "--camera",
    "--center",
    "--corners",
    "--distortion",
    "--fov",
    "--from",
    "--matrix",
    "--pitch",
    "--roll",
    "--scale",
    "--shear",
    "--size",
    "--translate",
    "--yaw",
}
"""The options that take all following numbers, and how many these may be."""


class Numbers(tuple[float, ...]):
    """The numbers of one option."""


def gather(argv: Sequence[str]) -> list[str]:
    """Join the numbers after an option of GATHERED into one word, which `numbers` splits.

    The parser gives each option a fixed number of words, and would read `-3` as an option.

    >>> gather(["warp", "in.png", "--translate", "-3", "1e1", "out.png"])
    ['warp', 'in.png', '--translate', '-3 1e1', 'out.png']
    """
    words: list[str] = []
    left = list(argv)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*words, word, *left]
        option, equals, first = word.partition("=")
        words.append(option if option in GATHERED else word)
        if option not in GATHERED:
            continue
        values = [first] if equals else []
        while left and is_number(left[0]):
            values.append(left.pop(0))
        if values:
            words.append(" ".join(values))
    return words


def is_number(word: str) -> bool:
    """Whether `word` is a number, finite or not."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def numbers(*counts: int, positive: bool = False, whole: bool = False) -> Callable[..., Numbers]:
    """A parser of finite numbers, as many as one of `counts`."""
    wanted = " or ".join(map(str, counts)) + (" whole" if whole else "")
    wanted += (" positive" if positive else "") + (" number" if counts == (1,) else " numbers")

    def parse(text: str) -> Numbers:
        words = text.replace(",", " ").split()
        for word in words:
            if not is_number(word) or not math.isfinite(float(word)):
                raise typer.BadParameter(f"{word!r} is not a finite number")
        values = Numbers(float(word) for word in words)
        if len(values) not in counts:
            raise typer.BadParameter(f"takes {wanted}, got {len(values)}")
        if (positive and min(values) <= 0) or (whole and any(v % 1 for v in values)):
            raise typer.BadParameter(f"takes {wanted}, got {' '.join(words)}")
        return values

    return parse


def one_of(names: Collection[Name]) -> Callable[..., Name]:
    """A parser of one of `names`."""

    def parse(text: str) -> Name:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(names)}")
        return text  # pyright: ignore[reportReturnType]

    return parse


def a_border(text: str) -> choices.Border:
    """One border of `SHOWN`, or two as Y,X."""
    words = text.split(",")
    names: tuple[choices.BorderName, ...] = tuple(
        name for word in words for name in SHOWN if name == word
    )
    if len(words) > 2 or len(names) < len(words):
        wanted = f"one of {', '.join(SHOWN)}, nor two of them as Y,X"
        raise typer.BadParameter(f"{text!r} is not {wanted}")
    return names[0] if len(names) == 1 else names


def an_ending(text: str) -> str:
    """The suffix of an image file's name, without the dot."""
    from PIL import Image

    ending = text.removeprefix(".")
    if Image.registered_extensions().get(f".{ending.lower()}") not in Image.SAVE:
        raise typer.BadParameter(f"{text!r} is not the ending of an image to write, such as png")
    return ending


def whole(most: int | None = None) -> Callable[..., int]:
    """A parser of whole numbers of at least 1."""

    def parse(text: str) -> int:
        word = str(text)  # a default value is a number
        if not word.isdecimal() or int(word) < 1 or (most and int(word) > most):
            wanted = f"a whole number from 1 to {most}" if most else "a whole number, 1 or more"
            raise typer.BadParameter(f"takes {wanted}, got {text}")
        return int(word)

    return parse


def option(parser: Callable[..., Any], metavar: str, help: str) -> Any:
    """An option that is parsed by `parser`."""
    return typer.Option(parser=parser, metavar=metavar, help=help)


SHOWN: tuple[choices.BorderName, ...] = ("constant", "replicate", "reflect", "reflect_101", "wrap")
"""The borders on the command line; "transparent" is missing, as there is no background."""

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="IN and OUT, each a file or - for a pipe; with --out, only input images.",
        show_default=False,
    ),
]
OutFolder = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="The folder to write to; created if necessary."),
]
Angle = Annotated[Numbers | None, option(numbers(1), "A", "Degrees, counter-clockwise.")]
Scale = Annotated[
    Numbers | None, option(numbers(1, positive=True), "S", "2 makes it twice as large.")
]
Shear = Annotated[Numbers | None, option(numbers(1, 2), "X [Y]", "Degrees along x (and y).")]
Translate = Annotated[Numbers | None, option(numbers(2), "X Y", "Pixels to the right and down.")]
Center = Annotated[
    Numbers | None,
    option(numbers(2), "X Y", "The centre of rotation. [default: the image's]"),
]
Matrix = Annotated[
    Numbers | None,
    option(
        numbers(6, 9),
        "M ...",
        "Instead of the above: 6 numbers (affine) or 9 (perspective), row by row, source pixel "
        "to destination pixel, as for cv2.warpAffine.",
    ),
]
Inverse = Annotated[
    bool, typer.Option("--inverse", help="The matrix maps destination pixel to source pixel.")
]
Corners = Annotated[
    Numbers | None,
    option(
        numbers(8),
        "X Y ...",
        "Instead of the above: four pixels of IN, such as a document's corners, that become the "
        "corners of the result; the first becomes the top left.",
    ),
]
Camera = Annotated[
    Numbers | None,
    option(numbers(4), "FX FY CX CY", "The camera's focal lengths and principal point, in pixels."),
]
Distortion = Annotated[
    Numbers | None,
    option(
        numbers(2, 4, 5, 8, 12, 14),
        "K1 K2 ...",
        "The lens's coefficients in OpenCV's order: 2, 4, 5, 8, 12 or 14 of k1 k2 p1 p2 k3 k4 k5 "
        "k6 s1 s2 s3 s4 tx ty; with --fisheye 2 or 4 of cv2.fisheye's. Others are 0.",
    ),
]
Alpha = Annotated[
    Numbers | None,
    option(
        numbers(1),
        "A",
        "0 shows only valid pixels, 1 all pixels of IN. [default: keep the camera matrix]",
    ),
]
Size = Annotated[
    Numbers | None,
    option(
        numbers(2, positive=True, whole=True),
        "H W",
        "The result's height and width. [default: IN's, or that of --corners]",
    ),
]
NewSize = Annotated[
    Numbers | None,
    option(numbers(2, positive=True, whole=True), "H W", "The result's height and width."),
]
Model = Annotated[
    choices.AlignmentModel, option(one_of(ALIGNMENT_MODELS), "NAME", ", ".join(ALIGNMENT_MODELS))
]
Loss = Annotated[
    choices.AlignmentLoss,
    option(
        one_of(ALIGNMENT_LOSSES),
        "NAME",
        "ecc (ignores gain and bias), ssd, robust (also ignores what only one image shows)",
    ),
]
Init = Annotated[
    str | None,
    option(one_of(("search",)), "search", "Try all rotations and scales from 0.5 to 2."),
]
Interpolation = Annotated[
    choices.Interpolation, option(one_of(INTERPOLATIONS), "NAME", ", ".join(INTERPOLATIONS))
]
Antialias = Annotated[
    bool, typer.Option("--antialias", help="Average over the pixels that become one.")
]
ShownBorder = Annotated[
    Any,
    option(a_border, "NAME[,NAME]", ", ".join(SHOWN) + "; two names are for y and x."),
]
Arithmetic = Annotated[
    choices.Arithmetic,
    option(one_of(ARITHMETICS), "NAME", "exact, or OpenCV's pixels bit for bit: opencv4, opencv5"),
]
ParityArithmetic = Annotated[
    choices.FaceArithmetic,
    option(
        one_of(("auto", *ARITHMETICS)),
        "NAME",
        "auto, the installed OpenCV's; or " + ", ".join(ARITHMETICS),
    ),
]
BorderValue = Annotated[
    Numbers | None,
    option(
        numbers(1, 2, 3, 4),
        "V ...",
        "For border constant: one number, or one for each channel. [default: 0]",
    ),
]
Scales = Annotated[
    Numbers | None,
    option(numbers(1, 2, positive=True), "S [S]", "Instead of --size; one per side, or one."),
]
Filter = Annotated[
    choices.Filter,
    option(
        str,  # the valid names depend on the arithmetic
        "NAME",
        "exact: nearest, bilinear, bicubic, lanczos4, box, hamming, lanczos, area; for other "
        "arithmetics, an error lists the names.",
    ),
]
Means = Annotated[
    bool | None,
    typer.Option(
        "--antialias/--no-antialias",
        help="Average if the image shrinks. [default: if the interpolation supports it]",
        show_default=False,
    ),
]
ResizeArithmetic = Annotated[
    choices.ResizeArithmetic,
    option(
        one_of(RESIZE_ARITHMETICS),
        "NAME",
        "exact, or another library's pixels: " + ", ".join(RESIZE_ARITHMETICS[1:]),
    ),
]
Format = Annotated[
    str | None,
    option(
        an_ending,
        "ENDING",
        "The format to write, such as png, tif or jpg, for - and pipes; with --out, the new "
        "suffix. [default: the name's suffix; png for -]",
    ),
]
Workers = Annotated[
    int | None,
    option(whole(), "N", "With --out: files processed at once. [default: one per core]"),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --out: write one line of JSON per file, in order."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="With --out: skip files whose result exists.")
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="With --out: use a Ray cluster: auto, HOST:PORT, ray://HOST:PORT, or local, which "
        "starts one on this machine. FILE and DIR may be buckets, such as s3://bucket/folder; a "
        "folder as FILE stands for the images in it.",
        show_default=False,
    ),
]
Quality = Annotated[
    int | None,
    option(whole(100), "Q", "1 to 100, for JPEG and AVIF, and for lossy WebP."),
]
