"""Finds all rules of sizes, crop and padding that agree with the observed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from warpkit.validation.programs import proposals
from warpkit.validation.programs.geometry import (
    EXACT,
    LIMITS,
    OFFSETS,
    SIDES,
    TWICE,
    Geometry,
    Placement,
)
from warpkit.validation.programs.observe import Look

MULTIPLES = (128, 64, 32, 28, 16, 14, 8, 4)
"""Strides of networks, the largest first."""

ONE_SIDE = [name for name, (_, near) in SIDES.items() if near != "floor_and_one"]
"""How a side may follow from the one that is given."""

ALIKE = 0.015
"""Relative to a side: how far the slopes of equal ramps may differ."""


def geometries(looks: Sequence[Look], base: Look) -> list[Geometry]:
    """All rules that agree with the looks; looks: tall, wide, square, long and small pictures, if
    known."""
    every = [base, *looks]
    proposed = list(dict.fromkeys(_propose(every)))
    return [geometry for geometry in proposed if all(agrees(geometry, look) for look in every)]


def agrees(geometry: Geometry, look: Look) -> bool:
    """Whether a rule puts the picture where it was observed."""
    placement = geometry.placement(look.height, look.width)
    if placement.window != look.window:
        return False
    content = placement.content()
    if placement.padded is not None:
        content = _content_of_padded(
            look, placement.padded, placement.size, placement.corner, look.window
        )
    elif look.soft:
        return False
    room = 1.01 if placement.padded is not None else 0
    if any(abs(a - b) > room for a, b in zip(content, look.content, strict=True)):
        return False
    return _is_scaled_as(placement, look) and _is_placed_as(placement, look)


def _is_scaled_as(placement: Placement, look: Look) -> bool:
    """Whether ramps have the slopes that were observed, wherever the picture is."""
    _, sides = _source(placement, look)
    for axis, line in enumerate((look.along_y, look.along_x)):
        if line is None or look.window[axis] <= 24:
            continue
        scale = sides[axis] / placement.size[axis]
        wide = look.content[axis + 2] - look.content[axis]
        if abs(line[0] / scale - 1) * wide > max(2.5, 0.025 * wide):
            return False
    return True


def _is_placed_as(placement: Placement, look: Look) -> bool:
    """Whether the middle of what is seen is where it was observed."""
    begins, sides = _source(placement, look)
    for axis, line in enumerate((look.along_y, look.along_x)):
        if line is None or look.window[axis] <= 24:
            continue
        scale = sides[axis] / placement.size[axis]
        middle = (look.content[axis] + look.content[axis + 2] - 1) / 2
        at = begins[axis] + (middle + placement.corner[axis] + 0.5) * scale - 0.5
        if abs(line[0] * middle + line[1] - at) > 1.5 * scale + 1.5:
            return False
    return True


def _source(placement: Placement, look: Look) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the part that is resized begins in the picture, and its sides: (y, x), (h, w)."""
    if placement.cut is not None:
        x1, y1, x2, y2 = placement.cut
        return (y1, x1), (y2 - y1, x2 - x1)
    if placement.padded is not None:
        rows, columns, down, right = placement.padded
        return (-down, -right), (rows, columns)
    return (0.0, 0.0), (look.height, look.width)


def _content_of_padded(
    look: Look,
    padded: tuple[int, int, int, int],
    size: tuple[int, int],
    corner: tuple[int, int],
    window: tuple[int, int],
) -> tuple[int, ...]:
    """The edges in the result, within a pixel, of a picture that was padded first."""
    edges = []
    for axis, (length, total, begin) in enumerate(
        zip((look.height, look.width), padded[:2], padded[2:], strict=True)
    ):
        scale = size[axis] / total
        low, high = begin * scale - corner[axis], (begin + length) * scale - corner[axis]
        edges.append((round(max(low, 0)), round(min(high, window[axis]))))
    return edges[0][0], edges[1][0], edges[0][1], edges[1][1]


def _propose(looks: Sequence[Look]) -> Iterator[Geometry]:
    """Every rule that may fit, with every rounding; most of them do not agree."""
    windows = {look.window for look in looks}
    window = looks[0].window if len(windows) == 1 else None
    padded = any(look.padded for look in looks)
    many = window is not None or padded
    for rule in _rules(looks, window):
        if many and not all(_is_scaled_as(rule.placement(s.height, s.width), s) for s in looks):
            continue
        crops = _crops(rule, looks, window)
        for crop, place in product(crops, _places(looks) if padded else ["floor"]):
            if place == EXACT and SIDES[rule.rounding][0] != "single":
                continue
            geometry = replace(rule, crop_rounding=crop, place=place)
            if window is not None:
                yield replace(geometry, window=window)
                continue
            yield geometry
            if padded:
                strides = [m for m in MULTIPLES if _all_multiples(windows, m)]
                yield from (replace(geometry, stride=stride) for stride in strides)


