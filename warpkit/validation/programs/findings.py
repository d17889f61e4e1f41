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
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.images import NamedPicture
from warpkit.validation.programs.measuring import Counts, Drift, difference, drift, mean_drift
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import CUT
from warpkit.validation.programs.warp_twin import WarpTwin

Array = NDArray[np.float64]
Pair = tuple[int, int]

PHOTOGRAPH = ("nearest", "nearest_exact", "area")
"""Interpolations that have no antialias."""


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
    mean: float | None = None
    """The mean distance of all values, in levels."""
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


class Scene(NamedTuple):
    """A picture (H, W, 3), and the size (h, w) of both results if it is the same."""

    source: NamedPicture
    size: Pair | None


Model = Callable[[torch.Tensor], Any] | None


def attribute_findings(
    first: Preprocessing, second: Preprocessing, scenes: Sequence[Scene], model: Model
) -> list[Finding]:
    """Differences of attributes, the worst first: by the mean distance of values."""
    claims = [*_files(first, second), *_geometry(first, second), *_resize(first, second)]
    claims += _numbers(first, second)
    a, b = first.twin or first.resized, second.twin or second.resized
    by_rule = first.twin is not None and second.twin is not None
    results = []
    for claim in claims:
        counts = outputs = None
        if a is not None and b is not None:
            counts, outputs = _measure(a, claim.change(a, b), scenes, model, by_rule=by_rule)
        if counts is None:
            results.append(Finding(claim.kind, claim.message))
        elif claim.reshapes:
            all_ = counts.compared
            results.append(Finding(claim.kind, claim.message, all_, all_, np.inf, np.inf, outputs))
        elif counts.differing or claim.always:
            one = Finding(claim.kind, claim.message, *counts[:3], counts.mean, outputs)
            results.append(_named(one))
    return sorted(results, key=_order)


def _order(finding: Finding) -> tuple[bool, bool, float]:
    """The worst first; last bits are last, after findings that could not be measured."""
    return finding.is_last_bits, finding.mean is None, -(finding.mean or 0.0)


def _named(finding: Finding) -> Finding:
    """Renames a finding about arithmetic to "last bits" if it changes values by at most one
    level."""
    if finding.is_last_bits and finding.kind in ("rounding", "arithmetic"):
        kind = "last bits" if finding.kind == "arithmetic" else finding.kind
        return replace(finding, kind=kind, message=f"{finding.message}: last bits")
    return finding


Change = Callable[[Twin, Twin], tuple[Twin, Twin]]
"""From both twins: the first one as it is measured, and with the second one's attribute."""


class Claim(NamedTuple):
    """A finding that is not measured yet."""

    kind: str
    message: str
    change: Change
    always: bool = False
    """It counts even if no number differs."""
    reshapes: bool = False
    """The results have other axes."""


def _measure(
    first: Twin, sides: tuple[Twin, Twin], scenes: Sequence[Scene], model: Model, *, by_rule: bool
) -> tuple[Counts | None, Drift | None]:
    """Count the values of the first twin that one change affects; None if nothing is counted.

    by_rule: both rules of sizes are known. Otherwise each picture gets the size of its results."""
    counts, drifts = Counts(), []
    for scene in scenes:
        if not by_rule and scene.size is None:
            continue
        twins = sides
        if not by_rule:
            twins = tuple(replace(t, geometry=Geometry("fixed", scene.size)) for t in sides)
        try:
            one, other = (_numbers_of(t, t.levels(scene.source.picture).numpy()) for t in twins)
        except (ValueError, TypeError, RuntimeError):
            return None, None
        counts = counts.plus(difference(one, other, levels_of(first), floats=in_floats(first)))
        if model is not None:
            drifts.append(drift(model, one, other))
    return (counts if counts.compared else None), mean_drift(drifts)


def levels_of(twin: Twin) -> Array:
    """The size of a level in the program's numbers, for each channel."""
    return np.abs(np.asarray(twin.values.gain))


def in_floats(twin: Twin) -> bool:
    """Whether nothing is rounded after the resize or the warp."""
    if isinstance(twin, WarpTwin):
        return not twin.warp.rounded
    return twin.resampling is not None and not twin.resampling.rounded


def _numbers_of(twin: Twin, levels: Array) -> Array:
    """The program's numbers for levels (C, h, w)."""
    return twin.values.as_numbers(torch.from_numpy(levels)).numpy()


def _files(first: Preprocessing, second: Preprocessing) -> list[Claim]:
    """A finding about JPEG files that come first."""
    if first.file == second.file or None in (first.gain, second.gain):
        return []
    text = f"A {wording.file(first)}, B {wording.file(second)}"
    return [Claim("jpeg", text, lambda a, b: (a, replace(a, jpeg=b.jpeg)))]


