"""Expectations of kornia's tests of lenses, matrices and warps, with its recorded numbers.

The facts are of its test_undistort, test_distort, test_distortion and test_imgwarp; the code is
ours. Many of kornia's numbers were made by OpenCV.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import warpkit as wk
from tests.support.tolerances import TOLERANCE

DOUBLE = torch.float64
GENERATOR = torch.Generator().manual_seed(0)
SHOWN = [[1028.0374, 788.7520], [1025.1218, 716.8726], [1022.1792, 645.1857]]
CAMERA = [[1731.5, 0.0, 622.89], [0.0, 1732.0, 535.37], [0.0, 0.0, 1.0]]
FIVE = [-0.1007, 0.2650, -0.0018, 0.0007, -0.2597]
FOURTEEN = [
    *(-5.6388e-02, 2.3881e-01, 8.3374e-02, 2.0710e-03, 7.1349e00, 5.6335e-02, -3.1738e-01),
    *(4.9981e00, -4.0287e-03, -2.8246e-02, -8.6064e-02, 1.5543e-02, -1.7322e-01, 2.3154e-03),
]
STRONG = [
    *(1.4050e-03, -3.0691e00, -1.0209e-01, -2.3687e-02, -1.7082e02, 4.3593e-03, -3.1904e00),
    *(-1.7050e02, 1.7854e-02, 1.8999e-02, 9.9122e-02, 3.6675e-02, 3.0816e-03, -5.7133e-02),
]
LEFT = [[3319.7, 0.0, 618.13], [0.0, 3330.9, 522.81], [0.0, 0.0, 1.0]]
RIGHT = [[1920.6, 0.0, 613.95], [0.0, 1926.5, 771.64], [0.0, 0.0, 1.0]]
SEEN_RIGHT = [[345.9135, 847.9113], [344.0880, 773.9890], [342.2381, 700.3029]]
UNDISTORTED = {
    "five coefficients": (
        *(SHOWN, CAMERA, FIVE),
        [[1030.5992, 790.65533], [1027.3059, 718.10020], [1024.0700, 645.90600]],
    ),
    "all coefficients": (
        *(SHOWN, CAMERA, FOURTEEN),
        [[1030.8245, 786.3807], [1027.5505, 715.0732], [1024.2753, 644.0319]],
    ),
    "stereo": (
        *([SHOWN, SEEN_RIGHT], [LEFT, RIGHT], [FOURTEEN, STRONG]),
        [
            [[1029.3234, 785.4813], [1026.1599, 714.3689], [1023.02045, 643.5359]],
            [[344.04456, 848.7696], [344.27606, 774.1254], [344.47018, 700.8522]],
        ],
    ),
}
"""Points shown, camera, coefficients, and cv2.undistortPoints as kornia recorded it, in pixels."""


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same numbers, whichever tests run before it."""
    GENERATOR.manual_seed(1)


def close(found: torch.Tensor, wanted: object, most: float) -> bool:
    """Within a distance, everywhere."""
    return bool((found - torch.as_tensor(wanted, dtype=found.dtype)).abs().max() <= most)


def uniform(*shape: int) -> torch.Tensor:
    """Numbers in [0, 1), float64."""
    return torch.rand(*shape, dtype=DOUBLE, generator=GENERATOR)


