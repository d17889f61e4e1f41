"""`Search.refine` takes the pictures that distinguish most rules, placing few of them anew."""

from __future__ import annotations

from itertools import product

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
    pairs = zip(one.placed(height, width).size, TRUTH.placed(height, width).size, strict=True)
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
    """The pictures in order, every rule placed on every picture before each."""
    probes, left, shapes = pictures.probes(256), list(RULES), []
    for _ in range(14):
        counts = [
            (len({g.placed(*shape) for g in left}), -shape[0] * shape[1], shape)
            for shape in probes
            if shape not in shapes
        ]
        count, _, shape = max(counts)
        if count <= 1:
            break
        shapes.append(shape)
        left = [g for g in left if alike(g, *shape)]
    return shapes, left


def test_refine_takes_the_pictures_of_its_definition(monkeypatch):
    shapes, left = by_definition()
    assert len(shapes) >= 3
    placed, calls = Geometry.placed, []
    monkeypatch.setattr(Geometry, "placed", lambda *args: calls.append(1) or placed(*args))
    for _ in range(2):
        calls.clear()
        search = Remaining()
        search.refine((256, 256))
        assert search.settled[: len(shapes)] == shapes
        assert [g for g in search.geometries if g not in left] == []
        # every rule on every picture once; then a few pictures, under what remains
        assert len(calls) < 1.5 * len(RULES) * len(set(pictures.probes(256)))
