"""Random calls of maps and points on arrays: the bits of torch's operations and of cv2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import warpkit.opencv as ours
from tests.camera.test_points import COUNTS
from tests.support.guarded_memory import survives
from tests.support.installed_opencv import installed_opencv
from warpkit.engine.binding import plan
from warpkit.opencv import door

cv2 = installed_opencv()
CALLS = 150
KINDS = [ours.CV_32FC1, ours.CV_32FC2, ours.CV_16SC2]


@pytest.fixture(autouse=True)
def needs_kernels():
    if not door.has_library():
        pytest.skip("no native library")


@contextlib.contextmanager
def by_torch() -> Iterator[None]:
    """Compute as without a native library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "has_library", lambda: False)
        patch.setattr(plan, "_plans", {})
        yield


def differing(one: Any, other: Any) -> int:
    """The number of different values; NaN equals NaN, shapes and types must agree."""
    if isinstance(one, tuple):
        return sum(differing(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, np.ndarray):
        return int(one != other)
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    floats = one.dtype.kind == "f"
    return int(
        (~((one == other) | ((one != one) & (other != other)) if floats else one == other)).sum()
    )


def calls(count: int = CALLS) -> Iterator[np.random.Generator]:
    for seed in range(count):
        yield np.random.default_rng(seed)


def camera(random: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    fx, fy = random.uniform(0.5, 2, 2) * max(size)
    return np.array(
        [[fx, 0, random.uniform(0, size[0])], [0, fy, random.uniform(0, size[1])], [0, 0, 1]]
    )


def lens(random: np.random.Generator, counts: Sequence[int] = COUNTS) -> np.ndarray | None:
    n = int(random.choice([0, *counts]))
    return random.normal(size=n) * random.choice([0.003, 0.03, 0.1]) if n else None


def sides(random: np.random.Generator) -> tuple[int, int]:
    """(W, H), also odd and smaller than a register."""
    width, height = random.integers(1, 70, 2)
    return int(width), int(height)


def test_maps_of_lenses_have_cv2s_and_torchs_bits():
    shown = 0
    for random in calls():
        size, k = sides(random), lens(random)
        matrix = camera(random, size)
        # with the camera's own matrix and no lens, the first pixels are 0 up to what an fma keeps
        view = (camera(random, size), matrix, None)[random.integers(3)]
        args = (matrix, k, None, view, size, int(random.choice(KINDS)))
        found = ours.initUndistortRectifyMap(*args)
        assert differing(found, cv2.initUndistortRectifyMap(*args)) == 0, args
        turn = cv2.Rodrigues(random.normal(size=3))[0]  # some pixels look backwards
        turned = (*args[:2], turn, *args[3:])
        with by_torch():
            wanted = ours.initUndistortRectifyMap(*args), ours.initUndistortRectifyMap(*turned)
        assert differing((found, ours.initUndistortRectifyMap(*turned)), wanted) == 0, args
        shown += found[0].size
    assert shown > 100_000


def test_maps_of_fisheyes_have_cv2s_and_torchs_bits():
    for random in calls():
        size, k = sides(random), random.normal(size=4) * 0.05
        kind = int(random.choice([KINDS[0], KINDS[2]]))
        turn = random.normal(size=3) * random.choice([0.0, 0.1, 1.5])
        args = (camera(random, size), k, turn, camera(random, size), size, kind)
        found = ours.fisheye.initUndistortRectifyMap(*args)
        assert differing(found, cv2.fisheye.initUndistortRectifyMap(*args)) == 0, args
        with by_torch():
            assert differing(found, ours.fisheye.initUndistortRectifyMap(*args)) == 0, args


def test_undistorted_images_have_cv2s_bits():
    for random in calls(40):
        size = sides(random)
        shape = size[::-1] if random.random() < 0.3 else (*size[::-1], int(random.integers(1, 5)))
        image = (random.random(shape) * 255).astype(
            str(random.choice(["uint8", "float32", "int16"]))
        )
        args = (image, camera(random, size), lens(random))
        assert differing(ours.undistort(*args), cv2.undistort(*args)) == 0
        args = (image, args[1], random.normal(size=4) * 0.05, None, args[1])
        found = ours.fisheye.undistortImage(*args)
        assert differing(found, cv2.fisheye.undistortImage(*args)) == 0


def test_converted_maps_have_cv2s_and_torchs_bits():
    for random in calls():
        height, width = sides(random)
        scale = random.choice([1.0, 100.0, 1e6])
        x, y = (random.normal(size=(2, height, 2 * width)) * scale).astype(np.float32)
        if random.random() < 0.3:
            x.flat[0], y.flat[-1] = np.inf, -1e30
        if random.random() < 0.5:  # views with gaps in memory
            x, y = x[:, ::2], y[:, ::2]
        pairs = np.stack((x, y), axis=-1)
        whole = bool(random.random() < 0.3)
        for first, second in ((x, y), (pairs, None)):
            for kind in KINDS:
                args = (first, second, kind, None, None, whole)
                found = ours.convertMaps(*args)
                with by_torch():
                    assert differing(found, ours.convertMaps(*args)) == 0
                if kind == KINDS[2]:
                    truth = cv2.convertMaps(
                        np.ascontiguousarray(first),
                        second if second is None else np.ascontiguousarray(second),
                        cv2.CV_16SC2,
                        nninterpolation=whole,
                    )
                    assert differing(found[0], truth[0]) == 0
                    assert whole or differing(found[1], truth[1]) == 0
        fixed = ours.convertMaps(x, y, -1)
        for kind in KINDS[:2]:
            args = (*fixed, kind, None, None, whole)
            found = ours.convertMaps(*args)
            with by_torch():
                assert differing(found, ours.convertMaps(*args)) == 0
            if not whole:
                truth = cv2.convertMaps(
                    *fixed, getattr(cv2, "CV_32FC1" if kind == 5 else "CV_32FC2")
                )
                assert differing(found[0], truth[0]) == 0


def test_polar_images_have_cv2s_and_torchs_bits():
    for random in calls(60):
        size, shape = sides(random), (*sides(random), 3)
        image = random.integers(0, 256, shape, dtype=np.uint8)
        center = tuple(float(v) for v in random.random(2) * 60)
        flags = int(random.integers(2)) + 8 + 256 * int(random.integers(2))
        flags += 16 if random.random() < 0.5 and flags < 256 else 0
        args = (image, size, center, float(random.uniform(2, 50)), flags)
        found = ours.warpPolar(*args)
        # inverse maps use a polynomial that may differ from cv2 in the last bit
        if flags < 16 or flags & 256:
            assert differing(found, cv2.warpPolar(*args)) == 0, args[1:]
        with by_torch():
            assert differing(found, ours.warpPolar(*args)) == 0


def test_undistorted_points_have_torchs_bits():
    for random in calls():
        size, count = (640, 480), int(random.integers(1, 90))
        form = [(count, 2), (count, 1, 2), (1, count, 2), (2, count)][random.integers(4)]
        points = (random.random(form) * 600).astype(str(random.choice(["float32", "float64"])))
        turn = cv2.Rodrigues(random.normal(size=3) * 0.2)[0] if random.random() < 0.5 else None
        view = camera(random, size) if random.random() < 0.5 else None
        if view is not None and random.random() < 0.5:
            view = np.hstack((view, np.ones((3, 1))))
        criteria = None if random.random() < 0.7 else (3, 20, float(random.choice([1e-6, 0.1])))
        args = (points, camera(random, size), lens(random), None, turn, view, criteria)
        found = ours.undistortPoints(*args)
        with by_torch():
            assert differing(found, ours.undistortPoints(*args)) == 0
        tensors = ours.undistortPoints(torch.from_numpy(points), *args[1:])
        assert differing(tensors.numpy(), found) == 0


def test_points_of_fisheyes_are_the_same_from_arrays_and_lists():
    """Arrays take another path than lists, to the same kernels."""
    for random in calls():
        dtype, shape = random.choice(["f4", "f8"]), ((7, 1, 2), (1, 7, 2), (7, 2), (2, 3, 2))
        points = random.normal(0, 0.5, shape[random.integers(4)]).astype(dtype)
        matrix, k = camera(random, (60, 40)), random.normal(0, 0.05, 4)
        skew = float(random.choice([0, 0.1]))
        shown = ours.fisheye.distortPoints(points, matrix, k, alpha=skew)
        assert not differing(
            shown, ours.fisheye.distortPoints(points, matrix.tolist(), k, alpha=skew)
        )
        turn, view = ours.Rodrigues(random.normal(0, 0.1, 3))[0], camera(random, (60, 40))
        for seen in ({}, {"R": turn}, {"P": view}, {"R": turn, "P": view}):
            found = ours.fisheye.undistortPoints(shown, matrix, k, **seen)
            assert not differing(
                found, ours.fisheye.undistortPoints(shown, matrix.tolist(), k, **seen)
            )


def test_projected_points_have_cv2s_and_torchs_bits():
    """Jacobians without a tilt have OpenCV 5's bits; a fisheye's pixels have cv2's bits."""
    first = cv2.__version__.startswith("5.")
    for random in calls(300):
        count, dtype = int(random.choice([1, 2, 7, 8, 9, 68, 1025])), random.choice(["f4", "f8"])
        form = [(count, 3), (count, 1, 3), (1, count, 3)][random.integers(3)]
        scene, turn = random.normal(size=form).astype(dtype), random.normal(size=3)
        turn *= random.choice([0, 1e-9, 0.3, 3])
        shift = random.normal(size=3) * 0.3 + (0, 0, random.choice([0, 4]))
        if random.random() < 0.1:
            scene.flat[random.integers(scene.size)] = random.choice([np.nan, np.inf, -3e30])
        ordinary = bool((np.abs(scene) < 1e9).all())
        scene = scene[::-1] if random.random() < 0.3 else scene
        axes = cv2.Rodrigues(turn)[0] if random.random() < 0.2 else turn
        k, ratio = lens(random), float(random.choice([0, 1.3]))
        args = (scene, axes, shift, camera(random, (60, 40)), k, None, None, ratio)
        found, truth = ours.projectPoints(*args), cv2.projectPoints(scene.copy(), *args[1:])
        with by_torch():
            assert differing(found[0], ours.projectPoints(*args)[0]) == 0
        assert differing(found[0], truth[0]) == 0
        if ordinary and np.size(k) < 14 and axes is turn and first:
            assert differing(found[1], truth[1]) == 0
        args = (scene.reshape(-1, 1, 3), turn, shift, args[3], random.normal(size=4) * 0.05)
        args += (None, float(random.choice([0, 0.1])))
        found = ours.fisheye.projectPoints(*args)
        truth = cv2.fisheye.projectPoints(args[0].copy(), *args[1:])
        assert differing(found[0], truth[0]) == 0
        assert differing(found[1], truth[1]) == 0 or not first
        tensors = ours.fisheye.projectPoints(torch.from_numpy(args[0].copy()), *args[1:])
        assert differing(tuple(part.numpy() for part in tensors), found) == 0


def test_rotations_and_homographies_are_the_same_from_arrays_tensors_and_lists():
    for random in calls():
        dtype = random.choice(["f4", "f8"])
        vector = (random.normal(0, 1, 3) * random.choice([1e-9, 1, 10])).astype(dtype)
        matrix = ours.Rodrigues(vector)[0] + random.normal(0, 1e-3, (3, 3)).astype(dtype)
        for given in (vector, matrix.astype(dtype), matrix.astype(dtype) * 101):
            by_tensor = tuple(t.numpy() for t in ours.Rodrigues(torch.from_numpy(given)))
            assert not differing(ours.Rodrigues(given), by_tensor)
        pairs = [random.uniform(0, 200, (4, 2)).astype(dtype) for _ in range(2)]
        by_lists = ours.findHomography(pairs[0].tolist(), pairs[1].tolist())
        assert not differing(ours.findHomography(*pairs), by_lists)


def test_points_under_a_perspective_have_cv2s_and_torchs_bits():
    for random in calls():
        channels = int(random.integers(1, 5))
        shape = (*random.integers(1, 40, 2), channels)
        points = (random.normal(size=shape) * 100).astype(
            str(random.choice(["float32", "float64"]))
        )
        matrix = random.normal(size=(channels + 1, channels + 1))
        if random.random() < 0.3:
            matrix[-1] = 0  # every point becomes 0
        points = points[::2] if random.random() < 0.5 else points
        found = ours.perspectiveTransform(points, matrix)
        with by_torch():
            assert differing(found, ours.perspectiveTransform(points, matrix)) == 0
        if channels in (2, 3):
            truth = cv2.perspectiveTransform(np.ascontiguousarray(points), matrix)
            assert found.shape == truth.shape
            if points.dtype == np.float32:
                assert differing(found, truth) == 0


def test_matrices_of_four_points_have_cv2s_bits():
    for random in calls(600):
        src, dst = (random.random((2, 4, 2)) * random.choice([1.0, 100.0, 2000.0])).astype(
            np.float32
        )
        if random.random() < 0.3:
            src, dst = src.round(1), dst.round(1)
        if random.random() < 0.1:
            src[3] = src[0] * 2 - src[1]  # collinear with two others
        found = ours.getPerspectiveTransform(src, dst)
        assert differing(found, cv2.getPerspectiveTransform(src, dst)) == 0
        wide = ours.getPerspectiveTransform(src.astype(np.float64)[:, None], dst)
        assert differing(wide, found) == 0


def test_tensors_with_gradients_have_the_same_values():
    points = torch.rand(5, 2, dtype=torch.float64) * 100
    matrix = camera(np.random.default_rng(0), (100, 80))
    k = torch.tensor([0.1, 0.01, 0.0, 0.0], dtype=torch.float64)
    plainly = ours.undistortPoints(points, matrix, k)
    followed = ours.undistortPoints(points, matrix, k.clone().requires_grad_())
    assert torch.equal(plainly, followed.detach())
    assert followed.requires_grad
    assert not plainly.requires_grad
    x, y = ours.initUndistortRectifyMap(matrix, k, None, None, (9, 7), 5)
    u, v = ours.initUndistortRectifyMap(matrix, k.clone().requires_grad_(), None, None, (9, 7), 5)
    assert torch.equal(x, u.detach())
    assert torch.equal(y, v.detach())
    assert u.requires_grad
    moved = torch.func.jacrev(lambda p: ours.perspectiveTransform(p[:, None], np.diag([2.0, 2, 1])))
    assert moved(points).shape == (5, 1, 2, 5, 2)


def test_results_have_the_same_bits_for_any_number_of_threads():
    matrix, before = camera(np.random.default_rng(1), (700, 500)), torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(
            ours.initUndistortRectifyMap(matrix, np.ones(5) * 0.01, None, None, (700, 500), 5)
        )
        found[-1] += (ours.perspectiveTransform(found[-1][0][..., None], np.eye(2) * 3),)
    torch.set_num_threads(before)
    assert differing(*found) == 0


GUARDED = """
import numpy as np, torch
from tests.support.guarded_memory import empty, guard_what_is_made
from warpkit.engine.cpu import maps, pictures, points as lists, transform
from warpkit.engine.arithmetic.opencv_lenses import Criteria
guard_what_is_made()
def guarded(array):
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy
big = np.array([0.0, 1.0, -1.0, 0.5, 1e5, -3e9, 2.0**31, 1e30, np.inf, np.nan])
random = np.random.default_rng(0)
for turn in range(200):
    h, w = (int(n) for n in random.integers(1, 40, 2))
    numbers = lambda n: [float(v) for v in random.choice(big, n)]
    for model, n in (("brown", 14), ("brown", 5), ("fisheye", 4)):
        lens = maps.PlainLens(model, tuple(numbers(4)), tuple(numbers(n)), numbers(9), numbers(9))
        for kind in maps.KINDS[:3] + maps.KINDS[4:]:
            maps.lens_map(lens, numbers(9), (h, w), kind)
    for kind in ("planes", "pairs", "fixed", "whole"):
        for shape, count in (((h, w), 2), ((h, w, 2), 1)):
            parts = [guarded(random.choice(big, shape).astype(np.float32)) for _ in range(count)]
            maps.converted_map(parts[0], parts[1] if count > 1 else None, kind)
        pixels = guarded(random.integers(-32768, 32768, (h, w, 2), dtype=np.int16))
        table = guarded(random.integers(0, 65536, (h, w), dtype=np.uint16))
        maps.converted_map(pixels, table, kind)
    maps.map_from_polar((h, w), 9, random.choice(big, 2), *numbers(2))
    maps.polar_map(random.choice(big, 2), *(random.choice(big, n) for n in (h, h, w)))
    lens = maps.PlainLens("brown", (1.0, 1.0, 0.0, 0.0), tuple(numbers(14)), numbers(9), numbers(9))
    for dtype in (np.float32, np.float64):
        points = guarded(random.choice(big, (h, 2)).astype(dtype))
        lens_of = guarded(random.choice(big, 46))
        codes = {"projects": 1, **lists.codes_of(Criteria(20, 0.1))}
        for task in ("undistorted_points", "fisheye_found", "fisheye_shown"):
            for k in (5, 14):
                run = lists.caller(task, points.dtype, coefficients=k, **codes)
                run(points, lens_of, (h, 2), h)
        scene = guarded(random.choice(big, (h, 3)).astype(dtype))
        for task, k, columns in (("projected", 14, 24), ("fisheye_projected", 4, 15)):
            codes = {"coefficients": k, "projects": turn % 2}
            run = lists.projector(task, scene.dtype, columns, **codes)
            run(scene, guarded(random.choice(big, 61)), (h, 2), h)
        for n in (1, 2, 3):
            points = guarded(random.choice(big, (h, n)).astype(dtype))
            run = lists.caller("moved_points", points.dtype, channels=n)
            run(points, guarded(random.choice(big, (n + 1, n + 1))), (h, n), h)
        x, y = (guarded(random.choice(big, (h, w)).astype(dtype)) for _ in range(2))
        for degrees in (False, True):
            for task, first in (("to_polar", x), ("from_polar", x), ("from_polar", None)):
                lists.polar_caller(task, (h, w), y.dtype, 1024, degrees)(first, y)
    for dtype in transform.TYPES:
        for n, rows in ((1, 2), (2, 2), (3, 1), (3, 3), (4, 4), (5, 3)):
            values = guarded(random.choice(big[:4], (h, w, n)).astype(dtype))
            matrix = guarded(random.choice(big, (rows, n + turn % 2)))
            strides = tuple(step // values.itemsize for step in values.strides)
            made = transform.caller(values.shape, strides, values.dtype, matrix.shape, "opencv5")
            made(values, matrix)
    four = guarded(random.choice(big, (h, 4, 2)).astype(np.float32))
    maps.perspective_matrices(four, four)
    three = guarded(random.choice(big, (h, 3, 2)).astype(np.float32))
    maps.affine_matrices(three, three)
    for dtype in ("u1", "u2", "u4"):
        picture = guarded(random.integers(0, 200, (h, w, 1)).astype(dtype))
        for turned in (picture.swapaxes(0, 1), np.rot90(picture, 1), np.rot90(picture, -1)):
            assert np.array_equal(pictures.arranged(turned), turned)
"""


@pytest.mark.parametrize("isa", ["", "sse4"])
def test_kernels_stay_inside_their_arrays(isa):
    assert survives(GUARDED, WARPKIT_ISA=isa)
