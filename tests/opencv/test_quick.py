"""Cached calls give the same pixels as cv2."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.support.installed_opencv import installed_opencv
from warpkit.engine.binding import plan
from warpkit.opencv import warps

MATRIX = np.array([[0.9, 0.2, 1.5], [-0.3, 1.1, 4.25], [0.004, -0.002, 1.0]])
OTHER = np.array([[1.2, -0.1, -3.0], [0.2, 0.8, 2.5], [0.001, 0.003, 1.0]])


def picture(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    calls = {}
    monkeypatch.setattr(plan, "_plans", calls)
    return calls


@pytest.mark.parametrize("shape", [(31, 44), (31, 44, 1), (31, 44, 2), (31, 44, 3), (3, 5, 4)])
@pytest.mark.parametrize("name", ["warpAffine", "warpPerspective"])
def test_a_second_warp_also_matches_cv2(name, shape, known):
    cv2 = installed_opencv()
    rows = 2 if name == "warpAffine" else 3
    matrices = (MATRIX, OTHER, MATRIX * 0)[: 4 - rows + 1]  # OpenCV 5.0 hangs at one of 0
    for flags in (cv2.INTER_LINEAR, cv2.INTER_NEAREST, cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP):
        for border, value in ((0, 0), (0, (7, 200.6, 30)), (1, 0), (4, 0)):
            for n, matrix in enumerate(matrices):
                image, m = picture(*shape, seed=n), np.ascontiguousarray(matrix[:rows])
                call = {"flags": flags, "borderMode": border, "borderValue": value}
                got = getattr(ours, name)(image, m, (29, 17), **call)
                wanted = getattr(cv2, name)(image, m, (29, 17), **call)
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
                assert np.array_equal(got, wanted), (flags, border, value, n)
    assert len([kind for kind in known if repr(name) in kind[-1]]) == 12


def test_a_result_belongs_to_the_caller():
    image = picture(40, 40, 3)
    first, second = (ours.warpAffine(image, MATRIX[:2].copy(), (40, 40)) for _ in range(2))
    assert np.array_equal(first, second)
    second[:] = 0
    assert ours.warpAffine(image, MATRIX[:2].copy(), (40, 40)).any()
    first[:] = 1  # may be written to


def test_bad_arguments_are_rejected_every_time():
    image, m = picture(9, 9, 3), MATRIX[:2].copy()
    for _ in range(2):
        ours.warpAffine(image, m, (9, 9))
        with pytest.raises(ValueError, match="warpAffine: `flags` must be"):
            ours.warpAffine(image, m, (9, 9), flags=99)
        with pytest.raises(ValueError, match="warpAffine: `M` must be"):
            ours.warpAffine(image, MATRIX, (9, 9))
        with pytest.raises(ValueError, match="dsize"):
            ours.warpAffine(image, m, (9, -9))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("flags", [0, 1, 2, 4])
def test_a_second_call_of_any_type_also_matches_cv2(dtype, flags, known):
    cv2, image = installed_opencv(), picture(31, 44, 3).astype(dtype)
    for matrix in (MATRIX, OTHER):
        for m in (np.asfortranarray(matrix[:2]), matrix[:2].astype(np.float32)):
            for value in (0.5, -1e12):
                call = {"flags": flags, "borderValue": value}
                wanted = cv2.warpAffine(image, m, (29, 17), **call)
                assert np.array_equal(ours.warpAffine(image, m, (29, 17), **call), wanted)
    assert len(known) == 4


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("flags", [0, 1, 2, 4])
def test_a_second_remap_also_matches_cv2(dtype, flags, known):
    cv2, random = installed_opencv(), np.random.default_rng(1)
    image = picture(31, 44, 3).astype(dtype)
    for _ in range(2):
        x, y = (random.uniform(-9, 50, (17, 29)).astype(np.float32) for _ in range(2))
        fixed = cv2.convertMaps(x, y, cv2.CV_16SC2)
        pixels = [] if flags else [(fixed[0], None)]  # OpenCV 5.0 reads missing fractions
        for maps in ((x, y), (np.dstack((x, y)), None), fixed, *pixels):
            for border in (0, 1, 4):
                call = {"borderMode": border, "borderValue": (7, 200.6, 30)}
                wanted = cv2.remap(image, *maps, flags, **call)
                found = ours.remap(image, *maps, flags, **call)
                assert np.array_equal(found, wanted), (maps[0].shape, maps[0].dtype, border)
    assert len([kind for kind in known if kind[0] is warps._plan_remap]) == (9 if flags else 12)


def test_maps_that_look_normalized_get_a_warning_every_time():
    image, places = picture(40, 40, 3), np.linspace(-1, 1, 40, dtype=np.float32)
    y, x = (np.ascontiguousarray(part) for part in np.meshgrid(places, places, indexing="ij"))
    ours.remap(image, 20 + x, 20 + y, 1)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"remap: all `points` lie within"):
            ours.remap(image, x, y, 1)


def test_calls_with_other_kinds_of_arguments_are_not_cached(known):
    image, m = picture(9, 9, 3), MATRIX[:2].copy()
    ours.warpAffine(image[::2], m, (9, 9))
    ours.warpAffine(image, m, (9, 9), arithmetic="exact")
    ours.warpAffine(image, m, (9, 9), image.copy(), borderMode=ours.BORDER_TRANSPARENT)
    ours.warpAffine(torch.zeros(9, 9, requires_grad=True), m, (9, 9))
    maps = np.ones((9, 9), np.float32) * 5, np.ones((9, 9), np.float32) * 5
    ours.remap(image[::2], *maps, 1)
    ours.remap(image, *maps, 1, arithmetic="exact")
    ours.remap(image, *maps, 1, image.copy(), ours.BORDER_TRANSPARENT)
    ours.remap(image, maps[0].astype(np.float64), maps[1], 1)
    assert not [kind for kind in known if kind[0] in (warps._plan_warp, warps._plan_remap)]


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 1), (9, 12, 3)])
def test_tensors_take_the_way_of_arrays(shape, known):
    image, m = picture(*shape), MATRIX[:2].copy()
    x, y = (np.random.default_rng(n).uniform(-3, 12, (5, 7)).astype(np.float32) for n in (0, 1))
    calls = [
        lambda take: ours.warpAffine(take(image), take(m), (7, 5), borderValue=9),
        lambda take: ours.warpAffine(take(image), take(m.astype(np.float32)), (7, 5), flags=17),
        lambda take: ours.warpPerspective(take(image), take(MATRIX), (7, 5), flags=0),
        lambda take: ours.remap(take(image), take(x), take(y), 1),
        lambda take: ours.remap(take(image), take(np.stack((x, y), -1)), None, 1),
        lambda take: ours.remap(take(image), *map(take, ours.convertMaps(x, y, 11)), 1),
        lambda take: ours.resize(take(image), (7, 5)),
    ]
    for n, call in enumerate(calls):
        wanted = call(np.copy).reshape(5, 7, *shape[2:])
        for take in (torch.from_numpy, _planar):
            for _ in range(2):
                found = call(take)
                assert isinstance(found, torch.Tensor)
                assert np.array_equal(found, wanted), n
    assert len(known) >= 2 * len(calls)


def _planar(array: np.ndarray) -> torch.Tensor:
    """A picture (H, W, C) with a plane for each channel in memory; others are unchanged."""
    tensor = torch.from_numpy(array)
    is_picture = array.ndim == 3 and array.dtype == np.uint8
    return tensor.permute(2, 0, 1).contiguous().permute(1, 2, 0) if is_picture else tensor


def test_a_kept_call_writes_to_its_dst():
    image, m = picture(9, 12, 3), MATRIX[:2].copy()
    for _ in range(3):
        dst = np.zeros((5, 7, 3), np.uint8)
        assert ours.warpAffine(image, m, (7, 5), dst) is dst
        assert np.array_equal(dst, ours.warpAffine(image, m, (7, 5)))


COEFFICIENTS = np.array([0.1, -0.05, 0.001, 0.002, 0.01, *[0.0] * 7, 0.05, 0.02])
STRAIGHT = COEFFICIENTS * ([1] * 12 + [0] * 2)


@pytest.mark.parametrize("k", [None, COEFFICIENTS[:5], STRAIGHT, COEFFICIENTS])
def test_lenses_of_tensors_take_the_way_of_arrays(k, known):
    camera, turn = np.array([[30.0, 0, 7], [0, 30, 4], [0, 0, 1]]), np.diag([1.0, -1, -1])
    image = picture(9, 12, 3)
    fish, lens = None if k is None else k[:4], (camera, k)
    calls = [
        lambda take: (ours.undistort(take(image), *map(take, lens)),),
        lambda take: (ours.undistort(take(image), *map(take, lens), None, take(2 * camera)),),
        lambda take: ours.initUndistortRectifyMap(*map(take, lens), None, None, (12, 9), 5),
        lambda take: ours.initUndistortRectifyMap(
            *map(take, (*lens, turn, camera.astype(np.float32))), (12, 9), 11
        ),
        lambda take: ours.convertMaps(*map(take, MAPS), 11),
        lambda take: ours.convertMaps(*map(take, MAPS), 11, None, None, True),
        lambda take: ours.convertMaps(*map(take, ours.convertMaps(*MAPS, 11)), 5),
    ]
    if fish is not None:
        calls += [
            lambda take: (
                ours.fisheye.undistortImage(*map(take, (image, camera, fish, None, camera))),
            ),
            lambda take: ours.fisheye.initUndistortRectifyMap(
                *map(take, (camera, fish, turn, None)), (12, 9), 11
            ),
        ]
    for n, call in enumerate(calls):
        for _ in range(2):
            wanted = call(lambda value: value)
            found = call(lambda value: None if value is None else torch.from_numpy(value))
            for one, other in zip(found, wanted, strict=True):
                assert other is None or isinstance(one, torch.Tensor)
                assert other is None or np.array_equal(one, other), n
    assert len(known) == 2 * len(calls)


MAPS = tuple(np.random.default_rng(n).uniform(-3, 12, (5, 7)).astype(np.float32) for n in (0, 1))


def test_matrices_of_tensors_take_the_way_of_arrays(known):
    random = np.random.default_rng(0)
    three, four = (random.uniform(0, 9, (2, n, 2)).astype(np.float32) for n in (3, 4))
    angle, scale = np.array(30), np.array(0.7)
    calls = [
        lambda take: ours.getAffineTransform(take(three[0]), take(three[1].astype(np.float64))),
        lambda take: ours.getPerspectiveTransform(take(four[0]), take(four[1])),
        lambda take: ours.getPerspectiveTransform(take(four), take(four[:1] // 9)),
        lambda take: ours.getRotationMatrix2D(take(four[0, 0]), 30.5, take(scale)),
        lambda take: ours.boxPoints((take(four[0, 0]), take(four[0, 1]), take(angle))),
        lambda take: ours.invertAffineTransform(take(MATRIX[:2].copy())),
        lambda take: ours.invertAffineTransform(take(MATRIX[:2].astype(np.float32))),
    ]
    for n, call in enumerate(calls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "kind_of", lambda *_: None)
            wanted = call(np.copy)
        for _ in range(2):
            tensor = call(torch.from_numpy)
            assert isinstance(tensor, torch.Tensor)
            assert np.array_equal(call(np.copy), wanted), n
            assert np.array_equal(tensor, wanted), n
    assert len(known) == 2 * len(calls)


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 1), (9, 12, 3)])
def test_polar_pictures_of_tensors_take_the_way_of_arrays(shape, known):
    image, line, back = picture(*shape), 9, 9 + 16
    calls = [
        lambda take, x: ours.warpPolar(take(image), (7, 5), (x, 4.25), 5, line),
        lambda take, x: ours.warpPolar(take(image), (7, 5), (x, 4.25), 5.5, line + 256),
        lambda take, x: ours.warpPolar(take(image), (7, 5), (x, 4.25), 5.5, back),
    ]
    for n, call in enumerate(calls):
        for x in (5.25, 6.1):  # numbers that the kept plan has not seen
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(plan, "kind_of", lambda *_: None)
                wanted = call(np.copy, x)
            assert np.array_equal(call(np.copy, x), wanted), n
            for take in (torch.from_numpy, _planar):
                tensor = call(take, x)
                assert isinstance(tensor, torch.Tensor)
                assert np.array_equal(tensor, wanted.reshape(tensor.shape)), n
                assert tensor.shape == (5, 7, *shape[2:])
    assert len(known) == (3 if len(shape) == 3 and shape[2] == 3 else 2) * len(calls)


def test_rotations_and_homographies_of_tensors_take_the_way_of_arrays(known):
    random = np.random.default_rng(0)
    src, dst = random.uniform(0, 99, (2, 9, 2))
    calls = [
        lambda take: ours.Rodrigues(take(np.array([0.1, -0.7, 2.0]))),
        lambda take: ours.Rodrigues(take(random.permuted(np.eye(3, dtype=np.float32), axis=0))),
        lambda take: ours.findHomography(take(src), take(dst.astype(np.float32))),
        lambda take: ours.findHomography(take(src[:4]), take(dst[:4])),
    ]
    for n, call in enumerate(calls):
        for _ in range(2):
            state = random.bit_generator.state
            wanted = call(np.copy)
            random.bit_generator.state = state
            found = call(torch.from_numpy)
            for one, other in zip(found, wanted, strict=True):
                assert isinstance(one, torch.Tensor)
                assert np.array_equal(one, other), n
    assert len(known) == 2 * len(calls)


def test_a_plan_of_homographies_sees_points_on_a_line(known):
    src, dst = (np.random.default_rng(n).uniform(0, 99, (9, 2)) for n in (0, 1))
    ours.findHomography(src, dst)
    with pytest.raises(ValueError, match="findHomography: `srcPoints` must be points of positive"):
        ours.findHomography(np.stack((src[:, 0], src[:, 0] * 2), -1), dst)
    level = np.stack((src[:, 0], src[:, 0] * 0 + 7), -1)
    assert ours.findHomography(src, level)[0] is None
    src[3] = np.nan
    with pytest.raises(ValueError, match="findHomography: `srcPoints` must be finite"):
        ours.findHomography(src, dst)
    assert len(known) == 1
