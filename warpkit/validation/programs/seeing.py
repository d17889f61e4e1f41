"""What looks tell about a program: the rules that agree, and the pictures that show its resize."""

from __future__ import annotations

from collections.abc import Sequence

from warpkit.validation.programs.asking import NotKnownError
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.hypotheses import geometries
from warpkit.validation.programs.looks import Look

KEPT_SIDE = 97
"""The square for programs that keep sizes."""

MOST = 3000
"""The largest side of a square that is tried to see a resize."""


def agreeing(looks: Sequence[Look]) -> tuple[list[Geometry], list[Look]]:
    """The rules that agree with all looks, or with all but the small and long ones, and those left
    out."""
    base, others = looks[0], list(looks[1:])
    while others:
        known = geometries(others, base)
        if known:
            return known, list(looks[1 + len(others) :])
        if len(others) <= 3:
            break
        others.pop()
    sides = [
        f"{seen.height} x {seen.width} -> {seen.window[0]} x {seen.window[1]}" for seen in looks[:4]
    ]
    raise NotKnownError(f"No rule of sizes that is known gives these: {', '.join(sides)}.")


def is_whole(seen: Look) -> bool:
    """Whether a look shows the whole picture, neither cropped nor kept as it is."""
    if seen.along_y is None or seen.along_x is None or seen.window == (seen.height, seen.width):
        return False
    sides = zip(seen.sides, seen.window, strict=True)
    return all(abs(side - length) < max(1.5, 0.02 * length) for side, length in sides)


def rectangles(known: Sequence[Geometry]) -> list[tuple[int, int]]:
    """The rectangles of rules that keep the aspect."""
    sizes = [g.size for g in known if g.rule in ("longest", "shortest")]
    return [size for size in sizes if isinstance(size, tuple)]


def longest(known: Sequence[Geometry]) -> float:
    """The largest aspect of a rectangle; 1 if there is none."""
    return max((max(size) / min(size) for size in rectangles(known)), default=1.0)


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


def near_size(geometry: Geometry, side: int, seen: Look) -> tuple[int, int]:
    """(h, w) of pictures that are resized by a factor near 1."""
    if geometry.rule == "keep":
        return geometry.window or (seen.height, seen.width)
    if geometry.rule == "factor":
        return seen.height, seen.width
    return geometry.placed(side, side).size


def resized_side(geometry: Geometry, side: int) -> int:
    """The side of a square that is resized, though many sizes are kept."""
    times = 1.4 if geometry.shrink else 0.7
    while (
        geometry.rule in ("shortest", "longest", "area")
        and geometry.placed(side, side).size == (side, side)
        and 24 < side < MOST
    ):
        side = round(times * side) | 1
    return side
