"""Rows of `warpkit bench` that compare cv2's functions with `warpkit.opencv`'s, on arrays.

Every row first checks that no value differs. For float64 points, and for floats with fractions, the
last bits may. If OpenCV's IPP gives other bits, it is switched off meanwhile.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

import warpkit.opencv as ours
from warpkit.cli.bench.noise import Noise
from warpkit.cli.bench.timing import PAUSE, Turns, in_turns, ratio

LONG = 2e-3
"""The shortest turn in seconds: short calls are repeated."""
LAST_BITS = 1e-6

HD, VGA, SMALL = (1080, 1920), (480, 640), (32, 32)
SIDES = (1920, 1080)
CAMERA = np.array([[1000.0, 0, 960], [0, 1010, 540], [0, 0, 1]])
NEAR = np.array([[30.0, 0, 16], [0, 30, 16], [0, 0, 1]])
BROWN = np.array([-0.3, 0.08, 0.001, -0.0005, 0.02])
FISHEYE = np.array([0.05, -0.01, 0.002, -0.001])
TILTED = np.array([[1, 0.1, 3], [0, 1.1, 2], [1e-4, 1e-5, 1]])
TURN = np.array([[0.94, 0.34, 3.0], [-0.34, 0.94, 7.0]])
FOUR = np.array([[0, 0], [10, 1], [9, 11], [1, 10]], np.float32)
OTHERS = np.array([[1, 0], [12, 1], [9, 14], [1, 9]], np.float32)
PAIRS = np.array([[1.1, 0.05], [-0.03, 0.95]])
SCENE_TURN, SCENE_SHIFT = np.array([0.1, -0.2, 0.05]), np.array([0.1, 0.2, 0.3])
COLORS = np.array([[0.3, 0.6, 0.1, 0], [-0.2, -0.3, 0.5, 128], [0.6, -0.5, -0.1, 128]])
POLAR, BACK = 1 + 8, 1 + 8 + 16


@lru_cache(maxsize=32)
def picture(dtype: str, size: tuple[int, int], channels: int = 1) -> np.ndarray:
    """Whole numbers, whose sums are exact in any order."""
    shape = (*size, channels) if channels > 1 else size
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


@lru_cache(maxsize=4)
def points(count: int, dtype: str = "float64") -> np.ndarray:
    """Points (N, 1, 2) in pixels."""
    return (np.random.default_rng(0).random((count, 1, 2)) * 1000).astype(dtype)


@lru_cache(maxsize=2)
def scene(count: int) -> np.ndarray:
    """Points (N, 1, 3) in front of a camera."""
    spread = np.random.default_rng(0).random((count, 1, 3))
    return spread * (2, 2, 1) + (-1, -1, 4)


@lru_cache(maxsize=1)
def matches() -> tuple[np.ndarray, np.ndarray]:
    """Two sets of points (100, 2), the second one moved and noisy."""
    first = points(100, "float32")[:, 0]
    noise = np.random.default_rng(1).normal(0, 0.3, first.shape)
    return first, (first @ PAIRS + 5 + noise).astype("float32")


@lru_cache(maxsize=4)
def maps(size: tuple[int, int], *, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The maps of a lens, (h, w) each, in floats or in fixed point."""
    camera = CAMERA if size == HD else NEAR
    kind = ours.CV_16SC2 if fixed else ours.CV_32FC1
    return ours.initUndistortRectifyMap(camera, BROWN, None, camera, size[::-1], kind)


def lens_map(m: Any, camera: np.ndarray, sides: tuple[int, int], kind: int) -> Any:
    """The map of a Brown lens."""
    return m.initUndistortRectifyMap(camera, BROWN, None, camera, sides, kind)


def fisheye_map(m: Any, camera: np.ndarray, sides: tuple[int, int]) -> Any:
    """The map of a fisheye lens."""
    return m.fisheye.initUndistortRectifyMap(camera, FISHEYE, None, camera, sides, ours.CV_32FC1)


class FaceWork(NamedTuple):
    """A call of `warpkit.opencv` or cv2."""

    name: str
    at_most: float
    """The highest allowed ratio to cv2's time."""
    call: Callable[[Any], Any]
    interpolation: str = "cv2's bits"
    ipp: bool = False
    """Whether OpenCV's IPP stays on, as in its wheels."""


