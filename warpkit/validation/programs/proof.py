"""Compares the twin with the program, on images that were not used to find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpkit.validation.programs import pictures
from warpkit.validation.programs.asking import RefusedError
from warpkit.validation.programs.search import VALUES, Pair, Search
from warpkit.validation.programs.twin import Twin

SCALES = ((1.31, 1.72), (0.73, 0.64), (1.57, 0.83), (0.71, 1.46), (2.33, 2.12))
"""Of the resized sides: smaller, larger, and larger along one side alone."""

FAR = (4.41, 4.23)
"""Above 4 some programs reduce first: Pillow's thumbnail and reducing_gap."""

LARGE = 1_000_000
"""Pixels above which pictures are noise: smooth ones take ten times as long to make."""

REFUSED = 12
"""Pictures that a program may refuse before the proof ends without them."""


@dataclass
class Proof:
    """What was compared, and the shapes (H, W) of pictures on which values differ."""

    differing: int = 0
    compared: int = 0
    largest: float = 0.0
    failed: list[tuple[int, int]] = field(default_factory=list)

    def add(self, differing: int, compared: int, largest: float, shape: tuple[int, int]) -> None:
        """One more picture."""
        self.differing += differing
        self.compared += compared
        self.largest = max(self.largest, largest)
        if differing:
            self.failed.append(shape)


def prove(
    search: Search, twin: Twin, near: tuple[int, int], seed: int, *, last: bool = True
) -> Proof:
    """Compare at least `VALUES` values at fixed kinds of scales.

    The last proof also asks above 4, and what was left aside to find a rule."""
    proof = Proof()
    refused = 0
    aside = search.aside if last else []
    needed = len(SCALES) + last + len(aside)
    far = last and twin.resampling is not None
    for number, shape in enumerate(_shapes(near, seed, aside, far=far)):
        if (number >= needed and (not last or proof.compared >= VALUES)) or refused > REFUSED:
            break
        kind = (
            pictures.noise if shape[0] * shape[1] > LARGE else pictures.KINDS[(number + seed) % 2]
        )
        picture = kind(*shape, 7000 + 100 * seed + number)
        try:
            levels = search.levels(picture)
        except RefusedError:
            refused += 1
            continue
        pair: Pair = (twin.resampling, twin.values)
        if number >= needed:
            search.program.allowed += 1  # small results need more pictures
        made = twin.levels(picture).numpy()
        difference = search.compare(made, levels, pair)
        differing = min(difference.differing, levels.size)
        largest = 255.0 if np.isinf(difference.largest) else difference.largest
        proof.add(differing, levels.size, largest, shape)
    if proof.differing == 0 and proof.largest < search.tolerance:
        proof.largest = 0.0
    return proof


def _shapes(
    near: tuple[int, int], seed: int, aside: Sequence[tuple[int, int]], *, far: bool
) -> Iterator[tuple[int, int]]:
    """Fixed kinds of scales first, each a little off, then what was left aside, then any."""
    generator = np.random.default_rng(2024 + seed)

    def shape(scale: Any) -> tuple[int, int]:
        return int(near[0] * scale[0]) + 5, int(near[1] * scale[1]) + 5

    for scale in (*SCALES, *((FAR,) if far else ())):
        yield shape(generator.uniform(0.97, 1.03, 2) * scale)
    yield from aside
    while True:
        yield shape(generator.uniform(0.55, 2.3, 2))


def where_it_fails(proof: Proof, twin: Twin) -> str | None:
    """Words for failures that lie at scales of one kind alone; None for others."""
    grows, far = [], []
    for height, width in proof.failed:
        size = twin.geometry.placed(height, width).size
        scales = (height / size[0], width / size[1])
        grows.append(min(scales) < 1)
        far.append(max(scales) > 4)
    if proof.failed and all(grows):
        return "where a side grows"
    if proof.failed and all(far):
        return "where a side shrinks by more than 4"
    return None
