"""What looks tell about a program: the rules that agree, and the pictures that show its resize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.hypotheses import geometries
from warpkit.validation.programs.observe import Look, glance, look, try_look
from warpkit.validation.programs.program import NotKnownError, Program
from warpkit.validation.programs.values import Measured

BEYOND = ((1451, 1933), (2350, 731), (23, 31))
"""Pictures beyond the sides and the pixels to which programs usually limit pictures."""

TINY = ((23, 31), (49, 38))
"""Pictures that may have too few pixels for a budget."""

LONG = ((8, 3.8), (20, 7.6))
"""Aspects of pictures to try if a rectangle is longer than the second number: the earlier looks are
at 4 to 1 and tell nothing about a side that none of them reaches."""

KEPT_SIDE = 97
"""The square for programs that keep sizes."""

MOST = 3000
"""The largest side of a square that is tried to see a resize."""


class NoRuleError(NotKnownError):
    """No rule of sizes agrees with the looks."""

    def __init__(self, text: str, looks: Sequence[Look]) -> None:
        super().__init__(text)
        self.looks = looks


@dataclass(frozen=True)
class Rules:
    """The rules of sizes, crops and padding that agree with looks."""

    looks: list[Look]
    geometries: list[Geometry]
    aside: list[Look]
    """Looks that were left out to find a rule."""
    side: int
    """The side of a square that shrinks, and not by a round number."""
    padding: tuple[float, ...]
    """The levels around pictures."""

    def in_levels_of(self, old: Measured, new: Measured) -> Rules:
        """The same with the padding in the levels of another measurement."""
        numbers = np.array(self.padding) * old.variants[0].gain + old.variants[0].offset
        levels = new.variants[0].as_levels(numbers[:, None, None])[:, 0, 0]
        whole = np.round(levels)
        near = np.abs(levels - whole) < max(new.tolerance, 1e-3)
        return replace(self, padding=tuple(np.where(near, whole, levels).tolist()))


def rules_of(program: Program, measured: Measured) -> Rules:
    """Look at wide, tall, square, long and small pictures. Raises NotKnownError."""
    values, tolerance = measured.variants[0], measured.tolerance
    base = look(program, values, program.shape, tolerance)
    if base.along_y is None or base.along_x is None:
        raise NotKnownError("A ramp does not show which part of a picture it returns.")
    side = square_side(base)
    looks = [base, *_looks(program, measured, side, keeps=is_kept(base))]
    rules, aside = agreeing(looks)
    if any(rule.rule == "area" for rule in rules):
        small = [try_look(program, values, shape, tolerance) for shape in TINY]
        looks += [one for one in small if one is not None]
        rules, aside = agreeing(looks)
    for aspect, met in LONG:
        if longest(rules) < met:
            break
        looks += _long_looks(program, measured, rules, aspect)
        rules, aside = agreeing(looks)
    if longest(rules) > LONG[-1][0]:
        raise NotKnownError("Pictures of 20 to 1 do not tell the rectangle that it aims at.")
    padding = next((one.padding for one in looks if one.padding is not None), None)
    return Rules(looks, rules, aside, side, padding or (0.0,) * len(values.gain))


def _looks(program: Program, measured: Measured, side: int, *, keeps: bool) -> list[Look]:
    """Looks at wide, tall and square pictures, two long ones, and a small one."""
    shapes = [
        (side, int(side * 1.5) | 1),
        (int(side * 1.45) | 1, side),
        (side, side),
        (max(16, int(side * 0.34)), int(side * 1.36)),
        (int(side * 1.36), max(16, int(side * 0.34))),
        (max(8, int(side * 0.41)), max(8, int(side * 0.52))),
    ]
    looks = []
    values, tolerance = measured.variants[0], measured.tolerance
    for number, shape in enumerate(shapes):
        one = try_look(program, values, shape, tolerance)
        if one is None and number < 3:
            one = try_look(program, values, (2 * shape[0], 2 * shape[1]), tolerance)
        if one is not None:
            looks.append(one)
    if not looks:
        raise NotKnownError("It refuses most pictures.")
    if keeps:  # perhaps only up to a limit, or from a least side on
        for shape in BEYOND:
            one = glance(program, shape) or try_look(program, values, shape, tolerance)
            looks += [] if one is None else [one]
    return looks


def _long_looks(
    program: Program, measured: Measured, rules: Sequence[Geometry], aspect: int
) -> list[Look]:
    """Looks at a tall picture and a wide one."""
    short = max(24, round(1.37 * min(map(min, rectangles(rules)))))
    shapes = ((aspect * short + 1, short), (short, aspect * short + 1))
    values, tolerance = measured.variants[0], measured.tolerance
    looks = [try_look(program, values, shape, tolerance) for shape in shapes]
    return [one for one in looks if one is not None]


def agreeing(looks: Sequence[Look]) -> tuple[list[Geometry], list[Look]]:
    """The rules that agree with all looks, or with all but the small and long ones, and those left
    out."""
    base, others = looks[0], list(looks[1:])
    while others:
        rules = geometries(others, base)
        if rules:
            return rules, list(looks[1 + len(others) :])
        if len(others) <= 3:
            break
        others.pop()
    sides = [
        f"{one.height} x {one.width} -> {one.window[0]} x {one.window[1]}" for one in looks[:4]
    ]
    raise NoRuleError(f"No rule of sizes that is known gives these: {', '.join(sides)}.", looks)


def is_whole(one: Look) -> bool:
    """Whether a look shows the whole picture, neither cropped nor kept as it is."""
    if one.along_y is None or one.along_x is None or one.window == (one.height, one.width):
        return False
    sides = zip(one.sides, one.window, strict=True)
    return all(abs(side - length) < max(1.5, 0.02 * length) for side, length in sides)


def rectangles(rules: Sequence[Geometry]) -> list[tuple[int, int]]:
    """The rectangles of rules that keep the aspect."""
    sizes = [g.size for g in rules if g.rule in ("longest", "shortest")]
    return [size for size in sizes if isinstance(size, tuple)]


def longest(rules: Sequence[Geometry]) -> float:
    """The largest aspect of a rectangle; 1 if there is none."""
    return max((max(size) / min(size) for size in rectangles(rules)), default=1.0)


def square_side(base: Look) -> int:
    """An odd side, 1.37 times the resized one: pictures shrink, and not by a round number."""
    rows, columns = base.sides
    if is_kept(base):
        return KEPT_SIDE
    top, left, bottom, right = base.content
    if abs(rows / base.height - 1) < 0.01 and abs(columns / base.width - 1) < 0.01:
        return max(41, int(1.2 * max(base.window)) | 1)  # cropped, not resized
    if base.padded:
        rows, columns = max(bottom - top, rows), max(right - left, columns)
    return max(41, round(1.37 * max(24, rows, columns)) | 1)


def is_kept(base: Look) -> bool:
    """Whether the first look keeps its size, or nearly so: in multiples."""
    scales = (side / length for side, length in zip(base.sides, base.window, strict=True))
    sides = zip((base.height, base.width), base.window, strict=True)
    near = all(abs(side - length) <= max(24, 0.1 * side) for side, length in sides)
    return near and all(abs(scale - 1) < 0.05 for scale in scales)


def near_size(geometry: Geometry, side: int, one: Look) -> tuple[int, int]:
    """(h, w) of pictures that are resized by a factor near 1."""
    if geometry.rule == "keep":
        return geometry.window or (one.height, one.width)
    if geometry.rule == "factor":
        return one.height, one.width
    return geometry.placement(side, side).size


def resized_side(geometry: Geometry, side: int) -> int:
    """The side of a square that is resized, though many sizes are kept."""
    times = 1.4 if geometry.shrink else 0.7
    while (
        geometry.rule in ("shortest", "longest", "area")
        and geometry.placement(side, side).size == (side, side)
        and 24 < side < MOST
    ):
        side = round(times * side) | 1
    return side
