"""Lenses, polar warps, pyramids and points, compared with recorded results of OpenCV."""

from __future__ import annotations

import numpy as np
import pytest

import warpkit.opencv as ours
from tests.support.opencv_geometry_cases import GEOMETRY, answers, calls
from tests.support.tolerances import TOLERANCE
from warpkit.engine.arithmetic import guarantees, opencv_points
from warpkit.engine.binding import plan

VERSIONS = {"4.14.0": "4.14.0.94", "5.0.0": "5.0.0.93"}
FUNCTIONS = sorted({call[1] for call in calls(ours)})


@pytest.fixture(params=VERSIONS)
def recorded(request, monkeypatch):
    """OpenCV's recorded results by name, as if the version that gave them were installed."""
    monkeypatch.setattr(guarantees, "installed", lambda _: VERSIONS[request.param])
    monkeypatch.setattr(opencv_points, "VECTOR_BYTES", 64)  # recorded with AVX-512
    guarantees.installed_arithmetic.cache_clear()
    monkeypatch.setattr(plan, "_plans", {})  # plans are those of one version
    with np.load(GEOMETRY.format(request.param)) as arrays:
        yield dict(arrays)
    monkeypatch.undo()
    guarantees.installed_arithmetic.cache_clear()


def allowed(function: str, truth: np.ndarray) -> float:
    """The tolerance of a call; 0 for pixels and maps."""
    largest = max(1.0, float(np.abs(truth).max()))
    if function.startswith("fisheye.") and function.endswith("Points"):
        return TOLERANCE["pixels float64"]
    if function == "undistortPoints":
        return TOLERANCE[f"cv2 points {truth.dtype}"] * largest
    if function in ("transform", "perspectiveTransform") and truth.dtype.kind == "f":
        return TOLERANCE["order of sums"] * largest
    return 0.0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_recorded_results_are_reproduced(recorded, function):
    compared = 0
    for call in calls(ours):
        if call[1] != function:
            continue
        for n, out in enumerate(answers(ours, call)):
            truth = recorded[f"{call[0]}/{n}"]
            assert (out.shape, out.dtype) == (truth.shape, truth.dtype), call[0]
            most = allowed(function, truth)
            if most == 0:
                assert np.array_equal(out, truth, equal_nan=True), call[0]
            else:
                assert np.abs(out - truth).max() <= most, call[0]
            compared += out.size
    assert compared >= 100


def test_every_recorded_result_is_compared(recorded):
    names = {f"{call[0]}/{n}" for call in calls(ours) for n in range(len(answers(ours, call)))}
    assert names == set(recorded)
