"""Rules of detectors, recognisers and vision-language models that may agree with the looks.

A fixed height with a widest side, a least or largest side with multiples, a budget of pixels, odd
factors, and parts with the size's aspect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from warpkit.validation.programs.geometry import EXACT, OF_WHOLE, Geometry
from warpkit.validation.programs.observe import Look

Pair = tuple[int, int]

KEPT = 0.03
"""Relative: scales nearer to 1 than this are those of kept sides, or of their multiples."""

FACTORS = ("v * r even", "v * r floor", "v * r half up", "v * r ceil", "v * r floor + 1")
"""How a side that is multiplied by a factor is rounded."""


def by_height(ramps: Sequence[Look], window: Pair | None) -> Iterator[Geometry]:
    """A fixed height, and a width that follows the aspect, up to a limit."""
    contents = [(one.content[2] - one.content[0], one.content[3] - one.content[1]) for one in ramps]
    heights, widths = {h for h, _ in contents}, [w for _, w in contents]
    if len(heights) != 1 or len(set(widths)) == 1:
        return
    n = heights.pop()
    capped = [
        wide
        for wide, look in zip(widths, ramps, strict=True)
        if wide < (1 - KEPT) * n * look.width / look.height - 1.5
    ]
    limits: list[int | None] = [max(capped)] if capped else [None]
    if window is not None and not capped and max(widths) <= window[1]:
        limits = [window[1], None]
    roundings = ("n * v / s floor", "n * v / s even", "n * v / s ceil", "n * v / s half up")
    for limit in limits:
        for rounding in (*roundings, "n * (v / s) floor", "n * (v / s) even", "n * (v / s) ceil"):
            yield Geometry("height", n, limit=limit, rounding=rounding)


def by_factor(looks: Sequence[Look], scale: float) -> Iterator[Geometry]:
    """Factors that give the observed sizes under one of the roundings, the simplest first."""
    if abs(scale - 1) < 0.002:
        return
    for rounding in FACTORS:
        low, high = _interval(looks, rounding)
        if low > high:
            continue
        for factor in _simple(low, high):
            yield Geometry("factor", factor, rounding=rounding)


def _interval(looks: Sequence[Look], rounding: str) -> tuple[float, float]:
    """The least and the largest factor under which all sides are rounded as observed."""
    below, above = {
        "v * r even": (0.5, 0.5),
        "v * r half up": (0.5, 0.5),
        "v * r floor": (0.0, 1.0),
        "v * r ceil": (1.0, 0.0),
        "v * r floor + 1": (1.0, 0.0),
    }[rounding]
    low, high = 0.0, math.inf
    for look in looks:
        for side, length in zip((look.height, look.width), look.window, strict=True):
            low, high = max(low, (length - below) / side), min(high, (length + above) / side)
    return low, high


def _simple(low: float, high: float) -> list[float]:
    """Fractions and decimals in an interval, those with the fewest digits first."""
    factors: list[float] = []
    for parts in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 100, 1000, 10_000):
        first, last = math.ceil(low * parts - 1e-9), math.floor(high * parts + 1e-9)
        factors += [whole / parts for whole in range(max(1, first), last + 1)][:8]
        if len(factors) > 3:
            break
    return list(dict.fromkeys(factors or [(low + high) / 2]))


def with_multiples(ramps: Sequence[Look], multiples: Sequence[int]) -> Iterator[Geometry]:
    """A side that all pictures get, before it becomes a multiple."""
    for rule, pick in (("longest", max), ("shortest", min)):
        sides = [pick(look.window) for look in ramps]
        if max(sides) - min(sides) > max(multiples, default=0):
            continue
        for multiple in multiples:
            for n in _round_first(max(sides) - multiple, min(sides) + multiple):
                yield from sided(rule, n, multiple)


def with_bounds(ramps: Sequence[Look], multiples: Sequence[int | None]) -> Iterator[Geometry]:
    """A side that pictures may not pass, or must reach, and then perhaps multiples."""
    for multiple in multiples:
        room = multiple or 1
        shrunk = [look for look in ramps if _by_more(look, room, -1)]
        grown = [look for look in ramps if _by_more(look, room, 1)]
        for changed, others, options in (
            (shrunk, grown, {"enlarge": False}),
            (grown, shrunk, {"shrink": False}),
        ):
            if not changed or others:
                continue
            for rule, pick in (("longest", max), ("shortest", min)):
                sides = [pick(look.window) for look in changed]
                for n in _round_first(max(sides) - room, min(sides) + room):
                    yield from sided(rule, n, multiple, **options)


def _by_more(look: Look, room: int, sign: int) -> bool:
    """Whether both sides shrink (-1) or grow (1) by more than multiples can explain."""
    pairs = zip(look.window, (look.height, look.width), strict=True)
    return all(sign * (length - side) > max(room, KEPT * side) for length, side in pairs)


def sided(rule: str, n: int, multiple: int | None, **options: Any) -> Iterator[Geometry]:
    """A rule with a side, in every rounding, of multiples too."""
    if multiple is None:
        for rounding in ("v * r even", "v * r floor", "n * v / s floor", "n * v / s even"):
            yield Geometry(rule, n, rounding=rounding, **options)
        return
    for near in ("even", "floor", "ceil"):
        geometry = Geometry(rule, n, multiple=multiple, multiple_rounding=near, **options)
        yield replace(geometry, rounding="v * r even")
        for rounding in ("v * r floor", "v * r even", "n * v / s floor"):
            yield replace(geometry, multiple_rounding=near + OF_WHOLE, rounding=rounding)


def _round_first(low: int, high: int) -> list[int]:
    """The whole numbers from low to high, rounder ones first."""

    def order(n: int) -> int:
        steps = (100, 32, 20, 10, 16, 8, 5, 4, 2, 1)
        return next(k for k, step in enumerate(steps) if n % step == 0)

    return sorted(range(max(1, low), high + 1), key=order)


def by_area(looks: Sequence[Look], multiples: Sequence[int]) -> Iterator[Geometry]:
    """A budget of pixels: the least number and the largest."""
    for of in multiples:
        least, most = [0.0, math.inf], [0.0, math.inf]
        for look in looks:
            h, w = (max(of, round(side / of) * of) for side in (look.height, look.width))
            area = look.height * look.width
            if (h, w) == look.window:
                least[1], most[0] = min(least[1], h * w), max(most[0], h * w)
            elif h * w > look.window[0] * look.window[1]:  # floor(side / beta / of) == window / of
                ends = _squared(look, of, 0, 1)
                most = [max(most[0], area * ends[0]), min(most[1], area * ends[1], h * w - 1)]
            else:
                ends = _squared(look, of, -1, 0)
                least = [max(least[0], area * ends[0], h * w + 1), min(least[1], area * ends[1])]
        empty = least[0] > least[1] or most[0] > most[1]
        if empty or (least[0] == 0 and most[1] == math.inf):
            continue
        for highest in _budgets(most[0], most[1], of):
            for lowest in _budgets(least[0], least[1], of):
                yield Geometry("area", (lowest, highest), multiple=of)


def _squared(look: Look, of: int, below: int, above: int) -> tuple[float, float]:
    """The ends of the squared factor that gives a window in multiples."""
    sides = list(zip((look.height, look.width), look.window, strict=True))
    lows = [max(0.0, length + below * of) / side for side, length in sides]
    highs = [(length + above * of) / side for side, length in sides]
    return max(lows) ** 2, min(highs) ** 2


def _budgets(low: float, high: float, of: int) -> list[int]:
    """Usual budgets from low to high: areas of squares, powers of ten and two."""
    if high == math.inf:
        return [1 << 40]
    if low == 0:
        return [0] if high >= 1 else []
    areas = [of * of * 2**k for k in range(16)] + [of * of * 5 * 2**k for k in range(16)]
    areas += [of * of * count for count in (1000, 1500, 2000, 3000, 10_000)]
    areas += [10**k for k in range(2, 9)] + [1 << k for k in range(6, 28)]
    areas += [side * side for side in range(64, 2049, 32)]
    budgets = sorted({area for area in areas if low <= area <= high}, key=areas.index)
    return budgets[:6] or [round(math.sqrt(low * high))]


def aspect_parts(window: Pair) -> Iterator[Geometry]:
    """The centred part with the size's aspect: Keras's and Pillow's boxes, and a crop."""
    what = "square" if window[0] == window[1] else "aspect"
    box = Geometry("fixed", window, before=("box", what))
    yield replace(box, before_rounding=EXACT)
    yield replace(box, before_rounding="floor")
    if what == "aspect":
        yield Geometry("fixed", window, before=("crop", "aspect"))