def cameras(*batch: int) -> torch.Tensor:
    """Cameras (..., 3, 3) of some 100 pixels."""
    matrix = torch.zeros(*batch, 3, 3, dtype=DOUBLE)
    matrix[..., 0, 0], matrix[..., 1, 1] = 100 + uniform(*batch), 100 + uniform(*batch)
    matrix[..., :2, 2], matrix[..., 2, 2] = 50 + uniform(*batch, 2), 1.0
    return matrix


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", UNDISTORTED)
def test_undistorted_points_match_opencvs_recorded_ones(name: str, twice: bool):
    points, camera, coefficients, wanted = (
        torch.tensor(numbers, dtype=DOUBLE) for numbers in UNDISTORTED[name]
    )
    new = camera * torch.tensor([[2.0], [2.0], [1.0]], dtype=DOUBLE) if twice else None
    found, converged = wk.camera.undistort_points(
        points, camera, coefficients, new_camera_matrix=new
    )
    assert converged.all()
    scale = 2 if twice else 1
    # cv2 stops after five steps: 0.001 of a pixel from the solution for the strong lens.
    assert close(found, scale * wanted, scale * 2e-3)
    back = wk.camera.distort_points(found / scale, camera, coefficients)
    assert close(back, points, 1e-9) or twice


@pytest.mark.parametrize(
    ("batch", "points", "coefficients"), [(1, 3, 4), (2, 4, 5), (3, 5, 8), (4, 6, 12), (5, 7, 14)]
)
def test_batches_of_points_have_the_expected_shapes(batch: int, points: int, coefficients: int):
    shown, lens = 100 * uniform(batch, points, 2), uniform(batch, coefficients) / 100
    assert wk.camera.distort_points(shown, cameras(batch), lens).shape == shown.shape
    found, converged = wk.camera.undistort_points(
        shown, cameras(batch), lens, new_camera_matrix=cameras(batch)
    )
    assert found.shape == shown.shape
    assert converged.shape == shown.shape[:-1]


@pytest.mark.parametrize("of", ["points", "camera", "coefficients"])
def test_gradients_of_the_distortion(of: str):
    arguments = {
        "points": 100 * uniform(1, 8, 2),
        "camera": 50 + 50 * uniform(4),
        "coefficients": uniform(1, 4) / 10,
    }
    arguments[of].requires_grad_()

    def shown(points: torch.Tensor, camera: torch.Tensor, coefficients: torch.Tensor):
        # A camera has four numbers: fx, fy, cx, cy.
        zero, one = camera.new_zeros(()), camera.new_ones(())
        rows = (camera[0], zero, camera[2], zero, camera[1], camera[3], zero, zero, one)
        return wk.camera.distort_points(points, torch.stack(rows).reshape(3, 3), coefficients)

    assert torch.autograd.gradcheck(shown, tuple(arguments.values()))


def test_an_image_of_25_pixels_undistorted_by_opencv():
    image = torch.tensor(
        [
            [116, 75, 230, 5, 32],
            [9, 182, 97, 213, 3],
            [91, 10, 33, 141, 230],
            [229, 63, 221, 244, 61],
            [19, 137, 23, 59, 227],
        ],
        dtype=torch.uint8,
    )[None]
    wanted = torch.zeros(1, 5, 5, dtype=torch.uint8)
    wanted[0, 1:4, 1:4] = torch.tensor([[124, 112, 82], [13, 33, 158], [108, 197, 150]])
    camera, lens = [[2.0, 0, 2], [0, 2, 2], [0, 0, 1]], [0.2290, 0.9565, 0.0083, 0.0475]
    found = wk.camera.undistort(image, camera, lens, arithmetic="opencv4")
    assert torch.equal(found, wanted)
    exact = wk.camera.undistort(image.double() / 255, camera, lens)
    assert close(exact, wanted / 255, 1e-2)


def test_images_with_more_leading_dimensions():
    image = uniform(3, 2, 3, 5, 5)
    camera, lens = cameras(3, 2), uniform(3, 2, 4) / 100
    assert wk.camera.undistort(image, camera, lens).shape == (3, 2, 3, 5, 5)
    assert wk.camera.undistort(image[0, 0], camera[0, 0], lens[0, 0]).shape == (3, 5, 5)


