"""`identify` finds warps: their matrix, interpolation, border and arithmetic, bit for bit."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from warpkit.validation import compare_pipelines, identify

MATRIX = np.array([[0.5, 0.12, 3.0], [-0.1, 0.55, 20.0]])
TURNED = cv2.getRotationMatrix2D((150, 120), 17, 0.8)
TILTED = np.array([[1.05, 0.1, -5.0], [0.02, 0.95, 4.0], [2e-4, -1e-4, 1.0]])
SHEET = np.array([(40, 30), (300, 55), (280, 260), (20, 230)], np.float32)
RECTANGLE = np.array([(0, 0), (159, 0), (159, 119), (0, 119)], np.float32)
SCANNED = cv2.getPerspectiveTransform(SHEET, RECTANGLE)
CLOSE_UP = np.array([[1.2, 0.1, -20.0], [0.0, 1.1, -30.0]])


def warped(x, matrix=MATRIX, size=(200, 150), flags=cv2.INTER_LINEAR, border=0, value=(0, 0, 0)):
    return cv2.warpAffine(x, matrix, size, flags=flags, borderMode=border, borderValue=value)


def third_point(a, b):
    direct = a - b
    return b + np.array([-direct[1], direct[0]], dtype=np.float32)


def get_affine_transform(center, scale, output_size):
    """CenterNet's, without rotation and shift; mmpose's is the same."""
    src_w, (dst_w, dst_h) = scale[0], output_size
    src = np.zeros((3, 2), dtype=np.float32)
    dst = np.zeros((3, 2), dtype=np.float32)
    src[0] = center
    src[1] = center + np.array([0, src_w * -0.5], np.float32)
    dst[0] = [dst_w * 0.5, dst_h * 0.5]
    dst[1] = np.array([dst_w * 0.5, dst_h * 0.5], np.float32) + np.array([0, dst_w * -0.5])
    src[2], dst[2] = third_point(src[0], src[1]), third_point(dst[0], dst[1])
    return cv2.getAffineTransform(np.float32(src), np.float32(dst))


def center_net(x):
    """pre_process of CenterNet's detectors: 512 x 512, normalised."""
    height, width = x.shape[:2]
    center = np.array([width / 2.0, height / 2.0], dtype=np.float32)
    side = max(height, width) * 1.0
    matrix = get_affine_transform(center, (side, side), (512, 512))
    image = cv2.warpAffine(x, matrix, (512, 512), flags=cv2.INTER_LINEAR)
    mean, std = np.float32([0.408, 0.447, 0.470]), np.float32([0.289, 0.274, 0.278])
    return (((image / 255.0) - mean) / std).astype(np.float32).transpose(2, 0, 1)


def top_down(x, size=(192, 256), padding=1.25):
    """mmpose's top-down 256 x 192, the box being the whole picture."""
    height, width = x.shape[:2]
    w, h = width * padding, height * padding
    aspect = size[0] / size[1]
    scale = (w, w / aspect) if w > h * aspect else (h * aspect, h)
    center = np.array([width / 2.0, height / 2.0], dtype=np.float32)
    return cv2.warpAffine(x, get_affine_transform(center, scale, size), size)


def in_floats(x):
    return warped(x.astype(np.float32) / 255, border=cv2.BORDER_REPLICATE)


def reversed_and_filled(x):
    image = warped(x[..., ::-1].copy(), CLOSE_UP, (64, 64), value=(114, 20, 3))
    return image.astype(np.float32)


def turned(x):
    return warped(x, TURNED, (192, 256), cv2.INTER_CUBIC, value=(10, 20, 30))


def mirrored(x):
    return warped(x, MATRIX, (120, 140), cv2.INTER_NEAREST, cv2.BORDER_REFLECT_101)


def tilted(x):
    return cv2.warpPerspective(x, TILTED, (200, 150)).astype(np.float32) / 255


def scanned(x):
    """A sheet's four corners become the picture's."""
    image = cv2.warpPerspective(x[..., ::-1].copy(), SCANNED, (160, 120), borderValue=(9, 8, 7))
    return image.transpose(2, 0, 1)


def trapezium(x):
    """A part of a road, seen from above; the points follow the picture's size."""
    height, width = x.shape[:2]
    parts = [(0.4, 0.6), (0.6, 0.6), (1, 1), (0, 1)]
    road = np.float32([(across * width, down * height) for across, down in parts])
    corners = np.float32([(0, 0), (200, 0), (200, 160), (0, 160)])
    return cv2.warpPerspective(x, cv2.getPerspectiveTransform(road, corners), (200, 160))


