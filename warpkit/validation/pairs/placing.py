"""Locates an image in its result: all of it, with padding, or its centre.

The picture, shrunk by a smooth filter, is correlated with the result. For each way in which the
picture may lie there, this gives a `Look` for `programs.hypotheses`; values decide between them
later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.resizing import resize
from warpkit.validation.pairs.reading import PicturePair
from warpkit.validation.programs.observe import Line, Look

Gray = NDArray[np.float32]
Box = tuple[int, int, int, int]

COARSE = 40
"""The longer side, in pixels, of the small pictures on which all scales are tried first."""

STEP = 1.03
"""The ratio of successive scales: at the edges of a crop of 40 pixels it is 1/3 pixel."""

ZOOM = 2.6
"""How much larger than the window a resized picture may be before it is cropped to the window."""

UNRELATED = 0.35
"""Below this correlation a result is not its picture; nearest of 16 pixels has at least 0.5."""

BESIDE = 0.15
"""A whole picture is still tried if it correlates less than the best crop by at most this."""

SURE = 0.05
"""The same for a crop; with nearest, a whole picture may look like a crop."""

FLAT = 1e-6
"""Relative to a result's range: results with less contrast have no known placement."""

CLEAN = 0.02
"""Levels: the largest variation of padding that no codec has touched."""

BLOCK = 8
"""Pixels: JPEG preserves padding up to a multiple of this."""

SAME = 2e-3
"""The change of the correlation for one row more or less."""

ROW_APART = 0.03
"""The change of the correlation for one row more or less, with nearest."""

BLURRED = 6.0
"""Levels: the largest mean deviation from one colour of padding that a codec has blurred."""

UPRIGHT, TURNED = 0.9, 0.6
"""Above the first correlation no turns are tried; below the second none is reported."""

BETTER_TURNED = 0.05
"""How much better than an upright picture a mirrored or turned one must correlate."""


@dataclass
class Place:
    """What is known about one pair."""

    whole: Look | None = None
    cropped: Look | None = None
    crop_nearer: bool = False
    correlation: float = 0.0
    """The best correlation of an upright picture."""
    flat: bool = False
    turned: str = ""
    """"mirrored" and so on, if only this orientation correlates."""
    others: list[Look] = field(default_factory=list)
    """Whole pictures, a row or two larger or smaller, if a codec has blurred the padding."""

    @property
    def best(self) -> Look | None:
        """The look with the better correlation."""
        return self.cropped if self.crop_nearer else self.whole or self.cropped

    @property
    def found(self) -> bool:
        """Whether the picture was found in the result, upright."""
        return self.whole is not None or self.cropped is not None


def place(pair: PicturePair, level: float) -> Place:
    """Finds the picture; level: the size of one of 255 levels in the result's numbers."""
    result = pair.result.numbers.mean(0).astype(np.float32)
    options = [pair.picture] + ([pair.turned] if pair.turned is not None else [])
    places = []
    for picture in options:
        gray = picture.astype(np.float32).mean(-1)
        places.append(_place(gray, result, pair, level))
    best = max(range(len(places)), key=lambda k: places[k].correlation)
    if best:
        pair.picture = options[best]
        pair.__dict__.pop("coloured", None)
    return places[best]


def _place(gray: Gray, result: Gray, pair: PicturePair, level: float) -> Place:
    answer = Place()
    if gray.std() < 1 or np.ptp(result) <= FLAT * max(1.0, float(np.abs(result).max())):
        answer.flat = True
        return answer
    full: Box = (0, 0, result.shape[0], result.shape[1])
    boxes: list[Box] = [full]
    inner = content_of(pair.result.numbers, level)
    clean = inner != full and _is_clean(pair.result.numbers, inner, level)
    if clean and min(inner[2] - inner[0], inner[3] - inner[1]) >= 4:
        boxes.append(inner)
    blurred = _letterboxes(gray, result, level)
    exact = clean and any(edge % BLOCK for edge in inner)  # no codec ends padding here
    looks = []
    for box in boxes + blurred:
        part = result[box[0] : box[2], box[1] : box[3]]
        looks.append((_alike(_shrunk(gray, part.shape), part), box))
    whole, box = looks[0]
    for other, inside in looks[1:]:
        room = (ROW_APART if exact else SAME) if box == inner else 0
        if other > whole + room:
            whole, box = other, inside
    crop, size, crop_box = _best_crop(gray, result, [*boxes, *([box] if box in blurred else [])])
    answer.correlation = max(whole, crop)
    if answer.correlation < UPRIGHT:
        name, turned = _best_turned(gray, result)
        if turned > max(TURNED, answer.correlation + BETTER_TURNED):
            answer.turned, answer.correlation = name, turned
            return answer
    if answer.correlation < UNRELATED:
        return answer
    if whole >= UNRELATED and whole >= crop - BESIDE:
        answer.whole = _whole_look(gray, result, box)
        near = [b for c, b in looks if b in blurred and b != box and c >= whole - ROW_APART]
        answer.others = [_whole_look(gray, result, b) for b in near] if box in blurred else []
    cuts = size is not None and size != (crop_box[2] - crop_box[0], crop_box[3] - crop_box[1])
    if size is not None and cuts and crop >= max(UNRELATED, whole - SURE):
        answer.cropped = _look(gray, result, crop_box, size)
        answer.crop_nearer = crop > whole
    return answer


