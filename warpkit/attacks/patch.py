"""Optimises one patch for many boxes of many images, fixed or in minibatches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks.batches import BatchStream, SameImages, is_iterable_of_batches
from warpkit.attacks.descent import (
    SAME_CALL,
    MakeOptimizer,
    check_state,
    descend,
    describe,
    make_optimizer,
    mean_and_gradient,
)
from warpkit.attacks.distribution import (
    Distribution,
    PerspectiveDistribution,
    check_distribution,
    check_generator,
    draw,
)
from warpkit.attacks.expectations import Objective, check_objective
from warpkit.attacks.photometric import Photometric
from warpkit.attacks.pipeline import Pipeline
from warpkit.attacks.pipeline_steps import Function
from warpkit.attacks.random_parameters import Draws, make_capture
from warpkit.attacks.scene import PatchScene, print_patch
from warpkit.attacks.surface import Cylinder, bend_of
from warpkit.core import checks
from warpkit.core.numbers import check_count, check_positive, check_range
from warpkit.engine.definitions.antialias import check_antialias
from warpkit.engine.definitions.objects.canvases import Images, listed
from warpkit.engine.definitions.rules import ARITHMETICS
from warpkit.patches import arguments
from warpkit.types import (
    Arithmetic,
    BoxesLike,
    FlowLike,
    IndexLike,
    Interpolation,
    MatrixLike,
    StepName,
)


@dataclass(frozen=True)
class Patch:
    """The result of `optimize_patch`; printed as one line."""

    patch: Tensor
    """(C, h, w), within the limits."""
    history: list[float]
    """The objective at each step, before it."""
    state: dict[str, Any] = field(repr=False)
    """The state for ``resume=``: tensors and numbers, for `torch.save`."""

    def __repr__(self) -> str:
        return f"patch of {tuple(self.patch.shape)}: {describe(self.history)}"


def optimize_patch(
    objective: Objective,
    images: Tensor | Sequence[Tensor] | Iterable[Any],
    boxes: BoxesLike | Callable[[torch.Generator | None], BoxesLike] | None,
    image_index: IndexLike | None,
    *,
    patch_size: Sequence[int],
    distribution: Distribution | MatrixLike | None = None,
    mask: Tensor | None = None,
    steps: int = 100,
    samples: int = 4,
    step_size: float = 0.05,
    chunk: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    optimizer: StepName | MakeOptimizer = torch.optim.Adam,
    limits: tuple[float, float] = (0.0, 1.0),
    start: Tensor | None = None,
    quantize: bool = False,
    resume: dict[str, Any] | None = None,
    interpolation: Interpolation = "bilinear",
    arithmetic: Arithmetic = "exact",
    photometric: Photometric | None = None,
    pipeline: Pipeline | Function | None = None,
    surface: Cylinder | FlowLike | None = None,
    mirrored: Tensor | Sequence[bool] | None = None,
    camera: Distribution | MatrixLike | None = None,
    antialias: bool | int = False,
) -> Patch:
    """Optimise one patch that, pasted on every box of every image, minimises `objective`.

    Args:
        objective: takes images (B * n, C, H, W), image by image, and returns a scalar, their mean,
            which is minimised. For a list of images it takes a list of B * n of them, or, with a
            pipeline that makes one size of all, its results in one batch. If it has a parameter
            named `patch`, it receives the patch (C, h, w) as it is printed: for `total_variation`,
            `nonprintability`.
        images: (B, C, H, W), or (C, H, W) for one image, or a list of (C, H_i, W_i); float32 or
            float64 in [0, 1]. Or minibatches: an iterable, such as a DataLoader, of tuples (images,
            boxes, image_index) or (images, boxes, image_index, extra), one for each step; extra is
            the objective's second argument. Iterables that can be iterated again start over at
            their end. A list of tensors is one of images.
        boxes: where the patch is pasted: (N, 4), (N, 5) or (N, 4, 2), upright, rotated or four
            corners as in `crop_patches`; or a function of the generator that draws them for each
            step. None with minibatches.
        image_index: (N,), integers: the image of each box. None for one image, and with
            minibatches.
        patch_size: (h, w) of the patch.
        distribution: how each pasted patch is rotated, scaled, sheared and moved about its box's
            centre, in pixels of the image: an `AffineDistribution`, or anything with its `sample`,
            drawn for each box at each step; or matrices (samples, 2, 3) or (samples, 3, 3) about
            the centre of `patch_size`, the same for all boxes. The corners of a
            `PerspectiveDistribution` move relative to the patch's size. None: no transformation.
        mask: (1, h, w): the opacity of each patch pixel, such as a disc; None is 1.
        samples: views of each image at each step.
        limits: (low, high) of the patch's values, such as a printer's range.
        start: (C, h, w), the first patch; None is the middle of the limits. (1, h, w) makes a grey
            patch for images of any C.
        quantize: round the patch, and the images it is pasted on, to 8 bits, with a
            straight-through gradient.
        interpolation, arithmetic: as in `warp_affine`. With OpenCV's arithmetic, cv2.warpAffine
            warps a patch onto a frame as large as the image, with its mask premultiplied as a
            fourth channel: slower, one frame for each object.
        photometric: a `Photometric`, drawn for the patch on each box in each view, before it is
            pasted, and for every view.
        pipeline: as in `optimize_perturbation`.
        surface: the surface of the patch: a `Cylinder`, or a flow (h, w, 2) as `paste_patches`
            takes it. None: flat.
        mirrored: (N,), booleans: the boxes on which the patch is mirrored left to right, before
            everything else. None: no box; with minibatches, corners that run counter-clockwise
            mirror it.
        camera: how each view moves the image together with the patch, about the image's centre: as
            `distribution`, drawn for each image; matrices are the same for all images. Beyond the
            image's edge everything is 0, or the patch.
        antialias: as in `paste_patches`, for the patch and for what the camera shows; with
            arithmetic="exact".
        steps, step_size, chunk, generator, progress, optimizer: as in `optimize_perturbation`.
        resume: as there; pass the iterable of minibatches from its start, as in the first call:
            used ones are skipped. A DataLoader draws from random numbers seeded by the generator,
            and from its own generator.

    Returns:
        Patch: .patch, detached; .history, the objective at each step; .state.

    Raises:
        ValueError, TypeError, UserWarning: as `optimize_perturbation`; ValueError for an iterable
            that ends early.

    >>> result = optimize_patch(
    ...     torch.mean, torch.ones(1, 4, 4), [[1, 1, 3, 3]], None, patch_size=(1, 1), steps=20
    ... )
    >>> result.patch
    tensor([[[0.]]])
    """
    name = "optimize_patch"
    steps = check_count(name, "steps", steps)
    samples = check_count(name, "samples", samples)
    low, high = _check_limits(name, limits)
    height, width = size = checks.check_size(name, "patch_size", patch_size)
    capture = make_capture(name, photometric, pipeline, quantize)
    checks.check_name(name, "arithmetic", arithmetic, ARITHMETICS)
    check_antialias(name, antialias)
    if antialias is not False and arithmetic != "exact":
        checks.fail(name, "antialias", f"False with arithmetic={arithmetic!r}", repr(antialias))
    if camera is not None:
        check_distribution(name, camera, "camera")
    check_state(name, resume)
    check_generator(name, generator)
    source = _source(name, objective, images, boxes, image_index, steps, resume)
    batch = _images_like(name, objective, source, resume, generator)
    patch = _first(name, start, (batch.shape[1], height, width), (low, high), batch)
    flips = _check_mirrored(name, mirrored, source, batch.device)
    if mask is not None:
        data = arguments.images(name, batch)
        mask = arguments.per_object(name, "mask", mask, 1, (1, height, width), data)[0]
        opacity = mask.detach()
        checks.check_values(name, "mask", ~((opacity >= 0) & (opacity <= 1)), "in [0, 1]", opacity)
    bend = bend_of(name, surface, size, batch)
    varies = photometric is not None or camera is not None
    moves = PatchMotion(distribution, camera, samples, size, varies)

    def gradient_of() -> tuple[float, Tensor]:
        images, boxes, index, extra = source.draw(generator)
        _check_fits(name, images, patch)
        if flips is not None and len(flips) != len(boxes):
            wanted = f"of shape ({len(boxes)},), one for each box"
            checks.fail(name, "mirrored", wanted, checks.shape_of(flips))
        how = capture, interpolation, arithmetic, antialias
        scene = PatchScene(images, boxes, index, flips, mask, size, bend, *how)
        placed = scene.place(*moves.draw(name, len(boxes), generator, patch.device))
        opacity = moves.draw_camera(name, images, len(placed), generator)
        colours = [capture.draw(len(placed), n, generator) for n in (len(images), len(boxes))]
        pieces = Draws(placed, *colours, camera=opacity).split(name, chunk)
        return mean_and_gradient(
            name, objective, patch, pieces, scene.render, *extra, patch=scene.print
        )

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
        step_size=step_size,
    )
    if isinstance(source, BatchStream):
        state["batches"] = source.state
    return Patch(print_patch(patch.detach(), (low, high), capture.quantize), history, state)


@dataclass(frozen=True)
class PatchMotion:
    """The transformations of the patch at each step, on every box."""

    distribution: Distribution | MatrixLike | None
    camera: Distribution | MatrixLike | None
    samples: int
    patch_size: tuple[int, int]
    varies: bool
    """Whether views under one matrix differ."""

    def draw(
        self, name: str, boxes: int, generator: torch.Generator | None, device: torch.device
    ) -> tuple[Tensor | None, Tensor]:
        """Corners (samples, N, 3, 3) of the patch, if they move, and matrices (samples, N or 1,
        rows, 3).

        Both are about the patch's centre; N is the number of boxes.
        """
        if self.distribution is None:
            count = self.samples if self.varies else 1
            return None, torch.eye(2, 3, device=device).expand(count, 1, 2, 3)
        count, size = self.samples * boxes, self.patch_size
        if isinstance(self.distribution, PerspectiveDistribution):
            check_generator(name, generator)
            parts = self.distribution.sample_parts(count, size=size, generator=generator)
            corners, moves = (part.to(device).unflatten(0, (-1, boxes)) for part in parts)
            return corners, moves
        draws = hasattr(self.distribution, "sample")  # else matrices, the same for all boxes
        matrices = draw(name, self.distribution, count if draws else None, size, generator, device)
        return None, matrices.unflatten(0, (-1, boxes if draws else 1))

    def draw_camera(
        self, name: str, images: Images, count: int, generator: torch.Generator | None
    ) -> Tensor | None:
        """Matrices (count, B, rows, 3) about the centre of each image; None without a camera.

        images (B, C, H, W), or a tuple of (C, H_i, W_i).
        """
        if self.camera is None:
            return None
        cameras = [
            draw(name, self.camera, count, image.shape[-2:], generator, image.device, "camera")
            for image in images
        ]
        return torch.stack(cameras, 1)


def _source(
    name: str,
    objective: Objective,
    images: Any,
    boxes: Any,
    index: Any,
    steps: int,
    resume: dict[str, Any] | None,
) -> SameImages | BatchStream:
    """The source of each step's batch."""
    batches = is_iterable_of_batches(images)
    if resume is not None and batches != ("batches" in resume):
        got = "one with batches" if "batches" in resume else "one without batches"
        checks.fail(name, "resume", SAME_CALL, got)
    if not batches:
        check_objective(name, objective, patch=True)
        return SameImages(name, images, boxes, index)
    for argument, value in (("boxes", boxes), ("image_index", index)):
        if value is not None:
            wanted = "None if `images` is an iterable of batches, which hold them"
            checks.fail(name, argument, wanted, type(value).__name__)
    return BatchStream(name, images, steps, None if resume is None else resume["batches"])