@pytest.mark.parametrize(
    ("image", "camera", "lens", "named"),
    [
        ((5, 5), (3, 3), 4, "image"),
        ((3, 5, 5), (4, 4), 4, "camera_matrix"),
        ((3, 5, 5), (3, 3), 6, "distortion"),
    ],
)
def test_bad_shapes_are_rejected(
    image: tuple[int, ...], camera: tuple[int, ...], lens: int, named: str
):
    with pytest.raises(ValueError, match=named):
        wk.camera.undistort(uniform(*image), torch.eye(*camera), uniform(lens))


IDEAL = [[0.0, 0.0], [1.0, 400.0], [320.0, 240.0], [319.5, 239.5], [100.0, 40.0], [639.0, 479.0]]
"""In focal lengths."""


def test_kannala_brandt_points_match_sophus():
    camera = torch.tensor([[1000.0, 0, 320], [0, 1000, 280], [0, 0, 1]], dtype=DOUBLE)
    lens = torch.tensor([0.1, 0.01, 0.001, 0.0001], dtype=DOUBLE)
    wanted = [
        [320.0, 280.0],
        [325.1949172763466, 2357.966910538644],
        [1982.378709731326, 1526.7840322984944],
        [1982.6832644475849, 1526.3619462760455],
        [2235.6822069661744, 1046.2728827864696],
        [1984.8663275417607, 1527.9983895031353],
    ]
    pixels = wk.transform_points(camera, torch.tensor(IDEAL, dtype=DOUBLE))
    shown = wk.camera.distort_points(pixels, camera, lens, model="fisheye")
    # Sophus's last digits: relative 1e-7.
    assert close(shown, wanted, 3e-4)
    back, converged = wk.camera.undistort_points(shown, camera, lens, model="fisheye")
    assert converged.all()
    # At 89.9 degrees, one pixel of the image is 7e5 pixels of the plane.
    assert ((back - pixels).norm(dim=-1) <= 1e-7 * (1 + pixels.norm(dim=-1))).all()


def test_the_kannala_brandt_jacobian():
    camera = torch.tensor([[600.0, 0, 319.5], [0, 600, 239.5], [0, 0, 1]], dtype=DOUBLE)
    lens = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=DOUBLE)

    def shown(ideal: torch.Tensor) -> torch.Tensor:
        pixels = wk.transform_points(camera, ideal)
        return wk.camera.distort_points(pixels, camera, lens, model="fisheye")

    found = torch.func.jacrev(shown)(torch.tensor([1.0, 2.0], dtype=DOUBLE))
    # kornia's test expects 1191.5, 282.3, 1615.0, which differences of its function do not give.
    assert close(found, [[1221.1801, 341.6185], [341.6185, 1733.6079]], 1e-3)


@pytest.mark.parametrize(
    ("angle", "scale", "wanted"),
    [
        (90.0, 1.0, [[0.0, 1, 2], [-1, 0, 4]]),
        (90.0, 2.0, [[0.0, 2, 1], [-2, 0, 7]]),
        (45.0, 1.0, [[0.7071, 0.7071, 0.1716], [-0.7071, 0.7071, 2.4142]]),
    ],
)
def test_rotations_about_a_point(angle: float, scale: float, wanted: list[list[float]]):
    center, angles = torch.tensor([3.0, 1.0], dtype=DOUBLE), torch.full((5,), angle, dtype=DOUBLE)
    found = wk.rotation_matrix(center, angles, scale)
    assert found.shape == (5, 2, 3)
    assert close(found, torch.tensor(wanted), 1e-4)


def test_perspectives_of_four_points_and_mirrored_ones():
    source = torch.tensor([[0.0, 0], [30, 0], [0, 60], [30, 60]], dtype=DOUBLE)
    target = source + uniform(4, 2)
    matrix = wk.perspective_from_points(source, target)
    assert close(wk.transform_points(matrix, source), target, 1e-9)
    square = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], dtype=DOUBLE)
    mirror = wk.perspective_from_points(square, square[[1, 0, 3, 2]])
    found = wk.transform_points(mirror, square[:2])
    assert close(found, square[[1, 0]], TOLERANCE["order of sums"])