def project(m: Any, count: int) -> Any:
    """Projects through a Brown lens, with the derivatives."""
    return m.projectPoints(scene(count), SCENE_TURN, SCENE_SHIFT, CAMERA, BROWN)


def project_fisheye(m: Any, count: int) -> Any:
    """Projects through a fisheye lens, with the derivatives."""
    return m.fisheye.projectPoints(scene(count), SCENE_TURN, SCENE_SHIFT, CAMERA, FISHEYE)


FLAGS = {"NEAREST": 2.5, "LINEAR": 1.4, "CUBIC": 2.0, "AREA": 1.4, "LANCZOS4": 2.0}
"""Filters of resizes, and the highest allowed ratio to cv2's time."""


def _resizes() -> Iterator[FaceWork]:
    for dtype in ("uint8", "uint16", "float32"):
        for name, at_most in FLAGS.items():
            flag = getattr(ours, f"INTER_{name}")
            yield FaceWork(
                f"resize {name} 640 x 480 x 3 to 224 {dtype}",
                at_most,
                lambda m, dtype=dtype, flag=flag: m.resize(
                    picture(dtype, VGA, 3), (224, 224), interpolation=flag
                ),
                ipp=True,
            )


def _warps() -> Iterator[FaceWork]:
    rows = (("NEAREST", 1.6), ("LINEAR", 1.6), ("CUBIC", 1.6), ("LANCZOS4", 2.0))
    for function, matrix in (("warpAffine", TURN), ("warpPerspective", TILTED)):
        for name, at_most in rows:
            yield FaceWork(
                f"{function} {name} 640 x 480 x 3 uint8",
                at_most,
                lambda m, function=function, matrix=matrix, name=name: getattr(m, function)(
                    picture("uint8", VGA, 3),
                    matrix,
                    VGA[::-1],
                    flags=getattr(ours, f"INTER_{name}"),
                ),
            )


