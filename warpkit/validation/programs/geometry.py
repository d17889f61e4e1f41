"""Sizes, crops and padding: where each pixel goes, with every library's rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Pair = tuple[int, int]

ROUNDINGS: dict[str, Callable[[float], int]] = {
    "floor": math.floor,
    "even": round,
    "ceil": math.ceil,
    "half_up": lambda side: math.floor(side + 0.5),
    "floor_and_one": lambda side: math.floor(side) + 1,
}

SIDES: dict[str, tuple[str, str]] = {
    "n * v / s floor": ("quotient", "floor"),
    "n * v / s even": ("quotient", "even"),
    "n * v / s ceil": ("quotient", "ceil"),
    "n * v / s half up": ("quotient", "half_up"),
    "v * r even": ("both", "even"),
    "v * r floor": ("both", "floor"),
    "v * r half up": ("both", "half_up"),
    "v * r ceil": ("both", "ceil"),
    "v * r floor, other": ("other", "floor"),
    "v * r even, other": ("other", "even"),
    "n * (v / s) floor": ("aspect", "floor"),
    "n * (v / s) even": ("aspect", "even"),
    "v / (s / n) floor, float32": ("single", "floor"),
    "v / (s / n) floor": ("ratio", "floor"),
    "v / (s / n) even": ("ratio", "even"),
    "n * (v / s) ceil": ("aspect", "ceil"),
    "v * r floor + 1": ("both", "floor_and_one"),
}
"""How a side is computed: n is the requested size, s the side that becomes n, v a side; r = n / s.

"floor", "even" and "half up" are the roundings. torchvision and transformers: n * v / s floor;
Pillow: n * v / s even; albumentations and ultralytics: v * r even; mmcv and detectron2: v * r half
up. "other": the requested side is n itself. "single": TensorFlow's resize_with_pad, in which n may
become n - 1, as in "ratio": lerobot's and openpi's, and timm's for rectangles. "floor + 1" is for
factors: MTCNN's pyramid."""

LIMITS = ("torchvision", "detr", "factor")
"""How sides change if the longer one exceeds the limit; "factor": mmcv and detectron2."""

OF_WHOLE = " of whole"
"""The suffix of a `multiple_rounding` in which the side is rounded before its multiple is taken."""

