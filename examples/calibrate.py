"""Calibrate a camera by gradient descent from photographs of a chessboard, and compare with cv2.

The photographs are rendered through a known lens, with noise, in 8 bits; cv2 finds the corners. The
descent starts from a guessed focal length and no distortion.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import warpkit as wk
from examples.figures import new_figure, save
from warpkit import camera

SIZE = (480, 640)
SQUARES = (7, 10)
"""The squares of the board; it has one inner corner less along each axis."""
PIXELS = 40
"""Pixels of a square's side in the pattern's picture; the side is 1 in space."""
MARGIN = 120
"""Extra pixels at each edge, which barrel distortion brings into view."""
FOCAL, MIDDLE = (560.0, 548.0), (328.0, 231.0)
LENS = (-0.28, 0.09, 0.0008, -0.0012, -0.01)
NAMES = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")


@dataclass(frozen=True)
class Result:
    """The results of both methods from the same corners."""

    truth: Tensor
    """The parameters in the order of NAMES, (9,), float64."""
    descent: Tensor
    opencv: Tensor
    errors: tuple[float, float]
    """The RMS distances of the corners in pixels, for the descent and for cv2."""
    photographs: Tensor
    """(N, 1, H, W) in [0, 1]."""


def pattern() -> Tensor:
    """The board with a white margin of one square, (1, H, W)."""
    rows, columns = (torch.arange((n + 2) * PIXELS) // PIXELS for n in SQUARES)
    dark = (rows[:, None] + columns) % 2 == 0
    inside = (
        ((rows >= 1) & (rows <= SQUARES[0]))[:, None] & (columns >= 1) & (columns <= SQUARES[1])
    )
    return torch.where(dark & inside, 0.1, 0.9)[None]


def corners() -> Tensor:
    """The inner corners in space, row by row, (N, 3), z = 0, relative to the board's centre."""
    grid = wk.pixel_grid((SQUARES[0] - 1, SQUARES[1] - 1), dtype=torch.float64).flatten(0, 1)
    return torch.nn.functional.pad(grid - grid.mean(0), (0, 1))


def turns(vectors: Tensor) -> Tensor:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3) in radians."""
    x, y, z = vectors.unbind(-1)
    zero = torch.zeros_like(x)
    rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    return torch.linalg.matrix_exp(torch.stack([torch.stack(row, -1) for row in rows], -2))


def matrix_of(numbers: Tensor) -> Tensor:
    """The camera's matrix (3, 3) of fx, fy, cx, cy."""
    fx, fy, cx, cy = numbers.unbind()
    one, zero = torch.ones_like(fx), torch.zeros_like(fx)
    rows = ((fx, zero, cx), (zero, fy, cy), (zero, zero, one))
    return torch.stack([torch.stack(row) for row in rows])


def poses(count: int) -> tuple[Tensor, Tensor]:
    """Rotation vectors and translations (N, 3) of the views, always the same."""
    generator = torch.Generator().manual_seed(1)
    vectors = torch.rand(count, 3, generator=generator, dtype=torch.float64) - 0.5
    shifts = torch.rand(count, 3, generator=generator, dtype=torch.float64) - 0.5
    spread = torch.tensor([1.1, 1.1, 0.5], dtype=torch.float64)
    middle = torch.tensor([0.0, 0.0, 10.5], dtype=torch.float64)
    return vectors * spread, shifts * torch.tensor([3.0, 2.0, 3.0]) + middle


def photographs(count: int, noise: float) -> Tensor:
    """The board as the camera sees it in each pose, (N, 1, H, W), 8 bits in [0, 1]."""
    vectors, shifts = poses(count)
    matrix = matrix_of(torch.tensor((*FOCAL, *MIDDLE), dtype=torch.float64))
    # pattern pixel -> board: the corner of four squares is between pixels
    middle = ((SQUARES[1] + 2) * PIXELS - 1) / 2, ((SQUARES[0] + 2) * PIXELS - 1) / 2
    flat = wk.affine_matrix(
        scale=torch.tensor(1 / PIXELS).double(),
        translation=(-middle[0] / PIXELS, -middle[1] / PIXELS),
    )
    flat = torch.cat((flat, torch.eye(3)[2:].double()))
    turned = turns(vectors)
    onto = matrix @ torch.stack((turned[..., 0], turned[..., 1], shifts), -1) @ flat
    # render ideal views twice as large, with the lens's field of view; then distort, antialiased
    shift = 2 * MARGIN + 0.5
    twice = torch.tensor([[2.0, 0, shift], [0, 2, shift], [0, 0, 1]], dtype=torch.float64)
    large = (2 * (SIZE[0] + 2 * MARGIN), 2 * (SIZE[1] + 2 * MARGIN))
    ideal = wk.warp_perspective(pattern(), twice @ onto, size=large, border_value=0.5, antialias=4)
    lens = torch.tensor(LENS, dtype=torch.float64)
    points = camera.distort_map(matrix, lens, SIZE)
    seen = wk.remap(ideal, 2 * points + shift, border="replicate", antialias=2)
    generator = torch.Generator().manual_seed(0)
    seen = seen + noise * torch.randn(seen.shape, generator=generator)
    return wk.quantize(seen.clamp(0, 1))


