"""A second implementation of matrices and indices, in float64 numpy, without warpkit's code.

Each function takes its namesake's arguments as arrays and numbers, and returns the right result, or
None if the problem is too ill-conditioned for a comparison.
"""

from __future__ import annotations

import math

import numpy as np

from tests.support.naive_warp import walk

STEEP = 1e4
"""The condition up to which two ways of solving agree to the tolerance."""


def full(matrix):
    """The matrix as (..., 3, 3)."""
    if matrix.shape[-2] == 3:
        return matrix
    last = np.broadcast_to([0.0, 0.0, 1.0], (*matrix.shape[:-2], 1, 3))
    return np.concatenate((matrix, last), axis=-2)


def pair(value):
    """The x and y of a pair or of an array (..., 2)."""
    if isinstance(value, list):
        return value if len(value) == 2 else np.moveaxis(np.asarray(value), -1, 0)
    return np.moveaxis(value, -1, 0)


def build(*entries):
    """The matrix (..., 3, 3) of nine numbers or arrays, row by row."""
    return np.stack(np.broadcast_arrays(*entries), -1).reshape(*np.broadcast(*entries).shape, 3, 3)


def move(x, y):
    return build(1.0, 0.0, x, 0.0, 1.0, y, 0.0, 0.0, 1.0)


def turn(angle, scale):
    a = np.deg2rad(angle)
    c, s = np.cos(a) * scale, np.sin(a) * scale
    return build(c, s, 0.0, -s, c, 0.0, 0.0, 0.0, 1.0)


def rotation_matrix(center, angle, scale=1.0):
    x, y = map(np.asarray, pair(center))
    return (move(x, y) @ turn(angle, scale) @ move(-x, -y))[..., :2, :]


