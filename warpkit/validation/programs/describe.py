"""Describes a twin's geometry, resize and values in terms of `Preprocessing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpkit.validation.programs.arithmetic import Resampling
from warpkit.validation.programs.geometry import ENDS, SIDES, Geometry
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.values import Values
from warpkit.validation.programs.warp_twin import WarpTwin


def say_values(answer: Preprocessing, values: Values) -> None:
    """Sets channels, gain and offset."""
    answer.channels, answer.weights = values.channels, values.weights
    answer.gain, answer.offset = values.gain, values.offset


def say_resampling(answer: Preprocessing, how: Resampling | None) -> None:
    """Sets filter, library and rounding; None: nothing is resized."""
    if how is None:
        answer.rounded, answer.scale = True, "sizes"
        return
    answer.interpolation, answer.antialias = how.interpolation, how.antialias
    if how.moves or how.interpolation == "area":
        answer.antialias = False
    answer.arithmetic, answer.aligned = how.arithmetic, how.aligned
    answer.rounded = True if how.moves else how.rounded
    answer.clamped, answer.scale = how.clamped, how.scale


def say_geometry(
    answer: Preprocessing,
    geometry: Geometry,
    padding: tuple[float, ...],
    shapes: Sequence[tuple[int, int]],
    *,
    padded: bool,
) -> None:
    """Sets rule, size, crop and padding, from the pictures (H, W) that were observed."""
    level = _one(padding)
    answer.rule, answer.size = geometry.rule, geometry.size
    answer.before = geometry.before
    if geometry.before is not None and geometry.before[0] == "pad":
        answer.before = ("pad", level)
    answer.limit, answer.multiple = geometry.limit, geometry.multiple
    answer.enlarge, answer.shrink = geometry.enlarge, geometry.shrink
    if geometry.rule == "height":
        answer.sides = {"even": "round", "half_up": "round"}.get(near := near_of(geometry), near)
    window = geometry.window
    answer.canvas = window if geometry.stride is None else geometry.stride
    if geometry.rule == "fixed" and window is None:
        answer.canvas = geometry.size
    sizes = [geometry.placement(*shape).size for shape in shapes]
    if window is not None and any(
        side > length for size in sizes for side, length in zip(size, window, strict=True)
    ):
        answer.crop = window
    shows = geometry.before is None or geometry.before[0] != "pad"
    if shows and padded:
        place = geometry.place if geometry.place in ENDS else "center"
        answer.pad = (place, level)


def say_warp(answer: Preprocessing, twin: WarpTwin) -> None:
    """Sets rule, size, matrix, interpolation, border, library and rounding."""
    warp = twin.warp
    answer.rule, answer.size, answer.canvas = "warp", warp.size, warp.size
    answer.matrix = ("center", warp.part) if warp.matrix is None else warp.matrix
    if warp.corners is not None:
        answer.matrix = ("corners", *warp.corners)
    answer.interpolation, answer.antialias, answer.arithmetic = (
        warp.interpolation,
        False,
        warp.arithmetic,
    )
    answer.border = warp.border
    answer.border_value = _one(twin.padding) if warp.border == "constant" else None
    answer.rounded, answer.clamped = warp.rounded, False


def near_of(geometry: Geometry) -> str:
    """The name of the rounding of a side."""
    return SIDES[geometry.rounding][1]


def _one(numbers: tuple[float, ...]) -> Any:
    """One number if all are equal, as an integer if possible."""
    tidy = tuple(int(v) if v == int(v) else v for v in numbers)
    return tidy[0] if len(set(tidy)) == 1 else tidy
