"""Functions that peers beat in version 0.2, compared with them: python -m benchmarks.peers

The peers are kornia for lenses and quadrangles, handwritten Umeyama for similarities, OpenCV for
fits and alignments, and handwritten grid_sample for flows. Every case first proves that both sides
agree, then times them in turns on one thread and takes the least processor time of each, because
other load can only add to it. The aim is the wanted speed as a multiple of the peer's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import cv2
import kornia.geometry as kg
import kornia.geometry.calibration as kc
import numpy as np
import torch
from torch import Tensor

import warpkit as wk
import warpkit.opencv as wcv
from benchmarks import align, flow
from benchmarks.harness import about, table
from warpkit import camera
from warpkit.cli.bench.timing import Turns, in_turns

GENERATOR = torch.Generator().manual_seed(0)
IMAGE = torch.rand(1, 3, 540, 960, generator=GENERATOR)
CAMERA = torch.tensor([[500.0, 0, 480], [0, 505, 270], [0, 0, 1]])
LENS = torch.tensor([-0.3, 0.08, 0.001, -0.0005, 0.02])
MILD = torch.tensor([-0.05, 0.01, 0.0005, -0.0002, 0.001])
"""A lens that kornia's five steps invert to a few thousandths of a pixel."""

POINTS = torch.rand(10_000, 2, generator=GENERATOR) * torch.tensor([960.0, 540.0])
SQUARE = torch.tensor([[0.0, 0], [100, 0], [100, 100], [0, 100]])
CORNERS = SQUARE + 10 * torch.rand(64, 4, 2, generator=GENERATOR)
OTHERS = CORNERS + torch.randn(64, 4, 2, generator=GENERATOR)
CLOUDS = 100 * torch.rand(64, 100, 2, generator=GENERATOR)
MOVED = CLOUDS + torch.randn(64, 100, 2, generator=GENERATOR)

Way = Callable[[], Any]


class Case(NamedTuple):
    """Two ways to compute the same result."""

    name: str
    peer: str
    aim: float
    ours: Way
    theirs: Way
    apart: float
    """The largest allowed difference; infinite if they solve different problems."""
    units: tuple[int, int] = (1, 1)
    """The number of items per call."""


def with_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> Way:
    """The gradients of a sum, to all inputs."""

    def run() -> tuple[Tensor, ...]:
        leaves = [value.clone().requires_grad_() for value in inputs]
        return torch.autograd.grad(function(*leaves).sum(), leaves)

    return run


def umeyama(src: Tensor, dst: Tensor) -> Tensor:
    """Similarities (B, 2, 3) of points (B, N, 2), by a singular value decomposition."""
    middles = src.mean(1, keepdim=True), dst.mean(1, keepdim=True)
    x, y = src - middles[0], dst - middles[1]
    u, sizes, v = torch.linalg.svd(y.mT @ x)
    sign = torch.ones_like(sizes)
    sign[:, 1] = torch.linalg.det(u @ v)
    scale = (sizes * sign).sum(-1) / x.square().sum((1, 2))
    turn = scale[:, None, None] * (u * sign[:, None]) @ v
    return torch.cat((turn, middles[1].mT - turn @ middles[0].mT), -1)


