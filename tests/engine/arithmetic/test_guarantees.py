"""The guarantees hold for OpenCV on x86-64, and are not claimed for other processors."""

from __future__ import annotations

import platform

import pytest

from tests.support.inputs import noise
from warpkit import validation
from warpkit.engine.arithmetic.guarantees import guaranteed, guaranteed_resize
from warpkit.engine.cpu.native_library import LIBRARY
from warpkit.validation import report
from warpkit.validation.suite import Setting

WARP = {"dtype": "uint8", "channels": 3, "interpolation": "bilinear", "border": "constant"}
RESIZE = {"dtype": "uint8", "channels": 3, "interpolation": "bilinear"}
ROWS = (Setting("affine", "bilinear", "constant", "uint8", 3),)


@pytest.mark.parametrize(
    ("machine", "where"),
    [
        ("x86_64", "everywhere"),
        ("AMD64", "everywhere"),  # Windows' name
        ("aarch64", "nowhere"),
        ("arm64", "nowhere"),
    ],
)
def test_the_processor_of_the_installed_opencv_decides(machine, where, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    for found in (
        guaranteed("5.0.0", **WARP),
        guaranteed("4.14.0", **WARP),
        guaranteed_resize("opencv5", **RESIZE),
        guaranteed_resize("opencv4_ipp", **RESIZE),
        guaranteed_resize("pillow", **{**RESIZE, "dtype": "float32"}),
    ):
        assert found.where == where
        assert (machine in found.reason and "x86-64" in found.reason) == (where == "nowhere")
    assert guaranteed_resize("pillow", **RESIZE).where == "everywhere"  # bytes: on every processor
    # results recorded on x86-64 are guaranteed on every processor
    assert guaranteed("5.0.0", **WARP, processor="x86_64").where == "everywhere"
    assert guaranteed_resize("opencv5", **RESIZE, processor="x86_64").where == "everywhere"


def test_the_parity_report_says_which_processors_pixels_are_guaranteed(monkeypatch):
    assert LIBRARY is not None  # open it first: under another processor's name it would be rejected
    pytest.importorskip("cv2")
    pytest.importorskip("rich")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(report, "settings", lambda: ROWS)
    found = validation.parity_suite([noise(3, 90, 130).float()])
    assert found.passed
    assert not found.promised
    reason = "the pixels are those of OpenCV on x86-64; its aarch64 build has others"
    assert f"nothing is promised beside OpenCV {found.environment['opencv']} ({reason})" in str(
        found.verdict
    )
    rows = [row for row in found.resizes if row.setting.library.startswith("opencv")]
    assert {row.promise.reason for row in rows} == {reason}
    assert f"not promised: {reason}" in " ".join(found.to_table().split())
