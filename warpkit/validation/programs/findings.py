"""Findings: one per attribute in which two programs differ, with its own effect.

To measure a finding, the first program's twin gets this one attribute of the second program. If a
library has no such resize, both sides use the exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.programs import wording
from warpkit.validation.programs.arithmetic import Resampling, candidates, rare_candidates
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import CUT

Array = NDArray[np.float64]

KINDS = (
    *("size", "crop", "pad", "shift", "channels", "layout", "values"),
    *("antialias", "interpolation", "rounding", "arithmetic", "last bits"),
)
"""The largest differences first."""

APART = 1e-3
"""Levels: larger differences count; for floats the limit is 0.0015."""

PHOTOGRAPH = ("nearest", "nearest_exact", "area")
"""Interpolations that have no antialias."""


class Drift(NamedTuple):
    """How far a model's outputs move: mean and largest difference, and how often the top class
    changes."""

    mean: float
    largest: float
    changed: float


@dataclass(frozen=True)
class Finding:
    """One difference of two programs, and how many values change because of it alone."""

    kind: str
    message: str
    differing: int | None = None
    """None if it could not be measured, because one program is unknown."""
    compared: int = 0
    largest: float | None = None
    """In levels; infinite if the shapes differ."""
    outputs: Drift | None = None

    @property
    def is_last_bits(self) -> bool:
        """Whether it comes from arithmetic or rounding alone and is at most one level."""
        fine = self.kind in ("rounding", "arithmetic", "last bits")
        return fine and self.largest is not None and self.largest <= CUT

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}{_measured(self)}"


def _measured(finding: Finding) -> str:
    if finding.differing is None:
        return ""
    if finding.largest is not None and np.isinf(finding.largest):
        return " (other shapes)"
    share = 100 * finding.differing / max(1, finding.compared)
    return f" ({share:.3g} % of values, up to {finding.largest:.3g} levels)"


Model = Callable[[torch.Tensor], Any] | None


def attribute_findings(
    first: Preprocessing, second: Preprocessing, pictures: Sequence[Picture], model: Model
) -> list[Finding]:
    """Differences of attributes, the largest first; pictures: (H, W, 3) each."""
    found = [*_geometry(first, second), *_resize(first, second), *_numbers(first, second)]
    a, b = first.twin, second.twin
    results = []
    for kind, message, change in found:
        if a is None or b is None:
            results.append(Finding(kind, message))
            continue
        results.append(_measure(kind, message, a, change(a, b), pictures, model))
    results = [_named(finding) for finding in results if finding.differing != 0 or _said(finding)]
    return sorted(results, key=lambda f: (f.is_last_bits, KINDS.index(f.kind), -(f.largest or 0)))


def _said(finding: Finding) -> bool:
    """Whether a finding counts even if no number differs: the order of axes and the type."""
    return finding.kind in ("layout", "size", "pad")


def _named(finding: Finding) -> Finding:
    """Renames a finding about arithmetic to "last bits" if it changes values by at most one
    level."""
    if finding.is_last_bits and finding.kind in ("rounding", "arithmetic"):
        kind = "last bits" if finding.kind == "arithmetic" else finding.kind
        return replace(finding, kind=kind, message=f"{finding.message}: last bits")
    return finding


Change = Callable[[Twin, Twin], tuple[Twin, Twin]]
"""From both twins: the first one as it is measured, and with the second one's attribute."""
Told = tuple[str, str, Change]


def _measure(
    kind: str,
    message: str,
    first: Twin,
    sides: tuple[Twin, Twin],
    pictures: Sequence[Picture],
    model: Model,
) -> Finding:
    """Count the values of the first twin that one change affects."""
    differing, compared, largest = 0, 0, 0.0
    drifts = []
    for picture in pictures:
        try:
            one, other = (twin.levels(picture).numpy() for twin in sides)
            counts = difference(_numbers_of(sides[0], one), _numbers_of(sides[1], other), first)
        except (ValueError, TypeError, RuntimeError):
            return Finding(kind, message)
        differing, compared = differing + counts[0], compared + counts[1]
        largest = max(largest, counts[2])
        if model is not None:
            tensors = (_numbers_of(twin, x) for twin, x in zip(sides, (one, other), strict=True))
            drifts.append(drift(model, *tensors))
    return Finding(kind, message, differing, compared, largest, mean_drift(drifts))


def _numbers_of(twin: Twin, levels: Array) -> Array:
    """The program's numbers for levels (C, h, w)."""
    return twin.values.as_numbers(torch.from_numpy(levels)).numpy()


