"""Two photographs, depth and a lens nobody calibrated: python -m examples.stereo_depth FOLDER

FOLDER is `skimage/data` of an installed scikit-image 0.26, whose wheel has Middlebury's motorcycle:
two photographs with measured disparities and known cameras. The right photograph is shown from the
left camera, with masks of what is valid and what is hidden. Then it is distorted by a lens, and the
pose, the lens and the scale and shift of a relative depth are found together from a wrong guess.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import warpkit as wk
from examples.figures import new_figure, save
from warpkit import camera, flow
from warpkit.cli.image_files import read_image

FOCAL, CENTRE, BETWEEN, BASE = 994.978, (311.193, 254.877), 31.086, 0.193001
"""In pixels, but for the base in metres; between the centres of both cameras along x."""
LENS = (-0.28, 0.09, 0.001, -0.0006)
LEVELS = (8, 4, 2, 1)
"""How much smaller the photographs of each level are."""


class Pair(NamedTuple):
    """Two photographs, of parallel cameras."""

    left: Tensor
    """(3, h, w)."""
    right: Tensor
    """(3, h, w)."""
    depth: Tensor
    """(1, h, w), the left one's in metres, NaN where it is unknown."""
    matrix: Tensor
    """(3, 3)."""
    other: Tensor
    """(3, 3), the right camera's."""
    pose: Tensor
    """(4, 4)."""


class Found(NamedTuple):
    """What is known about the right camera: the parameters of a search."""

    turn: Tensor
    """A rotation vector (3,) in radians; the true one is 0."""
    way: Tensor
    """The direction (3,) to the left camera; the true one is (-1, 0, 0)."""
    line: Tensor
    """Scale and shift (2,) of the relative inverse depth."""
    k: Tensor
    """k1 and k2 of the lens (2,)."""


def load(folder: Path) -> Pair:
    """The pair of scikit-image."""
    paths = (folder / f"motorcycle_{side}.png" for side in ("left", "right"))
    left, right = (read_image(path).pixels / 255 for path in paths)
    disparity = torch.from_numpy(np.load(folder / "motorcycle_disp.npz")["arr_0"])[None]
    depth = BASE * FOCAL / (disparity + BETWEEN)
    matrix = torch.tensor([[FOCAL, 0, CENTRE[0]], [0, FOCAL, CENTRE[1]], [0, 0, 1]])
    other = matrix + torch.tensor([[0, 0, BETWEEN], [0, 0, 0], [0, 0, 0]])
    pose = camera.pose(camera.rotation(), (-BASE, 0.0, 0.0))
    return Pair(left, right, depth.where(disparity.isfinite(), torch.nan), matrix, other, pose)


def synthesise(pair: Pair) -> camera.DepthWarp:
    """The right photograph from the left camera. The right one's depth is the left's, pushed."""
    there = camera.depth_points(pair.depth, pair.matrix, pair.pose, other_matrix=pair.other)
    field = flow.from_points(there.points)
    pushed = flow.splat(there.depth, field, mode="front", depth=there.depth)
    return camera.warp_depth(
        pair.right,
        pair.depth,
        pair.matrix,
        pair.pose,
        other_matrix=pair.other,
        other_depth=pushed.image.where(pushed.weight > 0, torch.nan),
        tolerance=0.02,
    )


def errors(pair: Pair, seen: camera.DepthWarp) -> dict[str, float]:
    """Mean differences from the left photograph, in levels."""
    assert seen.occluded is not None
    apart = 255 * (seen.image - pair.left).abs().mean(0, keepdim=True)
    return {
        "not warped": 255 * (pair.right - pair.left).abs().mean().item(),
        "valid": apart[seen.valid].mean().item(),
        "not hidden": apart[seen.valid & ~seen.occluded].mean().item(),
        "hidden": apart[seen.valid & seen.occluded].mean().item(),
    }


def relative(pair: Pair) -> tuple[Tensor, Tensor]:
    """Inverse depth from 0 to 1, as a monocular network gives it, and its true scale and shift."""
    inverse = (1 / pair.depth).nan_to_num(0)
    low, high = inverse[inverse > 0].min(), inverse.max()
    return ((inverse - low) / (high - low)).clamp(min=0), torch.stack((high - low, low))