@pytest.mark.parametrize("perspective", [False, True])
def test_a_shift_by_one_pixel_and_its_fill(perspective: bool):
    warp = wk.warp_perspective if perspective else wk.warp_affine
    matrix = torch.eye(3, dtype=DOUBLE)
    matrix[:2, 2] = 1
    matrix = matrix if perspective else matrix[:2]
    image = torch.arange(36.0, dtype=DOUBLE).reshape(3, 3, 4)
    fill = torch.tensor([0.5, 0.2, 0.1], dtype=DOUBLE)
    found = warp(image, matrix, border_value=fill)
    assert torch.equal(found[:, 1:, 1:], image[:, :-1, :-1])
    assert torch.equal(found[:, 0], fill[:, None].expand(3, 4))
    assert torch.equal(found[..., 0], fill[:, None].expand(3, 3))


def test_a_rotation_by_90_degrees_and_back():
    image = uniform(1, 4, 4)
    turn = wk.rotation_matrix(wk.image_center((4, 4)), 90.0)
    found = wk.warp_affine(wk.warp_affine(image, turn), wk.invert(turn))
    assert close(found, image, 1e-9)


def test_the_middle_of_an_image_is_enlarged():
    patch = torch.arange(1.0, 17, dtype=DOUBLE).reshape(1, 4, 4)
    source = torch.tensor([[1.0, 1], [1, 2], [2, 2], [2, 1]], dtype=DOUBLE)
    matrix = wk.perspective_from_points(source, (source - 1) * 3)
    found = wk.warp_perspective(patch, matrix, size=(4, 4))
    steps = torch.arange(4, dtype=DOUBLE)
    wanted = 6 + steps[:, None] * 4 / 3 + steps / 3
    assert close(found, wanted, 1e-9)


@pytest.mark.parametrize("steps", [(1, 0), (0, 1), (1, 1)])
def test_remap_with_a_shifted_grid(steps: tuple[int, int]):
    dx, dy = steps
    points = wk.pixel_grid((3, 4)).double() + torch.tensor([dx, dy])
    found = wk.remap(torch.ones(2, 1, 3, 4, dtype=DOUBLE), points)
    wanted = torch.zeros(2, 1, 3, 4, dtype=DOUBLE)
    wanted[..., : 3 - dy, : 4 - dx] = 1
    assert torch.equal(found, wanted)


def test_the_inverse_of_a_rotation_by_90_degrees():
    turn = wk.rotation_matrix([0.0, 0.0], torch.full((2,), 90.0, dtype=DOUBLE))
    assert close(wk.invert(turn), [[0.0, -1, 0], [1, 0, 0]], TOLERANCE["order of sums"])


SQUARE = [[0.0, 0], [4, 0], [4, 4], [0, 4]]
COMPILED: dict[str, tuple[Callable[..., Any], tuple[object, ...]]] = {
    "perspective_from_points": (wk.perspective_from_points, (SQUARE, [[0, 1], *SQUARE[1:]])),
    "invert": (wk.invert, ([[1.0, 2, 3], [0, 1, 2]],)),
    "warp_affine": (wk.warp_affine, (uniform(1, 4, 5), [[1.0, 0.2, 1], [0.1, 1, 0]])),
    "warp_perspective": (wk.warp_perspective, (uniform(1, 4, 5), CAMERA)),
    "remap": (wk.remap, (uniform(1, 4, 5), uniform(4, 5, 2))),
    "undistort": (wk.camera.undistort, (uniform(1, 4, 5), CAMERA, FIVE)),
    "distort_points": (wk.camera.distort_points, (SHOWN, CAMERA, FIVE)),
}


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.usefixtures("fresh_compiler")
def test_functions_compile_to_one_graph(name: str):
    function, given = COMPILED[name]
    arguments = [torch.as_tensor(argument, dtype=DOUBLE) for argument in given]
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    assert torch.equal(compiled(*arguments), function(*arguments))