def lenses() -> Iterator[Case]:
    """Images and points of lenses, beside kornia."""
    matrix, k = CAMERA[None], LENS[None]
    # different rounding of positions changes a sum over pixels of noise by a thousandth
    yield Case(
        "camera.undistort, 540p, gradients to camera and coefficients", "kornia", 2.0,
        with_gradients(lambda m, k: camera.undistort(IMAGE, m, k), CAMERA, LENS),
        with_gradients(lambda m, k: kc.undistort_image(IMAGE, m, k), matrix, k), torch.inf,
    )  # fmt: skip
    yield Case(
        "camera.undistort, 540p", "kornia", 2.0,
        lambda: camera.undistort(IMAGE, CAMERA, LENS),
        lambda: kc.undistort_image(IMAGE, matrix, k), 0.02,
    )  # fmt: skip
    yield Case(
        "camera.undistort_points, 10,000, solved, with a status", "kornia, five steps", 0.5,
        lambda: camera.undistort_points(POINTS, CAMERA, MILD)[0],
        lambda: kc.undistort_points(POINTS[None], matrix, MILD[None])[0], 0.01,
    )  # fmt: skip
    yield Case(
        "camera.undistort_points, 10,000, gradients to all", "kornia, five steps", 0.5,
        with_gradients(lambda p, m, k: camera.undistort_points(p, m, k)[0], POINTS, CAMERA, MILD),
        with_gradients(kc.undistort_points, POINTS[None], matrix, MILD[None]), torch.inf,
    )  # fmt: skip


def fits() -> Iterator[Case]:
    """Matrices fitted to points."""
    yield Case(
        "perspective_from_points, 64", "kornia", 1.0,
        lambda: wk.perspective_from_points(CORNERS, OTHERS),
        lambda: kg.get_perspective_transform(CORNERS, OTHERS), 0.01,
    )  # fmt: skip
    yield Case(
        "perspective_from_points, 1", "kornia", 1.0,
        lambda: wk.perspective_from_points(CORNERS[:1], OTHERS[:1]),
        lambda: kg.get_perspective_transform(CORNERS[:1], OTHERS[:1]), 0.01,
    )  # fmt: skip
    yield Case(
        "perspective_from_points, 64, gradients to both", "kornia", 1.0,
        with_gradients(wk.perspective_from_points, CORNERS, OTHERS),
        with_gradients(kg.get_perspective_transform, CORNERS, OTHERS), torch.inf,
    )  # fmt: skip
    yield Case(
        "similarity_from_points, 64 of 100", "Umeyama by hand", 1.0,
        lambda: wk.similarity_from_points(CLOUDS, MOVED), lambda: umeyama(CLOUDS, MOVED), 1e-3,
    )  # fmt: skip
    src, dst = (cloud[:1].mT.mT[0].numpy() for cloud in (CLOUDS, MOVED))
    yield Case(
        "findHomography, 100", "cv2", 0.5,
        lambda: wcv.findHomography(src, dst)[0], lambda: cv2.findHomography(src, dst, 0)[0], 1e-3,
    )  # fmt: skip


def alignments() -> Iterator[Case]:
    """Small affine motions of photographs, compared with ECC."""
    every_pair = align.make_pairs("small", "affine", 112, "")
    pairs = [pair for pair in every_pair if pair.moving.shape[-2:] == align.MOST][:64]
    moving, fixed = (torch.stack([getattr(p, n) for p in pairs]) for n in ("moving", "fixed"))

    def by_cv2() -> None:
        for pair in pairs[:16]:
            with suppress(cv2.error):
                align.by_ecc_pyramid(pair, "affine")

    yield Case(
        "align, 64 pairs of 192 x 256", "cv2 ECC over a pyramid", 3.0,
        lambda: wk.align(moving, fixed), by_cv2, torch.inf, (64, 16),
    )  # fmt: skip
    yield Case(
        "align, one pair of 192 x 256", "cv2 ECC over a pyramid", 1.0,
        lambda: [wk.align(pair.moving, pair.fixed) for pair in pairs[:16]], by_cv2, torch.inf,
        (16, 16),
    )  # fmt: skip
    yield from interpolated()
    template = cv2.resize(pairs[0].fixed[0, :, :192].numpy(), (200, 200)) * 255
    matrix = np.array([[1.01, 0.02, 2.3], [-0.015, 0.99, -1.7]])
    options: dict[str, Any] = {"flags": cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_REFLECT}
    picture = cv2.warpAffine(template, matrix, (200, 200), **options)

    def ecc(module: Any) -> Any:
        start = np.eye(2, 3, dtype=np.float32)
        arguments = (template, picture, start, cv2.MOTION_AFFINE, (3, 50, 1e-3))
        return module.findTransformECC(*arguments)[1]

    yield Case("findTransformECC, 200 x 200", "cv2", 0.4, lambda: ecc(wcv), lambda: ecc(cv2), 0.02)


