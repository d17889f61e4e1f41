"""Programs that warp: their matrix, interpolation, border and arithmetic, found from results alone.

Ramps tell where each pixel of a result is read; a few Gauss-Newton steps on smooth pictures and on
noise sharpen that to 1e-5 pixels, and matrices of simple numbers near it are tried on every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.programs import pictures
from warpkit.validation.programs.arithmetic import opencv_names
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.matrices import (
    NEAR,
    NEAR_OF_NEAREST,
    Corners,
    apply,
    as_parts,
    centred,
    corners_near,
    invert,
    nearby,
    nearby_perspectives,
)
from warpkit.validation.programs.places import affine, perspective
from warpkit.validation.programs.program import NotKnownError, Program, RefusedError
from warpkit.validation.programs.search import Search
from warpkit.validation.programs.values import Measured
from warpkit.validation.programs.warp_twin import Warp, WarpTwin

Array = NDArray[np.float64]
Pair = tuple[int, int]

SHAPES = ((301, 417), (430, 312), (365, 365))
"""Pictures (h, w) whose matrices are compared: wide, tall and square."""

SMALL = (31, 29)
"""A picture that a matrix for larger ones leaves: it shows the border."""

BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "lanczos4")

LIKELY = 0.3
"""If more values of a picture differ, another interpolation or border is tried."""

SAME = 0.02
"""Pixels: how far two matrices may be apart that count as one."""


@dataclass
class _View:
    """A picture's shape, and what its result shows."""

    shape: Pair
    at: tuple[Array, Array]
    """x and y (h, w): where each pixel is read, as two ramps show."""
    good: NDArray[np.bool_]
    """(h, w): pixels of which they show it."""
    inside: NDArray[np.bool_]
    """(h, w): pixels that read the picture alone."""
    outside: tuple[float, ...] | None
    """The levels beyond the picture, if it ends in the result at one colour."""


def find_warp(program: Program, measured: Measured) -> tuple[WarpTwin, Search] | None:
    """The warp that gives a program's values on noise, and a search to compare more; or None."""
    ask = Search(program, measured, [Geometry("keep")], (0.0,) * len(measured.variants[0].gain))
    views: list[_View] = []
    with suppress(NotKnownError, RefusedError, np.linalg.LinAlgError):
        for shape in SHAPES:
            view = _view_of(ask, shape)
            if view is None or view.inside.shape != (views or [view])[0].inside.shape:
                return None
            views.append(view)
        samples = _samples_of(ask)
        for fit in (affine, perspective):
            places = [fit(view.at, view.good) for view in views]
            solved = [one for one in places if one is not None]
            twin_and_search = (
                _fit(ask, views, solved, samples) if len(solved) == len(views) else None
            )
            if twin_and_search is not None:
                return twin_and_search
    return None


def _samples_of(ask: Search) -> list[tuple[pictures.Picture, Array]]:
    """Noise, and its levels, on which warps are compared; a program may refuse the small one."""
    samples = []
    for shape in (SHAPES[0], SMALL):
        picture = pictures.noise(*shape, 21)
        with suppress(RefusedError):
            samples.append((picture, ask.levels(picture)))
    return samples


def _view_of(ask: Search, shape: Pair) -> _View | None:
    """Look at a picture by black, white and two ramps."""
    black, white = (ask.levels(pictures.flat(*shape, (level,) * 3)) for level in (0, 255))
    if black.shape != white.shape:
        return None
    share = (white - black).mean(0) / 255
    inside = share > 0.999
    beyond = np.abs(share) < 1e-3
    if inside.mean() < 0.05:
        return None
    outside = _around(black, beyond, ask.tolerance)
    ramps = [ask.levels(pictures.ramp(shape, axis, 0, shape[axis] - 1)).mean(0) for axis in (1, 0)]
    if any(ramp.shape != inside.shape or not np.isfinite(ramp).all() for ramp in ramps):
        return None
    good = inside & np.logical_and.reduce([(ramp > 3) & (ramp < 252) for ramp in ramps])
    at = (ramps[0] / 255 * (shape[1] - 1), ramps[1] / 255 * (shape[0] - 1))
    return _View(shape, at, good, inside, outside)


def _around(black: Array, beyond: NDArray[np.bool_], tolerance: float) -> tuple[float, ...] | None:
    """The levels beyond a picture, if they are one colour."""
    if not beyond.any():
        return None
    around = black[:, beyond]
    level = np.median(around, 1)
    if np.abs(around - level[:, None]).max() > max(0.01, tolerance):
        return None
    return tuple(level.tolist())