def affine_matrix(angle=0.0, scale=1.0, shear=0.0, translation=(0.0, 0.0), center=(0.0, 0.0)):
    if np.ndim(shear):
        return None  # pairs and batches of two are distinguished by special rules
    (x, y), (right, down) = (map(np.asarray, pair(p)) for p in (center, translation))
    slant = build(1.0, math.tan(math.radians(shear)), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    about = move(x, y) @ turn(angle, scale) @ slant @ move(-x, -y)
    return (move(right, down) @ about)[..., :2, :]


def image_center(size):
    height, width = size
    return (width - 1) / 2, (height - 1) / 2


def box_to_matrix(boxes, size, angle=0.0, scale=1.0, translation=(0.0, 0.0)):
    x1, y1, x2, y2 = np.moveaxis(np.asarray(boxes), -1, 0)
    right, down = map(np.asarray, pair(translation))
    height, width = size
    to_unit = move(-(width - 1) / 2, -(height - 1) / 2)
    stretch = build((x2 - x1) / width, 0.0, 0.0, 0.0, (y2 - y1) / height, 0.0, 0.0, 0.0, 1.0)
    to_box = move((x1 + x2) / 2 - 0.5 + right, (y1 + y2) / 2 - 0.5 + down)
    return (to_box @ turn(angle, scale) @ stretch @ to_unit)[..., :2, :]


def flat(*arrays):
    """Whether any of the matrices is too close to a singular one."""
    return any(a.size == 0 or np.linalg.cond(a).max() > STEEP for a in arrays)


def invert(matrix):
    return None if flat(full(matrix)) else np.linalg.inv(full(matrix))[..., : matrix.shape[-2], :]


def compose(matrices):
    matrices = matrices if isinstance(matrices, list) else [matrices]
    result = full(matrices[0])
    for matrix in matrices[1:]:
        result = full(matrix) @ result
    return result[..., : max(m.shape[-2] for m in matrices), :]


def transform_points(matrix, points):
    one = np.concatenate((points, np.ones_like(points[..., :1])), -1)
    x, y, w = np.moveaxis(one @ np.swapaxes(full(matrix), -1, -2), -1, 0)
    return None if w.size == 0 or np.abs(w).min() < 1e-2 else np.stack((x / w, y / w), -1)


def normal(size, align_corners):
    """The matrix that maps pixels to [-1, 1]."""
    height, width = size
    if align_corners:
        x, y, shift = 2 / (width - 1), 2 / (height - 1), (-1.0, -1.0)
    else:
        x, y, shift = 2 / width, 2 / height, (1 / width - 1, 1 / height - 1)
    return build(x, 0.0, shift[0], 0.0, y, shift[1], 0.0, 0.0, 1.0)


def to_theta(matrix, size_in, size_out, align_corners=False):
    if flat(full(matrix)):
        return None
    back = np.linalg.inv(full(matrix))
    theta = normal(size_in, align_corners) @ back @ np.linalg.inv(normal(size_out, align_corners))
    return theta[..., : matrix.shape[-2], :]


def from_theta(theta, size_in, size_out, align_corners=False):
    normal_in, normal_out = normal(size_in, align_corners), normal(size_out, align_corners)
    to_source = np.linalg.inv(normal_in) @ full(theta) @ normal_out
    return None if flat(to_source) else np.linalg.inv(to_source)[..., : theta.shape[-2], :]


def affine_from_points(src, dst):
    src, dst = np.broadcast_arrays(src, dst)
    one = np.concatenate((src, np.ones_like(src[..., :1])), -1)
    return None if flat(one) else np.swapaxes(np.linalg.solve(one, dst), -1, -2)


def perspective_from_points(src, dst):
    """The eight equations of a homography with last entry 1."""
    src, dst = np.broadcast_arrays(src, dst)
    (x, y), (u, v) = np.moveaxis(src, -1, 0), np.moveaxis(dst, -1, 0)
    zero, one = np.zeros_like(x), np.ones_like(x)
    rows = np.concatenate(
        (
            np.stack((x, y, one, zero, zero, zero, -x * u, -y * u), -1),
            np.stack((zero, zero, zero, x, y, one, -x * v, -y * v), -1),
        ),
        -2,
    )
    if flat(rows):
        return None
    h = np.linalg.solve(rows, np.concatenate((u, v), -1)[..., None])[..., 0]
    return np.concatenate((h, np.ones_like(h[..., :1])), -1).reshape(*h.shape[:-1], 3, 3)


def weights_of(index, n, border="replicate"):
    """An index as a distribution over n rows, (*I, n)."""
    index = np.asarray(index)
    result = np.zeros((*index.shape, n))
    for at in np.ndindex(index.shape):
        p = index[at]
        if index.dtype.kind == "i" and border == "replicate":
            p = p + n if p < 0 else p
        low = math.floor(p)
        for k, w in ((low, low + 1 - p), (low + 1, p - low)):
            result[(*at, walk(k, n, border))] += w
    return result


def contract(array, weights, dim):
    result = np.tensordot(weights, array, (-1, dim))
    own = weights.ndim - 1
    return np.moveaxis(result, range(own), range(dim % array.ndim, dim % array.ndim + own))


def blend(array, weights, value, dim):
    """row <- (1 - w) row + w value, one assignment at a time."""
    first = np.moveaxis(array, dim, 0).copy()
    own, dim = weights.ndim - 1, dim % array.ndim
    shape = (*array.shape[:dim], *weights.shape[:-1], *array.shape[dim + 1 :])
    values = np.moveaxis(np.broadcast_to(value, shape), range(dim, dim + own), range(own))
    for at in np.ndindex(weights.shape[:-1]):
        w = weights[at].reshape(-1, *[1] * (array.ndim - 1))
        first = (1 - w) * first + w * values[at]
    return np.moveaxis(first, 0, dim)


def linear_lookup(array, index, dim=0, border="replicate"):
    return contract(array, weights_of(index, array.shape[dim], border), dim)


def soft_one_hot(index, length, border="replicate"):
    return weights_of(index, length, border)


def superposition_lookup(array, weights, dim=0):
    return contract(array, weights, dim)


def residual_lookup(array, index, dim=0):
    index, n = np.asarray(index), array.shape[dim]
    if index.dtype.kind == "i":
        index = np.where(index < 0, index + n, index)
    at = index.clip(0, n - 1)
    nearest = np.rint(at)
    rest = 0 * at if index.dtype.kind == "i" else at - nearest
    return contract(array, weights_of(nearest, n), dim), rest


def assign(array, index, value, dim=0):
    return blend(array, weights_of(index, array.shape[dim]), value, dim)


def superposition_assign(array, weights, value, dim=0):
    return blend(array, weights, value, dim)


def lookup_2d(array, row_weights, column_weights):
    weights = row_weights[..., :, None] * column_weights[..., None, :]
    return np.tensordot(weights, array, 2)


def assign_2d(array, value, row_weights, column_weights):
    table = array.reshape(-1, *array.shape[2:])
    weights = row_weights[..., :, None] * column_weights[..., None, :]
    weights = weights.reshape(*weights.shape[:-2], -1)
    return blend(table, weights, value, 0).reshape(array.shape)


def straight_through(value, surrogate):
    return value


def quantize(image, levels=256):
    return np.rint(image.clip(0, 1) * (levels - 1)) / (levels - 1)
