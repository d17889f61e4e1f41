"""`compare_pipelines`: two identified programs and their differences, the largest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.validation.pages import can_render
from warpkit.validation.programs.findings import Finding, Scene, attribute_findings, in_floats
from warpkit.validation.programs.images import NamedPicture
from warpkit.validation.programs.measuring import (
    Counts,
    Drift,
    difference,
    drift,
    level_of_range,
    mean_drift,
)
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.program import NotKnownError, Program, RefusedError
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.values import CUT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ResultPair:
    """One picture and both programs' results in levels (h, w, C), or None."""

    picture: Picture
    first: Array | None
    second: Array | None


@dataclass(repr=False)
class PipelineComparison:
    """The result of `compare_pipelines`: two programs and their differences, the worst first.

    `.differing` of `.compared` values differ by more than 0.001 levels (0.0015 for floats; for an
    unknown program a level is 1 / 255 of the numbers' range), by `.largest` at most (infinite if
    the shapes differ, or a number is not finite). Each of `.findings` has `.kind`, `.message`, and
    the number of values that it changes by itself. `.outputs`: how far a model's results change, if
    a model was given. `.names`, `.pictures` and `.date` say what was compared, and when.
    """

    first: Preprocessing
    second: Preprocessing
    findings: list[Finding] = field(default_factory=list)
    differing: int = 0
    compared: int = 0
    largest: float = 0.0
    outputs: Drift | None = None
    shown: list[ResultPair] = field(default_factory=list)
    names: tuple[str, str] = ("A", "B")
    pictures: list[str] = field(default_factory=list)
    date: str = field(default_factory=lambda: date.today().isoformat())

    @property
    def equal(self) -> bool:
        """Whether all values of every picture were compared and are equal."""
        return not self.findings and self.differing == 0 and self.compared > 0

    @property
    def only_last_bits(self) -> bool:
        """Whether all differences come from arithmetic or rounding and are at most one level."""
        return self.compared > 0 and all(finding.is_last_bits for finding in self.findings)

    @property
    def unknown(self) -> list[str]:
        """Why programs are not known, each after its letter: equality then holds for the pictures
        alone."""
        result = []
        for letter, program in (("A", self.first), ("B", self.second)):
            reasons = [reason for reason in program.reasons if reason.startswith("Not known")]
            result += [f"{letter}: {reason}" for reason in reasons[:1]]
        return result

    @property
    def summary(self) -> str:
        """The first sentence: how many values differ, and how far."""
        if self.equal:
            return f"Both give the same: {self.compared:,} values compared, none differs."
        if not self.compared:
            return "Nothing could be compared."
        if np.isinf(self.largest):
            return "The results have other shapes, or numbers that do not compare."
        share = 100 * self.differing / self.compared
        return f"{share:.3g} % of values differ, by up to {self.largest:.3g} levels."

    def __str__(self) -> str:
        lines = [self.summary]
        if self.equal:
            lines += [f"On these pictures alone, as {words}" for words in self.unknown]
        lines += [f"  {finding}" for finding in self.findings]
        if self.outputs is not None:
            changed = 100 * self.outputs.changed
            lines.append(
                f"The model's outputs drift by {self.outputs.mean:.3g} (at most "
                f"{self.outputs.largest:.3g}), its first choice in {changed:.3g} % of pictures."
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str | None:
        """The HTML for a notebook's cell; None if the cell should show the text instead."""
        from warpkit.validation.programs.page import render_cell

        return render_cell(self) if can_render() else None

    def as_dict(self) -> dict[str, Any]:
        """Numbers, words and lists, for JSON; infinite numbers become None."""
        finite = None if np.isinf(self.largest) else self.largest
        findings = []
        for finding in self.findings:
            one: dict[str, Any] = asdict(finding)
            one["outputs"] = finding.outputs and finding.outputs._asdict()
            for name in ("largest", "mean"):
                one[name] = None if one[name] == np.inf else one[name]
            findings.append(one)
        return {
            "names": list(self.names),
            "pictures": self.pictures,
            "date": self.date,
            "equal": self.equal,
            "differing": self.differing,
            "compared": self.compared,
            "largest": finite,
            "findings": findings,
            "outputs": self.outputs and self.outputs._asdict(),
            "first": self.first.as_dict(),
            "second": self.second.as_dict(),
        }

    def to_json(self, path: str | Path) -> None:
        """Write the findings and both programs' attributes to a file."""
        Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")

    def to_html(self, path: str | Path) -> None:
        """Write a self-contained page: the findings, both results, and where they differ."""
        from warpkit.validation.programs.page import render

        Path(path).write_text(render(self), encoding="utf-8")


def compare(
    first: tuple[Preprocessing, Callable[[Any], Any]],
    second: tuple[Preprocessing, Callable[[Any], Any]],
    pictures: Sequence[NamedPicture],
    model: Callable[[torch.Tensor], Any] | None,
) -> PipelineComparison:
    """Compare two identified programs on the same pictures (H, W, 3)."""
    a, b = first[0], second[0]
    result = PipelineComparison(a, b, names=(_name_of(first[1]), _name_of(second[1])))
    result.pictures = [one.name for one in pictures]
    programs = [_program_of(answer, function) for answer, function in (first, second)]
    drifts: list[Drift | None] = []
    scenes, missing, counts = [], [], Counts()
    for source in pictures:
        outcomes = [_result(program, source.picture) for program in programs]
        one, other = (None if isinstance(numbers, str) else numbers for numbers in outcomes)
        levels = [_as_levels(answer, n) for answer, n in zip((a, b), (one, other), strict=True)]
        result.shown.append(ResultPair(source.picture, levels[0], levels[1]))
        if one is None or other is None:
            missing.append((source, outcomes))
            continue
        scenes.append(Scene(source, _shared_size(one, other)))
        floats = any(answer.twin is not None and in_floats(answer.twin) for answer in (a, b))
        counts = counts.plus(difference(one, other, _level(a, b, one, other), floats=floats))
        if model is not None:
            drifts.append(drift(model, one, other))
    result.differing, result.compared, result.largest = counts[:3]
    result.outputs = mean_drift(drifts)
    result.findings = attribute_findings(a, b, scenes, model)
    if result.compared or not result.unknown:
        result.findings += _not_compared(missing)
    result.findings += _rest(result)
    return result


def _name_of(function: Any) -> str:
    """A program's name: of a function with its module, of other callables their type's."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{name}"


def _program_of(answer: Preprocessing, function: Callable[[Any], Any]) -> Program:
    """The program with its known layout, for more calls."""
    program = Program(function, answer.takes or "array", lambda words: None)
    program.allowed = 1 << 30
    program.layout, program.batched = answer.layout or "CHW", bool(answer.batched)
    return program


def _result(program: Program, picture: Picture) -> Array | str:
    """Numbers (C, h, w), or why there are none: the program refuses, or returns none."""
    try:
        return program(picture)
    except (RefusedError, NotKnownError) as error:
        return str(error)


def _not_compared(missing: Sequence[tuple[NamedPicture, Sequence[Array | str]]]) -> list[Finding]:
    """A finding for each program, or both, that give no numbers for some pictures."""
    by_who: dict[str, list[tuple[str, str]]] = {}
    for source, outcomes in missing:
        refusals = {
            x: words for x, words in zip("AB", outcomes, strict=True) if isinstance(words, str)
        }
        who = (
            "neither program gives"
            if len(refusals) == 2
            else f"{next(iter(refusals))} does not give"
        )
        by_who.setdefault(who, []).append((source.name, "; ".join(refusals.values())))
    findings = []
    for who, listed in by_who.items():
        more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
        findings.append(
            Finding("values", f"{who} numbers for {listed[0][0]}{more}: {listed[0][1]}")
        )
    return findings


def _shared_size(one: Array, other: Array) -> tuple[int, int] | None:
    size = (one.shape[-2], one.shape[-1])
    return size if size == other.shape[-2:] else None


def _level(a: Preprocessing, b: Preprocessing, one: Array, other: Array) -> Array:
    """The size of a level in the programs' numbers: the first known gain, or by their range."""
    for answer, numbers in ((a, one), (b, other)):
        if answer.gain is not None and len(answer.gain) in (1, len(numbers)):
            return np.abs(np.asarray(answer.gain))
    return level_of_range(one, other)


def _as_levels(answer: Preprocessing, numbers: Array | None) -> Array | None:
    """Numbers (C, h, w) as levels (h, w, C), for display."""
    if numbers is None or answer.gain is None or answer.offset is None:
        return None
    gain, offset = (np.asarray(v)[:, None, None] for v in (answer.gain, answer.offset))
    if len(numbers) != len(gain):
        return None
    return np.moveaxis((numbers - offset) / gain, 0, -1)


def _rest(result: PipelineComparison) -> list[Finding]:
    """Findings for unexplained differences: an unknown program, or last bits."""
    findings = []
    if result.differing or not result.compared:
        findings = [Finding("arithmetic", f"of {words}") for words in result.unknown]
    if not result.compared and not findings and not result.findings:
        findings = [Finding("values", "no value was compared")]
    if result.differing and not result.findings and not findings:
        fine = result.largest <= CUT
        kind = "last bits" if fine else "values"
        text = "values differ, by what no attribute says"
        findings.append(Finding(kind, text, result.differing, result.compared, result.largest))
    return findings
