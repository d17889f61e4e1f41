"""Finds the quality and the subsampling of the JPEG file that a program writes and reads first.

No resize undoes a file, so both are told where nothing is resized: there, every number is gain *
level + offset of one of 600 files, and gain and offset follow from the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.attacks.compression import jpeg
from warpkit.types import Subsampling
from warpkit.validation.programs import pictures
from warpkit.validation.programs.geometry import Geometry, Placement
from warpkit.validation.programs.jpeg import Jpeg
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.program import Program, RefusedError
from warpkit.validation.programs.twin import place_without_resize
from warpkit.validation.programs.values import KNOWN_WEIGHTS, LIBRARY_WEIGHTS, Values

Pair = tuple[int, int]

QUALITIES = range(1, 101)

SMALL = ((16, 16), (64, 64), (480, 640))
"""Pictures that few programs shrink; those that are refused are left out."""

FAINT = ((3, 4), (3, 5))
"""Two pixels of each block of 8 x 8 that are one level brighter: no coefficient of such a block is
half a step, so that no file keeps them, whatever its quality."""

ROOM = 2e-3
"""Levels: the largest distance of equal ones."""

TRIED = 6
"""The number of pictures that are tried."""

PART = 96
"""The side of the part of a picture that is compared with all files; a multiple of 16."""

EDGE = 16
"""The distance from a part's edge within which a file's pixels depend on those beyond it."""


def loses_faint_pixels(program: Program) -> bool:
    """Whether a program gives equal results for pictures that no JPEG file tells apart."""
    count = 0
    for height, width in SMALL:
        picture = pictures.flat(height, width, (128, 128, 128))
        faint = picture.copy()
        for y, x in FAINT:
            faint[y::8, x::8] += 1
        try:
            plain = program(picture)
            if not np.array_equal(plain, program(faint)):
                return False
        except RefusedError:
            continue
        count += 1
    return count > 0


def find_file(program: Program, geometries: Sequence[Geometry], tolerance: float) -> Jpeg | None:
    """The file whose levels explain the program's numbers where it resizes nothing."""
    room = max(ROOM, tolerance)
    for shape, placements in islice(_unresized(geometries), TRIED):
        # noise loses its colours at low qualities
        samples = [kind(*shape, 31) for kind in (pictures.noise, pictures.smooth)]
        try:
            pairs = [(picture, program(picture)) for picture in samples]
        except RefusedError:
            continue
        for placement in placements:
            if any(placement.window != numbers.shape[-2:] for _, numbers in pairs):
                continue
            left = [_distances(*pair, placement) for pair in pairs]
            for file in left[0]:
                if all(distances.get(file, np.inf) < room for distances in left):
                    return file
    return None


def _unresized(geometries: Sequence[Geometry]) -> Iterator[tuple[Pair, list[Placement]]]:
    """Pictures (H, W), and where rules put them, that at least one rule does not resize."""
    shapes = dict.fromkeys(shape for geometry in geometries for shape in _shapes(geometry))
    for height, width in sorted(shapes, key=lambda shape: shape[0] * shape[1]):
        placements = dict.fromkeys(geometry.placement(height, width) for geometry in geometries)
        left = [one for one in placements if _is_unresized(one, height, width)]
        if left:
            yield (height, width), left


