"""The names and types in signatures match what the functions check."""

from __future__ import annotations

import ast
import inspect
from typing import get_args

import pytest

from tests.house import mistakes
from tests.support import ROOT
from warpkit import types
from warpkit.alignment.arguments import LOSSES
from warpkit.alignment.models import MODELS
from warpkit.attacks.descent import STEPS
from warpkit.attacks.norm_ball import NORMS
from warpkit.attacks.processors.program import LIBRARIES
from warpkit.engine import backends
from warpkit.engine.arithmetic import resize
from warpkit.engine.backends import resizing
from warpkit.engine.definitions import rules
from warpkit.engine.definitions.jpeg import SAMPLING
from warpkit.engine.definitions.lens_models import COUNTS
from warpkit.engine.definitions.resize import SUPPORT
from warpkit.engine.definitions.rule_names import ALIASES
from warpkit.engine.definitions.splines import is_spline
from warpkit.flow.splatting import MODES
from warpkit.letterboxing import PLACES, ROUNDINGS
from warpkit.nn import NUMBERS
from warpkit.validation.programs.program import TAKES
from warpkit.warp_options import IMAGE_GRADIENTS

NAMES = {
    "Interpolation": [name for name in rules.TAPS if not is_spline(name)],
    "WarpInterpolation": rules.TAPS,
    "BorderName": (*rules.BORDERS, *ALIASES),
    "Arithmetic": rules.ARITHMETICS,
    "FaceArithmetic": ("auto", *rules.ARITHMETICS),
    "Filter": {f for name in resize.RESIZE_ARITHMETICS for f in resize.filters_of(name)},
    "ResizeArithmetic": ("exact", *resize.OPENCV, "pillow", "torchvision", *resize.ZOOMS),
    "AxesArithmetic": ("exact", *resize.ZOOMS),
    "Continuation": (*resize.ZOOM_BORDERS, "border"),
    "FaceResizeArithmetic": ("auto", "exact", *resize.OPENCV),
    "BackendName": ("auto", *backends.BACKENDS),
    "ResizeBackendName": ("auto", *resizing.BACKENDS),
    "ImageGradient": IMAGE_GRADIENTS,
    "AlignmentModel": MODELS,
    "AlignmentLoss": LOSSES,
    "LensModel": COUNTS,
    "SplatMode": MODES,
    "Place": PLACES,
    "RoundingRule": ROUNDINGS,
    "Transformer": NUMBERS,
    "Norm": NORMS,
    "StepName": STEPS,
    "Subsampling": SAMPLING,
    "Library": LIBRARIES,
    "Takes": ("auto", *TAKES),
}


@pytest.mark.parametrize("name", NAMES)
def test_literal_types_name_the_accepted_choices(name):
    assert set(get_args(getattr(types, name))) == set(NAMES[name])


def test_antialias_filters_have_a_support():
    assert set(SUPPORT) < set(get_args(types.Filter))


def lines(table: str) -> list[str]:
    """The source lines of the calls in a table of `mistakes.py`."""
    text = inspect.getsource(mistakes)
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table:
            assert isinstance(node.value, ast.List)
            return [ast.unparse(call).removeprefix("lambda: ") for call in node.value.elts]
    raise AssertionError(table)


@pytest.mark.parametrize("call", mistakes.MISTAKES, ids=lines("MISTAKES"))
def test_functions_reject_what_pyright_rejects(call):
    with pytest.raises((TypeError, ValueError)):
        call()


@pytest.mark.parametrize("call", mistakes.CALLS, ids=lines("CALLS"))
def test_functions_accept_what_pyright_accepts(call):
    call()


def test_pyright_checks_the_file_of_mistakes():
    """So `scripts/test` fails if pyright accepts one of them."""
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'include = ["warpkit", "tests/house/mistakes.py"]' in settings
    text = (ROOT / "tests" / "house" / "mistakes.py").read_text()
    assert text.count("  # pyright: ignore[report") == len(mistakes.MISTAKES)
    assert "# pyright: reportUnnecessaryTypeIgnoreComment=error" in text