OFFSETS: dict[str, Callable[[int], int]] = {
    "even": lambda rest: round(rest / 2),
    "floor": lambda rest: rest // 2,
    "ceil": lambda rest: -(-rest // 2),
}
"""Where centred content begins: torchvision's crop and Pillow's padding; most others; the rest."""

ENDS: dict[str, Callable[[int], int]] = {"end": lambda rest: 0, "start": lambda rest: rest}
PLACES = {**OFFSETS, **ENDS}
EXACT = "exact"
"""The place is computed from the side before rounding: TensorFlow's resize_with_pad."""

TWICE = "twice"
"""A picture is padded to a square by the same number of pixels on both sides, so a pixel is missing
if the rest is odd (Keras' pad_to_aspect_ratio)."""


class Placement(NamedTuple):
    """The sizes and positions for pictures of one shape, in pixels."""

    cut: tuple[float, float, float, float] | None
    """The part (x1, y1, x2, y2) that is resized; None: the whole picture."""
    padded: tuple[int, int, int, int] | None
    """(rows, columns, top, left): the square to which the picture is padded before the resize."""
    size: Pair
    """(h, w) after the resize."""
    factors: tuple[float, float]
    """The requested factors (fy, fx), before sides were rounded."""
    window: Pair
    """(h, w) of the result."""
    corner: Pair
    """(top, left) of the result in the resized picture; negative values are padding."""
    is_box: bool = False
    """The part is a box as in Pillow, which taps may leave, and not a crop."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What results tell: factors to 6 digits, as rules compute equal ones in other ways."""
        fy, fx = self.factors
        return (*self[:3], round(fy, 6), round(fx, 6), *self[4:])

    @property
    def kind(self) -> str:
        """What comes before the resize: nothing, padding, a crop, or a box."""
        if self.cut is None:
            return "whole" if self.padded is None else "padded"
        return "box" if self.is_box else "crop"

    def content(self) -> tuple[int, int, int, int]:
        """(top, left, bottom, right) of the picture in the result, unless it is padded first."""
        (h, w), (rows, columns), (top, left) = self.size, self.window, self.corner
        return (
            max(-top, 0),
            max(-left, 0),
            min(h - top, rows),
            min(w - left, columns),
        )


@dataclass(frozen=True)
class Geometry:
    """A rule for sizes, crop and padding, in the words of `Preprocessing`, with its roundings."""

    rule: str
    size: Any = None
    before: tuple[str, Any] | None = None
    limit: int | None = None
    multiple: int | None = None
    enlarge: bool = True
    shrink: bool = True
    """False: pictures that are large enough are left as they are."""
    window: Pair | None = None
    """(h, w) of every result; None: the size after the resize."""
    stride: int | None = None
    """The result's sides are padded to multiples of this number."""
    rounding: str = "n * v / s floor"
    limit_rounding: str = "torchvision"
    multiple_rounding: str = "even"
    crop_rounding: str = "even"
    before_rounding: str = "floor"
    place: str = "floor"
    """Where padding is added: a name of `PLACES`."""

    def placement(self, height: int, width: int) -> Placement:
        """The placement of a picture of this shape."""
        cut, padded, sides = self._before(height, width)
        size, factors = self._resized(*sides)
        rows, columns = self.window or size
        if self.stride is not None:
            rows, columns = (-(-side // self.stride) * self.stride for side in size)
        top = self._begin(size[0], rows, sides[0], factors[0])
        left = self._begin(size[1], columns, sides[1], factors[1])
        is_box = cut is not None and self.before is not None and self.before[0] == "box"
        return Placement(cut, padded, size, factors, (rows, columns), (top, left), is_box)

    def _begin(self, length: int, wanted: int, side: float, factor: float) -> int:
        """Where a window begins in a resized side; negative where it is padded."""
        if length == wanted:
            return 0
        if length > wanted:
            return OFFSETS[self.crop_rounding](length - wanted)
        if self.place == EXACT:
            return -max(0, math.floor((np.float32(wanted) - np.float32(side * factor)) / 2))
        return -PLACES[self.place](wanted - length)

    def _before(self, height: int, width: int) -> tuple[Any, Any, Pair]:
        """The part that is resized, the square to which it is padded, and their size."""
        if self.before is None:
            return None, None, (height, width)
        kind, what = self.before
        if what == "aspect" or (kind == "box" and height != width):
            return self._aspect_cut(height, width)
        offset = OFFSETS[
            "floor" if self.before_rounding in (TWICE, EXACT) else self.before_rounding
        ]
        short, long = min(height, width), max(height, width)
        if short == long and (kind != "crop" or what == "square"):
            return None, None, (height, width)
        if kind == "pad":
            top, left = offset(long - height), offset(long - width)
            rows, columns = long, long
            if self.before_rounding == TWICE:
                rows, columns = height + 2 * top, width + 2 * left
            return None, (rows, columns, top, left), (rows, columns)
        side = short if what == "square" else max(1, int(what * short))
        y, x = offset(height - side), offset(width - side)
        return (x, y, x + side, y + side), None, (side, side)

    def _aspect_cut(self, height: int, width: int) -> tuple[Any, Any, Any]:
        """The centred part with the size's aspect: whole pixels, or Pillow's box of fractions."""
        h, w = self.size
        if self.before_rounding == EXACT:  # ImageOps.fit
            rows, columns = min(height, width / (w / h)), min(width, w / h * height)
            x, y = (width - columns) * 0.5, (height - rows) * 0.5
            return (x, y, x + columns, y + rows), None, (rows, columns)
        rows, columns = min(height, width * h // w), min(width, height * w // h)
        x, y = (width - columns) // 2, (height - rows) // 2
        return (x, y, x + columns, y + rows), None, (rows, columns)

    def _resized(self, height: int, width: int) -> tuple[Pair, tuple[float, float]]:
        if self.rule == "area":
            h, w = self._area(height, width)
            return (h, w), (h / height, w / width)
        size, factor = self._wanted(height, width)
        if self.multiple is not None:
            near = ROUNDINGS[self.multiple_rounding.removesuffix(OF_WHOLE)]
            of = self.multiple
            whole = not factor or self.multiple_rounding.endswith(OF_WHOLE)
            exact = size if whole else (height * factor, width * factor)
            size = tuple(max(of, near(side / of) * of) for side in exact)
        h, w = (max(1, int(side)) for side in size)
        return (h, w), (factor, factor) if factor else (h / height, w / width)

    def _wanted(self, height: int, width: int) -> tuple[tuple[float, ...], float]:
        """The requested sides, and the factor (0 if there is none)."""
        if self.rule == "keep":
            return (height, width), 1.0
        if self.rule == "fixed":
            return self.size, 0.0
        if self.rule == "factor":
            near = ROUNDINGS[SIDES[self.rounding][1]]
            return (near(height * self.size), near(width * self.size)), float(self.size)
        if isinstance(self.size, tuple):
            return self._rectangle(height, width)
        if self.rule == "height":
            how, name = SIDES[self.rounding]
            exact = self.size * (width / height) if how == "aspect" else self.size * width / height
            wide = ROUNDINGS[name](exact)
            return (self.size, wide if self.limit is None else min(wide, self.limit)), 0.0
        return self._side(height, width)

    def _area(self, height: int, width: int) -> Pair:
        """Sides whose product lies between two numbers of pixels: Qwen's smart_resize."""
        least, most = self.size
        of = self.multiple or 1
        h, w = (max(of, round(side / of) * of) for side in (height, width))
        if h * w > most:
            beta = math.sqrt(height * width / most)
            h, w = (max(of, math.floor(side / beta / of) * of) for side in (height, width))
        elif h * w < least:
            beta = math.sqrt(least / (height * width))
            h, w = (math.ceil(side * beta / of) * of for side in (height, width))
        return h, w

    def _rectangle(self, height: int, width: int) -> tuple[tuple[float, ...], float]:
        """Sides that fit in a rectangle or cover it, with the aspect kept."""
        pick = max if self.rule == "shortest" else min
        factor = pick(self.size[0] / height, self.size[1] / width)
        if not self.enlarge:
            factor = min(factor, 1.0)
        how, name = SIDES[self.rounding]
        near = ROUNDINGS[name]
        if how == "single":
            ratios = np.array((height, width), np.float32) / np.array(self.size, np.float32)
            return _single(height, width, max(ratios))
        if how == "ratio":
            low = min if self.rule == "shortest" else max
            ratio = low(height / self.size[0], width / self.size[1])
            return _divided(height, width, ratio if self.enlarge else max(ratio, 1.0), near)
        if how != "quotient":
            return (near(height * factor), near(width * factor)), factor
        if factor == 1.0:
            return (height, width), factor
        along_y = factor == self.size[0] / height  # Pillow: the other side is a quotient
        if along_y:
            return (self.size[0], near(width / height * self.size[0])), factor
        return (near(height / width * self.size[1]), self.size[1]), factor

    def _side(self, height: int, width: int) -> tuple[tuple[float, ...], float]:
        """Sides if one side is given and the other follows."""
        n = self.size
        side = min(height, width) if self.rule == "shortest" else max(height, width)
        long = max(height, width)
        factor = n / side
        limited = self.limit is not None and self._passes(n, side, long)
        if limited and self.limit_rounding != "torchvision":
            assert self.limit is not None
            return self._limited(height, width, self.limit)
        is_kept = (not self.enlarge and factor >= 1) or (not self.shrink and factor <= 1)
        if is_kept and not limited:
            return (height, width), 1.0
        how, name = SIDES[self.rounding]
        near = ROUNDINGS[name]
        if how == "single":
            return _single(height, width, np.float32(side) / np.float32(n))
        if how == "ratio":
            return _divided(height, width, side / n, near)

        def reckoned(v: int) -> int:
            if how == "both":
                return near(v * factor)
            if v == side:
                return n
            if how == "quotient":
                return near(n * v / side)
            return near(v * factor) if how == "other" else near(n * (v / side))

        size = reckoned(height), reckoned(width)
        if limited and max(size) > (self.limit or 0):
            assert self.limit is not None
            new = max(1, int(self.limit * min(size) / max(size)))
            size = (self.limit, new) if height > width else (new, self.limit)
            factor = self.limit / long
        return size, factor

    def _passes(self, n: int, side: int, long: int) -> bool:
        assert self.limit is not None
        return long / side * n > self.limit

    def _limited(self, height: int, width: int, limit: int) -> tuple[tuple[float, ...], float]:
        factor = limit / max(height, width)
        if self.limit_rounding == "factor":
            near = ROUNDINGS[SIDES[self.rounding][1]]
            return (near(height * factor), near(width * factor)), factor
        short, long = min(height, width), max(height, width)
        raw = limit * short / long
        new = round(raw)
        if short == new:
            return (height, width), 1.0
        other = int(raw * long / short)
        return ((other, new) if width < height else (new, other)), factor


Probe = tuple[int, int, tuple[int, int]]
"""The number of different placements of a picture, its area negated, its (H, W)."""


def most_telling(bounds: set[Probe], geometries: Sequence[Geometry]) -> Probe:
    """The probe with the most different placements, of equal ones the smallest.

    bounds: numbers counted for more rules than remain, so that none can grow: only probes whose
    bound exceeds the best number are counted again (5 of 580 at most calls), and stored."""
    best = (0, 0, (0, 0))
    for bound in sorted(bounds, reverse=True):
        if bound <= best:
            break
        _, area, shape = bound
        counted = (len({g.placement(*shape).identity for g in geometries}), area, shape)
        bounds.remove(bound)
        bounds.add(counted)
        best = max(best, counted)
    return best


def _divided(
    height: int, width: int, ratio: float, near: Callable[[float], int]
) -> tuple[tuple[float, ...], float]:
    """The sides divided by a ratio, in float64."""
    return (near(height / ratio), near(width / ratio)), 1 / ratio


def _single(height: int, width: int, ratio: np.float32) -> tuple[tuple[float, ...], float]:
    """The sides divided by a ratio, in float32."""
    sides = [math.floor(np.float32(side) / ratio) for side in (height, width)]
    return tuple(sides), 1 / float(ratio)