def _small_border(ask: Search) -> tuple[float, ...] | None:
    """The levels around a small picture."""
    with suppress(RefusedError):
        black, white = (ask.levels(pictures.flat(*SMALL, (level,) * 3)) for level in (0, 255))
        return _around(black, np.abs(white - black).mean(0) / 255 < 1e-3, ask.tolerance)
    return None


def _fit(
    ask: Search,
    views: Sequence[_View],
    places: Sequence[Array],
    samples: Sequence[tuple[pictures.Picture, Array]],
) -> tuple[WarpTwin, Search] | None:
    """The first warp with no differing value on noise; else the one with the fewest.

    places: of each view, (2 or 3, 3): result pixel -> source position."""
    window = views[0].inside.shape
    size = (int(window[0]), int(window[1]))
    matrices, less = [invert(one) for one in places], _less(views, places)
    parts: list[float | None] = [None]
    if len(places[0]) == 3:  # its horizon may cross the picture, and not the result
        spread = max(_apart(one, places[0], size) for one in places)
    else:
        spread = max(_apart(matrix, matrices[0], views[0].shape) for matrix in matrices)
        parts = [_part(matrix, v.shape, size) for matrix, v in zip(matrices, views, strict=True)]
    outside = next((view.outside for view in views if view.outside is not None), None)
    outside = outside or _small_border(ask)
    padding = outside or (0.0,) * len(ask.measured.variants[0].gain)
    tidy = tuple(round(v) if abs(v - round(v)) < 2e-3 else v for v in padding)
    picture, levels = samples[0]
    if not all(np.isfinite(wanted).all() for _, wanted in samples):
        return None
    rounded = bool(np.abs(levels - np.round(levels)).max() < max(2e-3, ask.tolerance))
    opencv, other = opencv_names()
    bare = Warp(size, None, None, None, "bilinear", "constant", opencv, rounded)
    if spread < 1.0:
        warp = replace(bare, matrix=_as_rows(matrices[0]))
    elif all(part is not None for part in parts) and np.ptp(np.array(parts, float)) < 0.01:
        warp = replace(bare, part=round(float(np.median(np.array(parts, float))), 3))
    elif less is not None:  # until its points are found, the first picture's
        warp = replace(bare, matrix=_as_rows(matrices[0]))
    else:
        return None
    ends = outside is not None or any(not view.inside.all() for view in views)
    borders = ("constant",) if ends else BORDERS
    best: tuple[int, WarpTwin] | None = None
    ways = product(ask.measured.variants, (opencv, other, "exact"))
    for number, (values, arithmetic) in enumerate(ways):
        for name, border in product(INTERPOLATIONS, borders):
            like = replace(warp, interpolation=name, border=border, arithmetic=arithmetic)
            twin = WarpTwin.of(like, values, tidy)
            if like.matrix is not None:
                coarse = twin.warped(picture, matrices[0])
                if number and best is not None and (name, border) != _names(best[1]):
                    continue
                if np.abs(coarse - levels).mean() > _room(levels):
                    continue
                follows = less if spread >= 1.0 else None
                twin = _sharpen(ask, twin, picture, levels, follows)
                if twin is None:
                    continue
            level_pairs = [(twin.levels(one).numpy(), wanted) for one, wanted in samples]
            pair = (None, twin.values)
            differing = sum(ask.compare(*both, pair).differing for both in level_pairs)
            if best is None or differing < best[0]:
                best = differing, twin
            if best[0] == 0:
                return None if _is_crop(best[1].warp) else (best[1], ask)
    if best is None or best[0] > LIKELY * levels.size or _is_crop(best[1].warp):
        return None
    return best[1], ask


def _is_crop(warp: Warp) -> bool:
    """Whether it only moves whole pixels: a crop that is not centred, with no filter to name."""
    if warp.matrix is None or len(warp.matrix) == 3:
        return False
    linear, shift = np.array(warp.matrix)[:, :2], np.array(warp.matrix)[:, 2]
    return bool((linear == np.eye(2)).all() and (shift == np.round(shift)).all())


def _names(twin: WarpTwin) -> tuple[str, str]:
    return twin.warp.interpolation, twin.warp.border


def _room(levels: Array) -> float:
    """Noise that is read at other places differs by more than this; levels, a mean."""
    return 0.6 * float(np.abs(levels - np.roll(levels, 1, -1)).mean())