def tilted_whole(x):
    """The picture's last pixels become four points of the result."""
    right, low = x.shape[1] - 1, x.shape[0] - 1
    corners = np.float32([(0, 0), (right, 0), (right, low), (0, low)])
    to = np.float32([(20, 10), (180, 0), (199, 159), (0, 140)])
    matrix = cv2.getPerspectiveTransform(corners, to)
    return cv2.warpPerspective(x, matrix, (200, 160)).astype(np.float32)


WHOLE = ((0, 0), (1, 0), (1, 1), (0, 1))
TRAPEZIUM = ((0.4, 0.6), (0.6, 0.6), (1, 1), (0, 1))

PROGRAMS = {
    "trapezium": (
        trapezium,
        ("corners", 0, TRAPEZIUM, ((0, 0), (200, 0), (200, 160), (0, 160))),
        *("bilinear", "constant", 0),
    ),
    "the whole, tilted": (
        tilted_whole,
        ("corners", 1, WHOLE, ((20, 10), (180, 0), (199, 159), (0, 140))),
        *("bilinear", "constant", 0),
    ),
    "perspective": (tilted, TILTED, "bilinear", "constant", 0),
    "four points": (scanned, SCANNED, "bilinear", "constant", (9, 8, 7)),
    "bilinear": (warped, MATRIX, "bilinear", "constant", 0),
    "bicubic, turned": (turned, TURNED, "bicubic", "constant", (10, 20, 30)),
    "nearest, mirrored": (mirrored, MATRIX, "nearest", "reflect_101", None),
    "floats, replicated": (in_floats, MATRIX, "bilinear", "replicate", None),
    "reversed, filled": (reversed_and_filled, CLOSE_UP, "bilinear", "constant", (114, 20, 3)),
    "CenterNet": (center_net, ("center", 1.0), "bilinear", "constant", 0),
    "top-down pose": (top_down, ("center", 1.25), "bilinear", "constant", 0),
}


@pytest.fixture(scope="module")
def found():
    return {name: identify(row[0], takes="array") for name, row in PROGRAMS.items()}


def photograph(height=241, width=334):
    noise = np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)
    smooth = cv2.GaussianBlur(noise, (0, 0), 3).astype(float)
    return np.clip((smooth - 128) * 6 + 128, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warp_is_found(found, name):
    function, matrix, interpolation, border, value = PROGRAMS[name]
    answer = found[name]
    image = photograph()
    wanted = function(image.copy())
    assert answer.known, str(answer)
    assert answer.rule == "warp"
    assert (answer.interpolation, answer.border) == (interpolation, border)
    assert answer.border_value == value
    assert answer.arithmetic in ("opencv4", "opencv5")
    assert answer.compared >= 200_000
    if isinstance(matrix, tuple):
        assert answer.matrix == matrix
    else:
        assert np.array_equal(np.array(answer.matrix), matrix)
    channels_first = wanted if answer.layout == "CHW" else np.moveaxis(wanted, -1, 0)
    assert answer.size == channels_first.shape[1:]
    given = torch.from_numpy(image).movedim(-1, 0)[None]
    floats = (given / 255).requires_grad_()
    for _ in range(2):  # equal bits of 8-bit levels
        made = answer.pipeline(given)[0].double()
        gain = torch.tensor(answer.gain, dtype=torch.float64)[:, None, None]
        apart = (made - torch.from_numpy(channels_first.copy()).double()) / gain
        assert float(apart.abs().max()) < 1e-3
    answer.pipeline(floats).sum().backward()
    assert float(floats.grad.abs().max()) > 0
    words = str(answer)
    assert border in words
    kind = matrix[0] if isinstance(matrix, tuple) else None
    assert {"center": "centred", "corners": "the points"}.get(kind, "matrix") in words


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("library", ["warpkit", "cv2", "pillow", "torch"])
def test_a_warp_as_code(found, name, library):
    if (name, library) == ("nearest, mirrored", "torch"):
        with pytest.raises(ValueError, match="library='torch' has no nearest warp with border"):
            found[name].to_code(library)
        return
    function, interpolation = PROGRAMS[name][0], PROGRAMS[name][2]
    image, answer = photograph(), found[name]
    tensor = torch.from_numpy(image).movedim(-1, 0)
    given = {"cv2": image, "pillow": Image.fromarray(image)}.get(library, tensor)
    made: dict[str, object] = {}
    exec(answer.to_code(library), made)
    got, wanted = np.asarray(made["preprocess"](given)), function(image.copy())
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    apart = np.abs(got.astype(float) - wanted) / max(answer.gain)
    if library in ("warpkit", "cv2"):
        assert apart.max() < 1e-3
    elif (library, interpolation) == ("pillow", "bicubic"):  # a = -0.5 in place of -0.75
        assert np.median(apart) <= 1
    else:  # other arithmetics: last bits
        assert apart.max() <= 1.01


@pytest.mark.parametrize("first", [True, False])
def test_a_warp_of_a_gray_picture_is_found(first):
    def program(x):
        if first:
            return warped(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY))
        return cv2.cvtColor(warped(x), cv2.COLOR_RGB2GRAY)

    found, image = identify(program, takes="array"), photograph()
    assert (found.known, found.rule, found.layout) == (True, "warp", "HW")
    assert np.array_equal(np.array(found.matrix), MATRIX)
    given = torch.from_numpy(image).movedim(-1, 0)[None]
    made = found.pipeline(given)[0, 0].double().numpy()
    assert np.array_equal(made.round(), program(image.copy()))
    assert np.abs(made - made.round()).max() < 1e-3
    floats = (given / 255).requires_grad_()
    found.pipeline(floats).sum().backward()
    assert float(floats.grad.abs().max()) > 0
    with pytest.raises(ValueError, match="no program for a conversion to gray"):
        found.to_code("cv2")


