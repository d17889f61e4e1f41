"""The views of images, and the mean of an objective over them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from warpkit.attacks.distribution import Distribution, draw, refuses
from warpkit.attacks.photometric import Photometric
from warpkit.attacks.pipeline import Pipeline
from warpkit.attacks.pipeline_steps import Function
from warpkit.attacks.random_parameters import Capture, Draws, make_capture
from warpkit.core import checks
from warpkit.core.mistakes import without_warnings
from warpkit.gradients.surrogates import straight_through, warn_beyond_unit
from warpkit.types import MatrixLike, WarpKeywords
from warpkit.warp import warp_affine, warp_perspective

if TYPE_CHECKING:
    from typing_extensions import Unpack

Objective = Callable[..., Tensor]


def expectation(
    objective: Objective,
    image: Tensor,
    distribution: Distribution | MatrixLike,
    *,
    samples: int | None = None,
    chunk: int | None = None,
    generator: torch.Generator | None = None,
    quantize: bool = False,
    photometric: Photometric | None = None,
    pipeline: Pipeline | Function | None = None,
    **warp_options: Unpack[WarpKeywords],
) -> Tensor:
    """The mean of `objective` over random views of `image`, with its gradient.

    Args:
        objective: takes images (B * n, C, h, w), image by image, and returns a scalar, their mean.
        image: (B, C, H, W), or (C, H, W) for one image; every image is warped by every matrix, and
            none is copied.
        distribution: an `AffineDistribution`, or anything with its `sample`; or the matrices
            themselves, (samples, 2, 3) or (samples, 3, 3), so that labels and boxes can follow.
        samples: the number of matrices to draw; for given matrices None, or their number.
        chunk: how many samples of each image to keep in memory, in the backward pass, too. Value
            and gradient are the same as without chunks, because all matrices are drawn before the
            first; the backward pass calls the objective once more for each chunk.
        generator: the random generator; None is torch's global generator.
        quantize: process an 8-bit version of the image, see `optimize_perturbation`.
        photometric: a `Photometric`, drawn for every view, after all matrices.
        pipeline: the attacked program's preprocessing of the views, before the objective: a
            `Pipeline`, or a function of images (N, C, h, w) that returns as many.
        **warp_options: of `warp_affine`: size, interpolation, border, arithmetic, ...

    Returns:
        A scalar: the mean over the chunks, weighted by their sizes.

    Gradients: those of the objective and the warp, to image, matrices and whatever the objective
    holds; all orders.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got.

    >>> image = torch.ones(1, 3, 3)
    >>> shift = [[[1.0, 0, 1], [0, 1, 0]], [[1.0, 0, 2], [0, 1, 0]]]
    >>> expectation(torch.mean, image, shift, chunk=1)
    tensor(0.5000)
    """
    name = "expectation"
    check_objective(name, objective)
    images = check_images(name, "image", image)
    capture = make_capture(name, photometric, pipeline, quantize)
    if (quantize or photometric) and not images.is_floating_point():
        option = "quantize=True" if quantize else "a photometric"
        wanted = f"of a floating type, in [0, 1], with {option}"
        checks.fail(name, "image", wanted, images.dtype, TypeError)
    if quantize or photometric:
        warn_beyond_unit(name, images)
    draws = draw_views(name, capture, distribution, samples, images, generator)
    pieces = draws.split(name, chunk)

    def mean_of(images: Tensor, piece: Draws) -> Tensor:
        """The objective of the views of images (B, C, H, W)."""
        return evaluate(name, objective, show_views(capture, images, piece, warp_options))

    if len(pieces) == 1:
        return mean_of(images, draws)
    total = images.new_zeros(())
    for piece in pieces:
        value = checkpoint(mean_of, images, piece, use_reentrant=False)
        total = total + value * (len(piece) / len(draws))
    return total


def source_of(
    distribution: Distribution | MatrixLike | None, samples: int, capture: Capture, images: Tensor
) -> tuple[Any, int | None]:
    """The source of each step's draws for images (B, C, H, W), and their number; see `draw`.

    Without a distribution, the images are unchanged, or repeated `samples` times if lighting
    differs.
    """
    if distribution is None:
        count = 1 if capture.photometric is None else samples
        return torch.eye(2, 3, device=images.device).expand(count, 2, 3), None
    return distribution, samples if hasattr(distribution, "sample") else None


def draw_views(
    name: str,
    capture: Capture,
    distribution: Distribution | MatrixLike,
    samples: int | None,
    images: Tensor,
    generator: torch.Generator | None,
) -> Draws:
    """Draws for views of images (B, C, H, W): all matrices, then the lighting of each view."""
    size = (images.shape[-2], images.shape[-1])
    matrices = draw(name, distribution, samples, size, generator, images.device)
    return Draws(matrices, capture.draw(len(matrices), len(images), generator))


def show_views(
    capture: Capture, images: Tensor, piece: Draws, warp_options: WarpKeywords
) -> Tensor:
    """The objective's input from images (B, C, H, W) with the draws of a chunk."""
    warped = views(images, piece.matrices, capture.quantize, warp_options)
    return capture.show(warped, piece.colours)