def refine(pair: Pair) -> tuple[Found, Found]:
    """The wrong guess, and what L-BFGS finds from it, from small photographs to whole ones."""
    shape, line = relative(pair)
    wide = camera.distort(pair.right, pair.other, LENS, border="replicate")
    guess = Found(
        torch.tensor([0.02, -0.03, 0.015]),
        torch.tensor([-1.0, 0.15, -0.2]),
        line * torch.tensor([0.7, 1.6]),
        torch.tensor([-0.17, 0.0]),
    )
    found = Found(*(value.clone().requires_grad_() for value in guess))
    known = pair.depth.isfinite().float()
    for level in LEVELS:
        size = (shape.shape[-2] // level, shape.shape[-1] // level)
        scaled = wk.resize_matrix(shape.shape[-2:], size)
        left, right = (wk.resize(image, size, antialias=True) for image in (pair.left, wide))
        area = wk.resize(known, size, interpolation="area", antialias=True)
        small = wk.resize(shape * known, size, interpolation="area", antialias=True)
        small, use = small / area.clamp(min=1e-6), area > 0.99
        own, other = wk.compose(pair.matrix, scaled), wk.compose(pair.other, scaled)
        search = torch.optim.LBFGS(
            list(found), max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-11
        )

        def closure(
            left=left, right=right, small=small, use=use, own=own, other=other, search=search
        ) -> Tensor:
            search.zero_grad()
            inverse = (found.line[0] * small + found.line[1]).clamp(min=1e-3)
            shift = BASE * found.way / found.way.norm()  # photographs alone have no scale
            seen = camera.warp_depth(
                right,
                inverse,
                own,
                camera.pose(camera.rotation(vector=found.turn), shift),
                other_matrix=other,
                other_distortion=torch.cat((found.k, torch.zeros(2))),
                kind="inverse",
                border="replicate",  # the same pixels count wherever the pose runs
            )
            apart = ((seen.image - left).square() + 1e-3).sqrt()
            loss = (apart * use).sum() / use.sum() / 3
            loss.backward()
            return loss

        search.step(closure)
    return guess, Found(*(value.detach() for value in found))


def describe(pair: Pair, found: Found) -> str:
    """How far the parameters are from the truth."""
    shape, inverse = relative(pair)[0], 1 / pair.depth
    off = ((found.line[0] * shape + found.line[1] - inverse) / inverse).abs().nanmedian()
    cosine = -(found.way[0] / found.way.norm()).clamp(-1, 1)
    return (
        f"rotation off by {torch.rad2deg(found.turn.norm()):.2f} degrees, direction by "
        f"{torch.rad2deg(cosine.acos()):.2f}, depth by {100 * off:.1f} %, "
        f"k1 {found.k[0]:.3f} of {LENS[0]}"
    )


def draw(path: Path, pair: Pair, seen: camera.DepthWarp) -> None:
    """Both photographs, the right one from the left camera, and its masks, as a PNG."""
    assert seen.occluded is not None
    red, blue = (torch.tensor(c)[:, None, None] for c in ([1.0, 0.3, 0.0], [0.2, 0.2, 0.6]))
    masks = torch.where(seen.occluded, red, seen.image).where(seen.valid, blue)
    figure = new_figure(9, 6.4)
    titles = ("left", "right", "right, from the left camera", "hidden: orange, no pixel: blue")
    images = (pair.left, pair.right, seen.image, masks)
    for place, (title, image) in enumerate(zip(titles, images, strict=True)):
        axes = figure.add_subplot(2, 2, place + 1)
        axes.imshow(image.clamp(0, 1).movedim(0, -1).numpy())
        axes.set_title(title)
        axes.set_axis_off()
    save(path, figure, colours=96)


def arguments(description: str | None) -> argparse.Namespace:
    """The folder of the pair, and where to draw, of a program's command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print both results, and draw the first."""
    options = arguments(__doc__)
    pair = load(options.folder)
    seen = synthesise(pair)
    for name, value in errors(pair, seen).items():
        print(f"{name}: {value:.1f} levels")
    if options.picture:
        draw(options.picture, pair, seen)
    for name, found in zip(("guess", "found"), refine(pair), strict=True):
        print(f"{name}: {describe(pair, found)}")


if __name__ == "__main__":
    main()
