"""Matrices compared with numbers by hand, numpy and cv2; the gradient of every argument."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import warpkit as wk
from tests.support.inputs import noise
from tests.support.installed_opencv import installed_opencv
from tests.support.second_order import gradgradcheck
from tests.support.tolerances import TOLERANCE
from warpkit.core import checks


def double(*values):
    return torch.tensor(values if len(values) > 1 else values[0], dtype=torch.float64)


def close(ours, truth, name="cv2 matrices"):
    ours, truth = torch.as_tensor(ours), torch.as_tensor(truth)
    scale = max(float(truth.abs().max()), 1.0)
    torch.testing.assert_close(ours, truth, rtol=0, atol=TOLERANCE[name] * scale)


@pytest.mark.parametrize("angle", [0.0, 33.0, 90.0, -250.0])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_rotation_matrix_has_cv2s_bits(angle, scale):
    cv2 = installed_opencv()
    truth = cv2.getRotationMatrix2D((12.5, 7.25), angle, scale)
    ours = wk.rotation_matrix(double(12.5, 7.25), double(angle), double(scale))
    assert np.array_equal(ours.numpy(), truth)  # the same bits
    close(wk.rotation_matrix((12.5, 7.25), angle, scale).double(), truth, "float32 matrices")


def test_positive_angles_turn_counter_clockwise_on_the_screen():
    right_of_center = wk.transform_points(wk.rotation_matrix((5.0, 5.0), 90.0), [9.0, 5.0])
    close(right_of_center, [5.0, 1.0], "float32 matrices")  # upwards, y decreases


def test_affine_matrix_is_the_product_of_its_parts():
    """Move the centre to 0, scale, shear, rotate, move back, translate; multiplied in numpy."""
    angle, scale, sx, sy, move, center = 20.0, 1.3, 10.0, -5.0, (2.0, -1.0), (4.0, 3.0)

    def shift(x, y):
        return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])

    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    tx, ty = math.tan(math.radians(sx)), math.tan(math.radians(sy))
    shear = np.array([[1, tx, 0], [ty, 1, 0], [0, 0, 1]])
    grow = np.diag([scale, scale, 1])
    truth = shift(*move) @ shift(*center) @ turn @ shear @ grow @ shift(-center[0], -center[1])
    ours = wk.affine_matrix(
        angle=double(angle),
        scale=double(scale),
        shear=(double(sx), double(sy)),
        translation=double(*move),
        center=double(*center),
    )
    close(ours, truth[:2])
    alone = wk.affine_matrix(angle=double(33.0), scale=double(1.1), center=double(4.0, 3.0))
    close(alone, wk.rotation_matrix(double(4.0, 3.0), double(33.0), double(1.1)))


def test_affine_matrix_reads_shear_as_x_or_as_a_pair():
    x_only = wk.affine_matrix(shear=45.0)
    close(x_only, [[1.0, 1, 0], [0, 1, 0]], "float32 matrices")
    assert torch.equal(x_only, wk.affine_matrix(shear=(45.0, 0.0)))
    assert torch.equal(x_only, wk.affine_matrix(shear=torch.tensor([45.0, 0.0])))
    assert wk.affine_matrix(shear=torch.zeros(5), angle=torch.zeros(5)).shape == (5, 2, 3)
    assert wk.affine_matrix(shear=torch.zeros(5, 2), angle=torch.zeros(5)).shape == (5, 2, 3)
    message = (
        "affine_matrix: `shear` must be a tuple (x, y) here: two numbers could also be a "
        "batch of 2 shears, got a tensor of shape (2,)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        wk.affine_matrix(shear=torch.zeros(2), angle=torch.zeros(2))


def test_arguments_of_all_functions_broadcast():
    full = wk.affine_matrix(
        angle=torch.rand(4, 1),
        scale=torch.rand(5),
        translation=torch.rand(5, 2),
        center=(torch.rand(4, 1), 3.0),
    )
    assert full.shape == (4, 5, 2, 3)
    assert wk.rotation_matrix(torch.rand(4, 1, 2), torch.rand(5)).shape == (4, 5, 2, 3)
    assert wk.compose(torch.rand(4, 1, 2, 3), torch.rand(5, 3, 3)).shape == (4, 5, 3, 3)
    assert wk.transform_points(torch.rand(4, 1, 2, 3), torch.rand(5, 7, 2)).shape == (4, 5, 7, 2)
    assert wk.box_to_matrix(torch.rand(6, 4), (8, 8), angle=torch.rand(6)).shape == (6, 2, 3)


def test_numbers_beside_float64_keep_their_digits():
    turn = wk.rotation_matrix((0.1, 0.3), double(33.3), 1.1)
    assert torch.equal(turn, wk.rotation_matrix(double(0.1, 0.3), double(33.3), double(1.1)))
    parts = {"angle": 0.7, "scale": 1.1, "shear": (0.3, 0.1), "center": (0.1, 0.7)}
    exact = {name: torch.tensor(part, dtype=torch.float64) for name, part in parts.items()}
    mixed = wk.affine_matrix(**(parts | {"angle": exact["angle"]}))
    assert torch.equal(mixed, wk.affine_matrix(**exact))
    moved = wk.transform_points([[0.1, 0, 0.3], [0, 0.7, 0]], double(1.0, 1.0))
    assert torch.equal(moved, double(0.1 + 0.3, 0.7))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4", ">f8", "i1", "u2", ">i4", "u8"])
def test_arrays_of_every_type_are_accepted(kind):
    array = np.array([[2, 0, 3], [0, 1, 4]], kind)
    out = wk.compose(array)
    own = array.dtype.name if array.dtype.kind == "f" else "float32"
    assert out.dtype == getattr(torch, own)
    assert out.tolist() == array.tolist()


def test_only_read_only_arrays_are_copied():
    array = np.eye(3)
    assert checks.from_array("f", "a", array, None).data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert checks.from_array("f", "a", array, None).data_ptr() != array.ctypes.data


def test_types_follow_the_arguments():
    assert wk.rotation_matrix((1, 2), 30).dtype == torch.float32
    assert wk.rotation_matrix(np.array([1.0, 2.0]), 30).dtype == torch.float64
    assert wk.rotation_matrix(torch.zeros(2), np.float64(30)).dtype == torch.float64
    assert wk.invert(torch.eye(3, dtype=torch.float16)).dtype == torch.float16


@pytest.mark.parametrize("seed", range(5))
def test_matrices_from_points_match_cv2(seed):
    cv2 = installed_opencv()
    random = np.random.default_rng(seed)
    square = np.float32([[0, 0], [90, 0], [90, 70], [0, 70]])
    src = square + random.uniform(-9, 9, (4, 2)).astype(np.float32)
    dst = square[:, ::-1] + random.uniform(-9, 9, (4, 2)).astype(np.float32)
    truth = cv2.getPerspectiveTransform(src, dst)
    close(
        wk.perspective_from_points(src.astype(float), dst.astype(float)), truth, "cv2 perspective"
    )
    truth = cv2.getAffineTransform(src[:3], dst[:3])
    close(wk.affine_from_points(src[:3].astype(float), dst[:3].astype(float)), truth)


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_matrices_from_points_map_the_points(far):
    src = double([[0, 0], [9, 1], [8, 7], [-1, 6]]) + far
    dst = double([[1, 2], [7, 0], [9, 9], [0, 5]])
    matrix = wk.perspective_from_points(src, dst)
    assert (wk.transform_points(matrix, src) - dst).abs().max() < 1e-9 * max(far, 1)
    matrix = wk.affine_from_points(src[:3], dst[:3])
    assert (wk.transform_points(matrix, src[:3]) - dst[:3]).abs().max() < 1e-9 * max(far, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "line", [[[0, 0], [1, 1], [2, 2]], [[0.1, 0.3], [0.2, 0.6], [0.3, 0.9]], [[5, 5]] * 3]
)
def test_points_on_a_line_are_an_error(line, dtype):
    line, good = torch.tensor(line, dtype=dtype), torch.tensor([[0, 0], [4, 0], [0, 3.0]])
    wanted = "affine_from_points: `src` must be three points that span a triangle, got a degenerate"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.affine_from_points(line, good)
    four = torch.cat((line, torch.tensor([[7.0, 0.0]], dtype=dtype)))
    square = torch.tensor([[0, 0], [4, 0], [4, 3.0], [0, 3]])
    wanted = "perspective_from_points: `src` must be four points of which no three are on a line"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.perspective_from_points(four, square)
    assert wk.perspective_from_points(square, four).isfinite().all()


SQUARE = [[0, 0], [10, 0], [10, 8], [0, 8]]
TRAPEZOID = [[320, 512], [960, 512], [0, 1024], [1280, 1024]]
"""Its legs meet at (640, 0), its other sides are level: as a rectangle, y = 0 is at infinity."""


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_an_origin_that_goes_to_infinity_gives_a_finite_matrix(dtype):
    src = torch.tensor(TRAPEZOID, dtype=dtype, requires_grad=True)
    dst = torch.tensor([[0, 0], [1280, 0], [0, 1024], [1280, 1024]], dtype=dtype)
    matrix = wk.perspective_from_points(src, dst)
    assert matrix.isfinite().all()
    assert abs(matrix[2, 2]) < torch.finfo(dtype).eps
    if dtype != torch.float16:
        assert float(matrix.detach().double().norm()) == pytest.approx(1, abs=1e-6)
        moved = wk.transform_points(matrix.detach().double(), src.detach().double())
        assert (moved - dst).abs().max() < 1280 * 32 * torch.finfo(dtype).eps
    (grad,) = torch.autograd.grad(matrix.sum(), src)
    assert grad.isfinite().all()


def test_the_gradient_of_a_matrix_of_norm_1_is_that_of_its_homography():
    """A homography does not depend on a factor, so both normalisations must give one gradient."""
    dst = double([[0, 0], [1280, 0], [0, 1024], [1280, 1024]])

    def moved(src, by):
        matrix = wk.perspective_from_points(src + by, dst + by)
        return wk.transform_points(matrix, double([700.0, 800.0]) + by) - by

    src = double(TRAPEZOID)
    far = torch.autograd.functional.jacobian(lambda s: moved(s, 0.0), src)
    usual = torch.autograd.functional.jacobian(lambda s: moved(s, 50.0), src)
    torch.testing.assert_close(far, usual, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "dst",
    [
        [[0, 0], [1, 1], [2, 2], [3, 3]],
        [[0.1, 0.3], [0.2, 0.6], [0.4, 1.2], [0.3, 0.9]],
        [[7, 0], [7, 0], [7, 20], [7, 20]],
        [[3, 4]] * 4,
        [[0, 0]] * 4,
        [[0, 0], [1, 1], [0, 0], [1, 1]],
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_perspectives_onto_lines_and_points_are_exact(dst, dtype):
    src, dst = torch.tensor(SQUARE, dtype=dtype), torch.tensor(dst, dtype=dtype)
    src.requires_grad_(), dst.requires_grad_()
    matrix = wk.perspective_from_points(src, dst)
    moved = wk.transform_points(matrix.detach().double(), double(SQUARE))
    assert (moved - dst).abs().max() < 200 * torch.finfo(dtype).eps
    for grad in torch.autograd.grad(matrix.sum(), (src, dst)):
        assert grad.isfinite().all()
    both = wk.perspective_from_points(src, torch.stack((dst, src)))
    assert torch.equal(both[0], matrix)
    close(both[1].double(), torch.eye(3).double(), "float32 matrices")


def test_an_affine_collapse_is_found_exactly():
    flat = double([[2.0, 1], [4, 2], [0, 0]])  # its effect on homogeneous points has rank 2
    dst = double(SQUARE) @ flat[:2] / 10 + flat[2]
    matrix = wk.perspective_from_points(double(SQUARE), dst)
    close(matrix, double([[0.2, 0.4, 0], [0.1, 0.2, 0], [0, 0, 1]]))


def test_collinear_points_that_stay_collinear_have_a_matrix():
    bent = double([[0, 0], [1, 0], [2, 0], [1, 5]])
    moved = wk.transform_points(wk.perspective_from_points(bent, bent + 3), bent)
    assert (moved - bent - 3).abs().max() < 1e-12
    pair = double([[0, 0], [0, 0], [2, 0], [1, 5]])
    moved = wk.transform_points(wk.perspective_from_points(pair, 2 * pair), pair)
    assert (moved - 2 * pair).abs().max() < 1e-12
    wanted = "perspective_from_points: `src` must be four points of which no three are on a line"
    for apart in ([[0, 0], [1, 0], [2, 0], [3, 0]], [[0, 0], [9, 0], [2, 0], [1, 5]]):
        with pytest.raises(ValueError, match=re.escape(wanted)):
            wk.perspective_from_points(pair, double(apart))
    wanted = "perspective_from_points: `dst` must be four finite points, got a degenerate one"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.perspective_from_points(double(SQUARE), double(SQUARE) * math.nan)


def test_the_degenerate_item_of_a_batch_is_named():
    batch = torch.stack([torch.eye(3), torch.eye(3), torch.ones(3, 3)])[None]
    wanted = "invert: `matrix` must be invertible, got a degenerate one at (0, 2) of the batch"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.invert(batch)


def test_inverses_are_exact_for_integer_shifts_and_match_numpy_otherwise():
    shift = torch.tensor([[1.0, 0, 123457], [0, 1, -98765]])
    assert torch.equal(wk.invert(shift), torch.tensor([[1.0, 0, -123457], [0, 1, 98765]]))
    full = noise(7, 3, 3) + 2 * torch.eye(3).double()
    close(wk.invert(full), np.linalg.inv(full.numpy()))
    affine = full[:, :2]
    close(wk.compose(affine, wk.invert(affine)), torch.eye(2, 3).double().expand(7, 2, 3))


def test_compose_applies_the_first_matrix_first():
    move, double_ = double([[1, 0, 3], [0, 1, 0]]), double([[2, 0, 0], [0, 2, 0]])
    close(wk.transform_points(wk.compose(move, double_), double(1.0, 1.0)), double(8.0, 2.0))
    assert wk.compose(move).shape == (2, 3)
    assert wk.compose(move, torch.eye(3)).shape == (3, 3)


def test_box_to_matrix_maps_edges_to_edges():
    """In edge coordinates the patch (0, 0, w, h) maps to its box; centres differ by 1/2 pixel."""
    matrix = wk.box_to_matrix(double(10.0, 20.0, 26.0, 24.0), (8, 4))
    corners = wk.transform_points(matrix, double([[-0.5, -0.5], [3.5, 7.5]]))
    close(corners, double([[9.5, 19.5], [25.5, 23.5]]))
    turned = wk.box_to_matrix(
        double(10.0, 20.0, 26.0, 24.0), (8, 4), angle=30.0, scale=2.0, translation=(1.0, 2.0)
    )
    about = wk.compose(
        matrix,
        wk.rotation_matrix(double(17.5, 21.5), double(30.0), double(2.0)),
        double([[1, 0, 1], [0, 1, 2]]),
    )
    close(turned, about)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("rows", [2, 3])
def test_thetas_mean_the_same_as_in_torch(align_corners, rows):
    matrix = wk.rotation_matrix(double(3.0, 2.0), double(25.0), double(1.2))
    size_in, size_out = (7, 9), (5, 6)
    theta = wk.to_theta(matrix, size_in, size_out, align_corners=align_corners)
    options = {"align_corners": align_corners}
    grid = torch.nn.functional.affine_grid(theta[None], [1, 1, *size_out], **options)
    image = noise(1, 2, *size_in)
    truth = torch.nn.functional.grid_sample(image, grid, **options)
    ours = wk.warp_affine(image, matrix, size=size_out)
    torch.testing.assert_close(ours, truth, rtol=0, atol=TOLERANCE["grid_sample float64"])
    full = matrix if rows == 2 else torch.cat((matrix, double([[0.01, 0.02, 1]])))
    there = wk.to_theta(full, size_in, size_out, **options)
    back = wk.from_theta(there, size_in, size_out, **options)
    close(back / back[-1, -1] if rows == 3 else back, full)


def test_align_corners_rejects_sides_of_one_pixel():
    wanted = "to_theta: `size_in` must be at least 2 pixels a side with align_corners=True"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        wk.to_theta(torch.eye(2, 3), (1, 4), (4, 4), align_corners=True)


FUNCTIONS = {
    "rotation_matrix": (wk.rotation_matrix, [(2, 2), (2,), (2,)]),
    "affine_matrix": (
        lambda a, s, h, t, c: wk.affine_matrix(angle=a, scale=s, shear=h, translation=t, center=c),
        [(2,), (2,), (2, 2), (2, 2), (2, 2)],
    ),
    "affine_from_points": (wk.affine_from_points, [(2, 3, 2), (2, 3, 2)]),
    "perspective_from_points": (wk.perspective_from_points, [(1, 4, 2), (1, 4, 2)]),
    "box_to_matrix": (
        lambda b, a, s, t: wk.box_to_matrix(b, (3, 4), angle=a, scale=s, translation=t),
        [(2, 4), (2,), (2,), (2, 2)],
    ),
    "invert 2x3": (wk.invert, [(2, 2, 3)]),
    "invert 3x3": (wk.invert, [(1, 3, 3)]),
    "compose": (wk.compose, [(1, 2, 3), (2, 3, 3)]),
    "transform_points 2x3": (wk.transform_points, [(2, 2, 3), (1, 3, 2)]),
    "transform_points 3x3": (wk.transform_points, [(1, 3, 3), (3, 2)]),
    "to_theta": (lambda m: wk.to_theta(m, (4, 5), (3, 6)), [(1, 3, 3)]),
    "from_theta": (lambda m: wk.from_theta(m, (4, 5), (3, 6)), [(1, 2, 3)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_every_argument(name):
    function, shapes = FUNCTIONS[name]
    inputs = [noise(*shape, seed=i + 3) for i, shape in enumerate(shapes)]
    if "invert" in name or "theta" in name:
        inputs[0] = inputs[0] + 2 * torch.eye(3).double()[: inputs[0].shape[-2]]
    if name.startswith("perspective"):
        inputs = [x + double([[0, 0], [5, 0], [5, 5], [0, 5]]) for x in inputs]
    inputs = [x.requires_grad_() for x in inputs]
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, inputs)


def test_points_at_the_horizon_are_nan_with_finite_gradients():
    matrix = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 0, -1]], requires_grad=True)
    out = wk.transform_points(matrix, torch.tensor([[1.0, 1.0], [3.0, 1.0]]))
    assert out[0].isnan().all()
    assert torch.equal(out[1], torch.tensor([1.5, 0.5]))
    out.nan_to_num().sum().backward()
    assert matrix.grad is not None
    assert matrix.grad.isfinite().all()
