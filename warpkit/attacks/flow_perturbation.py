"""A perturbation that moves pixels and keeps their colours (Xiao et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from warpkit.attacks.descent import (
    MakeOptimizer,
    descend,
    describe,
    make_optimizer,
    mean_and_gradient,
)
from warpkit.attacks.distribution import Distribution
from warpkit.attacks.expectations import (
    Objective,
    check_objective,
    draw_views,
    show_views,
    source_of,
)
from warpkit.attacks.norm_ball import check_unit
from warpkit.attacks.photometric import Photometric
from warpkit.attacks.pipeline import Pipeline
from warpkit.attacks.pipeline_steps import Function
from warpkit.attacks.random_parameters import Draws, make_capture
from warpkit.core.mistakes import without_warnings
from warpkit.core.numbers import check_count, check_positive
from warpkit.flow.images import warp_flow
from warpkit.flow.splines import bspline
from warpkit.types import MatrixLike, StepName, WarpKeywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

WITHIN = 1 - 1e-6
"""The share of a budget that remains after rounding to float32."""


@dataclass(frozen=True)
class FlowPerturbation:
    """The result of `optimize_flow`; printed as one line."""

    image: Tensor
    """warp_flow(input, flow, border="replicate"), shaped like the input; rounded if asked."""
    flow: Tensor
    """(B, H, W, 2), or (H, W, 2) for one image: the offset (dx, dy) of every pixel, in pixels."""
    history: list[float]
    """The objective at each step, before it."""
    state: dict[str, Any] = field(repr=False)
    """The state for ``resume=``: tensors and numbers, for `torch.save`."""

    def __repr__(self) -> str:
        return f"flow of {tuple(self.image.shape)}: {describe(self.history)}"


def optimize_flow(
    objective: Objective,
    image: Tensor,
    distribution: Distribution | MatrixLike | None = None,
    *,
    epsilon: float,
    smoothness: float = 0.25,
    spacing: int = 8,
    steps: int = 100,
    samples: int = 16,
    step_size: float | None = None,
    chunk: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    optimizer: StepName | MakeOptimizer = "sign",
    quantize: bool = False,
    resume: dict[str, Any] | None = None,
    photometric: Photometric | None = None,
    pipeline: Pipeline | Function | None = None,
    **warp_options: Unpack[WarpKeywords],
) -> FlowPerturbation:
    """Move pixels by at most `epsilon` to minimise `objective`, as a mean over random views.

    Args:
        objective, distribution, steps, samples, chunk: as in `optimize_perturbation`.
        generator, progress, resume, photometric, pipeline: as there, too.
        image: (B, C, H, W), or (C, H, W) for one image; float32 or float64 in [0, 1]. Each image
            gets its own flow.
        epsilon: the largest motion of a pixel, in pixels.
        smoothness: the largest difference between the offsets of neighbouring pixels, in pixels;
            below 1/2 nothing folds.
        spacing: pixels between control points of the optimised cubic B-spline lattice: the flow has
            no finer detail.
        step_size: of one step; None is 2.5 epsilon / steps.
        optimizer: "sign": both coordinates of every control point move by the step size;
            "gradient": each lattice moves by the step size in l2 norm; or a function that makes a
            torch optimizer from ``([tensor], lr=step_size)``.
        quantize: the objective receives the moved image, and each view of it, rounded to 8 bits;
            the result is rounded, too. The gradient is straight-through. **warp_options: for the
            views, as in `warp_affine`.

    Returns:
        FlowPerturbation: .image and .flow, detached; .history, the objective at each step; .state.
        After each step a lattice is projected into the budgets: its points to length epsilon, and
        then the whole lattice is scaled until no two neighbours differ by more than `smoothness`.

    Raises:
        ValueError, TypeError, UserWarning: as `optimize_perturbation`.

    >>> ramp = torch.linspace(0, 1, 9).expand(1, 9, 9)
    >>> result = optimize_flow(torch.mean, ramp, epsilon=0.5, steps=4)
    >>> round(result.flow[4, 4, 0].item(), 3), bool((result.image <= ramp).all())
    (-0.5, True)
    """
    name = "optimize_flow"
    check_objective(name, objective)
    images = check_unit(name, "image", image)
    epsilon = check_positive(name, "epsilon", epsilon)
    smoothness = check_positive(name, "smoothness", smoothness)
    spacing = check_count(name, "spacing", spacing)
    steps = check_count(name, "steps", steps)
    samples = check_count(name, "samples", samples)
    capture = make_capture(name, photometric, pipeline, quantize)
    given_step = step_size
    step_size = 2.5 * epsilon / steps if step_size is None else step_size
    step_size = check_positive(name, "step_size", step_size)
    size = (images.shape[-2], images.shape[-1])
    spans = (-(-n // spacing) for n in size)
    control = images.new_zeros(len(images), *(n + 3 for n in spans), 2).requires_grad_()
    source, count = source_of(distribution, samples, capture, images)

    def moved(control: Tensor) -> Tensor:
        """The images moved by the flow of a lattice (B, m, n, 2)."""
        return without_warnings(warp_flow)(images, bspline(control, size), border="replicate")

    def render(control: Tensor, piece: Draws) -> Tensor:
        """The objective's input for a lattice (B, m, k, 2), in pixels."""
        return show_views(capture, moved(control), piece, warp_options)

    def gradient_of() -> tuple[float, Tensor]:
        draws = draw_views(name, capture, source, count, images, generator)
        return mean_and_gradient(name, objective, control, draws.split(name, chunk), render)

    history, state = descend(
        name,
        control,
        gradient_of,
        lambda control: pulled_back(control, size, epsilon * WITHIN, smoothness * WITHIN),
        make_optimizer(name, optimizer, control, step_size),
        steps=steps,
        resume=resume,
        generator=generator,
        progress=progress,
        step_size=given_step,
    )
    with torch.no_grad():
        flow, result = bspline(control, size), moved(control)
        result = (result * 255).round() / 255 if quantize else result
    flow = flow.reshape(*image.shape[:-3], *size, 2)
    return FlowPerturbation(result.reshape(image.shape), flow, history, state)


def pulled_back(
    control: Tensor, size: tuple[int, int], epsilon: float, smoothness: float
) -> Tensor:
    """Lattices (B, m, n, 2) whose fields of `size` are within both budgets.

    A flow is a weighted mean of its control points, so it is no longer than the longest of them.
    """
    lengths = control.norm(dim=-1, keepdim=True)
    control = control * (epsilon / lengths.clamp(min=1e-30)).clamp(max=1)
    flow = bspline(control, size)
    steps = [flow.diff(dim=dim).norm(dim=-1).flatten(1) for dim in (-2, -3)]
    steepest = torch.cat([*steps, flow.new_zeros(len(flow), 1)], 1).amax(1)
    return control * (smoothness / steepest.clamp(min=1e-30)).clamp(max=1)[:, None, None, None]