def difference(one: Array, other: Array, scale: Twin | None) -> tuple[int, int, float]:
    """The number of differing values, of compared ones, and the largest difference; (C, h, w)
    each."""
    if one.shape != other.shape:
        size = max(one.size, other.size)
        return size, size, float("inf")
    gain = np.ones(1) if scale is None else np.abs(np.asarray(scale.values.gain))
    apart = np.abs(one - other) / gain[:, None, None]
    floats = scale is not None and scale.resampling is not None and not scale.resampling.rounded
    room = 1.5 * APART if floats else APART
    return int((apart > room).sum()), apart.size, float(apart.max(initial=0))


def drift(model: Callable[[torch.Tensor], Any], one: Array, other: Array) -> Drift | None:
    """How far a model's outputs for two inputs (C, h, w) differ; None if it rejects one."""
    outputs = []
    for numbers in (one, other):
        try:
            with torch.no_grad():
                made = model(torch.from_numpy(numbers.astype(np.float32))[None])
        except (RuntimeError, ValueError):
            return None
        outputs.append(torch.as_tensor(made).double().flatten(1))
    if outputs[0].shape != outputs[1].shape:
        return None
    apart = (outputs[0] - outputs[1]).abs()
    changed = (outputs[0].argmax(1) != outputs[1].argmax(1)).double().mean()
    return Drift(float(apart.mean()), float(apart.max()), float(changed))


def mean_drift(drifts: Sequence[Drift | None]) -> Drift | None:
    """The mean over several pictures; None if it is missing for one of them."""
    known = [d for d in drifts if d is not None]
    if not known or len(known) != len(drifts):
        return None
    mean = sum(d.mean for d in known) / len(known)
    changed = sum(d.changed for d in known) / len(known)
    return Drift(mean, max(d.largest for d in known), changed)


def _geometry(first: Preprocessing, second: Preprocessing) -> list[Told]:
    """Findings about sizes, crop and padding."""
    if first.rule is None or second.rule is None:
        return []
    found: list[Told] = []
    sized = ("before", "rule", "size", "limit", "multiple", "enlarge")
    if any(getattr(first, name) != getattr(second, name) for name in sized):
        text = f"A {wording.aspect(first)}; B {wording.aspect(second)}"
        found.append(("size", text, _geometry_change(*sized, "rounding", "before_rounding")))
    elif _canvas(first) != _canvas(second):
        text = f"A returns {wording.shape(first.canvas)}, B {wording.shape(second.canvas)}"
        found.append(("size", text, _geometry_change("window", "stride")))
    if first.crop != second.crop:
        text = f"A {wording.cropped(first)}; B {wording.cropped(second)}"
        found.append(("crop", text, _geometry_change("window", "crop_rounding")))
    if first.pad != second.pad:
        text = f"A {wording.padded(first)}; B {wording.padded(second)}"
        found.append(("pad", text, _pad_change))
    if first.twin and second.twin and not found:
        found += _rounded_sides(first.twin, second.twin)
    return found


def _rounded_sides(first: Twin, second: Twin) -> list[Told]:
    """Findings about rules that have the same description but round differently."""
    a, b = first.geometry, second.geometry
    found: list[Told] = []
    sides = ("rounding", "limit_rounding", "multiple_rounding")
    if any(getattr(a, name) != getattr(b, name) for name in sides):
        text = f"sides are rounded otherwise ({a.rounding} - {b.rounding})"
        found.append(("size", text, _geometry_change(*sides)))
    places = ("crop_rounding", "before_rounding", "place")
    if any(getattr(a, name) != getattr(b, name) for name in places):
        text = "the crop or the padding begins a pixel apart where the rest is odd"
        found.append(("shift", text, _geometry_change(*places)))
    return found


def _geometry_change(*names: str) -> Change:
    def change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
        taken = {name: getattr(b.geometry, name) for name in names}
        changed = replace(a, geometry=replace(a.geometry, **taken))
        if changed.resampling is None:
            changed = replace(changed, resampling=b.resampling)
        return a, changed

    return change


def _pad_change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
    taken = {name: getattr(b.geometry, name) for name in ("place", "window", "stride")}
    return a, replace(a, geometry=replace(a.geometry, **taken), padding=b.padding)


