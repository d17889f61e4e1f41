"""Optimises a perturbation that keeps its effect under random transformations."""

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
from warpkit.attacks.norm_ball import make_ball
from warpkit.attacks.photometric import Photometric
from warpkit.attacks.pipeline import Pipeline
from warpkit.attacks.pipeline_steps import Function
from warpkit.attacks.random_parameters import Draws, make_capture
from warpkit.core.numbers import check_count, check_positive
from warpkit.types import MatrixLike, Norm, StepName, WarpKeywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

PLAIN = {"linf": "sign", "l2": "gradient"}
"""The steepest descent of each norm."""


@dataclass(frozen=True)
class Perturbation:
    """The result of `optimize_perturbation`; printed as one line."""

    image: Tensor
    """The perturbed image, shaped like the input, in [0, 1] and within epsilon of it."""
    delta: Tensor
    """`image` minus the input."""
    history: list[float]
    """The objective at each step, before it."""
    state: dict[str, Any] = field(repr=False)
    """The state for ``resume=``: tensors and numbers, for `torch.save`."""

    def __repr__(self) -> str:
        return f"perturbation of {tuple(self.image.shape)}: {describe(self.history)}"


def optimize_perturbation(
    objective: Objective,
    image: Tensor,
    distribution: Distribution | MatrixLike | None = None,
    *,
    epsilon: float,
    norm: Norm = "linf",
    steps: int = 100,
    samples: int = 16,
    step_size: float | None = None,
    chunk: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
    optimizer: StepName | MakeOptimizer | None = None,
    quantize: bool = False,
    resume: dict[str, Any] | None = None,
    photometric: Photometric | None = None,
    pipeline: Pipeline | Function | None = None,
    **warp_options: Unpack[WarpKeywords],
) -> Perturbation:
    """Change images by at most `epsilon` to minimise `objective`, as a mean over random views.

    Args:
        objective: takes images (B * n, C, h, w), image by image, and returns a scalar, their mean,
            which is minimised.
        image: (B, C, H, W), or (C, H, W) for one image; float32 or float64 in [0, 1]. Each image
            gets its own perturbation.
        distribution: an `AffineDistribution`, or anything with its `sample`, drawn at each step; or
            matrices (samples, 2, 3) or (samples, 3, 3), all of which are used at each step. None:
            the images unchanged, one view of each, or `samples` with a photometric.
        epsilon: the largest change: of a value ("linf", at most 1; 8 / 255 is 8 levels of a file),
            or of an image in l2 norm ("l2").
        norm: "linf" or "l2".
        steps: the number of steps, including those before `resume`.
        samples: views of each image at each step.
        step_size: of one step; None is 2.5 epsilon / steps.
        chunk: how many samples of each image to keep in memory; the result is the same.
        generator: the random generator; None is torch's global generator.
        progress: show a progress bar (needs rich).
        optimizer: "sign": every value moves by the step size; "gradient": every image moves by the
            step size in l2 norm; or a function that makes a torch optimizer from
            ``([tensor], lr=step_size)``, such as `torch.optim.Adam`. None is "sign" for linf and
            "gradient" for l2.
        quantize: the objective receives 8-bit images, rounded before and after the warp, to the
            last bit with `arithmetic`; the result is such an image. The gradient is
            straight-through.
        resume: the `state` of an earlier result of the same call, to continue with its step size
            (None follows the first call's `steps`). With a generator, the result equals that of one
            run, to the last bit.
        photometric: a `Photometric`, drawn for every view.
        pipeline: the attacked program's preprocessing of the views, before the objective: a
            `Pipeline`, or a function of images (N, C, h, w) that returns as many.
        **warp_options: of `warp_affine`: size, interpolation, border, arithmetic, ...

    Returns:
        Perturbation: .image and .delta, detached; .history, the objective at each step; .state.

    Raises:
        ValueError, TypeError: with the argument; for an objective without a gradient, the call that
        detached it. UserWarning: the gradient is zero everywhere at the first step.

    >>> image = torch.full((1, 2, 2), 0.5)
    >>> result = optimize_perturbation(torch.mean, image, epsilon=0.25, steps=3)
    >>> result.image
    tensor([[[0.2500, 0.2500],
             [0.2500, 0.2500]]])
    """
    name = "optimize_perturbation"
    check_objective(name, objective)
    ball = make_ball(name, image, epsilon, norm, quantize)
    capture = make_capture(name, photometric, pipeline, quantize)
    steps = check_count(name, "steps", steps)
    samples = check_count(name, "samples", samples)
    given_step = step_size
    if step_size is None:
        step_size = 2.5 * ball.epsilon / steps
    step_size = check_positive(name, "step_size", step_size)
    x = ball.image.clone().requires_grad_()
    source, count = source_of(distribution, samples, capture, x)

    def gradient_of() -> tuple[float, Tensor]:
        draws = draw_views(name, capture, source, count, x, generator)
        return mean_and_gradient(name, objective, x, draws.split(name, chunk), render)

    def render(x: Tensor, piece: Draws) -> Tensor:
        """The objective's input from x (B, C, H, W)."""
        return show_views(capture, x, piece, warp_options)

    history, state = descend(
        name,
        x,
        gradient_of,
        ball.project,
        make_optimizer(name, PLAIN[norm] if optimizer is None else optimizer, x, step_size),
        steps=steps,
        resume=resume,
        generator=generator,
        progress=progress,
        step_size=given_step,
    )
    result = ball.settle(x.detach()).reshape(image.shape)
    return Perturbation(result, result - image.detach(), history, state)