def test_differences_of_warps_are_measured_by_themselves():
    moved = MATRIX + np.array([[0, 0, 0.5], [0, 0, 0]])
    result = compare_pipelines(
        lambda x: warped(x),
        lambda x: warped(x, moved, flags=cv2.INTER_CUBIC, value=(114, 114, 114)),
        takes=("array", "array"),
    )
    kinds = {finding.kind: finding for finding in result.findings}
    assert set(kinds) == {"shift", "interpolation", "pad"}
    assert "(0.5, 0.12, 3.5)" in kinds["shift"].message
    assert kinds["pad"].largest == 114
    assert "114" in kinds["pad"].message
    image = photograph()
    assert 0 < kinds["interpolation"].differing < kinds["shift"].compared
    assert kinds["shift"].differing > 0
    only = compare_pipelines(
        lambda x: warped(x), lambda x: warped(x, moved), takes=("array", "array"), images=[image]
    )
    counted = int((warped(image) != warped(image, moved)).sum())
    assert [finding.kind for finding in only.findings] == ["shift"]
    assert only.findings[0].differing == only.differing == counted


def test_a_warp_beside_a_resize_is_one_finding():
    result = compare_pipelines(
        lambda x: warped(x), lambda x: cv2.resize(x, (200, 150)), takes=("array", "array")
    )
    assert [finding.kind for finding in result.findings] == ["size"]
    assert "warps to 150 x 200" in result.findings[0].message


def test_a_matrix_of_no_simple_numbers_is_not_claimed():
    matrix = np.array([[0.51234567, 0.1234567, 3.1456789], [-0.0987654, 0.55432198, 20.98765]])
    found = identify(lambda x: warped(x, matrix), takes="array")
    assert not found.known
    assert found.arithmetic is None
    assert found.rule == "warp"
    assert found.differing > 0
    corners = np.array([(0, 0, 1), (417, 0, 1), (0, 301, 1), (417, 301, 1)], float)
    assert np.abs(corners @ (np.array(found.matrix) - matrix).T).max() < 1e-3


def test_a_perspective_of_no_simple_numbers_is_not_claimed():
    matrix = TILTED + np.random.default_rng(1).normal(size=(3, 3)) * [[1e-2], [1e-2], [1e-5]]
    matrix /= matrix[2, 2]
    found = identify(lambda x: cv2.warpPerspective(x, matrix, (200, 150)), takes="array")
    assert (found.known, found.arithmetic, found.rule) == (False, None, "warp")
    assert 0 < found.differing < 0.02 * found.compared
    corners = np.array([(0, 0), (199, 0), (0, 149), (199, 149)], np.float64)[None]
    ours, theirs = (np.linalg.inv(m) for m in (np.array(found.matrix), matrix))
    apart = cv2.perspectiveTransform(corners, ours) - cv2.perspectiveTransform(corners, theirs)
    assert np.abs(apart).max() < 1e-3


def test_perspectives_that_differ_are_one_finding():
    moved = TILTED + np.array([[0, 0, 0.5], [0, 0, 0], [0, 0, 0]])
    result = compare_pipelines(
        tilted,
        lambda x: cv2.warpPerspective(x, moved, (200, 150)).astype(np.float32) / 255,
        takes=("array", "array"),
    )
    assert [finding.kind for finding in result.findings] == ["shift"]
    assert "(0.0002, -0.0001, 1)" in result.findings[0].message
    assert result.findings[0].differing > 0


def test_a_crop_off_the_centre_is_no_warp():
    found = identify(lambda x: x[10:110, 20:130], takes="array")
    assert found.rule is None
    assert not found.known