WORKS = [
    FaceWork(
        "remap 1080p x 3 uint8", 1.1, lambda m: m.remap(picture("uint8", HD, 3), *maps(HD), 1)
    ),
    *_warps(),
    FaceWork("pyrDown 1080p x 3 uint8", 2, lambda m: m.pyrDown(picture("uint8", HD, 3))),
    FaceWork("pyrDown 1080p float32", 2, lambda m: m.pyrDown(picture("float32", HD))),
    FaceWork("pyrUp 640 x 480 x 3 uint8", 2, lambda m: m.pyrUp(picture("uint8", VGA, 3))),
    FaceWork(
        "copyMakeBorder 1080p x 3",
        2,
        lambda m: m.copyMakeBorder(picture("uint8", HD, 3), 8, 8, 8, 8, 4),
    ),
    FaceWork(
        "copyMakeBorder 640 x 480 x 3, constant",
        3,
        lambda m: m.copyMakeBorder(picture("uint8", VGA, 3), 8, 8, 8, 8, 0),
    ),
    FaceWork("rotate 1080p x 3", 2, lambda m: m.rotate(picture("uint8", HD, 3), 0)),
    FaceWork("rotate 1080p", 2, lambda m: m.rotate(picture("uint8", HD), 0)),
    FaceWork("transpose 1080p x 3", 2, lambda m: m.transpose(picture("uint8", HD, 3))),
    FaceWork("transpose 1080p float32", 2, lambda m: m.transpose(picture("float32", HD))),
    FaceWork("flip 1080p x 3", 2, lambda m: m.flip(picture("uint8", HD, 3), 1)),
    FaceWork(
        "getRectSubPix 224 x 224 x 3",
        3,
        lambda m: m.getRectSubPix(picture("uint8", VGA, 3), (224, 224), (300.3, 200.7)),
    ),
    *_resizes(),
    FaceWork("convertMaps 1080p", 2, lambda m: m.convertMaps(*maps(HD), ours.CV_16SC2)),
    FaceWork(
        "initUndistortRectifyMap 1080p",
        1.4,
        lambda m: lens_map(m, CAMERA, SIDES, ours.CV_32FC1),
    ),
    FaceWork(
        "initUndistortRectifyMap 1080p, fixed",
        1.4,
        lambda m: lens_map(m, CAMERA, SIDES, ours.CV_16SC2),
    ),
    FaceWork(
        "undistort 1080p x 3 uint8",
        1.4,
        lambda m: m.undistort(picture("uint8", HD, 3), CAMERA, BROWN),
    ),
    FaceWork(
        "fisheye.initUndistortRectifyMap 1080p",
        1.4,
        lambda m: fisheye_map(m, CAMERA, SIDES),
    ),
    FaceWork(
        "fisheye.undistortImage 1080p x 3 uint8",
        1.4,
        lambda m: m.fisheye.undistortImage(picture("uint8", HD, 3), CAMERA, FISHEYE, None, CAMERA),
    ),
    FaceWork(
        "warpPolar 512 x 512 x 3",
        1.4,
        lambda m: m.warpPolar(picture("uint8", (512, 512), 3), (512, 512), (256, 250), 256, POLAR),
    ),
    FaceWork(
        "warpPolar 512 x 512 x 3, nearest",
        1.4,
        lambda m: m.warpPolar(picture("uint8", (512, 512), 3), (512, 512), (256, 250), 256, 8),
    ),
    FaceWork(
        "warpPolar 512 x 512 x 3, back",
        1.4,
        lambda m: m.warpPolar(picture("uint8", (512, 512), 3), (512, 512), (256, 250), 256, BACK),
    ),
    FaceWork("cartToPolar 1080p", 2, lambda m: m.cartToPolar(*maps(HD))),
    FaceWork("polarToCart 1080p", 2, lambda m: m.polarToCart(*maps(HD), angleInDegrees=True)),
    FaceWork("transform 10,000", 3, lambda m: m.transform(points(10_000, "float32"), TURN)),
    FaceWork("transform 10,000 float64", 3, lambda m: m.transform(points(10_000), TURN)),
    *(
        FaceWork(
            f"transform 640 x 480 x 3 {dtype}",
            3,
            lambda m, dtype=dtype: m.transform(picture(dtype, VGA, 3), COLORS),
        )
        for dtype in ("uint8", "uint16", "float32")
    ),
    FaceWork(
        "undistortPoints 10,000", 2, lambda m: m.undistortPoints(points(10_000), CAMERA, BROWN)
    ),
    FaceWork(
        "perspectiveTransform 10,000",
        3,
        lambda m: m.perspectiveTransform(points(10_000, "float32"), TILTED),
    ),
    FaceWork("projectPoints 10,000", 4, lambda m: project(m, 10_000)),
    FaceWork("projectPoints 68", 20, lambda m: project(m, 68)),
    FaceWork("Rodrigues", 20, lambda m: m.Rodrigues(SCENE_TURN)),
    FaceWork("findHomography 100", 4, lambda m: m.findHomography(*matches())),
    FaceWork("fisheye.projectPoints 10,000", 4, lambda m: project_fisheye(m, 10_000)),
    FaceWork("fisheye.projectPoints 68", 20, lambda m: project_fisheye(m, 68)),
    FaceWork(
        "fisheye.undistortPoints 10,000",
        2,
        lambda m: m.fisheye.undistortPoints(points(10_000), CAMERA, FISHEYE),
    ),
    FaceWork(
        "fisheye.undistortPoints 68",
        20,
        lambda m: m.fisheye.undistortPoints(points(68), CAMERA, FISHEYE),
    ),
    FaceWork(
        "fisheye.estimateNewCameraMatrixForUndistortRectify",
        20,
        lambda m: m.fisheye.estimateNewCameraMatrixForUndistortRectify(
            CAMERA, FISHEYE, SIDES, np.eye(3)
        ),
    ),
    FaceWork("undistortPoints 68", 10, lambda m: m.undistortPoints(points(68), CAMERA, BROWN)),
    FaceWork("perspectiveTransform 68", 20, lambda m: m.perspectiveTransform(points(68), TILTED)),
    FaceWork("transform 68", 20, lambda m: m.transform(points(68, "float32"), TURN)),
    FaceWork("getPerspectiveTransform", 20, lambda m: m.getPerspectiveTransform(FOUR, OTHERS)),
    FaceWork("getAffineTransform", 20, lambda m: m.getAffineTransform(FOUR[:3], OTHERS[:3])),
    FaceWork("getRotationMatrix2D", 20, lambda m: m.getRotationMatrix2D((16, 16), 20, 1.1)),
    FaceWork("invertAffineTransform", 20, lambda m: m.invertAffineTransform(TURN)),
    FaceWork("boxPoints", 20, lambda m: m.boxPoints(((3, 4), (2, 6), 10))),
    FaceWork(
        "getOptimalNewCameraMatrix",
        20,
        lambda m: m.getOptimalNewCameraMatrix(CAMERA, BROWN, SIDES, 0.5),
    ),
    FaceWork("pyrDown 32 x 32 x 3", 20, lambda m: m.pyrDown(picture("uint8", SMALL, 3))),
    FaceWork(
        "resize 32 x 32 x 3 to 17", 20, lambda m: m.resize(picture("uint8", SMALL, 3), (17, 17))
    ),
    FaceWork(
        "copyMakeBorder 32 x 32 x 3",
        20,
        lambda m: m.copyMakeBorder(picture("uint8", SMALL, 3), 2, 2, 2, 2, 0),
    ),
    FaceWork(
        "getRectSubPix 32 x 32 x 3",
        20,
        lambda m: m.getRectSubPix(picture("uint8", SMALL, 3), (16, 16), (15.3, 14.2)),
    ),
    FaceWork("hconcat 640 x 480 x 3", 4, lambda m: m.hconcat([picture("uint8", VGA, 3)] * 2)),
    FaceWork("vconcat 640 x 480 x 3", 4, lambda m: m.vconcat([picture("uint8", VGA, 3)] * 2)),
    FaceWork("rotate 32 x 32 x 3", 20, lambda m: m.rotate(picture("uint8", SMALL, 3), 0)),
    FaceWork("convertMaps 32 x 32", 20, lambda m: m.convertMaps(*maps(SMALL), ours.CV_16SC2)),
    FaceWork(
        "initUndistortRectifyMap 32 x 32", 10, lambda m: lens_map(m, NEAR, SMALL, ours.CV_32FC1)
    ),
    FaceWork(
        "undistort 32 x 32 x 3",
        10,
        lambda m: m.undistort(picture("uint8", SMALL, 3), NEAR, BROWN),
    ),
    FaceWork(
        "warpPolar 32 x 32 x 3",
        10,
        lambda m: m.warpPolar(picture("uint8", SMALL, 3), SMALL, (16, 16), 16, POLAR),
    ),
    FaceWork(
        "warpAffine 32 x 32 x 3 float32",
        20,
        lambda m: m.warpAffine(picture("float32", SMALL, 3), TURN[:2], SMALL),
    ),
    FaceWork(
        "remap 32 x 32 x 3", 20, lambda m: m.remap(picture("uint8", SMALL, 3), *maps(SMALL), 1)
    ),
    FaceWork("cartToPolar 32 x 32", 20, lambda m: m.cartToPolar(*maps(SMALL))),
]