def _crops(rule: Geometry, looks: Sequence[Look], window: tuple[int, int] | None) -> list[str]:
    """The roundings of a crop, if it may remove something."""
    if window is None:
        return ["even"]
    sizes = [rule.placement(look.height, look.width).size for look in looks]
    cuts = any(side > length for size in sizes for side, length in zip(size, window, strict=True))
    return ["even", "floor", "ceil"] if cuts else ["even"]


def _places(looks: Sequence[Look]) -> list[str]:
    """Where padding may be added: before, after, or on both sides."""
    for look in looks:
        top, left, bottom, right = look.content
        for low, rest in ((top, look.window[0] - bottom), (left, look.window[1] - right)):
            if low + rest > 1:
                return ["end"] if low == 0 else ["start"] if rest == 0 else [*OFFSETS, EXACT]
    return [*OFFSETS, EXACT, "end", "start"]


def _all_multiples(sizes: Iterable[tuple[int, int]], of: int) -> bool:
    return all(side % of == 0 for size in sizes for side in size)


def _rules(looks: Sequence[Look], window: tuple[int, int] | None) -> Iterator[Geometry]:
    """Rules without window and padding."""
    ramps = [look for look in looks if look.along_y is not None and look.along_x is not None]
    if not ramps:
        return
    sides = np.array([look.sides for look in ramps])
    shapes = np.array([(look.height, look.width) for look in ramps])
    scale = sides / shapes
    if np.abs(scale - 1).max() < 0.25 or (window is None and np.abs(scale[0] - 1).max() < 0.25):
        yield from _keep(looks, scale)
    if window is None and np.ptp(np.median(scale, 1)) < 0.1 * np.median(scale):
        yield from proposals.by_factor(looks, float(np.median(scale)))
    yield from _fixed(looks, sides, window)
    yield from proposals.by_height(ramps, window)
    if window is None:
        sizes = {look.window for look in looks}
        strides = [multiple for multiple in MULTIPLES if _all_multiples(sizes, multiple)]
        yield from proposals.with_multiples(ramps, strides[:3])
        yield from proposals.with_bounds(ramps, strides or [None])
        yield from proposals.by_area(looks, strides or [1])
    alike = np.abs(scale[:, 0] / scale[:, 1] - 1) < 0.06
    if alike[:4].all():
        yield from _one_side(ramps, sides, window)
        yield from _rectangles(ramps, sides, window)
        yield from _squares(ramps, sides, window)


def _keep(looks: Sequence[Look], scale: Any) -> Iterator[Geometry]:
    if np.abs(scale - 1).max() < ALIKE:
        yield Geometry("keep")
    windows = {look.window for look in looks}
    changed = any(look.window != (look.height, look.width) for look in looks)
    if changed and len(windows) > 1:
        for multiple in MULTIPLES:
            if _all_multiples(windows, multiple):
                for near in ("floor", "even", "ceil"):
                    yield Geometry("keep", multiple=multiple, multiple_rounding=near)


def _near(number: float, room: float = 0.004) -> list[int]:
    """The whole numbers near a measured one, the nearest first."""
    reach = max(1, int(np.ceil(room * number)))
    middle = round(number)
    numbers = range(max(1, middle - reach), middle + reach + 1)
    return sorted(numbers, key=lambda n: abs(n - number))


def _fixed(looks: Sequence[Look], sides: Any, window: tuple[int, int] | None) -> Iterator[Geometry]:
    """Rules with one size for all pictures."""
    middle = np.median(sides, 0)
    if (np.abs(sides / middle - 1) > 0.03).any() and (np.abs(sides - middle) > 1.5).any():
        return
    choices = []
    for axis in (0, 1):
        numbers = _near(float(middle[axis]))
        if window is not None and abs(window[axis] - middle[axis]) < max(2.5, 0.02 * middle[axis]):
            numbers = list(dict.fromkeys([window[axis], *numbers]))
        choices.append(numbers)
    for size in product(*choices):
        yield Geometry("fixed", size)


