"""docs/exporting.md names every public function and agrees with data/exports.csv."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import pytest

import warpkit
from tests.support import exported_calls, exported_face_calls, exported_pixel_calls
from warpkit import attacks, camera, flow, indexing, nn, opencv, transforms
from warpkit.opencv import fisheye

CALLS = [*exported_pixel_calls.calls(), *exported_calls.calls(), *exported_face_calls.calls()]
ROOMS = {
    "": warpkit,
    "attacks.": attacks,
    "camera.": camera,
    "flow.": flow,
    "indexing.": indexing,
    "nn.": nn,
    "opencv.": opencv,
    "opencv.fisheye.": fisheye,
    "transforms.": transforms,
}
MADE = {"attacks.Pipeline", "attacks.Photometric"}
"""Classes whose objects are called on images, beside those of nn and transforms."""


def script() -> ModuleType:
    """Load scripts/record exports, without running the imports that only `compare` needs."""
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    return import_module("scripts.commands.record.exports")


def functions(prefix: str, room: ModuleType) -> list[str]:
    """The names of a module that are called with tensors or numbers."""
    listed = getattr(room, "__all__", None) or [
        name
        for name, value in vars(room).items()
        if getattr(value, "__module__", "") == room.__name__
    ]
    called = prefix in ("nn.", "transforms.")
    return [
        prefix + name
        for name in listed
        if not name.startswith("_")
        and (inspect.isroutine(getattr(room, name)) or called or prefix + name in MADE)
    ]


@pytest.mark.parametrize("prefix", ROOMS)
def test_every_public_function_is_exported_or_listed_as_unsupported(prefix: str):
    names = {call.function for call in CALLS} | set(exported_calls.NOT_CALLED)
    wanted = functions(prefix, ROOMS[prefix])
    assert wanted
    assert not set(wanted) - names


def test_the_table_has_exactly_the_calls_and_no_failure():
    made = script()
    rows = {(row["function"], row["call"], row["dynamic"]): row for row in made.rows()}
    assert set(rows) == set(map(made.key_of, CALLS))
    assert len(CALLS) == len(rows)
    for row in rows.values():
        assert row["result"] == "refused" or float(row["largest"]) <= made.EQUAL, row
        assert row["result"] in ("exported", "refused"), row
    assert len([row for row in rows.values() if row["result"] == "exported"]) > 120


def test_the_page_agrees_with_the_table():
    made = script()
    text = made.PAGE.read_text(encoding="utf-8")
    assert made.page_text(text) == text, "scripts/record exports page"
