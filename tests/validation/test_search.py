"""`Search.refine` takes the pictures that distinguish most rules, placing few of them anew."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from warpkit.validation import identify
from warpkit.validation.programs import pictures
from warpkit.validation.programs.geometry import OFFSETS, SIDES, Geometry
from warpkit.validation.programs.search import VALUES, Search

RULES = [
    Geometry("shortest", n, rounding=rounding, crop_rounding=crop, window=(224, 224))
    for n, rounding, crop in product((255, 256, 257), SIDES, OFFSETS)
]
TRUTH = RULES[40]


def alike(one, height, width):
    """Whether a rule's sides of a picture are odd where the right rule's are: half of them are."""
    pairs = zip(one.placement(height, width).size, TRUTH.placement(height, width).size, strict=True)
    return all((a - b) % 2 == 0 for a, b in pairs)


class Remaining(Search):
    """A search that knows the right rule: `settle` drops the rules that are not alike."""

    def __init__(self):
        self.geometries, self.pairs, self.compared = list(RULES), [], VALUES
        self.settled = []

    def settle(self, height, width):
        self.settled.append((height, width))
        self.geometries = [g for g in self.geometries if alike(g, height, width)]
        return True


def by_definition():
    """The pictures in order, every rule placed on every picture before each: an eighth of the
    pictures first, then all."""
    left, shapes = list(RULES), []
    for probes in (pictures.probes(256)[::8], pictures.probes(256)):
        before = len(shapes)
        for _ in range(14):
            counts = [
                (len({g.placement(*shape).identity for g in left}), -shape[0] * shape[1], shape)
                for shape in probes
                if shape not in shapes[before:]
            ]
            count, _, shape = max(counts)
            if count <= 1:
                break
            shapes.append(shape)
            left = [g for g in left if alike(g, *shape)]
    return shapes, left


def test_rules_that_reckon_one_factor_in_two_ways_are_not_told_apart():
    """Pictures on which factors differ in their last bits alone took the place of those that tell
    halves rounded to even from halves rounded up."""
    one, other = (
        Geometry("shortest", 68, window=(61, 61), rounding=rounding)
        for rounding in ("v * r even", "v / (s / n) even")
    )
    apart = 0
    for shape in pictures.probes(68):
        placements = one.placement(*shape), other.placement(*shape)
        assert (placements[0].size == placements[1].size) == (
            placements[0].identity == placements[1].identity
        )
        apart += placements[0].factors != placements[1].factors
    assert apart > 50


@pytest.mark.parametrize("near", [round, lambda side: int(side + 0.5)])
def test_halves_to_even_and_halves_up_are_told_apart(near):
    def program(x):
        height, width = x.shape[:2]
        short = min(height, width)
        size = [68 if side == short else near(68 * side / short) for side in (width, height)]
        made = torch.nn.functional.interpolate(
            torch.from_numpy(x.copy()).movedim(-1, 0)[None].float(),
            size[::-1],
            mode="bilinear",
            antialias=True,
        )
        top, left = ((side - 61) // 2 for side in size[::-1])
        return made[0, :, top : top + 61, left : left + 61].to(torch.uint8).numpy()

    found = identify(program, takes="array")
    assert found.known, str(found)
    for width in (200, 232, 152):  # 68 * width / 64 ends in a half
        wanted = 68, near(68 * width / 64)
        assert found.twin.geometry.placement(64, width).size == wanted


def test_refine_takes_the_pictures_of_its_definition(monkeypatch):
    shapes, left = by_definition()
    assert len(shapes) >= 3
    placement, calls = Geometry.placement, []
    monkeypatch.setattr(Geometry, "placement", lambda *args: calls.append(1) or placement(*args))
    for _ in range(2):
        calls.clear()
        search = Remaining()
        search.refine((256, 256))
        assert search.settled[: len(shapes)] == shapes
        assert [g for g in search.geometries if g not in left] == []
        # every rule on every picture once; then a few pictures, under what remains
        assert len(calls) < 1.5 * len(RULES) * len(set(pictures.probes(256)))
