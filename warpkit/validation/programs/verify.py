"""Compares the twin with the program, on images that were not used to find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpkit.validation.programs import pictures
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.nearest import Difference
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.program import RefusedError
from warpkit.validation.programs.search import VALUES, Pair, Search
from warpkit.validation.programs.twin import Twin

SCALES = ((1.31, 1.72), (0.73, 0.64), (1.57, 0.83), (0.71, 1.46), (2.33, 2.12))
"""Sizes relative to the resized ones: smaller, larger, and larger along one side alone."""

LAST_SCALES = ((4.41, 4.23), (0.27, 0.24))
"""For the last proof: above 4 some programs reduce pictures first (Pillow's thumbnail and
reducing_gap), and many treat tiny pictures specially."""

BETWEEN = (3.37, 3.19)
"""For the last proof, if such a picture has at most `FAR_PIXELS`."""

WHOLE_SCALES = ((1, 1), (2, 3))
"""The resized size itself and whole multiples of it, which many programs treat specially."""

FARTHER = 6.4
"""Above 6, Pillow's reducing_gap = 3 reduces first."""

LONG = 4100
"""The longer side of a tall and of a wide picture as cameras make them: programs that shrink these
first begin at 1,024 to 4,096 pixels. The other side is a tenth of it, to save time."""

SMALL = 24
"""A side of the small pictures: rapidocr raises sides below 30 pixels, and keeps all others."""

SHORTER = 8
"""A long picture whose values differ is divided by this, to separate the effects of aspect and
size."""

LARGE = 1_000_000
"""Larger pictures, in pixels, are noise: smooth ones take ten times as long to make."""

FAR_PIXELS = 4_000_000
"""The largest picture, in pixels, for `FARTHER` and `BETWEEN`: for a result of 640 x 640, both
would take a tenth more time. Larger pictures shrink by less than `FARTHER`, or along one side
alone."""

EVIDENCE = 3
"""The number of pictures with differing values that are kept."""

REFUSED = 24
"""The number of rejected pictures after which the proof ends without them."""

CONTENTS: dict[str, Callable[[int, int, int], Picture]] = {
    "dark": pictures.dark,
    "pale": pictures.pale,
    "gray": pictures.gray,
    "black and white": pictures.black_and_white,
}
"""Special contents and their names; the last proof uses them at `SCALES`."""


class ProofPicture(NamedTuple):
    """A picture of the proof: its sides, and the name of its content if that is special."""

    height: int
    width: int
    content: str = ""