def _one_side(
    ramps: Sequence[Look], sides: Any, window: tuple[int, int] | None
) -> Iterator[Geometry]:
    """Rules in which the shorter or the longer side is given."""
    square = next((k for k, look in enumerate(ramps) if look.height == look.width), 0)
    exact = [k for k, look in enumerate(ramps) if not _is_cut(look)]
    for rule, pick in (("longest", max), ("shortest", min)):
        size = float(pick(sides[square]))
        if square in exact:
            top, left, bottom, right = ramps[square].content
            numbers = [pick(bottom - top, right - left)]
        else:
            numbers = _near(size)
        per = [pick(row) for row in sides]
        small = [k for k, look in enumerate(ramps) if max(look.height, look.width) < size]
        grows = [abs(per[k] / size - 1) < 0.05 for k in small]
        enlarge = [True] if all(grows) else [True, False]
        limits: list[int | None] = [None]
        if rule == "shortest":
            limits += _limits(ramps, per, size, small)
        for n, enlarges, limit, rounding in product(numbers, enlarge, limits, ONE_SIDE):
            if limit is not None and limit < n:
                continue
            geometry = Geometry(rule, n, limit=limit, enlarge=enlarges, rounding=rounding)
            if limit != n:  # otherwise "longest", except for DETR
                yield geometry
            if limit is not None:
                for how in LIMITS[1:]:
                    yield replace(geometry, limit_rounding=how)


def _is_cut(look: Look) -> bool:
    """Whether part of the picture is cropped."""
    top, left, bottom, right = look.content
    rows, columns = look.sides
    return rows > bottom - top + max(1.6, 0.01 * rows) or columns > right - left + max(
        1.6, 0.01 * columns
    )


def _limits(ramps: Sequence[Look], per: list[float], size: float, small: list[int]) -> list[int]:
    """The longest sides of pictures whose shorter side is below the requested size."""
    limits = []
    for k, look in enumerate(ramps):
        if per[k] < 0.97 * size and k not in small:
            top, left, bottom, right = look.content
            limits.append(max(bottom - top, right - left))
    return sorted(set(limits))[:3]


def _rectangles(
    ramps: Sequence[Look], sides: Any, window: tuple[int, int] | None
) -> Iterator[Geometry]:
    """Rules that fit the picture in a rectangle, or cover it."""
    for rule, pick in (("longest", np.max), ("shortest", np.min)):
        large = [
            row for row, look in zip(sides, ramps, strict=True) if min(look.height, look.width)
        ]
        corner = [round(float(pick([row[axis] for row in large]))) for axis in (0, 1)]
        choices = [window] if window is not None else []
        exact = [look.content for look in ramps if not _is_cut(look)]
        if exact and not any(map(_is_cut, ramps)):
            ends = [int(pick([box[axis + 2] - box[axis] for box in exact])) for axis in (0, 1)]
            choices.append((ends[0], ends[1]))
        choices.append((corner[0], corner[1]))
        # a rectangle that rounded sides cover, beside one that ramps show; placing each takes long
        if rule == "shortest" and window is not None and abs(corner[0] - corner[1]) > 4:
            near = [[c, c + 1, c - 1, c + 2, c - 2] for c in corner]
            choices += [(h, w) for h in near[0] for w in near[1]]
        for size in dict.fromkeys(choices):
            if size[0] == size[1]:
                continue
            for enlarge, rounding in product((True, False), SIDES):
                if SIDES[rounding][0] in ("both", "quotient", "single", "ratio"):
                    yield Geometry(rule, size, enlarge=enlarge, rounding=rounding)


def _squares(
    ramps: Sequence[Look], sides: Any, window: tuple[int, int] | None
) -> Iterator[Geometry]:
    """Rules that crop or pad to a square before the resize to a fixed size."""
    if window is None:
        return
    yield from proposals.aspect_parts(window)
    square = next((k for k, look in enumerate(ramps) if look.height == look.width), 0)
    shortest = float(min(sides[square]))
    offsets = ("even", "floor", "ceil")
    if window[0] == window[1]:
        for offset in offsets:
            fixed = Geometry("fixed", window, before_rounding=offset)
            yield replace(fixed, before=("crop", "square"))
            yield replace(fixed, before=("pad", 0))
        yield Geometry("fixed", window, before=("pad", 0), before_rounding=TWICE)
        n = window[0]
        if n < 0.99 * shortest:
            parts = [n / side for side in (n + 32, *_near(shortest, 0.01)) if side > n]
            parts += [round(n / shortest, digits) for digits in (3, 2)]
            for part in dict.fromkeys(parts):
                for offset in ("ceil", "floor", "even"):
                    yield Geometry("fixed", window, before=("crop", part), before_rounding=offset)
    for n in _near(shortest):
        if n > max(window):
            for offset in offsets:
                fixed = Geometry("fixed", (n, n), before_rounding=offset)
                yield replace(fixed, before=("crop", "square"))
                yield replace(fixed, before=("pad", 0))