def _shapes(geometry: Geometry) -> list[Pair]:
    """Pictures that a rule may not resize."""
    size, window, of = geometry.size, geometry.window, geometry.multiple or 1
    shapes = [window] if window is not None else []
    if isinstance(size, tuple) and geometry.rule != "area":
        shapes.append(size)
        if geometry.before is not None and isinstance(geometry.before[1], float):
            sides = range(int(size[0] / geometry.before[1]), int(size[0] / geometry.before[1]) + 3)
            shapes += [(side, side) for side in sides]
    elif isinstance(size, int):
        shapes += [(size, size), (-(-size // of) * of, -(-size // of) * of)]
    else:
        sides = [97, 200] if geometry.rule != "area" else _sides_of_area(size)
        shapes += [(-(-side // of) * of,) * 2 for side in sides]
    return [(max(16, h), max(16, w)) for h, w in shapes]


def _sides_of_area(size: Any) -> list[int]:
    """Sides of squares within a budget of pixels."""
    least, most = size
    low, high = int(least**0.5) + 1, int(min(most, 1 << 22) ** 0.5)
    return [low, (low + high) // 2]


def _is_unresized(placement: Placement, height: int, width: int) -> bool:
    if placement.padded is not None:
        return placement.size == placement.padded[:2]
    if placement.cut is not None:
        x1, y1, x2, y2 = placement.cut
        whole = all(edge == int(edge) for edge in placement.cut)
        return whole and placement.size == (y2 - y1, x2 - x1)
    return placement.size == (height, width)


def _distances(
    picture: Picture, numbers: NDArray[np.float64], placement: Placement
) -> dict[Jpeg, float]:
    """How far numbers (C, h, w) are from each file's, in levels, the nearest file first."""
    height, width = picture.shape[:2]
    index = torch.arange(1, height * width + 1, dtype=torch.float64, device="cpu")
    source = (
        place_without_resize(index.reshape(1, height, width), placement)[0].long() - 1
    )  # -1 in the padding
    y, x = source // width, source % width
    rows, columns = (_part(at[source >= 0], side) for at, side in ((y, height), (x, width)))
    visible = (source >= 0) & _inside(y, rows, height) & _inside(x, columns, width)
    if int(visible.sum()) < 64:
        return {}
    target = torch.from_numpy(numbers)[:, visible]
    part = torch.from_numpy(picture[rows, columns].copy()).movedim(-1, 0)
    qualities = torch.tensor(list(QUALITIES), dtype=torch.int32, device="cpu")
    distances: dict[Jpeg, float] = {}
    for subsampling in reversed(get_args(Subsampling)):  # of equal ones the usual first
        file = jpeg(qualities, subsampling=subsampling)
        for order, image in (("RGB", part), ("BGR", part.flip(0))):
            decoded = file.function(image.expand(len(qualities), -1, -1, -1).contiguous())
            decoded = decoded[..., y[visible] - rows.start, x[visible] - columns.start]
            decoded = decoded if order == "RGB" else decoded.flip(1)
            apart = [_apart(levels.double(), target) for levels in _orders(decoded, len(target))]
            least = torch.stack(apart).amin(0).tolist()
            for quality, far in zip(QUALITIES, least, strict=True):
                distances[Jpeg(quality, subsampling, order)] = far
    return dict(sorted(distances.items(), key=lambda one: round(one[1], 3)))


def _part(at: Tensor, side: int) -> slice:
    """`PART` rows or columns in the middle of what is shown, from a multiple of 16 on."""
    begin = max(0, int(at.min() + at.max() + 1) // 2 - PART // 2) // 16 * 16
    return slice(begin, min(side, begin + PART))


def _inside(at: Tensor, part: slice, side: int) -> Tensor:
    low = part.start + EDGE if part.start else 0
    high = part.stop - EDGE if part.stop < side else side
    return (at >= low) & (at < high)


def _orders(decoded: Tensor, channels: int) -> Iterator[Tensor]:
    """Levels (Q, 3, K) in each order of channels, or as each gray sum: (Q, C, K)."""
    if channels == 3:
        yield decoded
        yield decoded.flip(1)
        return
    for total, weights in [*LIBRARY_WEIGHTS.items(), *(("floats", w) for w in KNOWN_WEIGHTS)]:
        for order in ("gray", "gray reversed"):
            values = Values(order, (1.0,), (0.0,), weights, total)
            yield values.gray(values.reorder(decoded.movedim(1, 0))).movedim(0, 1)


def _apart(levels: Tensor, target: Tensor) -> Tensor:
    """The largest distance (Q,), in levels, of numbers (C, K) from a line of levels (Q, C, K)."""
    middle, centre = levels.mean(-1, keepdim=True), target.mean(-1, keepdim=True)
    spread = levels - middle
    gain = (spread * (target - centre)).sum(-1, keepdim=True) / spread.square().sum(
        -1, keepdim=True
    )
    apart = (target - centre - gain * spread).abs() / gain.abs()
    return apart.amax((-2, -1)).nan_to_num(torch.inf, posinf=torch.inf)
