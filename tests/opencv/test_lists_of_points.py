"""One plan serves lists of points of all lengths: each gets cv2's numbers and its own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from warpkit.engine.binding import plan

cv2 = installed_opencv()

K = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
D = np.array([0.1, -0.02, 0.001, 0.002, 0.01])
BENT = np.array([0.1, -0.02, 0.01, 0.003])
VECTOR, SHIFT = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.1, 4.0])
CALLS = {
    "undistortPoints": (2, lambda cv, p: cv.undistortPoints(p * 400, K, D, P=K)),
    "fisheye.undistortPoints": (2, lambda cv, p: cv.fisheye.undistortPoints(p * 400, K, BENT)),
    "fisheye.distortPoints": (2, lambda cv, p: cv.fisheye.distortPoints(p, K, BENT)),
    "perspectiveTransform": (2, lambda cv, p: cv.perspectiveTransform(p, K)),
    "projectPoints": (3, lambda cv, p: cv.projectPoints(p, VECTOR, SHIFT, K, D)[0]),
    "jacobian": (3, lambda cv, p: cv.projectPoints(p, VECTOR, SHIFT, K, D)[1]),
    "fisheye.projectPoints": (
        3,
        lambda cv, p: cv.fisheye.projectPoints(p, VECTOR, SHIFT, K, BENT)[0],
    ),
}
FORMS = {"rows": lambda p: p[:, None], "one row": lambda p: p[None]}


def of_cv2(name: str, points: Any) -> Any:
    return CALLS[name][1](cv2, points)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
def test_lists_of_all_lengths_have_one_plan(name, form, monkeypatch):
    width, call = CALLS[name]
    as_form, random = FORMS[form], np.random.default_rng(0)
    monkeypatch.setattr(plan, "_plans", {})
    for number in (2, 7, 3, 2500, 40):
        points = as_form(random.random((number, width)))
        mine, theirs = call(ours, points), of_cv2(name, points)
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        assert len(plan._plans) == 1
    before = dict(plan._plans)
    plan._plans.clear()  # the last list's plan is not that of one list
    assert np.array_equal(call(ours, points), mine)
    plan._plans.update(before)
    for tensor in (torch.from_numpy(points), torch.from_numpy(points[..., :9, :, :])):
        assert np.array_equal(call(ours, tensor).numpy(), call(ours, tensor.numpy()))


@pytest.mark.parametrize("name", CALLS)
def test_other_lists_have_their_own_checks(name):
    width, call = CALLS[name]
    random = np.random.default_rng(0)
    for number in (5, 1, 2):
        points = random.random((number, 1, width))
        np.testing.assert_allclose(call(ours, points), of_cv2(name, points), rtol=1e-9, atol=1e-9)
        apart = np.repeat(points, 2, axis=0)[::2]
        assert np.array_equal(call(ours, apart), call(ours, points))
        with pytest.raises(ValueError, match="must be"):
            call(ours, random.random((number, 1, width + 2)))
    with pytest.raises((TypeError, ValueError), match="must be"):
        call(ours, "points")