@without_warnings
def views(images: Tensor, matrices: Tensor, quantize: bool, warp_options: WarpKeywords) -> Tensor:
    """Images (B, C, H, W) warped by every matrix, as the pipeline sees them, image by image.

    With `quantize` the value is the warp of the 8-bit images, to the last bit; the gradient is that
    of the same warp in floating point.
    """
    warp = warp_affine if matrices.shape[-2] == 2 else warp_perspective
    warped = warp(images[:, None], matrices, **warp_options).flatten(0, 1)
    if not quantize:
        return warped
    device = images.device
    options = {key: in_levels(key, value, device) for key, value in warp_options.items()}
    options.pop("image_gradient", None)  # only the floating-point warp has this option
    with torch.no_grad():
        levels = warp(to_levels(images)[:, None], matrices, **options).flatten(0, 1)
    return straight_through(levels.to(warped.dtype) / 255, warped)


def in_levels(name: str, value: Any, device: torch.device) -> Any:
    """A warp option for 8-bit images on a device: colours are in levels of 255."""
    if name == "border_value":
        value = value if isinstance(value, Tensor) else torch.as_tensor(value, device=device)
        return value.detach() * 255
    return to_levels(value) if name == "background" and value is not None else value


def to_levels(image: Tensor) -> Tensor:
    """An image in [0, 1] as an 8-bit file stores it."""
    return (image.detach().clamp(0, 1) * 255).round().to(torch.uint8)


def check_objective(name: str, objective: object, *extra: str, patch: bool = False) -> None:
    """Check the objective before the first draw, which changes the generator.

    extra: its further arguments; patch: whether it may have a parameter `patch`.
    """
    takes_all = " and ".join(("images", *extra))
    wanted = f"a function that takes {takes_all} and returns a scalar tensor"
    if not callable(objective) or isinstance(objective, type):
        checks.fail(name, "objective", wanted, checks.kind_of(objective), TypeError)
    keywords = patch_of(objective, "patch", *extra) if patch else {}
    if (takes := refuses(objective, "images", *extra, **keywords)) is not None:
        checks.fail(name, "objective", wanted, f"one that takes {takes}", TypeError)


def patch_of(objective: object, patch: Any, *extra: object) -> dict[str, Any]:
    """The patch as a keyword, for an objective with a parameter of that name."""
    if torch.compiler.is_compiling() or not callable(objective):
        return {}
    try:
        takes = signature(objective.forward if isinstance(objective, nn.Module) else objective)
    except (TypeError, ValueError):  # a built-in function has no signature
        return {}
    for place, parameter in enumerate(takes.parameters.values()):
        positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD and place > len(extra)
        if parameter.name == "patch" and (positional or parameter.kind is parameter.KEYWORD_ONLY):
            return {"patch": patch}
    return {}


def evaluate(
    name: str, objective: Objective, images: Tensor, *extra: Any, **keywords: Tensor
) -> Tensor:
    """The objective's value at images (N, C, H, W), which must be a scalar tensor."""
    value = objective(images, *extra, **keywords)
    if not isinstance(value, Tensor) or value.ndim != 0 or value.is_complex():
        got = type(value).__name__
        if isinstance(value, Tensor):
            got = str(value.dtype) if value.ndim == 0 else f"shape {checks.shape_of(value)}"
        checks.fail(name, "objective", "a function that returns a scalar tensor", got, TypeError)
    return value


def check_images(name: str, argument: str, image: object) -> Tensor:
    """`image` as (B, C, H, W) with at least one image."""
    checked = checks.check_image(name, argument, image)
    if checked.ndim > 4 or checked.numel() == 0:
        wanted = "of shape (B, C, H, W) or (C, H, W), with at least one image"
        checks.fail(name, argument, wanted, checks.shape_of(checked))
    return checked if checked.ndim == 4 else checked[None]
