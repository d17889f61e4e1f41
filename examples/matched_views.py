"""Depth by a sweep and flow by correlation, untrained: python -m examples.matched_views FOLDER

FOLDER is `skimage/data` of an installed scikit-image 0.26, whose wheel has Middlebury's motorcycle:
two photographs with measured disparities and known cameras. Features are normalised patches of
5 x 5 grey pixels, whose correlation is the usual one of block matching. The depth of a pixel is the
plane with the largest correlation, its flow the offset with the largest, from coarse to fine.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

import warpkit as wk
from examples.figures import new_figure, save
from examples.stereo_depth import Pair, arguments, load
from warpkit import camera, flow

SIDE, MEAN = 5, 7
"""Of a patch, and of the square over which correlations are averaged."""
PLANES, NEAREST, FARTHEST = 96, 1.8, 6.0
"""Depths in metres, evenly spaced in 1 / z."""
SCALES = (8, 4, 2)
"""How much smaller the photographs of a flow's levels are."""
CLOSE = 2.0
"""Pixels of the photographs within which a match counts as right."""


class Found(NamedTuple):
    """What was found in the left photograph, at half its size."""

    depth: Tensor
    """(h, w), in metres."""
    field: Tensor
    """(h, w, 2), in pixels of that size."""
    truth: Tensor
    """(h, w), metres, NaN where it is unknown."""
    right: dict[str, float]
    """The share of pixels that are right, for depth and flow."""


def features(picture: Tensor, size: tuple[int, int]) -> Tensor:
    """Patches of a photograph (3, h, w), resized and normalised: (1, 25, *size)."""
    grey = wk.resize(picture.mean(0, keepdim=True)[None], size, antialias=True)
    h, w = size
    pad = F.pad(grey, (SIDE // 2,) * 4, mode="replicate")
    patches = F.unfold(pad, SIDE).view(1, SIDE * SIDE, h, w)
    patches = patches - patches.mean(1, keepdim=True)
    return patches / (patches.square().mean(1, keepdim=True).sqrt() + 0.02)


def averaged(scores: Tensor) -> Tensor:
    """Scores (1, N, h, w), averaged over squares, in which most pixels lie on one surface."""
    return F.avg_pool2d(scores, MEAN, stride=1, padding=MEAN // 2, count_include_pad=False)


def half_of(pair: Pair) -> tuple[int, int]:
    return pair.left.shape[-2] // 2, pair.left.shape[-1] // 2


def swept_depth(pair: Pair) -> Tensor:
    """The left camera's depths (h, w)."""
    size, full = half_of(pair), (pair.left.shape[-2], pair.left.shape[-1])
    smaller = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    smaller[:2] = wk.resize_matrix(full, size)
    planes = torch.linspace(1 / FARTHEST, 1 / NEAREST, PLANES)
    left, right = (features(p, size) for p in (pair.left, pair.right))
    swept = camera.plane_sweep(
        left, right[:, None], planes, smaller @ pair.matrix, pair.pose[None],
        (smaller @ pair.other)[None], kind="inverse",
    )  # fmt: skip
    return 1 / planes[averaged(swept.cost[:, 0]).argmax(1)[0]]


def matched_flow(pair: Pair) -> Tensor:
    """The offsets (h, w, 2) from the left photograph to the right one."""
    field = None
    for scale in SCALES:
        h, w = (2 * side // scale for side in half_of(pair))
        left, right = (features(p, (h, w)) for p in (pair.left, pair.right))
        rows, columns = (1, 9) if field is None else (2, 2)
        if field is None:
            field = torch.zeros(h, w, 2)
        field = flow.resize(field, (h, w))
        scores = averaged(flow.correlation(left, right, field[None], radius=(rows, columns)))
        best = scores.argmax(1)[0]
        side = 2 * columns + 1
        field = field + torch.stack((best % side - columns, best // side - rows), -1)
    assert field is not None
    return field


def match(pair: Pair) -> Found:
    """Depth and flow of a pair, and how many of their pixels are right."""
    size = half_of(pair)
    depth, field = swept_depth(pair), matched_flow(pair)
    truth = wk.resize(pair.depth, size, interpolation="nearest")[0]
    known = truth.isfinite()
    strength = pair.matrix[0, 0] * -pair.pose[0, 3]  # focal length times base
    between = pair.other[0, 2] - pair.matrix[0, 2]
    wanted = strength / truth - between  # disparities of the photographs
    off = {
        "depth": (strength / depth - between - wanted).abs(),
        "flow": (2 * field + torch.stack((wanted, torch.zeros(size)), -1)).norm(dim=-1),
    }
    right = {name: (value[known] <= CLOSE).float().mean().item() for name, value in off.items()}
    return Found(depth, field, truth, right)


def draw(path: Path, pair: Pair, found: Found) -> None:
    """The left photograph, measured and swept depths, and the flow, as a PNG."""
    figure = new_figure(9, 6.4)
    photograph = wk.resize(pair.left, half_of(pair), antialias=True).clamp(0, 1)
    colours = flow.to_image(found.field)
    depths = {"vmin": NEAREST, "vmax": FARTHEST, "cmap": "magma_r"}
    said = {name: f"{100 * share:.0f} % right" for name, share in found.right.items()}
    panels = (
        ("left", photograph.movedim(0, -1), {}),
        ("measured depth", found.truth, depths),
        (f"depth by a plane sweep, {said['depth']}", found.depth, depths),
        (f"flow by correlation, {said['flow']}", colours.movedim(0, -1), {}),
    )
    for place, (title, picture, options) in enumerate(panels):
        axes = figure.add_subplot(2, 2, place + 1)
        axes.imshow(picture.numpy(), **options)
        axes.set_title(title)
        axes.set_axis_off()
    save(path, figure, colours=96)


def main() -> None:
    """Print how many pixels are right, and draw what was found."""
    options = arguments(__doc__)
    pair = load(options.folder)
    found = match(pair)
    for name, share in found.right.items():
        print(f"{name}: {100 * share:.0f} % within {CLOSE:g} pixels")
    if options.picture:
        draw(options.picture, pair, found)


if __name__ == "__main__":
    main()
