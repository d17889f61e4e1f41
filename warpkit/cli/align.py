"""`warpkit align`: aligns two images; writes the result, the matrix and an overlay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import warpkit as wk
from warpkit.cli.errors import check_apart
from warpkit.cli.image_files import (
    ImageFileError,
    check_target,
    format_of,
    read_image,
    replacing,
    write_image,
)
from warpkit.cli.image_kinds import Picture
from warpkit.cli.options import Numbers
from warpkit.cli.stderr import say
from warpkit.cli.warp.work import Options as WarpOptions
from warpkit.core.progress import progress_bar
from warpkit.types import AlignmentLoss, AlignmentModel, Interpolation

GAP = 4
"""White pixels between the two halves of an overlay."""


@dataclass(frozen=True)
class Options:
    """The options of `warpkit align`, as the command line has read them."""

    model: AlignmentModel
    loss: AlignmentLoss
    searches: bool
    matrix_out: Path | None
    overlay: Path | None
    interpolation: Interpolation


def run(moving: str, fixed: str, out: str, options: Options) -> int:
    """Align, write the requested files, and print the result; 1 if it did not converge."""
    target = Path(out)
    kind = format_of(target)
    outputs = {"OUT": target, "--matrix-out": options.matrix_out, "--overlay": options.overlay}
    for name, image in {"MOVING": moving, "FIXED": fixed}.items():  # which may be one file
        check_apart(outputs, {name: image})
    for path in outputs.values():
        check_target(path)
    overlay_kind = format_of(options.overlay) if options.overlay else ""
    pictures = [read_image(name) for name in (moving, fixed)]
    greys = []
    for name, picture in zip((moving, fixed), pictures, strict=True):
        if min(picture.pixels.shape[-2:]) < 16:
            raise ImageFileError(f"{name}: less than 16 pixels a side, which show too little")
        greys.append(grey(picture))
    with progress_bar(f"aligning {moving}", total=1) as advance:
        alignment = wk.align(
            *greys,
            model=options.model,
            loss=options.loss,
            init="search" if options.searches else None,
        )
        advance("converged" if alignment.converged else "not converged")
    size = (greys[1].shape[-2], greys[1].shape[-1])
    result = warped(pictures[0], alignment.matrix, size, options.interpolation)
    write_image(target, result, kind)
    if options.matrix_out is not None:
        with replacing(options.matrix_out) as file:
            file.write(numbers(alignment.matrix).encode())
    if options.overlay is not None:
        picture = Picture(overlay(greys[0], greys[1], alignment.matrix), "RGB")
        write_image(options.overlay, picture, overlay_kind)
    print(f"correlation {alignment.score:.4f}, {int(alignment.steps)} steps")
    print(numbers(alignment.matrix), end="")
    if not alignment.converged:
        say(f"{moving}: does not converge on {fixed}: what was written is the best that was found")
        return 1
    return 0


def grey(picture: Picture) -> Tensor:
    """The mean of a picture's colours, (1, H, W), float32."""
    colours = picture.pixels[:-1] if picture.mode in ("LA", "RGBA") else picture.pixels
    return colours.float().mean(0, keepdim=True)


def warped(
    picture: Picture, matrix: Tensor, size: tuple[int, int], interpolation: Interpolation
) -> Picture:
    """The moving picture, warped by `matrix` (2 or 3, 3) to the size of the fixed one."""
    values = Numbers(matrix.flatten().tolist())
    options = WarpOptions(
        parts={},
        matrix=values,
        inverse=False,
        corners=None,
        size=Numbers(size),
        interpolation=interpolation,
        antialias=False,
        border="constant",
        border_value=Numbers((0.0,)),
        arithmetic="exact",
    )
    return options.apply(picture)


def numbers(matrix: Tensor) -> str:
    """The rows of a matrix (2 or 3, 3), in the form of `warpkit warp --matrix`."""
    return "".join(" ".join(f"{v:.12g}" for v in row) + "\n" for row in matrix.tolist())


def overlay(moving: Tensor, fixed: Tensor, matrix: Tensor) -> Tensor:
    """Before and after, (3, h, 2 w + GAP), uint8: moving red, fixed green and blue.

    moving (C, H, W), fixed (C, h, w), C = 1; matrix (2 or 3, 3). Grey pixels agree.
    """
    size = (fixed.shape[-2], fixed.shape[-1])
    still = torch.eye(len(matrix), 3, dtype=torch.float64)
    panels = []
    for each in (still, matrix):
        warp = wk.warp_perspective if len(each) == 3 else wk.warp_affine
        view = warp(levels(moving), each, size=size)
        panels.append(torch.cat((view, levels(fixed), levels(fixed))))
    gap = torch.ones(3, size[0], GAP)
    both = torch.cat((panels[0], gap, panels[1]), -1)
    return (both * 255).round().clamp(0, 255).to(torch.uint8)


def levels(image: Tensor) -> Tensor:
    """An image scaled so that its lowest value is 0 and its highest 1."""
    low, high = image.aminmax()
    return (image - low) / (high - low).clamp(min=1e-12)