def _geometry(first: Preprocessing, second: Preprocessing) -> list[Claim]:
    """Findings about sizes, crop and padding."""
    if first.rule is None or second.rule is None:
        return []
    if "warp" in (first.rule, second.rule):
        return _warps(first, second)
    claims: list[Claim] = []
    sized = ("before", "rule", "size", "limit", "multiple", "enlarge", "shrink")
    if any(getattr(first, name) != getattr(second, name) for name in sized):
        text = f"A {wording.aspect(first)}; B {wording.aspect(second)}"
        rounded = () if first.rule == second.rule else ("rounding", "before_rounding")
        claims.append(Claim("size", text, _geometry_change(*sized, *rounded), always=True))
    elif _canvas(first) != _canvas(second):
        text = f"A {wording.result(first)}, B {wording.result(second)}"
        claims.append(Claim("size", text, _geometry_change("window", "stride"), always=True))
    if first.crop != second.crop:
        text = f"A {wording.crop(first)}; B {wording.crop(second)}"
        claims.append(Claim("crop", text, _geometry_change("window", "crop_rounding")))
    if first.pad != second.pad:
        text = f"A {wording.pad(first)}; B {wording.pad(second)}"
        claims.append(Claim("pad", text, _pad_change, always=True))
    if first.twin and second.twin and first.rule == second.rule:
        claims += _rounded(first, second, first.twin.geometry, second.twin.geometry)
    return claims


def _warps(first: Preprocessing, second: Preprocessing) -> list[Claim]:
    """Findings about a warp and something else, or about each attribute of two warps."""
    if first.rule != second.rule:
        text = f"A {wording.aspect(first)}; B {wording.aspect(second)}"
        return [Claim("size", text, lambda a, b: (a, replace(b, values=a.values)), always=True)]
    claims: list[Claim] = []
    if first.size != second.size:
        text = f"A {wording.aspect(first)}; B {wording.aspect(second)}"
        claims.append(Claim("size", text, _warp_change("size"), always=True))
    if first.matrix != second.matrix:
        text = f"A's matrix is {wording.matrix(first)}, B's {wording.matrix(second)}"
        claims.append(Claim("shift", text, _warp_change("matrix", "part", "corners")))
    if first.interpolation != second.interpolation:
        text = f"A is {first.interpolation}, B {second.interpolation}"
        claims.append(Claim("interpolation", text, _warp_change("interpolation")))
    if (first.border, first.border_value) != (second.border, second.border_value):
        text = f"A's border is {wording.border(first)}, B's {wording.border(second)}"
        claims.append(Claim("pad", text, _warp_change("border")))
    if first.rounded != second.rounded:
        text = f"A {wording.rounds(first)}, B {wording.rounds(second)}"
        claims.append(Claim("rounding", text, _warp_change("rounded")))
    if None not in (first.arithmetic, second.arithmetic) and first.arithmetic != second.arithmetic:
        text = f"A computes by {first.arithmetic}, B by {second.arithmetic}"
        claims.append(Claim("arithmetic", text, _warp_change("arithmetic")))
    return claims


def _warp_change(*names: str) -> Change:
    def change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
        assert isinstance(a, WarpTwin)
        assert isinstance(b, WarpTwin)
        changes = {name: getattr(b.warp, name) for name in names}
        padding = b.padding if "border" in names else a.padding
        return a, replace(a, warp=replace(a.warp, **changes), padding=padding)

    return change


def _rounded(first: Preprocessing, second: Preprocessing, a: Geometry, b: Geometry) -> list[Claim]:
    """Findings about sides and places that are rounded otherwise, whatever else differs."""
    claims: list[Claim] = []
    sides = ("rounding", "limit_rounding", "multiple_rounding")
    if any(getattr(a, name) != getattr(b, name) for name in sides):
        claims.append(Claim("size", wording.rounded_apart(a, b), _geometry_change(*sides)))
    places = ["crop_rounding"] if first.crop == second.crop else []
    places += ["before_rounding"] if first.before == second.before else []
    places += ["place"] if first.pad == second.pad else []
    if any(getattr(a, name) != getattr(b, name) for name in places):
        text = "the crop or the padding begins a pixel apart where the rest is odd"
        claims.append(Claim("shift", text, _geometry_change(*places)))
    return claims


def _geometry_change(*names: str) -> Change:
    def change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
        changes = {name: getattr(b.geometry, name) for name in names}
        changed = replace(a, geometry=replace(a.geometry, **changes))
        if changed.resampling is None:
            changed = replace(changed, resampling=b.resampling)
        return a, changed

    return change


