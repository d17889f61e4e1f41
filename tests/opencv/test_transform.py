"""cv2.transform in `warpkit.opencv`, bit for bit: every type, shape and view."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.opencv.test_geometry import TYPES, picture
from tests.support.installed_opencv import installed_opencv
from tests.support.opencv_cases import assert_same_arrays
from warpkit.engine.arithmetic import opencv_points


@pytest.fixture
def cv2():
    return installed_opencv()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_vectors_are_transformed_as_by_cv2(cv2, columns, dtype):
    random = np.random.default_rng(columns)
    for rows, more in product((1, 2, 3, 4, 5), (0, 1)):
        values = picture(dtype, (32, 40), columns, seed=rows)
        matrix = random.normal(0, 0.5, (rows, columns + more))
        matrix[:, columns:] *= 30
        found, wanted = ours.transform(values, matrix), cv2.transform(values, matrix)
        assert_same_arrays(found, wanted, (rows, more))
    diagonal = np.diag(random.normal(0.6, 0.3, columns))
    values = picture(dtype, (32, 40), columns)
    assert_same_arrays(ours.transform(values, diagonal), cv2.transform(values, diagonal))


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_are_transformed_like_arrays(dtype):
    """The kernel is compared with its definition, also for views, which OpenCV reads row by row."""
    random = np.random.default_rng(5)
    for columns, rows in [*product(range(1, 6), range(1, 6)), *[(3, 3)] * 20]:
        shape = [int(n) for n in random.integers(1, 40, 2)]
        values = picture(dtype, (2 * shape[0], shape[1] + 3), columns, seed=rows)
        values = values.reshape(2 * shape[0], shape[1] + 3, columns)
        matrix = random.normal(0, 0.6, (rows, columns + 1))
        matrix[:, columns] *= 3e3
        for view in (values, values[::2, 1:-2], values[:, ::2], values[:1]):
            wanted = opencv_points.transform(
                torch.from_numpy(view), torch.from_numpy(matrix), ours.installed_arithmetic()
            )
            found = ours.transform(view, matrix)
            case = columns, rows, view.shape
            assert_same_arrays(found.reshape(wanted.shape), wanted.numpy(), case)


@pytest.mark.parametrize(
    ("dtype", "small", "large"), [(np.float32, 1e-7, 2e-7), (np.float64, 2e-16, 3e-16)], ids=str
)
def test_a_nearly_diagonal_matrix_is_treated_as_diagonal(cv2, dtype, small, large):
    for beside in (small, large):
        values = np.full((1, 1, 2), 1e6, dtype)
        matrix = np.array([[1.0, beside], [0, 1.0]])
        truth = cv2.transform(values, matrix)
        assert (truth[0, 0, 0] == 1e6) == (beside == small)
        assert_same_arrays(ours.transform(values, matrix), truth)


@pytest.mark.parametrize("dtype", TYPES)
def test_pixels_after_the_last_whole_vector_match_cv2(cv2, dtype):
    """Of 32 pixels, those after whole vectors go in pairs, and the last one or two alone.

    Another order of the sum is off by 1 in about one of a thousand values.
    """
    random = np.random.default_rng(4)
    for count in [*range(1, 36)] * 6:
        values = picture(dtype, (2, count + 9), 3, seed=int(random.integers(1 << 30)))
        values = values[: 1 + count % 2, :count]
        matrix = random.normal(0, 0.6, (3, 4))
        matrix[:, 3] = random.normal(9_000, 6_000, 3)
        assert_same_arrays(ours.transform(values, matrix), cv2.transform(values, matrix), count)
    values, matrix = picture(dtype, (1, 70), 3), random.normal(0, 0.6, (3, 4))
    for bias in (2e9, 3e9, -3e9, 1e12, np.inf):
        matrix[:, 3] = bias
        assert_same_arrays(ours.transform(values, matrix), cv2.transform(values, matrix), bias)


def test_half_a_level_is_added_before_or_after_rounding_the_bias(cv2):
    """For bytes, three channels to three: before in whole vectors, after in other pixels."""
    biases = np.float32((np.arange(1, 20_000) + 0.5) / 1024) * np.float32(1 - 2e-7)
    after = np.round(biases * 1024) + 512
    differ = after != np.round((biases + np.float32(0.5)) * 1024)
    assert differ.sum() > 100
    for bias, sum_of in zip(biases[differ], after[differ].astype(int), strict=True):
        # pixels whose sums are exactly at the next level
        wanted = (-sum_of + np.array([-1, 0, 1])) % 1024
        values = np.stack((wanted >> 8, wanted & 255, wanted * 0), axis=-1).astype(np.uint8)
        values = np.resize(values, (1, 67, 3))
        matrix = np.tile(np.array([256 / 1024, 1 / 1024, 0, bias]), (3, 1))
        assert_same_arrays(ours.transform(values, matrix), cv2.transform(values, matrix))
