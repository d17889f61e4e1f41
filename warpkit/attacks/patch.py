"""One patch for many boxes of many images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.ball import check_positive, check_unit
from warpkit.attacks.descent import (
    MakeOptimizer,
    descend,
    describe,
    make_optimizer,
    mean_and_gradient,
)
from warpkit.attacks.distribution import Distribution, check_count, check_range, draw
from warpkit.attacks.scene import PatchScene
from warpkit.attacks.views import Objective, check_objective, split
from warpkit.core import checks
from warpkit.engine.sampling.rules import ARITHMETICS
from warpkit.patches import arguments


@dataclass(frozen=True)
class Patch:
    """What `optimize_patch` found; `str` of it is one line."""

    patch: Tensor
    """(C, h, w), within the limits."""
    history: list[float]
    """The objective at each step, before it."""
    state: dict[str, Any] = field(repr=False)
    """What ``resume=`` goes on from: tensors and numbers, for `torch.save`."""

    def __str__(self) -> str:
        return f"patch of {tuple(self.patch.shape)}: {describe(self.history)}"


def optimize_patch(
    objective: Objective,
    images: Tensor,
    boxes: Any,
    image_index: Any,
    *,
    patch_size: Sequence[int],
    distribution: Distribution | Any = None,
    mask: Tensor | None = None,
    steps: int = 100,
    samples: int = 4,
    step_size: float = 0.05,
    chunk: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    optimizer: str | MakeOptimizer = torch.optim.Adam,
    limits: tuple[float, float] = (0.0, 1.0),
    start: Tensor | None = None,
    quantize: bool = False,
    resume: dict[str, Any] | None = None,
    interpolation: str = "bilinear",
    arithmetic: str = "exact",
) -> Patch:
    """One patch that, pasted on every box of every image, makes `objective` fall.

    Args:
        objective: takes images (B * n, C, H, W), image by image, and returns a scalar, their mean,
            which is minimised.
        images: (B, C, H, W), or (C, H, W) for one image; float32 or float64 in [0, 1].
        boxes: (N, 4), (x1, y1, x2, y2) in edge coordinates, where the patch is pasted.
        image_index: (N,), integers: the image of each box. None where there is one image.
        patch_size: (h, w) of the patch.
        distribution: how each pasted patch is turned, scaled, sheared and moved about its box's
            centre, in pixels of the image: an `AffineDistribution`, or anything with its `sample`,
            drawn anew for each box at each step; or matrices (samples, 2, 3) or (samples, 3, 3)
            about the centre of `patch_size`, the same for all boxes. None: as the boxes lie.
        mask: (1, h, w): how much of each patch pixel there is, such as a disc; 1 where None.
        samples: views of each image at each step.
        limits: (low, high) of the patch's values: what a printer can print.
        start: (C, h, w), the first patch; the middle of the limits where None.
        quantize: round the patch, and the images it is pasted on, to 8 bits; the gradient passes
            straight through.
        interpolation, arithmetic: as in `warp_affine`. With OpenCV's arithmetic a patch is what
            cv2.warpAffine makes of it on a frame as large as the image, with its mask premultiplied
            as a fourth channel: slower, one frame for each object.
        steps, step_size, chunk, generator, progress, optimizer, resume: as in
            `optimize_perturbation`.

    Returns:
        Patch: .patch, detached; .history, the objective at each step; .state.

    Raises:
        ValueError, TypeError, UserWarning: as `optimize_perturbation`.

    >>> found = optimize_patch(
    ...     torch.mean, torch.ones(1, 4, 4), [[1, 1, 3, 3]], None, patch_size=(1, 1), steps=20
    ... )
    >>> found.patch
    tensor([[[0.]]])
    """
    name = "optimize_patch"
    check_objective(name, objective)
    batch = check_unit(name, "images", images)
    data = arguments.images(name, batch)
    boxes, index = arguments.boxes(name, boxes, image_index, data)
    if len(boxes) == 0:
        checks.fail(name, "boxes", "of shape (N, 4), at least one", checks.shape_of(boxes))
    low, high = _check_limits(name, limits)
    height, width = checks.check_size(name, "patch_size", patch_size)
    patch = _first(name, start, (batch.shape[1], height, width), (low, high), batch)
    if mask is not None:
        mask = arguments.per_object(name, "mask", mask, 1, (1, height, width), data)[0]
    checks.check_bool(name, "quantize", quantize)
    checks.check_name(name, "arithmetic", arithmetic, ARITHMETICS)
    check_count(name, "samples", samples)
    scene = PatchScene(
        batch, boxes, index, mask, (height, width), quantize, interpolation, arithmetic
    )
    moves = PatchMotion(distribution, samples, len(boxes), (height, width))

    def gradient_of() -> tuple[float, Tensor]:
        placed = scene.place(moves.draw(name, generator, batch.device))
        return mean_and_gradient(name, objective, patch, split(name, placed, chunk), scene.render)

    history, state = descend(
        name,
        patch,
        gradient_of,
        lambda patch: patch.clamp(low, high),
        make_optimizer(name, optimizer, patch, check_positive(name, "step_size", step_size)),
        steps=steps,
        resume=resume,
        generator=generator,
        progress=progress,
    )
    return Patch(scene.printed(patch.detach(), (low, high)), history, state)


@dataclass(frozen=True)
class PatchMotion:
    """How the patch is moved at each step, on every box."""

    distribution: Distribution | Any
    samples: int
    boxes: int
    patch_size: tuple[int, int]

    def draw(self, name: str, generator: torch.Generator | None, device: torch.device) -> Tensor:
        """(samples, N or 1, rows, 3), about the patch's centre."""
        if self.distribution is None:
            return torch.eye(2, 3, device=device)[None, None]
        draws = hasattr(self.distribution, "sample")  # else matrices, the same for all boxes
        count, shape = (self.samples * self.boxes, (-1, self.boxes)) if draws else (None, (-1, 1))
        drawn = draw(name, self.distribution, count, self.patch_size, generator, device)
        return drawn.unflatten(0, shape)


def _check_limits(name: str, limits: tuple[float, float]) -> tuple[float, float]:
    low, high = check_range(name, "limits", limits)
    if not 0 <= low < high <= 1:
        checks.fail(name, "limits", "(low, high) with 0 <= low < high <= 1", repr(limits))
    return low, high


def _first(
    name: str,
    start: Tensor | None,
    shape: tuple[int, ...],
    limits: tuple[float, float],
    images: Tensor,
) -> Tensor:
    """The patch to begin with, a leaf in the images' type.

    start (C, h, w), or None; images (B, C, H, W).
    """
    if start is None:
        return images.new_full(shape, sum(limits) / 2, requires_grad=True)
    if not isinstance(start, Tensor) or start.shape != shape:
        got = checks.shape_of(start) if isinstance(start, Tensor) else type(start).__name__
        checks.fail(name, "start", f"a tensor of shape {shape}", got)
    return start.detach().to(images).clamp(*limits).requires_grad_()