def _pad_change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
    changes = {name: getattr(b.geometry, name) for name in ("place", "window", "stride")}
    return a, replace(a, geometry=replace(a.geometry, **changes), padding=b.padding)


def _resize(first: Preprocessing, second: Preprocessing) -> list[Claim]:
    """Findings about the resize, if both programs have one."""
    if None in (first.interpolation, second.interpolation) or "warp" in (first.rule, second.rule):
        return []  # findings of warps include them
    claims: list[Claim] = []
    if (first.aligned, first.scale) != (second.aligned, second.scale):
        text = wording.shift(first, second)
        claims.append(Claim("shift", text, _resampling_change("aligned", "scale")))
    a, b = ((p.interpolation or "").removesuffix("_exact") for p in (first, second))
    if a != b:
        text = f"A is {first.interpolation}, B {second.interpolation}"
        claims.append(Claim("interpolation", text, _resampling_change("interpolation")))
    means = not {first.interpolation, second.interpolation} & set(PHOTOGRAPH)
    if first.antialias != second.antialias and means:
        which = "A" if not first.antialias else "B"
        text = f"{which} samples without antialias"
        claims.append(Claim("antialias", text, _resampling_change("antialias")))
    rounding = (first.rounded, first.clamped) != (second.rounded, second.clamped)
    if rounding:
        text = f"A {wording.rounds(first)}, B {wording.rounds(second)}"
        claims.append(Claim("rounding", text, _resampling_change("rounded", "clamped")))
    same = not any(claim.kind in ("interpolation", "antialias", "shift") for claim in claims)
    names = ("arithmetic", "interpolation")
    same = same and None not in (first.arithmetic, second.arithmetic)  # findings say why
    if same and any(getattr(first, name) != getattr(second, name) for name in names):
        text = f"A computes by {wording.computes(first, a)}, B by {wording.computes(second, b)}"
        claims.append(Claim("arithmetic", text, _resampling_change(*names, "antialias")))
    return claims


def _resampling_change(*names: str) -> Change:
    def change(a: Twin, b: Twin) -> tuple[Twin, Twin]:
        how, other = a.resampling, b.resampling
        assert how is not None
        assert other is not None
        changes = {name: getattr(other, name) for name in names}
        changed = replace(how, **changes)
        if "rounded" in names or "arithmetic" in names or _works(changed):
            return a, replace(a, resampling=changed)
        exact = replace(how, arithmetic="torch" if "aligned" in names else "exact")
        if "antialias" in names and not _works(replace(exact, **changes)):
            exact = replace(exact, interpolation="bilinear")
        if not _works(exact):  # a filter that only this library has: compare both as they are
            return a, replace(a, resampling=other)
        changed = replace(exact, **changes)
        if not _works(changed):
            return a, replace(a, resampling=other)
        return replace(a, resampling=exact), replace(a, resampling=changed)

    return change


def _works(how: Resampling) -> bool:
    """Whether a library has this resize; only torch and "exact" offer a choice of antialias."""
    bare = replace(how, rounded=True, clamped=False)
    return any(
        replace(candidate, rounded=True, clamped=False) == bare
        for candidate in (*candidates(), *rare_candidates())
    )


def _numbers(first: Preprocessing, second: Preprocessing) -> list[Claim]:
    """Findings about channels, gain, offset, layout and type, if both programs' are known."""
    claims: list[Claim] = []
    if None in (first.gain, second.gain):
        return claims
    if first.channels != second.channels:
        words = {"kept": "RGB", "reversed": "BGR", "gray": "gray", "gray reversed": "gray of BGR"}
        a, b = (words[str(p.channels)] for p in (first, second))
        text = "channels reversed" if {a, b} == {"RGB", "BGR"} else f"A is {a}, B {b}"
        claims.append(Claim("channels", f"{text} (A {a}, B {b})", _channel_change))
    if not _close(first, second):
        text = f"A is {wording.scale(first)}, B {wording.scale(second)}"
        claims.append(Claim("values", text, _value_change))
    arranged = ("layout", "batched", "dtype")
    if any(getattr(first, name) != getattr(second, name) for name in arranged):
        text = f"A returns {wording.layout(first)}, B {wording.layout(second)}"
        axes = (first.layout, first.batched) != (second.layout, second.batched)
        claims.append(Claim("layout", text, lambda a, b: (a, a), always=True, reshapes=axes))
    return claims


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


def _canvas(answer: Preprocessing) -> Any:
    return None if answer.crop is not None else answer.canvas