def find(images: Tensor) -> tuple[Tensor, Tensor]:
    """The corners that cv2 finds, (M, N, 2), pixels, and in which photographs, (M,)."""
    found, where = [], []
    for k, image in enumerate(images):
        grey = (image[0] * 255).round().to(torch.uint8).numpy()
        good, points = cv2.findChessboardCornersSB(grey, (SQUARES[1] - 1, SQUARES[0] - 1))
        if good:
            points = torch.from_numpy(points).reshape(-1, 2).double()
            # half a turn maps the board to itself, so let the upper left corner be the first
            found.append(points if points[0].sum() < points[-1].sum() else points.flip(0))
            where.append(k)
    return torch.stack(found), torch.tensor(where)


def descend(seen: Tensor, steps: int) -> tuple[Tensor, float]:
    """The parameters of NAMES and the error in pixels, from corners (M, N, 2) alone."""
    board = corners()
    guess = torch.tensor([600.0, 600.0, (SIZE[1] - 1) / 2, (SIZE[0] - 1) / 2]).double()
    # a view's homography is the camera matrix times two columns of the rotation and the translation
    flat = wk.perspective_from_points(board[:, :2], seen)
    columns = torch.linalg.inv(matrix_of(guess)) @ flat
    columns = columns / columns[..., :2].norm(dim=-2).mean(-1)[..., None, None]
    u, _, v = torch.linalg.svd(
        torch.stack(
            (columns[..., 0], columns[..., 1], columns[..., 0].cross(columns[..., 1], -1)), -1
        )
    )
    turned, shifts = u @ v, columns[..., 2].clone()
    vectors = torch.zeros(len(seen), 3, dtype=torch.float64)
    numbers = torch.zeros(9, dtype=torch.float64)  # the camera's relative to the guess
    parameters = [numbers.requires_grad_(), vectors.requires_grad_(), shifts.requires_grad_()]

    def named() -> tuple[Tensor, Tensor]:
        scale = torch.tensor([600.0, 600.0, 100.0, 100.0], dtype=torch.float64)
        return guess + scale * numbers[:4], numbers[4:]

    def errors() -> Tensor:
        inner, lens = named()
        matrix = matrix_of(inner)
        points = board @ (turns(vectors) @ turned).mT + shifts[:, None]
        ideal = wk.transform_points(matrix[:2], points[..., :2] / points[..., 2:])
        return camera.distort_points(ideal, matrix, lens) - seen

    descent = torch.optim.LBFGS(
        parameters,
        max_iter=steps,
        line_search_fn="strong_wolfe",
        history_size=50,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
    )

    def loss() -> Tensor:
        descent.zero_grad()
        value = errors().square().sum(-1).mean()
        value.backward()
        return value

    descent.step(loss)
    with torch.no_grad():
        error = float(errors().square().sum(-1).mean().sqrt())
        return torch.cat(named()), error


def by_opencv(seen: Tensor) -> tuple[Tensor, float]:
    """The same with cv2.calibrateCamera."""
    board = [corners().numpy().astype(np.float32)] * len(seen)
    points = [view.numpy().astype(np.float32) for view in seen]
    error, matrix, lens, *_ = cv2.calibrateCamera(board, points, SIZE[::-1], None, None)
    inner = torch.tensor([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]])
    return torch.cat((inner, torch.from_numpy(np.ravel(lens)[:5]))), float(error)


def run(count: int, noise: float, steps: int) -> Result:
    """Render, find the corners, calibrate twice."""
    images = photographs(count, noise)
    seen, _ = find(images)
    truth = torch.tensor((*FOCAL, *MIDDLE, *LENS), dtype=torch.float64)
    (descent, error), (opencv, other) = descend(seen, steps), by_opencv(seen)
    return Result(truth, descent, opencv, (error, other), images)


def table(result: Result) -> Table:
    """The true parameters, and those that the descent and cv2 find."""
    rows = Table(title=f"a camera from {len(result.photographs)} photographs of a chessboard")
    for name in ("", "truth", "descent", f"cv2 {cv2.__version__}"):
        rows.add_column(name, justify="right")
    for name, *values in zip(NAMES, result.truth, result.descent, result.opencv, strict=True):
        rows.add_row(name, *(f"{float(v):.4f}" for v in values))
    rows.add_row("error, pixels", "", *(f"{error:.4f}" for error in result.errors))
    return rows


def draw(path: Path, result: Result) -> None:
    """A photograph, and the same undistorted with the found camera."""
    shown = result.photographs[0]
    flat = camera.undistort(shown, matrix_of(result.descent[:4]), result.descent[4:])
    figure = new_figure(8.0, 3.2)
    for axes, (name, image) in zip(
        figure.subplots(1, 2), {"photograph": shown, "undistorted": flat}.items(), strict=True
    ):
        axes.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1)
        axes.set(title=name)
        axes.set_axis_off()
    save(path, figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Calibrate, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m examples.calibrate")
    parser.add_argument("--count", type=int, default=10, help="how many photographs")
    parser.add_argument("--noise", type=float, default=0.02, help="for values in [0, 1]")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("calibrate.png"))
    options = parser.parse_args(argv)
    result = run(options.count, options.noise, options.steps)
    Console().print(table(result))
    draw(options.out, result)


if __name__ == "__main__":
    main()
