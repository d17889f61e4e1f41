"""findHomography with method 0: cv2's least squares, and the gradient of the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from tests.support.tolerances import TOLERANCE
from warpkit.opencv import door, homography_fit
from warpkit.opencv.homography import STEPS


def pairs(seed, n, noise=0.0):
    """Points of an image of 640 pixels, and their images under a homography, (n, 2), float32."""
    random = np.random.default_rng(seed)
    matrix = np.eye(3) + random.normal(size=(3, 3)) * [[0.1, 0.1, 20], [0.1, 0.1, 20], [0] * 3]
    matrix[2, :2] = random.normal(size=2) * 1e-4
    src = random.uniform(0, 640, (n, 2))
    dst = carried(matrix, src) + random.normal(size=(n, 2)) * noise
    return src.astype(np.float32), dst.astype(np.float32)


def carried(matrix, points):
    moved = np.c_[points, np.ones(len(points))] @ matrix.T
    return moved[:, :2] / moved[:, 2:]


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("n", [4, 5, 30])
def test_points_are_mapped_as_by_cv2s_matrix(n, noise):
    cv2 = installed_opencv()
    for seed in range(20):
        src, dst = pairs(seed, n, noise)
        truth, mask = cv2.findHomography(src, dst)
        out, found = ours.findHomography(src, dst)
        assert (out.shape, out.dtype, out[2, 2]) == ((3, 3), np.float64, 1), seed
        assert found.dtype == mask.dtype, seed
        assert np.array_equal(found, mask), seed
        most = TOLERANCE["cv2 homography of four" if n == 4 else "cv2 homography pixels"]
        assert np.abs(carried(out, src) - carried(truth, src)).max() < most, seed
        # our sum of squares is the smaller one
        ours_left, cv2s_left = (((carried(m, src) - dst) ** 2).sum() for m in (out, truth))
        assert ours_left <= cv2s_left * (1 + 1e-9) + 1e-9, seed


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("n", [5, 9, 100])
def test_the_fast_path_of_arrays_finds_the_same_minimum(n, noise):
    needs_descent()
    for seed in range(30):
        src, dst = pairs(seed, n, noise)
        assert np.isfinite(homography_fit.fitted(src, dst, STEPS, 3.0)[0]).all(), seed
        matrix, mask = ours.findHomography(src[None].astype(np.float64), dst[:, None])
        batches = torch.from_numpy(src[None]), torch.from_numpy(dst[None])
        truth, wanted = (part[0] for part in ours.findHomography(*batches))  # by the definition
        off = np.abs(carried(matrix, src) - carried(truth.numpy(), src)).max()
        assert off < TOLERANCE["homography of two starts"], seed
        assert np.array_equal(mask, wanted.numpy()), seed


def test_points_that_may_be_collinear_do_not_take_the_fast_path():
    needs_descent()
    src, dst = pairs(0, 9)
    flat = np.stack((src[:, 0], src[:, 0] * 2 + 3), axis=-1)
    flat[0] = src[0]  # all points but one coincide
    level = np.stack((src[:, 0], np.full(9, 7, np.float32)), axis=-1)
    for one, other in ((flat, dst), (level, dst), (src, level), (src * np.inf, dst)):
        assert np.isnan(homography_fit.fitted(one, other, STEPS, 3.0)[0]).all()
    with pytest.raises(ValueError, match="`srcPoints` must be points of positive weight of which"):
        ours.findHomography(flat, dst)


def needs_descent():
    if not door.has_library():
        pytest.skip("no native library")


def test_forms_thresholds_and_degenerate_points_as_in_cv2():
    cv2 = installed_opencv()
    src, dst = pairs(3, 12, 3.0)
    matrix, _ = ours.findHomography(src, dst)
    for threshold in (0.5, 2.0, 0.0, -1.0):
        mask = np.zeros((12, 1), np.uint8)
        _, wanted = cv2.findHomography(src, dst, 0, threshold)
        _, found = ours.findHomography(src[:, None], dst[None], 0, threshold, mask)
        assert found is mask, threshold
        assert np.array_equal(found, wanted), threshold
    assert np.array_equal(ours.findHomography(src.tolist(), dst.astype(np.float64))[0], matrix)
    column = np.float32([[3, 0], [3, 5], [3, 9], [3, 2]])
    for pair in ((column, dst[:4]), (src[:4], column[:, ::-1].copy())):
        assert ours.findHomography(*pair)[0] is None is cv2.findHomography(*pair)[0]
        assert np.array_equal(ours.findHomography(*pair)[1], cv2.findHomography(*pair)[1])


def test_tensors_and_batches():
    made = [pairs(seed, 9, 1.0) for seed in range(3)]
    src, dst = (torch.from_numpy(np.stack(points)) for points in zip(*made, strict=True))
    matrices, masks = ours.findHomography(src, dst)
    assert (matrices.shape, masks.shape) == ((3, 3, 3), (3, 9, 1))
    for k, (one, other) in enumerate(made):
        matrix, mask = ours.findHomography(one, other)
        np.testing.assert_allclose(matrices[k], matrix, rtol=1e-9, atol=1e-12)
        assert np.array_equal(masks[k].numpy(), mask)


@pytest.mark.parametrize(("n", "noise"), [(4, 0.0), (7, 0.0), (7, 2.0)])
def test_the_gradient_is_that_of_the_optimum(n, noise):
    """Compared with differences of the solution; float32 represents steps of 1/64 pixel."""
    src, dst = (
        torch.tensor(np.round(p * 16) / 16, dtype=torch.float64) for p in pairs(5, n, noise)
    )
    weights = torch.tensor([[1.0, 2.0, 0.01], [-1.0, 1.0, 0.02], [100.0, -50.0, 0.0]])

    def value(src, dst):
        return (ours.findHomography(src, dst)[0] * weights).sum()

    both = [src.requires_grad_(), dst.requires_grad_()]
    grads = torch.autograd.grad(value(*both), both)
    step = 2.0**-6
    for which, grad in enumerate(grads):
        for at in ((0, 0), (2, 1), (n - 1, 0)):
            ends = []
            for sign in (1, -1):
                moved = [p.detach().clone() for p in both]
                moved[which][at] += sign * step
                ends.append(value(*moved).item())
            slope = (ends[0] - ends[1]) / (2 * step)
            assert grad[at].item() == pytest.approx(slope, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda s, d: ours.findHomography(s, d, 8),
            "findHomography: `method` must be 0: others select points, which has no gradient",
        ),
        (
            lambda s, d: ours.findHomography(s[:3], d[:3]),
            "findHomography: `srcPoints` must be of shape (N, 2), (N, 1, 2) or (1, N, 2) with N of",
        ),
        (
            lambda s, d: ours.findHomography(s, d[:5]),
            "findHomography: `dstPoints` must be as many points as `srcPoints`, 9, got 5",
        ),
        (
            lambda s, d: ours.findHomography(np.float32([[0, 0], [1, 1], [2, 2], [3, 3]]), d[:4]),
            "findHomography: `srcPoints` must be four points of which no three are on a line",
        ),
        (
            lambda s, d: ours.findHomography(s, d * np.float32(np.nan)),
            "findHomography: `dstPoints` must be finite",
        ),
    ],
)
def test_errors(build, text):
    with pytest.raises((ValueError, TypeError)) as error:
        build(*pairs(1, 9))
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("seed", [65, 73, 88, 114, 119, 122])
def test_inconsistent_pairs_have_a_result_and_a_finite_gradient(seed):
    """Descents on unrelated pairs meet singular equations and diverging matrices."""
    torch.manual_seed(seed)
    src, dst = (torch.rand(6, 2, dtype=torch.float64) * 50 for _ in range(2))
    matrix, _ = ours.findHomography(src.requires_grad_(), dst)
    matrix.sum().backward()
    assert matrix.isfinite().all()
    assert src.grad is not None
    assert src.grad.isfinite().all()