def _whole_look(gray: Gray, result: Gray, box: Box) -> Look:
    return _look(gray, result, box, (box[2] - box[0], box[3] - box[1]))


def _look(gray: Gray, result: Gray, box: Box, size: tuple[int, int]) -> Look:
    """The look of a picture of this size that is centred in the box."""
    lines: list[Line] = []
    for axis, (begin, end) in enumerate(((box[0], box[2]), (box[1], box[3]))):
        scale = gray.shape[axis] / size[axis]
        corner = (size[axis] - (end - begin)) // 2 - begin
        lines.append((scale, (corner + 0.5) * scale - 0.5))
    shape = (gray.shape[0], gray.shape[1])
    window = (result.shape[0], result.shape[1])
    return Look(*shape, window, box, False, None, lines[0], lines[1])


def content_of(numbers: NDArray[np.float64], level: float) -> Box:
    """(top, left, bottom, right) of the part that remains without edges of one colour."""
    box = [0, 0, numbers.shape[1], numbers.shape[2]]
    for corner in (numbers[:, 0, 0], numbers[:, -1, -1]):
        differs = np.abs(numbers - corner[:, None, None]).max(0) > CLEAN * level
        for axis in (0, 1):
            places = np.where(differs[box[0] : box[2], box[1] : box[3]].any(1 - axis))[0]
            if len(places) and places[-1] - places[0] >= 3:
                begin = box[axis]
                box[axis], box[axis + 2] = begin + int(places[0]), begin + int(places[-1]) + 1
    return box[0], box[1], box[2], box[3]


def _is_clean(numbers: NDArray[np.float64], box: Box, level: float) -> bool:
    """Whether the area around a box has one colour that no codec has touched."""
    around = np.ones(numbers.shape[1:], bool)
    around[box[0] : box[2], box[1] : box[3]] = False
    return bool(np.ptp(numbers[:, around], axis=1).max() <= CLEAN * level)


