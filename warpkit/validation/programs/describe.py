"""Describes a twin's geometry, resize and values in terms of `Preprocessing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpkit.validation.programs.arithmetic import Resampling
from warpkit.validation.programs.geometry import ENDS, SIDES, Geometry
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.values import Values
from warpkit.validation.programs.warp_twin import WarpTwin


def say_values(found: Preprocessing, values: Values) -> None:
    """Sets channels, gain and offset."""
    found.channels, found.weights = values.channels, values.weights
    found.gain, found.offset = values.gain, values.offset


def say_resampling(found: Preprocessing, how: Resampling | None) -> None:
    """Sets filter, library and rounding; None: nothing is resized."""
    if how is None:
        found.rounded, found.scale = True, "sizes"
        return
    found.interpolation, found.antialias = how.interpolation, how.antialias
    if how.moves or how.interpolation == "area":
        found.antialias = False
    found.arithmetic, found.aligned = how.arithmetic, how.aligned
    found.rounded = True if how.moves else how.rounded
    found.clamped, found.scale = how.clamped, how.scale


def say_geometry(
    found: Preprocessing,
    geometry: Geometry,
    padding: tuple[float, ...],
    shapes: Sequence[tuple[int, int]],
    *,
    padded: bool,
) -> None:
    """Sets rule, size, crop and padding, from the pictures (H, W) that were observed."""
    level = _one(padding)
    found.rule, found.size = geometry.rule, geometry.size
    found.before = geometry.before
    if geometry.before is not None and geometry.before[0] == "pad":
        found.before = ("pad", level)
    found.limit, found.multiple = geometry.limit, geometry.multiple
    found.enlarge, found.shrink = geometry.enlarge, geometry.shrink
    if geometry.rule == "height":
        found.sides = {"even": "round", "half_up": "round"}.get(near := near_of(geometry), near)
    window = geometry.window
    found.canvas = window if geometry.stride is None else geometry.stride
    if geometry.rule == "fixed" and window is None:
        found.canvas = geometry.size
    sizes = [geometry.placed(*shape).size for shape in shapes]
    if window is not None and any(
        side > length for size in sizes for side, length in zip(size, window, strict=True)
    ):
        found.crop = window
    shows = geometry.before is None or geometry.before[0] != "pad"
    if shows and padded:
        place = geometry.place if geometry.place in ENDS else "center"
        found.pad = (place, level)


def say_warp(found: Preprocessing, twin: WarpTwin) -> None:
    """Sets rule, size, matrix, interpolation, border, library and rounding."""
    warp = twin.warp
    found.rule, found.size, found.canvas = "warp", warp.size, warp.size
    found.matrix = ("center", warp.part) if warp.matrix is None else warp.matrix
    found.interpolation, found.antialias, found.arithmetic = (
        warp.interpolation,
        False,
        warp.arithmetic,
    )
    found.border = warp.border
    found.border_value = _one(twin.padding) if warp.border == "constant" else None
    found.rounded, found.clamped = warp.rounded, False


def near_of(geometry: Geometry) -> str:
    """The name of the rounding of a side."""
    return SIDES[geometry.rounding][1]


def _one(numbers: tuple[float, ...]) -> Any:
    """One number if all are equal, as an integer if possible."""
    tidy = tuple(int(v) if v == int(v) else v for v in numbers)
    return tidy[0] if len(set(tidy)) == 1 else tidy