def _images_like(
    name: str,
    objective: Objective,
    source: SameImages | BatchStream,
    resume: dict[str, Any] | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Images (B, C, H, W) of the type, the channels and the device that all batches have."""
    if isinstance(source, SameImages):
        return _one(source.check())
    if resume is not None:  # the next batch may need draws, so do not look at it yet
        return resume["variable"][None]
    batch = source.peek(generator)
    check_objective(name, objective, *("extra" for _ in batch.extra), patch=True)
    return _one(batch.images)


def _one(images: Images) -> Tensor:
    """Images (B, C, H, W), or the first of a list as (1, C, H, W)."""
    return images if isinstance(images, Tensor) else images[0][None]


def _check_fits(name: str, images: Images, patch: Tensor) -> None:
    """Check that images of a later batch fit the patch (C, h, w)."""
    one = listed(images)[0]
    checks.check_device(name, "images", one, patch.device)
    if len(patch) not in (1, one.shape[-3]) or one.dtype != patch.dtype:
        wanted = f"of {len(patch)} channels and {patch.dtype}, as in the first batch"
        checks.fail(name, "images", wanted, f"{checks.shape_of(one)} of {one.dtype}")


def _check_mirrored(
    name: str, mirrored: Any, source: SameImages | BatchStream, device: torch.device
) -> Tensor | None:
    """`mirrored` as (N,), bool."""
    if mirrored is None:
        return None
    wanted = "booleans of shape (N,), one for each box"
    if isinstance(source, BatchStream):
        checks.fail(name, "mirrored", "None with minibatches", type(mirrored).__name__)
    flips = checks.as_exact(name, "mirrored", mirrored, device)
    if not isinstance(flips, Tensor) or flips.dtype != torch.bool:
        got = flips.dtype if isinstance(flips, Tensor) else f"{mirrored!r:.60}"
        checks.fail(name, "mirrored", wanted, got, TypeError)
    if flips.ndim != 1:
        checks.fail(name, "mirrored", wanted, checks.shape_of(flips))
    checks.check_device(name, "mirrored", flips, device)
    return flips


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
    """The initial patch, a leaf of the images' type.

    start (C, h, w), or None; images (B, C, H, W).
    """
    if start is None:
        return images.new_full(shape, sum(limits) / 2, requires_grad=True)
    if not isinstance(start, Tensor) or start.shape not in (shape, (1, *shape[1:])):
        got = checks.shape_of(start) if isinstance(start, Tensor) else type(start).__name__
        grey = "" if shape[0] == 1 else f", or {(1, *shape[1:])} for a grey one"
        checks.fail(name, "start", f"a tensor of shape {shape}{grey}", got)
    values = start.detach()
    values = values.to(torch.get_default_dtype()) if not values.is_floating_point() else values
    checks.check_values(name, "start", ~((values >= 0) & (values <= 1)), "in [0, 1]", values)
    return values.to(images).clamp(*limits).requires_grad_()