def _letterboxes(gray: Gray, result: Gray, level: float) -> list[Box]:
    """The boxes in which the whole picture may lie, in padding that a codec has blurred.

    The picture keeps its aspect and lies in the middle or at an end; the rest has one colour,
    except for blur."""
    boxes: list[Box] = []
    for axis in (0, 1):
        full, other = result.shape[axis], result.shape[1 - axis]
        side = other * gray.shape[axis] / gray.shape[1 - axis]
        rows = result if axis == 0 else result.T
        for length in sorted({math.floor(side), math.ceil(side)}):
            rest = full - length
            if length < 4 or rest < 1:
                continue
            for begin in sorted({0, rest // 2, -(-rest // 2), rest}):
                around = np.concatenate([rows[:begin], rows[begin + length :]])
                if np.abs(around - np.median(around)).mean() <= BLURRED * level:
                    end = begin + length
                    boxes.append((begin, 0, end, other) if axis == 0 else (0, begin, other, end))
    return boxes


def _best_crop(
    gray: Gray, result: Gray, boxes: list[Box]
) -> tuple[float, tuple[int, int] | None, Box]:
    """The size whose centre best matches a box: all scales on small pictures, then pixel by
    pixel."""
    best: tuple[float, tuple[int, int] | None, Box] = (-1.0, None, boxes[0])
    for box in boxes:
        inner = result[box[0] : box[2], box[1] : box[3]]
        if min(inner.shape) < 8:
            continue
        for sizes in (_aspect_kept, _squashed):
            for size in _promising(gray, inner, sizes):
                for fine in _around(size, inner.shape):
                    correlation = _middle_alike(gray, inner, fine)
                    if correlation > best[0]:
                        best = (correlation, fine, box)
    return best


Sizes = Callable[[tuple[int, int], tuple[int, int]], Iterator[tuple[float, float]]]


def _aspect_kept(shape: tuple[int, int], window: tuple[int, int]) -> Iterator[tuple[float, float]]:
    """Sizes with the picture's aspect that fill a window, and the picture's own size."""
    lowest = max(window[0] / shape[0], window[1] / shape[1])
    scale = lowest
    while scale < ZOOM * lowest:
        yield shape[0] * scale, shape[1] * scale
        scale *= STEP
    if lowest < 1:
        yield shape


def _squashed(shape: tuple[int, int], window: tuple[int, int]) -> Iterator[tuple[float, float]]:
    """Sizes with the window's aspect, whatever the picture's is."""
    if abs(shape[0] * window[1] / (shape[1] * window[0]) - 1) < 0.01:
        return
    scale = 1.0
    while scale < ZOOM:
        yield window[0] * scale, window[1] * scale
        scale *= STEP


def _promising(gray: Gray, part: Gray, sizes: Sizes) -> list[tuple[float, float]]:
    """The best two sizes over all scales, on small pictures."""
    window = (part.shape[0], part.shape[1])
    small = min(1.0, COARSE / max(window))
    reduced = (max(8, round(window[0] * small)), max(8, round(window[1] * small)))
    template = _shrunk(part, reduced)
    lowest = max(window[0] / gray.shape[0], window[1] / gray.shape[1])
    if lowest * small < 1 / 3:  # a smaller original costs less and is enough
        sides = (round(side * lowest * small * 3) for side in gray.shape)
        source = _shrunk(gray, (next(sides), next(sides)))
    else:
        source = gray
    marks = []
    for size in sizes((gray.shape[0], gray.shape[1]), window):
        fine = (
            max(reduced[0], round(size[0] * reduced[0] / window[0])),
            max(reduced[1], round(size[1] * reduced[1] / window[1])),
        )
        if fine[0] * fine[1] > 600 * 600:
            continue
        marks.append((_middle_alike(source, template, fine), size))
    marks.sort(reverse=True)
    return [size for _, size in marks[:2]]


def _around(size: tuple[float, float], window: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Sizes within a few pixels of one that was found on small pictures."""
    reach = max(2, round(min(size) * (STEP - 1) * 0.8))
    for step in range(-reach, reach + 1):
        scale = (min(size) + step) / min(size)
        h, w = round(size[0] * scale), round(size[1] * scale)
        if h >= window[0] and w >= window[1]:
            yield h, w


def _middle_alike(gray: Gray, part: Gray, size: tuple[int, int]) -> float:
    """How well the centre of a picture, resized to `size`, correlates with the result."""
    h, w = part.shape
    if size[0] < h or size[1] < w:
        return -1.0
    top, left = (size[0] - h) // 2, (size[1] - w) // 2
    return _alike(_shrunk(gray, size)[top : top + h, left : left + w], part)


def _best_turned(gray: Gray, result: Gray) -> tuple[str, float]:
    """The best of all mirrored and turned orientations."""
    marks = []
    for name, turned in _turns(gray):
        marks.append((_alike(_shrunk(turned, result.shape), result), name))
        template = _shrunk(result, _small(result.shape))
        lowest = max(template.shape[k] / turned.shape[k] for k in (0, 1))
        for scale in (1.0, 1.07, 1.14, 1.25, 1.4):
            size = tuple(
                max(template.shape[k], round(turned.shape[k] * lowest * scale)) for k in (0, 1)
            )
            marks.append((_middle_alike(turned, template, (size[0], size[1])), name))
    correlation, name = max(marks)
    return name, correlation


def _small(shape: tuple[int, ...]) -> tuple[int, int]:
    small = min(1.0, COARSE / max(shape))
    return max(8, round(shape[0] * small)), max(8, round(shape[1] * small))


def _turns(gray: Gray) -> Iterator[tuple[str, Gray]]:
    for quarters, name in enumerate(("", "a quarter left", "upside down", "a quarter right")):
        turned = np.rot90(gray, quarters)
        if name:
            yield f"turned {name}", np.ascontiguousarray(turned)
        yield (
            "mirrored" + (f" and turned {name}" if name else ""),
            np.ascontiguousarray(turned[:, ::-1]),
        )


def _shrunk(gray: Gray, size: tuple[int, ...]) -> Gray:
    """Resizes by antialiased bilinear."""
    if gray.shape == tuple(size):
        return gray
    image = torch.from_numpy(np.ascontiguousarray(gray))[None]
    return resize(image, (size[0], size[1]), interpolation="bilinear", antialias=True)[0].numpy()


def _alike(first_image: Gray, second_image: Gray) -> float:
    """The correlation of two slightly blurred pictures; blur reduces noise of codecs and
    nearest."""
    first, second = (_blur(image) for image in (first_image, second_image))
    first, second = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((first * first).sum(dtype=np.float64) * (second * second).sum()))
    return float((first * second).sum()) / norm if norm > 1e-9 else 0.0


def _blur(image: Gray) -> Gray:
    """A Gaussian blur of 0.6 pixels, without the edges."""
    low, high = np.float32(0.166), np.float32(0.668)
    rows = low * (image[:-2] + image[2:]) + high * image[1:-1]
    return low * (rows[:, :-2] + rows[:, 2:]) + high * rows[:, 1:-1]
