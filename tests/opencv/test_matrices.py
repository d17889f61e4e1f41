"""Matrices in `warpkit.opencv`: cv2's bits, degenerate points, and gradients."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

import warpkit as wk
import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from warpkit.opencv import warpAffine

CALLS = 10_000
"""Of each function, in one batch; cv2 is asked call by call."""


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def same_bits(batch, each):
    """How many of the calls differ in any bit, including the sign of zeros."""
    truth = np.stack(list(each))
    assert (batch.shape, batch.dtype) == (truth.shape, truth.dtype)
    calls = len(truth)
    return int((bits(batch).reshape(calls, -1) != bits(truth).reshape(calls, -1)).any(1).sum())


def points(seed, n):
    """Typical corners: whole pixels, fractions and small quads, many of them degenerate."""
    random = np.random.default_rng(seed)
    whole = random.integers(0, 1000, (CALLS // 4, n, 2))
    small = random.integers(0, 4, (CALLS // 4, n, 2))
    fractions = random.random((CALLS // 4, n, 2)) * 1000
    near = random.integers(0, 1000, (CALLS // 4, 1, 2)) + random.normal(size=(CALLS // 4, n, 2))
    return np.concatenate((whole, small, fractions, near)).astype(np.float32)


def test_rotations_have_cv2s_bits():
    cv2 = installed_opencv()
    random = np.random.default_rng(1)
    centers = (random.random((CALLS, 2)) * 1000 - 300).astype(np.float32)
    angles = random.random(CALLS) * 2000 - 1000
    angles[: CALLS // 4] = random.integers(-720, 721, CALLS // 4)
    scales = random.random(CALLS) * 3
    batch = ours.getRotationMatrix2D(*map(torch.from_numpy, (centers, angles, scales))).numpy()
    rows = zip(centers.tolist(), angles.tolist(), scales.tolist(), strict=True)
    assert same_bits(batch, (cv2.getRotationMatrix2D(*row) for row in rows)) == 0
    truth = cv2.getRotationMatrix2D((0.1, -7.3), -200.25, 0.4)
    assert np.array_equal(ours.getRotationMatrix2D((0.1, -7.3), -200.25, 0.4), truth)


def test_affines_have_cv2s_bits():
    cv2 = installed_opencv()
    src, dst = points(2, 3), points(3, 3)
    batch = ours.getAffineTransform(src, dst)
    truth = [cv2.getAffineTransform(*pair) for pair in zip(src, dst, strict=True)]
    assert same_bits(batch, truth) == 0
    assert sum(not matrix.any() for matrix in truth) > 100  # those of collinear points


def test_perspectives_have_cv2s_bits():
    """Also if the equations for a last entry of 1 are singular, as in one of ten calls here."""
    cv2 = installed_opencv()
    src, dst = points(4, 4), points(5, 4)
    batch = ours.getPerspectiveTransform(torch.from_numpy(src), torch.from_numpy(dst)).numpy()
    truth = np.stack([cv2.getPerspectiveTransform(*pair) for pair in zip(src, dst, strict=True)])
    assert 100 < (truth[:, 2, 2] != 1).sum() < CALLS // 4
    assert same_bits(batch, truth) == 0


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_small_entries_are_as_accurate_as_cv2s(kind):
    """OpenCV's issue 26916: entries of 8e-7, where an error of 1e-14 moves a corner by 2e-8."""
    cv2 = installed_opencv()
    src, dst = map(np.float32, ONE_MATRIX["the origin goes to infinity"])
    out = np.asarray(ours.getPerspectiveTransform(kind(src), kind(dst)))
    assert np.array_equal(bits(out), bits(cv2.getPerspectiveTransform(src, dst)))
    moved = np.c_[src, np.ones(4)].astype(float) @ out.T
    assert np.abs(moved[:, :2] / moved[:, 2:] - dst).max() < 1e-11


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_have_cv2s_bits(dtype):
    cv2 = installed_opencv()
    random = np.random.default_rng(6)
    matrices = random.normal(size=(CALLS, 2, 3)) * random.choice([1e-3, 1, 100], (CALLS, 1, 1))
    matrices[: CALLS // 2] = ours.getAffineTransform(points(7, 3), points(8, 3))[: CALLS // 2]
    matrices = matrices.astype(dtype)
    batch = ours.invertAffineTransform(torch.from_numpy(matrices)).numpy()
    truth = [cv2.invertAffineTransform(matrix) for matrix in matrices]
    assert same_bits(batch, truth) == 0
    assert sum(not matrix.any() for matrix in truth) > 100  # those of singular matrices
    assert np.array_equal(ours.invertAffineTransform(matrices[-1]), truth[-1])
    swapped = ours.invertAffineTransform(matrices[-1].astype(matrices.dtype.newbyteorder(">")))
    assert np.array_equal(swapped, truth[-1])
    assert swapped.dtype == dtype


SQUARE = [[0, 0], [10, 0], [10, 8], [0, 8]]
ONE_MATRIX = {
    "the origin goes to infinity": (
        [[320, 512], [960, 512], [0, 1024], [1280, 1024]],
        [[0, 0], [1280, 0], [0, 1024], [1280, 1024]],
    ),
    "three of dst on a line": (SQUARE, [[0, 0], [1, 0], [2, 0], [1, 5]]),
    "two of dst are one": (SQUARE, [[0, 0], [0, 0], [20, 10], [0, 20]]),
    "three of src on a line": ([[0, 0], [1, 0], [2, 0], [1, 5]], SQUARE),
}
SEVERAL = {
    "dst on a line": (SQUARE, [[0, 0], [1, 1], [2, 2], [3, 3]]),
    "dst is a side": (SQUARE, [[7, 0], [7, 0], [7, 20], [7, 20]]),
    "dst is a point": (SQUARE, [[3, 4]] * 4),
    "src on a line": ([[0, 0], [1, 1], [2, 2], [3, 3]], SQUARE),
    "all are one": ([[0, 0]] * 4, [[0, 0]] * 4),
}


@pytest.mark.parametrize("name", ONE_MATRIX | SEVERAL)
def test_degenerate_quads_are_solved_as_by_cv2(name):
    cv2 = installed_opencv()
    src, dst = map(np.float32, (ONE_MATRIX | SEVERAL)[name])
    truth, out = cv2.getPerspectiveTransform(src, dst), ours.getPerspectiveTransform(src, dst)
    assert np.array_equal(bits(out), bits(truth))
    moved = np.c_[src, np.ones(4)].astype(float) @ out.T  # w (u, v, 1), where w may be 0
    assert np.abs(moved[:, :2] - moved[:, 2:] * dst).max() < 1e-9


def test_degenerate_triangles_and_matrices_give_zeros_as_in_cv2():
    line, good = np.float32([[0, 0], [1, 1], [2, 2]]), np.float32([[0, 0], [4, 0], [0, 3]])
    assert not ours.getAffineTransform(line, good).any()
    assert not ours.invertAffineTransform(np.array([[1.0, 2, 3], [2, 4, 1]])).any()
    for function, bad in (
        (lambda p: ours.getAffineTransform(p, torch.from_numpy(good)), line),
        (ours.invertAffineTransform, np.float32([[1, 2, 3], [2, 4, 1]])),
        (lambda p: ours.getPerspectiveTransform(p, p + 1), np.zeros((4, 2), np.float32)),
    ):
        tensor = torch.from_numpy(bad).requires_grad_()
        (grad,) = torch.autograd.grad(function(tensor).sum(), tensor)
        assert grad.eq(0).all()


def test_points_and_results_have_cv2s_shapes_and_types():
    cv2 = installed_opencv()
    src = np.float32([[0, 0], [9, 1], [8, 7], [1, 6]])
    dst = np.float32([[1, 2], [7, 0], [9, 9], [0, 5]])
    for name, n in (("getAffineTransform", 3), ("getPerspectiveTransform", 4)):
        truth = getattr(cv2, name)(src[:n], dst[:n])
        function = getattr(ours, name)
        assert np.array_equal(function(src[:n, None], dst[None, :n]), truth)
        assert np.array_equal(function(src[:n].tolist(), dst[:n].astype(np.float64)), truth)
        for dtype in (torch.float32, torch.float64):
            out = function(torch.tensor(src[:n], dtype=dtype), dst[:n])
            assert out.dtype == torch.float64, (name, n, dtype)
            assert np.array_equal(out.numpy(), truth), (name, n, dtype)
    for method in (None, cv2.DECOMP_LU, cv2.DECOMP_SVD, cv2.DECOMP_QR, 16, 17):
        truth = cv2.getPerspectiveTransform(src, dst, solveMethod=method)
        out = ours.getPerspectiveTransform(src, dst, solveMethod=method)
        assert np.abs(out - truth).max() < (1e-9 if method else 1e-300), method
    with pytest.raises(ValueError, match="`solveMethod` must be DECOMP_LU, _SVD, _QR, _NORMAL or"):
        ours.getPerspectiveTransform(src, dst, cv2.DECOMP_EIG)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_inverse_is_written_to_the_same_output_as_by_cv2(dtype):
    cv2 = installed_opencv()
    matrix = np.array([[0.9, 0.3, -2.0], [-0.25, 1.1, 3.0]])
    for given in (None, 1, (), np.zeros((2, 3), dtype), np.zeros((3, 3))):
        pair = [(matrix, given.copy() if isinstance(given, np.ndarray) else given) for _ in "ab"]
        truth = cv2.invertAffineTransform(*pair[0])
        with pytest.warns(UserWarning, match="`iM`") if type(given) is int else nullcontext():
            out = ours.invertAffineTransform(*pair[1])
        assert np.array_equal(out, truth)
        assert (out is pair[1][1]) == (truth is pair[0][1])
    assert np.array_equal(ours.invertAffineTransform(matrix, iM=None), truth)
    with pytest.raises(TypeError, match="invertAffineTransform: `iM` must be a ndarray, got list"):
        ours.invertAffineTransform(matrix, [1])


def test_gradients_match_the_exact_formulas():
    """For points that float32 represents, where both are the same function."""
    src = torch.tensor(SQUARE, dtype=torch.float64).requires_grad_()
    dst = torch.tensor([[1, 2], [7, 0], [9, 9], [0, 5]], dtype=torch.float64).requires_grad_()
    angle = torch.tensor(30.0, dtype=torch.float64).requires_grad_()
    center = torch.tensor([3.0, 4.0]).requires_grad_()
    turn = wk.rotation_matrix((3.0, 4.0), 30.0, torch.tensor(1.5).double()).requires_grad_()
    for function, exact, inputs in (
        (ours.getPerspectiveTransform, wk.perspective_from_points, (src, dst)),
        (
            lambda s, d: ours.getAffineTransform(s[:3], d[:3]),
            lambda s, d: wk.affine_from_points(s[:3], d[:3]),
            (src, dst),
        ),
        (
            lambda c, a: ours.getRotationMatrix2D(c, a, 1.5),
            lambda c, a: wk.rotation_matrix(c.double(), a, 1.5),
            (center, angle),
        ),
        (ours.invertAffineTransform, wk.invert, (turn,)),
    ):
        value, truth = function(*inputs), exact(*inputs)
        torch.testing.assert_close(value, truth, rtol=0, atol=1e-12)
        weight = torch.linspace(-1, 1, value.numel(), dtype=torch.float64).reshape(value.shape)
        for mine, wanted in zip(
            torch.autograd.grad((value * weight).sum(), inputs),
            torch.autograd.grad((truth * weight).sum(), inputs),
            strict=True,
        ):
            assert wanted.any()
            torch.testing.assert_close(mine, wanted, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_a_matrix_of_norm_1_is_that_of_the_homography():
    src, dst = (torch.tensor(p).double() for p in ONE_MATRIX["the origin goes to infinity"])
    at = torch.tensor([700.0, 800.0]).double()

    def moved(make):
        return lambda s: wk.transform_points(make(s, dst), at)

    mine, wanted = (
        torch.autograd.functional.jacobian(moved(make), src)
        for make in (ours.getPerspectiveTransform, wk.perspective_from_points)
    )
    torch.testing.assert_close(mine, wanted, rtol=1e-8, atol=1e-8)


def test_torchs_transforms_call_the_exact_functions():
    src = torch.tensor(SQUARE, dtype=torch.float64).expand(2, 4, 2)
    batch = torch.func.vmap(ours.getPerspectiveTransform)(src, src + 1)
    assert torch.equal(batch, wk.perspective_from_points(src, src + 1))
    slope = torch.func.jacfwd(lambda a: ours.getRotationMatrix2D((1.0, 2.0), a, 1.0))
    angle = torch.tensor(30.0, dtype=torch.float64)
    truth = torch.func.jacfwd(lambda a: wk.rotation_matrix((1.0, 2.0), a))
    assert torch.equal(slope(angle), truth(angle))
    kinds = []
    torch.func.vmap(lambda x: kinds.append(type(ours.getRotationMatrix2D((1, 2), 3, 1))) or x)(
        torch.zeros(2)
    )
    assert kinds == [np.ndarray]  # numbers still give arrays


def test_a_pipeline_with_these_matrices_has_cv2s_pixels():
    """Crops for poses, on noise, where a wrong last bit of the matrix changes pixels."""
    cv2 = installed_opencv()
    random = np.random.default_rng(9)
    image = random.integers(0, 256, (200, 220, 3), dtype=np.uint8)
    for _ in range(50):
        src = (random.random((3, 2)) * 200).astype(np.float32)
        dst = (random.random((3, 2)) * 64).astype(np.float32)
        truth = cv2.warpAffine(image, cv2.getAffineTransform(src, dst), (64, 64), flags=0)
        out = warpAffine(image, ours.getAffineTransform(src, dst), (64, 64), flags=0)
        assert np.array_equal(out, truth)


def test_corners_of_boxes_have_cv2s_bits():
    cv2 = installed_opencv()
    random = np.random.default_rng(9)
    centers, sizes = random.normal(size=(CALLS, 2)) * 100, random.uniform(0, 100, (CALLS, 2))
    angles = random.uniform(-400, 400, CALLS)
    angles[::3] = random.integers(-8, 9, len(angles[::3])) * 45
    centers[::4], sizes[::4] = centers[::4].round(), sizes[::4].round()
    parts = [p.astype(np.float32) for p in (centers, sizes, angles)]
    batch = ours.boxPoints(tuple(map(torch.from_numpy, parts)))
    truth = [
        cv2.boxPoints((center, size, float(angle)))
        for center, size, angle in zip(*(p.tolist() for p in parts), strict=True)
    ]
    assert same_bits(batch.numpy(), truth) == 0
    box = cv2.minAreaRect(np.float32([[1, 2], [9, 4], [7, 9], [0, 6]]))
    out = np.zeros((4, 2), np.float32)
    assert ours.boxPoints(box, out) is out
    assert np.array_equal(bits(out), bits(cv2.boxPoints(box)))


def test_corners_have_the_gradient_of_the_rotation():
    center, size = torch.tensor([3.0, 4.0]).double(), torch.tensor([6.0, 2.0]).double()
    angle = torch.tensor(30.0, dtype=torch.float64)
    parts = [p.requires_grad_() for p in (center, size, angle)]
    rows = [
        torch.autograd.grad(c, parts, retain_graph=True) for c in ours.boxPoints(parts).flatten()
    ]
    jacobian = [torch.stack(column) for column in zip(*rows, strict=True)]
    cosine, sine, degree = np.cos(np.pi / 6), np.sin(np.pi / 6), np.pi / 180
    signs = np.array([[-1, 1], [-1, -1], [1, -1], [1, 1]])
    turn = np.array([[cosine, -sine], [sine, cosine]])
    np.testing.assert_allclose(jacobian[0], np.tile(np.eye(2), (4, 1)))
    by_size = turn[None] * signs[:, None] / 2
    np.testing.assert_allclose(jacobian[1], by_size.reshape(8, 2), atol=1e-12)
    slope = np.array([[-sine, -cosine], [cosine, -sine]]) * degree
    by_angle = (signs * [3, 1]) @ slope.T
    np.testing.assert_allclose(jacobian[2], by_angle.flatten(), atol=1e-12)


def test_corners_under_forward_mode_and_vmap():
    center = torch.tensor([[3.0, 4], [0, 0]], dtype=torch.float64)
    size, angles = torch.tensor([6.0, 2]).double(), torch.tensor([30.0, -75]).double()
    made = torch.func.vmap(lambda c, a: ours.boxPoints((c, size, a)))(center, angles)
    np.testing.assert_allclose(made, ours.boxPoints((center, size, angles)), atol=1e-5)
    slope = torch.func.jvp(
        lambda a: ours.boxPoints((center, size, a)), (angles,), (angles * 0 + 1,)
    )
    grid = [ours.boxPoints((center, size, angles + step)) for step in (0.5, -0.5)]
    np.testing.assert_allclose(slope[1], grid[0] - grid[1], atol=1e-4)


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ((1, 2, 3), "boxPoints: `box` must be (x, y) or of shape (..., 2)"),
        (((1, 2), (3, 4)), "boxPoints: `box` must be ((x, y), (w, h), angle)"),
        (((1, 2), (3, 4), "x"), "boxPoints: `box` must be a number"),
    ],
)
def test_errors_of_box_points(box, text):
    with pytest.raises((ValueError, TypeError)) as error:
        ours.boxPoints(box)
    assert str(error.value).startswith(text)