def _resize(first: Preprocessing, second: Preprocessing) -> list[Told]:
    """Findings about the resize, if both programs have one."""
    if first.interpolation is None or second.interpolation is None:
        return []
    found: list[Told] = []
    if (first.aligned, first.scale) != (second.aligned, second.scale):
        found.append(
            ("shift", wording.shifted(first, second), _resampling_change("aligned", "scale"))
        )
    a, b = ((p.interpolation or "").removesuffix("_exact") for p in (first, second))
    if a != b:
        text = f"A is {first.interpolation}, B {second.interpolation}"
        found.append(("interpolation", text, _resampling_change("interpolation")))
    means = not {first.interpolation, second.interpolation} & set(PHOTOGRAPH)
    if first.antialias != second.antialias and means:
        which = "A" if not first.antialias else "B"
        text = f"{which} samples without antialias"
        found.append(("antialias", text, _resampling_change("antialias")))
    rounding = (first.rounded, first.clamped) != (second.rounded, second.clamped)
    if rounding:
        text = f"A {wording.rounds(first)}, B {wording.rounds(second)}"
        found.append(("rounding", text, _resampling_change("rounded", "clamped")))
    same = not any(kind in ("interpolation", "antialias", "shift") for kind, *_ in found)
    names = ("arithmetic", "interpolation")
    same = same and None not in (first.arithmetic, second.arithmetic)  # findings say why
    if same and any(getattr(first, name) != getattr(second, name) for name in names):
        text = f"A computes by {wording.computes(first, a)}, B by {wording.computes(second, b)}"
        found.append(("arithmetic", text, _resampling_change(*names, "antialias")))
    return found


def _resampling_change(*names: str) -> Change:
    def change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
        how, other = a.resampling, b.resampling
        assert how is not None
        assert other is not None
        taken = {name: getattr(other, name) for name in names}
        changed = replace(how, **taken)
        if "rounded" in names or "arithmetic" in names or _works(changed):
            return a, replace(a, resampling=changed)
        exact = replace(how, arithmetic="torch" if "aligned" in names else "exact")
        if "antialias" in names and not _works(replace(exact, **taken)):
            exact = replace(exact, interpolation="bilinear")
        if not _works(exact):  # a filter that only this library has: compare both as they are
            return a, replace(a, resampling=other)
        changed = replace(exact, **taken)
        if not _works(changed):
            return a, replace(a, resampling=other)
        return replace(a, resampling=exact), replace(a, resampling=changed)

    return change


def _works(how: Resampling) -> bool:
    """Whether a library has this resize; only torch and "exact" offer a choice of antialias."""
    bare = replace(how, rounded=True, clamped=False)
    return any(
        replace(known, rounded=True, clamped=False) == bare
        for known in (*candidates(), *rare_candidates())
    )


def _numbers(first: Preprocessing, second: Preprocessing) -> list[Told]:
    """Findings about channels, gain, offset, layout and type, if both programs' are known."""
    found: list[Told] = []
    if None in (first.gain, second.gain):
        return found
    if first.channels != second.channels:
        words = {"kept": "RGB", "reversed": "BGR", "gray": "gray", "gray reversed": "gray of BGR"}
        a, b = (words[str(p.channels)] for p in (first, second))
        text = "channels reversed" if {a, b} == {"RGB", "BGR"} else f"A is {a}, B {b}"
        found.append(("channels", f"{text} (A {a}, B {b})", _channel_change))
    if not _close(first, second):
        text = f"A is {wording.scaled(first)}, B {wording.scaled(second)}"
        found.append(("values", text, _value_change))
    arranged = ("layout", "batched", "dtype")
    if any(getattr(first, name) != getattr(second, name) for name in arranged):
        text = f"A returns {wording.arranged(first)}, B {wording.arranged(second)}"
        found.append(("layout", text, lambda a, b: (a, a)))
    return found


def _close(first: Preprocessing, second: Preprocessing) -> bool:
    """Whether gains and offsets are equal, with a wider tolerance for float16."""
    half = "float16" in (first.dtype, second.dtype)
    for name in ("gain", "offset"):
        a, b = (np.asarray(getattr(p, name) or np.nan, float) for p in (first, second))
        if a.shape != b.shape and 1 not in (a.size, b.size):
            return False
        room = (2e-3 if half else 1e-5) * max(1e-3, float(np.abs(a).max()), float(np.abs(b).max()))
        if not (np.abs(a - b) <= room).all():
            return False
    return True


def _channel_change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
    values = replace(b.values, gain=a.values.gain, offset=a.values.offset)
    if len(b.values.gain) != len(a.values.gain):
        values = b.values
    return a, replace(a, values=values)


def _value_change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
    return a, replace(a, values=replace(a.values, gain=b.values.gain, offset=b.values.offset))


def _canvas(found: Preprocessing) -> Any:
    return None if found.crop is not None else found.canvas
