"""Values of the command line's options: lists of numbers, and names to choose from."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import typer

GATHERED = {
    "--angle",
    "--border-value",
    "--center",
    "--matrix",
    "--scale",
    "--shear",
    "--size",
    "--translate",
}
"""The options that take all the numbers that follow them."""


class Numbers(tuple[float, ...]):
    """The numbers of one option."""


def gather(argv: Sequence[str]) -> list[str]:
    """Join the numbers after an option of GATHERED into one word, for `numbers` to take apart.

    A parser of options gives an option a fixed count of words, and reads `-3` as an option.

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
    """Whether `word` reads as a number, finite or not."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def numbers(*counts: int, positive: bool = False, whole: bool = False) -> Callable[..., Numbers]:
    """A parser of as many finite numbers as one of `counts` says."""
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


def one_of(names: Collection[str]) -> Callable[..., str]:
    """A parser of one of `names`."""

    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(names)}")
        return text

    return parse
