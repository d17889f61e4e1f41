"""`compare_pipelines`: two identified programs and their differences, the largest first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpkit.core import checks
from warpkit.validation.pages import can_render
from warpkit.validation.programs import pictures as made
from warpkit.validation.programs.asking import NotKnownError, Program, RefusedError
from warpkit.validation.programs.findings import (
    Drift,
    Finding,
    attribute_findings,
    difference,
    drift,
    mean_drift,
)
from warpkit.validation.programs.pictures import Picture
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.values import CUT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shown:
    """One picture and both programs' results in levels (h, w, C), or None."""

    picture: Picture
    first: Array | None
    second: Array | None


@dataclass(repr=False)
class PipelineComparison:
    """The result of `compare_pipelines`: two programs and their differences, the largest first.

    `.differing` of `.compared` values differ by more than 0.001 levels, by `.largest` at most
    (infinite if the shapes differ). Each of `.findings` has `.kind`, `.message`, and the number of
    values that it changes by itself. `.outputs`: how far a model's results change, if a model was
    given.
    """

    first: Preprocessing
    second: Preprocessing
    findings: list[Finding] = field(default_factory=list)
    differing: int = 0
    compared: int = 0
    largest: float = 0.0
    outputs: Drift | None = None
    shown: list[Shown] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether all values are equal, on every picture."""
        return not self.findings and self.differing == 0

    @property
    def only_last_bits(self) -> bool:
        """Whether all differences come from arithmetic or rounding and are at most one level."""
        return all(finding.is_last_bits for finding in self.findings)

    def __str__(self) -> str:
        if self.equal:
            return f"Both give the same: {self.compared:,} values compared, none differs."
        share = 100 * self.differing / max(1, self.compared)
        if not self.compared:
            lines = ["Nothing could be compared."]
        elif np.isinf(self.largest):
            lines = ["The results have other shapes."]
        else:
            lines = [f"{share:.3g} % of values differ, by up to {self.largest:.3g} levels."]
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
            one = asdict(finding) | {"outputs": finding.outputs and finding.outputs._asdict()}
            if finding.largest is not None and np.isinf(finding.largest):
                one["largest"] = None
            findings.append(one)
        return {
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
    pictures: Sequence[Picture],
    model: Callable[[torch.Tensor], Any] | None,
) -> PipelineComparison:
    """Compare two identified programs on the same pictures (H, W, 3)."""
    a, b = first[0], second[0]
    result = PipelineComparison(a, b)
    asked = [_asked(found, function) for found, function in (first, second)]
    drifts: list[Drift | None] = []
    for picture in pictures:
        numbers = [_result(program, picture) for program in asked]
        levels = [_as_levels(found, n) for found, n in zip((a, b), numbers, strict=True)]
        result.shown.append(Shown(picture, levels[0], levels[1]))
        one, other = numbers
        if one is None or other is None:
            continue
        counts = difference(one, other, a.twin) if a.twin else _differs(one, other, a)
        result.differing += counts[0]
        result.compared += counts[1]
        result.largest = max(result.largest, counts[2])
        if model is not None:
            drifts.append(drift(model, one, other))
    result.outputs = mean_drift(drifts)
    result.findings = attribute_findings(a, b, pictures, model)
    result.findings += _rest(result)
    return result


def _asked(found: Preprocessing, function: Callable[[Any], Any]) -> Program:
    """The program with its known layout, for more calls."""
    program = Program(function, found.takes or "array", lambda words: None)
    program.allowed = 1 << 30
    program.layout, program.batched = found.layout or "CHW", bool(found.batched)
    return program


def _result(program: Program, picture: Picture) -> Array | None:
    """Numbers (C, h, w); None if the program rejects the picture or returns no numbers."""
    try:
        return program(picture)
    except (RefusedError, NotKnownError):
        return None


def _as_levels(found: Preprocessing, numbers: Array | None) -> Array | None:
    """Numbers (C, h, w) as levels (h, w, C), for display."""
    if numbers is None or found.gain is None or found.offset is None:
        return None
    gain, offset = (np.asarray(v)[:, None, None] for v in (found.gain, found.offset))
    if len(numbers) != len(gain):
        return None
    return np.moveaxis((numbers - offset) / gain, 0, -1)


def _differs(one: Array, other: Array, found: Preprocessing) -> tuple[int, int, float]:
    """The counts of `difference` for a program without a twin."""
    counts = difference(one, other, None)
    if found.gain is None or np.isinf(counts[2]):
        return counts
    return counts[0], counts[1], counts[2] / min(map(abs, found.gain))


def _rest(result: PipelineComparison) -> list[Finding]:
    """Findings for unexplained differences: an unknown program, or last bits."""
    found = []
    for letter, program in (("A", result.first), ("B", result.second)):
        reasons = [reason for reason in program.reasons if reason.startswith("Not known")]
        if reasons and (result.differing or not result.compared):
            found.append(Finding("arithmetic", f"of {letter}: {reasons[0]}"))
    if result.differing and not result.findings and not found:
        fine = result.largest <= CUT
        kind = "last bits" if fine else "values"
        text = "values differ, by what no attribute says"
        found.append(Finding(kind, text, result.differing, result.compared, result.largest))
    return found


def as_pictures(name: str, images: Any) -> list[Picture]:
    """A user's images as pictures (H, W, 3) uint8; None: three built-in test pictures."""
    if images is None:
        shapes = ((480, 640), (500, 375), (333, 333))
        return [made.smooth(*shapes[0], 1), made.noise(*shapes[1], 2), made.smooth(*shapes[2], 3)]
    single = isinstance(images, (np.ndarray, torch.Tensor)) and images.ndim == 3
    given = [images] if single or not hasattr(images, "__len__") else list(images)
    if not given:
        checks.fail(name, "images", "at least one image", "none")
    return [_picture(name, f"images[{k}]", image) for k, image in enumerate(given)]


def _picture(name: str, argument: str, image: Any) -> Picture:
    wanted = "a PIL image, an array (H, W, 3) uint8, or a tensor (3, H, W), uint8 or in [0, 1]"
    if isinstance(image, torch.Tensor):
        if image.ndim != 3 or len(image) != 3:
            checks.fail(name, argument, wanted, checks.shape_of(image))
        levels = image.detach().cpu()
        if levels.is_floating_point():
            levels = (levels.float().clamp(0, 1) * 255).round().to(torch.uint8)
        image = levels.movedim(0, -1).numpy()
    elif hasattr(image, "convert"):
        image = np.array(image.convert("RGB"))  # a copy, which torch may overwrite
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3:
        got = getattr(image, "shape", type(image).__name__)
        checks.fail(name, argument, wanted, f"{got}", TypeError)
    if image.shape[-1] != 3:
        checks.fail(name, argument, wanted, f"shape {image.shape}")
    return np.ascontiguousarray(image)