def prepare(work: FaceWork) -> dict[str, Any]:
    """The modules to time, after a check that their results agree."""
    if not find_spec("cv2"):
        return {"warpkit": ours}
    import cv2

    cv2.setNumThreads(torch.get_num_threads())
    cv2.ipp.setUseIPP(work.ipp)
    for mine, theirs in zip(_arrays(work.call(ours)), _arrays(work.call(cv2)), strict=True):
        same = mine.shape == theirs.shape and mine.dtype == theirs.dtype
        if same and mine.dtype.kind == "f":
            same = bool(np.abs(mine - theirs).max() <= LAST_BITS * np.abs(theirs).max())
        elif same:
            same = np.array_equal(mine, theirs)
        if not same:
            raise AssertionError(f"{work.name}: cv2 differs")
    return {"warpkit": ours, "cv2": cv2}


def _arrays(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part) for part in parts if part is not None]


def measure(work: FaceWork, turns: int, noise: Noise) -> Iterator[dict[str, Any]]:
    """One row for each library; the noise is measured between the turns."""
    modules = prepare(work)
    calls = {name: partial(work.call, module) for name, module in modules.items()}
    (once,) = in_turns({"warpkit": calls["warpkit"]}, Turns(1, untimed=0))["warpkit"]
    repeat = max(1, round(LONG / once))
    how = Turns(turns, warm=True, pause=PAUSE, repeat=repeat, rotate=True)
    times = in_turns(calls, how, between=noise.listen)
    for name, seconds in times.items():
        yield {
            "workload": work.name,
            "interpolation": work.interpolation,
            "does": f"at most {work.at_most:g} x cv2's time",
            "way": name,
            "ms": f"{statistics.median(seconds) * 1e3:.4g}",
            "times_warpkit": f"{ratio(seconds, times['warpkit']):.2f}",
        }
