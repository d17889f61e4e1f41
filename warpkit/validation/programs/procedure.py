"""`identify`, step by step: layout, values, places, resize, rounding, verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from warpkit.core.progress import progress_bar
from warpkit.core.torch_threads import one_thread
from warpkit.validation.programs import pictures
from warpkit.validation.programs.arithmetic import preference
from warpkit.validation.programs.describe import (
    say_geometry,
    say_resampling,
    say_values,
    say_warp,
)
from warpkit.validation.programs.files import find_file, loses_faint_pixels
from warpkit.validation.programs.geometry import Geometry
from warpkit.validation.programs.observe import Look
from warpkit.validation.programs.program import (
    BYTES,
    MAX_CALLS,
    NotKnownError,
    Program,
    RefusedError,
)
from warpkit.validation.programs.report import Preprocessing
from warpkit.validation.programs.search import VALUES, Pair, Search
from warpkit.validation.programs.seeing import (
    NoRuleError,
    Rules,
    is_whole,
    near_size,
    resized_side,
    rules_of,
)
from warpkit.validation.programs.twin import Twin
from warpkit.validation.programs.values import Measured, measure, measure_roughly
from warpkit.validation.programs.verify import Proof, prove, where_it_fails
from warpkit.validation.programs.warp_twin import WarpTwin
from warpkit.validation.programs.warps import find_warp

FILES = ("file", BYTES)
"""Kinds whose errors are not told if other kinds were tried too."""

ROUNDS = 3
"""The number of proofs whose failures lead to a new search; later failures are reported."""

WARPED = 0.02
"""A fitted warp that more values tell apart is not named."""

UNLIKE = 0.05
"""Levels: resizes that are nearer than this count as one where numbers are coarse; the last bit of
a float16 at white is 0.12."""


def identify_by(
    name: str,
    argument: str,
    function: Callable[[Any], Any],
    kinds: Sequence[str],
    *,
    progress: bool,
) -> Preprocessing:
    """Identify with the first kind of picture for which the program returns numbers and does
    something.

    Raises ValueError if the program (the caller's `argument`) raises an error on every kind."""
    answers: list[Preprocessing] = []
    refused: list[RefusedError] = []
    calls = 0
    with progress_bar("identify", total=MAX_CALLS * len(kinds), visible=progress) as advance:
        for takes in kinds:
            program = Program(function, takes, advance)
            try:
                answer = _identify(program)
            except RefusedError as error:
                refused.append(error)
                calls += program.calls
                continue
            calls += program.calls
            answers.append(answer)
            if answer.known and not _idle(answer, program):
                break
    if not answers:
        raise ValueError(f"{name}: `{argument}` {_errors_text(refused, kinds)}") from refused[
            0
        ].__cause__
    best = min(answers, key=lambda f: (f.pipeline is None, bool(f.differing), _changes_little(f)))
    best.calls = calls
    return best


def _errors_text(refused: Sequence[RefusedError], kinds: Sequence[str]) -> str:
    """The errors of a program that accepts no kind of picture; equal ones are merged."""
    errors = {(type(error.__cause__), str(error.__cause__)) for error in refused}
    others = [error for error, kind in zip(refused, kinds, strict=False) if kind not in FILES]
    reasons = refused[:1] if len(errors) == 1 else others or refused
    return f"{'; '.join(map(str, reasons))} (tried: {' and '.join(map(repr, kinds))})"


def _idle(answer: Preprocessing, program: Program) -> bool:
    """Whether it returns a picture or changes nothing: another kind may tell more."""
    return program.returns_pil or _changes_little(answer)


def _changes_little(answer: Preprocessing) -> bool:
    is_kept = answer.rule == "keep" and answer.crop is None and answer.pad is None
    return is_kept and (answer.jpeg, answer.before, answer.multiple) == (None, None, None)


def _identify(program: Program) -> Preprocessing:
    """All steps for one kind of picture. Raises RefusedError if it accepts no picture."""
    answer = Preprocessing(takes=program.takes)
    repeats = False
    try:
        with torch.no_grad(), one_thread():
            program.check_repeats()
            repeats = True
            _Steps(program, answer).run()
    except NotKnownError as unknown:
        answer.reasons.append(f"Not known: {unknown}")
    except RefusedError as refused:
        if not repeats:
            raise
        answer.reasons.append(f"Not known: it {refused}.")
    else:
        answer.raised = program.said_refusals()
    if program.changes_argument:
        answer.reasons.append("It changes the picture that it is given.")
    answer.calls = program.calls
    return answer


class _Steps:
    """The steps after the layout, and the data that they share."""

    def __init__(self, program: Program, answer: Preprocessing) -> None:
        self.program, self.answer = program, answer
        answer.layout, answer.batched, answer.dtype = program.layout, program.batched, program.dtype
        self.measured: Measured | None = None

    def run(self) -> None:
        """Fill `found`. Raises NotKnownError with the reason if a step finds nothing."""
        try:
            self._by_sizes()
        except (NotKnownError, RefusedError):
            if not self._behind_file() and not self._by_warp():
                raise
        else:
            if self.answer.twin is None and not self.answer.candidates:
                self._by_warp()

    def _by_sizes(self) -> None:
        """Resizes, crops and padding. Raises NotKnownError."""
        measured = self._measured()
        try:
            rules = rules_of(self.program, measured)
        except NoRuleError as error:
            self._say_filter(measured, error.looks[1:])
            raise
        self._search(measured, rules)

    def _measured(self) -> Measured:
        self.measured = measure(self.program)
        say_values(self.answer, self.measured.variants[0])
        return self.measured

    def _behind_file(self) -> bool:
        """Fill `answer` anew if a JPEG file comes first. Raises NotKnownError for what follows."""
        program = self.program
        if not loses_faint_pixels(program):
            return False
        program.allowed += MAX_CALLS
        try:
            roughly = measure_roughly(program)
            rules = rules_of(program, roughly)
            file = find_file(program, rules.geometries, roughly.tolerance)
        except (NotKnownError, RefusedError):
            return False
        if file is None:
            return False
        program.jpeg = file
        answer = self._begin_anew()
        answer.jpeg = file.quality, file.subsampling
        try:
            measured = self._measured()
            self._search(measured, rules.in_levels_of(roughly, measured))
        except NotKnownError as error:
            answer.jpeg = None  # it may come after a resize
            text = f"Where it resizes nothing, it writes and reads {file}. {error}"
            raise NotKnownError(text) from error
        return True

    def _begin_anew(self) -> Preprocessing:
        """`answer` with what the layout tells alone."""
        answer = self.answer
        fresh = Preprocessing(answer.takes, layout=answer.layout, batched=answer.batched)
        fresh.dtype = answer.dtype
        vars(answer).update(vars(fresh))
        return answer

    def _by_warp(self) -> bool:
        """Fill `answer` anew if a warp gives (nearly) all values."""
        warped = None if self.measured is None else find_warp(self.program, self.measured)
        if warped is None:
            return False
        twin, search = warped
        with suppress(NotKnownError):
            proof = prove(search, twin, twin.warp.size, 1)
            if proof.differing <= WARPED * proof.compared and proof.compared >= VALUES:
                self._say_warp(twin, proof)
                return True
        return False

    def _say_warp(self, twin: WarpTwin, proof: Proof) -> None:
        answer = self._begin_anew()
        say_values(answer, twin.values)
        say_warp(answer, twin)
        answer.differing, answer.compared, answer.largest = proof.counts
        answer.twin, answer.pipeline = twin, twin.pipeline()
        if proof.differing:
            answer.arithmetic = None
            answer.reasons.append(
                "Not known: the matrix was fitted, and no simple numbers near it give all values."
            )

    def _search(self, measured: Measured, rules: Rules) -> None:
        search = Search(self.program, measured, rules.geometries, rules.padding)
        search.aside = [(look.height, look.width) for look in rules.aside]
        try:
            self._searched(search, rules.looks, rules.side)
        except NotKnownError:
            if not rules.aside:
                self._say_geometry_if_sure(search, rules.looks)
            raise

    def _searched(self, search: Search, looks: Sequence[Look], side: int) -> None:
        square = [look for look in looks if look.height == look.width]
        side = resized_side(search.geometries[0], square[0].height if square else side)
        search.first(side, side)
        near = near_size(search.geometries[0], side, square[0] if square else looks[0])
        search.refine(near)
        pair = self._best(search)
        if search.trouble:
            search.reconsider(search.trouble, pair)
        proof, twin = None, None
        for number in range(ROUNDS):
            twin = search.twin(search.geometry_of(pair), pair)
            proof = prove(search, twin, near, number, last=number > 0)
            if proof.failed and number < ROUNDS - 1:
                if search.drop_unfit(proof.evidence):
                    pair = self._best(search)
                elif proof.by_content or not search.reconsider(proof.shapes, pair):
                    break
            elif number > 0:
                break
        assert proof is not None
        assert twin is not None
        self._say_twin(twin, looks)
        answer = self.answer
        answer.differing, answer.compared, answer.largest = proof.counts
        if not proof.failed and not search.trouble:
            if proof.compared < VALUES:
                text = f"It refuses most pictures: only {proof.compared:,} values were compared."
                raise NotKnownError(text)
            alike = _alike(search, twin, near) if search.measured.is_coarse else []
            if alike:
                self._say_candidates(search, [twin, *alike], looks)
            else:
                answer.twin, answer.pipeline = twin, twin.pipeline()
            return
        where = where_it_fails(proof, twin)
        shapes = ", ".join(f"{h} x {w}" for h, w in (proof.shapes or search.trouble)[:3])
        place = where or f"on pictures such as {shapes}"
        text = f"It does something else {place}: the arithmetic is not named."
        answer.reasons.append(f"Not known: {text[0].lower()}{text[1:]}")
        if where is None or not proof.failed:
            answer.interpolation = answer.antialias = None
        else:
            answer.twin, answer.pipeline = twin, twin.pipeline()
        answer.arithmetic = None

    def _say_candidates(self, search: Search, twins: Sequence[Twin], looks: Sequence[Look]) -> None:
        """Several programs fit numbers that are too coarse to distinguish them."""
        answer = self.answer
        for twin in twins:
            one = Preprocessing(answer.takes, layout=answer.layout, batched=answer.batched)
            one.dtype = answer.dtype
            _Steps._say_twin(_Steps(self.program, one), twin, looks)
            answer.candidates.append((one, 0.0, 0.0))
        text = f"Not known: {len(twins)} resizes give these numbers, whose last bits are too coarse"
        answer.reasons.append(f"{text} to tell which it is.")
        for name in ("interpolation", "antialias", "arithmetic", "aligned", "clamped", "rounded"):
            if len({getattr(one, name) for one, *_ in answer.candidates}) > 1:
                setattr(answer, name, None)
        answer.arithmetic = None

    def _best(self, search: Search) -> Pair:
        """The pair that is most usual among those that fit."""
        return min(search.pairs, key=lambda pair: _order(pair, self.program.takes))

    def _say_twin(self, twin: Twin, looks: Sequence[Look]) -> None:
        """The twin's attributes in the words of `Preprocessing`."""
        answer, how, values = self.answer, twin.resampling, twin.values
        say_values(answer, values)
        self._say_geometry(twin.geometry, twin.padding, looks)
        say_resampling(answer, how)

    def _say_filter(self, measured: Measured, looks: Sequence[Look]) -> None:
        """If no rule of sizes is known: the filter, where a whole picture fills the result."""
        filled = [look for look in looks if not look.padded and is_whole(look)]
        if len(filled) < 2:
            return
        padding = (0.0,) * len(measured.variants[0].gain)
        first, *others = sorted(filled, key=lambda look: look.height != look.width)
        geometry = Geometry("fixed", first.window)
        search = Search(self.program, measured, [geometry], padding)
        with suppress(NotKnownError, RefusedError):
            search.first(first.height, first.width)
            for look in others:
                search.all_geometries = search.geometries = [Geometry("fixed", look.window)]
                if not search.settle(look.height, look.width):
                    return
            pair = self._best(search)
            self.answer.resized = search.twin(geometry, pair)
            say_resampling(self.answer, pair[0])
            self.answer.arithmetic = None  # too little was compared to claim it

    def _say_geometry_if_sure(self, search: Search, looks: Sequence[Look]) -> None:
        """If no resize fits: the rule and the size, provided that the looks leave only one."""
        rules = {replace(g, **_ROUNDINGS) for g in search.all_geometries}
        if len(rules) == 1:
            self._say_geometry(rules.pop(), search.padding, looks)

    def _say_geometry(
        self, geometry: Geometry, padding: tuple[float, ...], looks: Sequence[Look]
    ) -> None:
        shapes = [(look.height, look.width) for look in looks]
        padded = any(look.padded for look in looks)
        say_geometry(self.answer, geometry, padding, shapes, padded=padded)


_ROUNDINGS = {
    "rounding": "n * v / s floor",
    "limit_rounding": "torchvision",
    "multiple_rounding": "even",
    "crop_rounding": "even",
    "before_rounding": "floor",
    "place": "floor",
}


def _alike(search: Search, twin: Twin, near: tuple[int, int]) -> list[Twin]:
    """The twins of other resizes that fit, and whose levels are not the same."""
    picture = pictures.noise(int(1.3 * near[0]) + 3, int(1.7 * near[1]) + 2, 41)
    levels = twin.levels(picture).numpy()
    twins = []
    for pair in search.pairs:
        other = search.twin(twin.geometry, pair)
        if np.abs(other.levels(picture).numpy() - levels).max() > UNLIKE:
            twins.append(other)
    return twins


def _order(pair: Pair, takes: str) -> tuple[object, ...]:
    how, values = pair
    first = () if how is None else preference(how, takes)
    return (*first, not values.gray_first)