@dataclass
class Proof:
    """The counts of compared values, and the pictures with and without differing values."""

    differing: int = 0
    compared: int = 0
    largest: float = 0.0
    failed: list[ProofPicture] = field(default_factory=list)
    passed: list[ProofPicture] = field(default_factory=list)
    evidence: list[tuple[Picture, NDArray[np.float64]]] = field(default_factory=list)
    """A few of the pictures with differing values, as the resize sees them, and the program's
    levels."""

    def add(
        self, probe: ProofPicture, picture: Picture, levels: NDArray[np.float64], apart: Difference
    ) -> None:
        """Add the comparison of a picture."""
        self.differing += min(apart.differing, levels.size)
        self.compared += levels.size
        self.largest = max(self.largest, apart.largest if np.isfinite(apart.largest) else 255.0)
        (self.failed if apart.differing else self.passed).append(probe)
        if apart.differing and len(self.evidence) < EVIDENCE:
            self.evidence.append((picture, levels))

    @property
    def counts(self) -> tuple[int, int, float]:
        """The differing and the compared values, and the largest difference in levels."""
        return self.differing, self.compared, self.largest

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(H, W) of the pictures with differing values."""
        return list(dict.fromkeys((probe.height, probe.width) for probe in self.failed))

    @property
    def by_content(self) -> bool:
        """Whether values differ only on pictures with special contents."""
        return bool(self.failed) and all(probe.content for probe in self.failed)


def prove(
    search: Search, twin: Twin, near: tuple[int, int], seed: int, *, last: bool = True
) -> Proof:
    """Compare at least `VALUES` values at fixed kinds of scales.

    The last proof adds the scales, sizes and contents that many programs treat specially, and the
    looks that were left out to find a rule. It compares fewer values if the program rejects too
    many pictures."""
    proof = Proof()
    refused = 0
    fixed = _fixed(near, seed, search.aside, twin) if last else _probes_at(near, seed, SCALES)
    needed = len(fixed)
    again: list[ProofPicture] = []  # to separate the effects of content, aspect and size
    any_others = _others(near, seed)
    for number in count():
        enough = number >= needed and (not last or proof.compared >= VALUES)
        if (enough and not again) or refused > REFUSED:
            break
        probe = fixed[number] if number < needed else again.pop() if again else next(any_others)
        picture = _picture(probe, number, seed)
        if number >= needed:
            search.program.allowed += 1  # small results need more pictures
        try:
            levels = search.levels(picture)
        except RefusedError:
            refused += 1
            continue
        pair: Pair = (twin.resampling, twin.values)
        expected = twin.levels(picture).numpy()
        difference = search.compare(expected, levels, pair)
        proof.add(probe, search.program.after_file(picture), levels, difference)
        if difference.differing and probe.content:
            again.append(probe._replace(content=""))
        if difference.differing and LONG in probe[:2]:
            again.append(ProofPicture(probe.height // SHORTER, probe.width // SHORTER))
    if proof.differing == 0 and proof.largest < search.tolerance:
        proof.largest = 0.0
    return proof


def _picture(probe: ProofPicture, number: int, seed: int) -> Picture:
    """Noise and smooth pictures in turn, unless a special content is wanted."""
    height, width, content = probe
    kind = CONTENTS.get(content, pictures.KINDS[(number + seed) % 2])
    if kind is pictures.smooth and height * width > LARGE:
        kind = pictures.noise
    return kind(height, width, 7000 + 100 * seed + number)


def _fixed(
    near: tuple[int, int], seed: int, aside: Sequence[tuple[int, int]], twin: Twin
) -> list[ProofPicture]:
    """The pictures of the last proof, for any size of results."""
    probes = _probes_at(near, seed, SCALES)
    for number, content in zip((0, 2, 3, 4), CONTENTS, strict=True):
        probes[number] = probes[number]._replace(content=content)
    geometry = twin.geometry
    # all scales are alike, or large pictures are kept, at their own cost
    follows = geometry.rule in ("keep", "factor") or not geometry.shrink
    if twin.resampling is not None:
        probes += _probes_at(near, seed + 1, LAST_SCALES[-1:] if follows else LAST_SCALES)
        between = _probes_at(near, seed + 2, [BETWEEN])[0]
        if not follows and between.height * between.width <= FAR_PIXELS:
            probes.append(between)
        whole = [ProofPicture(y * near[0], x * near[1]) for y, x in WHOLE_SCALES]
        probes += [one for one in whole if not follows or one.height * one.width <= LARGE]
        probes += [] if follows else [_farther(near, twin.geometry)]
    if follows:  # a least side is a rule that only small pictures show
        probes += [ProofPicture(SMALL, 8 * SMALL + 1), ProofPicture(8 * SMALL + 1, SMALL)]
    across = max(LONG // 10, 0 if geometry.shrink and follows else int(1.2 * min(near)))
    probes += [ProofPicture(LONG, across), ProofPicture(across, LONG)]
    return probes + [ProofPicture(*shape) for shape in aside]


def _farther(near: tuple[int, int], geometry: Geometry) -> ProofPicture:
    """A picture that shrinks by more than 6, with as few pixels as its rule allows."""
    height, width = (FARTHER * side for side in near)
    follows_short = geometry.rule == "shortest" or geometry.before not in (None, ("pad", 0))
    if height * width > FAR_PIXELS and not follows_short:
        return ProofPicture(max(int(1.2 * near[0]), int(width) // 10), int(width) + 3)
    less = min(1.0, (FAR_PIXELS / (height * width)) ** 0.5)
    return ProofPicture(int(less * height) + 1, int(less * width) + 3)


def _probes_at(
    near: tuple[int, int], seed: int, scales: Sequence[tuple[float, float]]
) -> list[ProofPicture]:
    """Sizes at fixed kinds of scales, each slightly changed."""
    generator = np.random.default_rng(2024 + seed)
    sides = [generator.uniform(0.97, 1.03, 2) * scale * near for scale in scales]
    return [ProofPicture(int(height) + 5, int(width) + 5) for height, width in sides]


def _others(near: tuple[int, int], seed: int) -> Iterator[ProofPicture]:
    """An endless series of other sizes, not much smaller or larger."""
    generator = np.random.default_rng(3024 + seed)
    while True:
        height, width = generator.uniform(0.55, 2.3, 2) * near
        yield ProofPicture(int(height) + 5, int(width) + 5)


def where_it_fails(proof: Proof, twin: Twin) -> str | None:
    """A description of failures at one kind of scale or content; None for other failures."""
    if not proof.failed:
        return None
    contents = {probe.content for probe in proof.failed}
    if contents == {"gray"}:
        return "on pictures without colours"
    if proof.by_content:
        return f"on {' and '.join(name for name in CONTENTS if name in contents)} pictures"
    long = [max(probe[:2]) for probe in proof.failed]
    if all(side in (LONG, LONG // SHORTER) for side in long):
        if LONG // SHORTER in long:
            tall = {probe.height > probe.width for probe in proof.failed}
            which = "" if len(tall) == 2 else "tall " if tall.pop() else "wide "
            return f"on {which}pictures of {LONG / min(proof.failed[0][:2]):.0f} to 1"
        longest = max((max(probe[:2]) for probe in proof.passed), default=0)
        return f"on pictures longer than {longest} pixels"
    if max(min(probe[:2]) for probe in proof.failed) <= SMALL:
        return f"on pictures with a side of {SMALL} pixels"
    if all(min(_scales(probe, twin)) < 1 for probe in proof.failed):
        return "where a side grows"
    if all(max(_scales(probe, twin)) > 4 for probe in proof.failed):
        passed = max((max(_scales(probe, twin)) for probe in proof.passed), default=0.0)
        least = min(max(_scales(probe, twin)) for probe in proof.failed)
        return f"where a side shrinks by more than {passed if 4 < passed < least else 4:.2g}"
    return None


def _scales(probe: ProofPicture, twin: Twin) -> tuple[float, float]:
    """The factors by which a picture's sides shrink."""
    size = twin.geometry.placement(probe.height, probe.width).size
    return probe.height / size[0], probe.width / size[1]
