"""Least-squares matrices of many points, compared with numpy, Umeyama and cv2."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support import naive_fits
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import assert_three_orders, gradgradcheck
from tests.support.tolerances import TOLERANCE

FITS = {
    "affine": (wk.affine_from_points, naive_fits.affine, 3),
    "similarity": (wk.similarity_from_points, naive_fits.umeyama, 2),
    "perspective": (wk.perspective_from_points, naive_fits.homography, 4),
}
SQUARE = [[0.0, 0], [8, 0], [8, 8], [0, 8]]


def double(values):
    return torch.as_tensor(np.asarray(values, np.float64))


def pairs(n, seed=0, wrong=0.4):
    """Points of an image, and their positions in another view with errors up to `wrong` pixels."""
    random = np.random.default_rng(seed)
    src = random.uniform(0, 90, (n, 2))
    src[:4] = (np.array(SQUARE) * 10 + random.uniform(-5, 5, (4, 2)))[: len(src)]
    camera = np.array([[0.9, 0.3, 20], [-0.2, 1.1, 5], [0.001, -0.0005, 1]])
    seen = np.column_stack((src, np.ones(n))) @ camera.T
    return src, seen[:, :2] / seen[:, 2:] + random.normal(0, wrong, (n, 2))


def close(ours, truth, name="fits float64"):
    truth = np.asarray(truth)
    scale = max(np.abs(truth).max(), 1.0)
    np.testing.assert_allclose(ours.detach().numpy(), truth, rtol=0, atol=TOLERANCE[name] * scale)


COUNTS = [(name, n) for name in FITS for n in (2, 3, 4, 5, 6, 9, 50, 200) if n >= FITS[name][2]]


@pytest.mark.parametrize(("name", "n"), COUNTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_match_numpy(name, n, weighted):
    function, truth, _ = FITS[name]
    for seed in range(4):
        src, dst = pairs(n, seed, wrong=0.0 if n == 4 and name == "perspective" else 0.4)
        weights = np.random.default_rng(seed).uniform(0.1, 3, n) if weighted else np.ones(n)
        given = {"weights": double(weights)} if weighted else {}
        close(function(double(src), double(dst), **given), truth(src, dst, weights))


@pytest.mark.parametrize("name", FITS)
def test_weights_of_zero_exclude_outliers(name):
    function, _, _ = FITS[name]
    src, dst = pairs(12, 3)
    weights = np.ones(12)
    weights[[2, 7]] = 0
    kept = weights > 0
    wild = dst.copy()
    wild[~kept] += 1e4
    ours = function(double(src), double(wild), weights=double(weights))
    close(ours, function(double(src[kept]), double(dst[kept])))
    assert not np.allclose(ours, function(double(src), double(wild)), atol=1)


def test_exact_pairs_give_cv2s_homography():
    cv2 = installed_opencv()
    for seed, n in enumerate((5, 8, 40, 200)):
        src, dst = pairs(n, seed, wrong=0.0)
        truth, _ = cv2.findHomography(src, dst, 0)
        close(wk.perspective_from_points(double(src), double(dst)), truth, "cv2 homography")


def test_least_squares_match_cv2_without_outliers():
    cv2 = installed_opencv()
    src, dst = pairs(30, 1)
    options = {"ransacReprojThreshold": 1e6, "refineIters": 50}
    truth, _ = cv2.estimateAffine2D(src, dst, **options)
    close(wk.affine_from_points(double(src), double(dst)), truth, "cv2 descent")
    truth, _ = cv2.estimateAffinePartial2D(src, dst, **options)
    close(wk.similarity_from_points(double(src), double(dst)), truth, "cv2 descent")


def test_a_similarity_never_mirrors():
    mirrored = double(SQUARE) * torch.tensor([-1.0, 1.0]).double()
    src = double([*SQUARE, [3, 1]])
    dst = src * torch.tensor([-1.0, 1.0]).double() + 0.1
    matrix = wk.similarity_from_points(src, dst)
    close(matrix, naive_fits.umeyama(src.numpy(), dst.numpy(), np.ones(5)))
    assert torch.linalg.det(matrix[:, :2]) > 0
    flat = wk.similarity_from_points(double(SQUARE), mirrored)  # all rotations fit equally badly
    close(flat[:, :2], np.zeros((2, 2)))


@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_a_similarity_may_mirror_if_asked(flip):
    """A batch of one pair of lists that is mirrored and one that is not."""
    src, dst = pairs(9, 3)
    random = np.random.default_rng(0)
    weights = random.uniform(0.1, 3, 9)
    first, second = dst * (flip, 1.0), dst
    targets, points = double(np.stack((first, second))), double(src)
    given = {"weights": double(weights), "allow_reflection": True}
    found, again = (wk.similarity_from_points(points, targets, **given) for _ in range(2))
    assert torch.equal(found, again)
    for matrix, target in zip(found, (first, second), strict=True):
        close(matrix, naive_fits.umeyama(src, target, weights, mirrors=True))
    assert (torch.linalg.det(found[:, :, :2]) > 0).tolist() == [flip > 0, True]
    inputs = points.requires_grad_(), targets.requires_grad_()
    assert gradcheck(lambda a, b: wk.similarity_from_points(a, b, allow_reflection=True), inputs)
    line = double([[0, 0], [3, 1], [6, 2]])  # nothing tells a reflection from a rotation
    turned = wk.similarity_from_points(line, line.flip(-1) + 2, allow_reflection=True)
    close(turned, wk.similarity_from_points(line, line.flip(-1) + 2))
    with pytest.raises(TypeError, match="similarity_from_points: `allow_reflection` must be"):
        wk.similarity_from_points(line, line, allow_reflection=1)  # pyright: ignore


def test_minimal_numbers_of_points_have_the_closed_forms_bits():
    src, dst = (double(p) for p in pairs(4, 2))
    both = torch.stack((dst, src))
    assert torch.equal(
        wk.affine_from_points(src[:3], both[:, :3])[0], wk.affine_from_points(src[:3], dst[:3])
    )
    moved = wk.transform_points(wk.perspective_from_points(src, dst), src)
    assert (moved - dst).abs().max() < 1e-11
    fitted = wk.perspective_from_points(src, dst, weights=torch.ones(4).double())
    close(fitted, wk.perspective_from_points(src, dst), "fits float64")


@pytest.mark.parametrize("name", FITS)
def test_batches_broadcast(name):
    function, _, _ = FITS[name]
    items = [pairs(7, seed) for seed in range(3)]
    src, dst = (double(np.stack(p)) for p in zip(*items, strict=True))
    weights = 0.5 + noise(2, 1, 7)
    out = function(src, dst, weights=weights)
    assert out.shape[:2] == (2, 3)
    for i in range(2):
        for j in range(3):
            one = function(src[j], dst[j], weights=weights[i, 0])
            torch.testing.assert_close(out[i, j], one, rtol=1e-9, atol=1e-9)
    mapped = torch.func.vmap(lambda s, d: function(s, d))(src, dst)
    torch.testing.assert_close(mapped, function(src, dst), rtol=1e-9, atol=1e-9)
    assert function(src.float(), dst.float()).dtype == torch.float32
    assert function(src[:0], dst[:0]).shape[0] == 0


CASES = {
    "noisy": pairs(6, 4),
    "exact": pairs(5, 4, wrong=0.0),
    # an SVD of them would have equal singular values
    "a square on itself": (np.array([*SQUARE, [4, 4]]), np.array([*SQUARE, [4, 4]])),
    "a turned square": (
        np.array([*SQUARE, [4, 4]]),
        np.array([*SQUARE, [4, 4]]) @ [[0, -1], [1, 0]],
    ),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("case", CASES)
def test_gradients_to_points_and_weights(name, case):
    function, _, _ = FITS[name]
    src, dst = (double(p) / 10 for p in CASES[case])
    inputs = [src, dst, 0.5 + noise(len(src))]
    inputs = [x.requires_grad_() for x in inputs]

    def fit(s, d, w):
        return function(s, d, weights=w)

    batched = {"check_batched_grad": case == "exact"}
    assert gradcheck(fit, inputs, check_forward_ad=True, **batched)
    # |x| at the centre can be differentiated once
    if not (name == "perspective" and case.startswith("a ")):
        assert gradgradcheck(fit, inputs)


@pytest.mark.parametrize("name", FITS)
def test_the_gradient_to_a_weight_of_zero_is_the_one_sided_slope(name):
    """Learned weights can thus become positive again."""
    function, _, _ = FITS[name]
    src, dst = (double(p) / 10 for p in pairs(8, 4))
    weights = torch.ones(8).double()
    weights[5], dst[5] = 0.0, dst[5] + 1
    slope = (
        function(src, dst, weights=weights + 1e-7 * (weights == 0))
        - function(src, dst, weights=weights)
    ) / 1e-7
    jacobian = torch.func.jacrev(lambda w: function(src, dst, weights=w))(weights)[..., 5]
    torch.testing.assert_close(jacobian, slope, rtol=1e-4, atol=1e-6)
    assert jacobian.abs().max() > 1e-3


def test_a_homography_has_third_derivatives():
    src, dst = (double(p) / 10 for p in pairs(5, 6))
    direction = noise(5, 2)

    def along(t):
        return wk.perspective_from_points(src, dst + t * direction)[..., 0, 1]

    assert_three_orders(along, 1e-3)


LINE = [[0.0, 0], [1, 1], [2, 2], [5, 5], [3, 3]]
BAD = {
    "a line": (
        "affine_from_points",
        LINE,
        "three points of positive weight that are not on a line",
    ),
    "one place": (
        "similarity_from_points",
        [[3.0, 4]] * 5,
        "two points of positive weight that are apart",
    ),
    "line and one": (
        "perspective_from_points",
        [*LINE[:4], [9, 0]],
        "points of positive weight of which four are in general position",
    ),
    "three places": (
        "perspective_from_points",
        [[0.0, 0], [4, 0], [0, 4], [4, 0], [0, 0]],
        "points of positive weight of which four",
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_degenerate_points_are_named(case, dtype):
    name, points, wanted = BAD[case]
    good = torch.tensor([*SQUARE, [3, 1]], dtype=dtype)
    batch = torch.stack((good, torch.tensor(points, dtype=dtype)))
    with pytest.raises(
        ValueError, match=f"{name}: `src` must be .*{re.escape(wanted)}.* at \\(1,\\)"
    ):
        getattr(wk, name)(batch + 0.1, good)


def test_points_of_weight_zero_do_not_count():
    good = double([*SQUARE, [3, 1]])
    few = torch.tensor([1.0, 1, 0, 0, 0]).double()
    with pytest.raises(
        ValueError, match="affine_from_points: `src` must be at least three points of"
    ):
        wk.affine_from_points(good, good, weights=few)
    with pytest.raises(
        ValueError, match="perspective_from_points: `src` must be points of positive"
    ):
        wk.perspective_from_points(good, good, weights=few)
    close(wk.similarity_from_points(good, good, weights=few), np.eye(2, 3))


@pytest.mark.parametrize(
    "weights", [[1.0, 1, 1, 1, -1], [1.0, 1, 1, 1, np.nan], [1.0, 1, 1, 1, np.inf]]
)
def test_nonfinite_and_negative_weights_are_rejected(weights):
    good = double([*SQUARE, [3, 1]])
    with pytest.raises(ValueError, match="`weights` must be finite and not negative"):
        wk.affine_from_points(good, good, weights=double(weights))


def test_a_target_on_a_line_has_a_homography_if_one_maps_onto_it():
    src = double([*SQUARE, [3, 1], [1, 6]])
    dst = torch.stack((src[:, 0] / (1 + src[:, 1] / 9), 2 * src[:, 0] / (1 + src[:, 1] / 9)), -1)
    moved = wk.transform_points(wk.perspective_from_points(src, dst), src)
    assert (moved - dst).abs().max() < 1e-9
    with pytest.raises(ValueError, match="perspective_from_points: `dst` must be points"):
        wk.perspective_from_points(src, torch.zeros_like(src) + 3)