def interpolated() -> Iterator[Case]:
    """Blurred noise, and what is interpolated from it: ECC converges from the identity."""
    random = np.random.default_rng(0)
    matrix = wk.affine_matrix(
        angle=3.0, scale=1.02, translation=(2.3, -1.7), center=wk.image_center((200, 200))
    ).numpy()
    pictures = [cv2.GaussianBlur(random.random((200, 200)), (0, 0), 3) for _ in range(64)]
    pictures = [((picture - 0.5) / picture.std()).astype(np.float32) for picture in pictures]
    options: dict[str, Any] = {"borderMode": cv2.BORDER_REPLICATE}
    views = [cv2.warpAffine(picture, matrix, (200, 200), **options) for picture in pictures]
    moving, fixed = (torch.from_numpy(np.stack(images))[:, None] for images in (pictures, views))

    def ours(count: int) -> np.ndarray:
        return wk.align(moving[:count], fixed[:count]).matrix[:8].numpy()

    def theirs(count: int) -> np.ndarray:
        start, matrices = np.eye(2, 3, dtype=np.float32), []
        for template, picture in list(zip(views, pictures, strict=True))[:count]:
            arguments = (
                template,
                picture,
                start.copy(),
                cv2.MOTION_AFFINE,
                (3, 200, 1e-3),
                None,
                5,
            )
            matrices.append(cv2.invertAffineTransform(cv2.findTransformECC(*arguments)[1]))
        return np.stack(matrices)

    for count in (64, 8, 1):
        few = min(count, 8)
        name = f"align, {count} pair{'s' * (count > 1)} of 200 x 200, interpolated"
        yield Case(
            name, "cv2 ECC to 1e-3", 1.0, lambda n=count: ours(n), lambda n=few: theirs(n), 0.1,
            (count, few),
        )  # fmt: skip


def flows() -> Iterator[Case]:
    """A dense field, with gradients to image and field."""
    image = torch.rand(8, 3, 512, 512, generator=GENERATOR)
    field = wk.flow.bspline(8 * torch.randn(8, 9, 9, 2, generator=GENERATOR), (512, 512))
    yield Case(
        "warp_flow, 8 x 3 x 512 x 512, both gradients", "grid_sample by hand", 2.5,
        with_gradients(wk.warp_flow, image, field), with_gradients(flow.gridded, image, field),
        torch.inf,
    )  # fmt: skip


def prove(case: Case) -> None:
    """Raise if the two ways differ too much."""
    ours, theirs = case.ours(), case.theirs()
    if case.apart < torch.inf:
        apart = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)).max()
        assert apart <= case.apart, f"{case.name}: {apart}"


def least(case: Case, seconds: float) -> tuple[float, float]:
    """The least times of both, in ms per item."""
    how = Turns(seconds=seconds, at_least=3, untimed=1, clock=time.process_time)
    times = in_turns({"ours": case.ours, "theirs": case.theirs}, how)
    ours, theirs = (1e3 * min(t) / n for t, n in zip(times.values(), case.units, strict=True))
    return ours, theirs


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Two rows for each case."""
    for part in (lenses, fits, alignments, flows):
        for case in part():
            if options.only not in case.name:
                continue
            prove(case)
            ours, theirs = least(case, options.seconds)
            common = {"aim": case.aim, **about(), "noise": options.noise}
            for way, ms in (("warpkit", ours), (case.peer, theirs)):
                row = {"case": case.name, "way": way, "ms": f"{ms:.4g}"}
                yield row | {"times_warpkit": f"{ms / ours:.2f}"} | common


if __name__ == "__main__":
    cv2.setNumThreads(1)
    table(__doc__, "peers", rows, seconds=3.0, only="", noise="")