def _less(views: Sequence[_View], places: Sequence[Array]) -> int | None:
    """1 or 0 if perspectives are the same in parts of the sides less so many pixels, else None."""
    if len(places[0]) == 2:
        return None
    rows, columns = views[0].inside.shape
    longest = max(map(max, SHAPES))
    for less in (0, 1):
        parts = [as_parts(m, v.shape, less) for m, v in zip(places, views, strict=True)]
        if max(_apart(one, parts[0], (rows, columns)) for one in parts) * longest < 1.0:
            return less
    return None


def _sharpen(
    ask: Search, twin: WarpTwin, noise: pictures.Picture, levels: Array, less: int | None
) -> WarpTwin | None:
    """The same with the matrix that gives most values: fitted, then rounded to simple numbers.

    less: if the matrix follows the picture's size, see `Corners`; None if no simple points do."""
    assert twin.warp.matrix is not None
    matrix = np.array(twin.warp.matrix)
    height, width = noise.shape[:2]
    smooth = pictures.smooth(height, width, 22)
    smooth_levels = ask.levels(smooth)
    nearest = twin.warp.interpolation == "nearest"  # it has no slope: its mean is bilinear
    fitted = replace(twin, warp=replace(twin.warp, interpolation="bilinear")) if nearest else twin
    for picture, wanted, steps in (
        (smooth, smooth_levels, 4),
        (noise, levels, 0 if nearest else 5),
    ):
        for _ in range(steps):
            matrix = _step(fitted, picture, wanted, matrix)
    best = None
    room = NEAR_OF_NEAREST if nearest else NEAR
    if less is not None:
        ways = (less, 1 - less)  # half a pixel may not tell them apart
        parts = [as_parts(invert(matrix), (height, width), way) for way in ways]
        candidates = chain.from_iterable(
            corners_near(part, twin.warp.size, way, 4 * room)
            for part, way in zip(parts, ways, strict=True)
        )
    elif len(matrix) == 3:
        candidates = nearby_perspectives(matrix, twin.warp.size, room)
    else:
        candidates = nearby(matrix, (height, width), room)
    for candidate in candidates:
        if isinstance(candidate, Corners):
            one = replace(twin, warp=replace(twin.warp, matrix=None, corners=candidate))
        else:
            one = replace(twin, warp=replace(twin.warp, matrix=_as_rows(candidate)))
        result = one.levels(noise).numpy()
        differing = ask.compare(result, levels, (None, one.values)).differing
        if best is None or differing < best[0]:
            best = differing, one
        if differing == 0:
            break
    return None if best is None else best[1]


def _step(twin: WarpTwin, picture: pictures.Picture, wanted: Array, matrix: Array) -> Array:
    """One Gauss-Newton step towards a result, on pixels that are not far off already."""
    before = twin.warped(picture, matrix)
    columns = []
    lengths = (picture.shape[1], picture.shape[0], 1.0)
    steps = [(row, k, 1e-3 / lengths[k]) for row in (0, 1) for k in (0, 1, 2)]
    if len(matrix) == 3:  # its last row moves a result's far pixels by their own places
        steps += [(2, k, 1e-3 / lengths[k] / max(twin.warp.size)) for k in (0, 1)]
    for row, k, step in steps:
        changed = matrix.copy()
        changed[row, k] += step
        columns.append(((twin.warped(picture, changed) - before) / step).ravel())
    rest = (wanted[: len(before)] - before).ravel()  # three equal channels are one gray
    near = np.abs(rest) < max(2.0, 3 * float(np.median(np.abs(rest))))
    design = np.stack(columns, 1)[near]
    scale = np.abs(design).max(0) + 1e-12
    solution = np.linalg.lstsq(design / scale, rest[near], rcond=None)[0] / scale
    return matrix + np.append(solution, [0.0] * (3 * len(matrix) - len(solution))).reshape(
        matrix.shape
    )


def _part(matrix: Array, shape: Pair, size: Pair) -> float | None:
    """How much larger than the whole picture the region is that a centred matrix shows."""
    (height, width), (rows, columns) = shape, size
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    part = columns / (scale * max(width, height * columns / rows))
    return part if _apart(matrix, centred(shape, size, part), shape) < 1.0 else None


def _apart(one: Array, other: Array, shape: Pair) -> float:
    """The largest distance of the corners of a picture under two matrices."""
    h, w = shape
    corners = np.array([(0, 0), (w - 1, 0), (0, h - 1), (w - 1, h - 1)], float)
    return float(np.abs(apply(one, corners) - apply(other, corners)).max())


def _as_rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
