"""`align`: aligns every pair of a batch independently."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from warpkit.alignment import arguments, coarse_to_fine, pyramid
from warpkit.alignment.arguments import Arguments
from warpkit.alignment.coarse_to_fine import Fits
from warpkit.alignment.implicit import EndState, Implicit, normalise
from warpkit.core.sharding import batched
from warpkit.core.tracing import wants_gradient
from warpkit.types import AlignmentLoss, AlignmentModel, MatrixLike

AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""Values of an image that are processed together: 85 pairs of 192 x 256 pixels on a CPU, for which
the calls between kernels cost a third less per pair than with 10, in 16 MB per image."""


class Alignment(NamedTuple):
    """The result of `warpkit.align` for each pair of a batch; printed as one line."""

    matrix: Tensor
    """(B, 2, 3), or (B, 3, 3) for the perspective: moving pixel -> fixed pixel, float64."""
    score: Tensor
    """(B,), float64: the correlation over the overlap, between -1 and 1."""
    converged: Tensor
    """(B,), bool: the last step was below the tolerance, and the images agree."""
    steps: Tensor
    """(B,), int64: the number of steps, over all levels and starts."""
    gain: Tensor
    """(B, C), float64: fixed = gain * warped + bias, by least squares over the overlap."""
    bias: Tensor
    """(B, C), float64: in the units of the fixed image."""

    def __repr__(self) -> str:
        """One line for one pair or many."""
        if self.converged.ndim == 0:
            state = "converged" if self.converged else "not converged"
            rows = self.matrix.detach().tolist()
            numbers = ", ".join("[" + ", ".join(f"{v:.6g}" for v in row) + "]" for row in rows)
            count = int(self.steps)
            return f"Alignment: {state} in {count} steps, score {self.score:.4f}, [{numbers}]"
        total, good = self.converged.numel(), int(self.converged.sum())
        text = f"Alignment of {total} pairs: {good} converged"
        if total:
            low, high = self.score.min(), self.score.max()
            text += f", scores {low:.4f} to {high:.4f}"
            text += f", {int(self.steps.min())} to {int(self.steps.max())} steps"
        return text


@batched(4, moving=3, fixed=3, moving_mask=3, fixed_mask=3, init=2)
def align(
    moving: Tensor,
    fixed: Tensor,
    *,
    model: AlignmentModel = "affine",
    loss: AlignmentLoss = "ecc",
    moving_mask: Tensor | None = None,
    fixed_mask: Tensor | None = None,
    init: MatrixLike | Literal["search"] | None = None,
    levels: int | None = None,
    steps: int = 50,
    tolerance: float = 1e-3,
) -> Alignment:
    """Find the matrix that aligns one image with another: cv2.findTransformECC for batches.

    warp_affine(moving, alignment.matrix, size=fixed.shape[-2:]) looks like fixed (with
    model="perspective", warp_perspective). Coarse to fine, by damped Gauss-Newton steps; each pair
    converges independently, and a converged pair costs nothing more.

    Args:
        moving: (..., C, H, W), of a float type, uint8, int16 or uint16.
        fixed: (..., C, h, w), possibly of another size. Batches broadcast.
        model: "translation", "euclidean" (with rotation), "similarity" (with scale), "affine" or
            "perspective".
        loss: "ecc" (the correlation, invariant to a positive gain and a bias per channel), "ssd"
            (the values themselves), or "robust" (Tukey's weights, with gain and bias estimated:
            ignores what only one image shows, up to about a tenth of the image).
        moving_mask: (..., 1, H, W), the pixels of the moving image that count: bool or integers
            (not 0), or floats in [0, 1] as weights.
        fixed_mask: (..., 1, h, w), the same for the fixed image.
        init: None starts at the identity; if that fails, it tries rotations up to 15 degrees,
            scales from 0.84 to 1.19 and all shifts. "search" tries all rotations and scales from
            0.5 to 2. Matrices (..., 2, 3), for the perspective (..., 3, 3), moving -> fixed, are
            starting points; the model's motion is applied after them.
        levels: pyramid levels, 1 for the images only; None goes down to 16 pixels a side.
        steps: at most, at the finest level; coarser levels take at most 25.
        tolerance: pixels of the fixed image; a pair has converged when a step moves every corner by
            less.

    Returns:
        Alignment(matrix, score, converged, steps, gain, bias) of that batch: matrix (..., 2, 3) or
        (..., 3, 3), moving pixel -> fixed pixel, float64. gain and bias (..., C), float64, are the
        least-squares fit of fixed = gain * warped + bias over the overlap, with the loss's weights
        ("robust" ignores outliers). "ssd" does not use them but reports them: if they are far from
        1 and 0, another loss fits better. They refer to the images of the last steps: smoothed by
        0.8 pixels, or unsmoothed if those agree better, as they do if one image was interpolated
        from the other. Image content never raises an error: unrelated, constant or completely
        masked images, and visible NaN, have converged=False and the best matrix found, which is
        finite.

    Gradients: from matrix, gain and bias to both images, by the implicit function theorem, first
    order in reverse mode; zero for pairs that have not converged. None to masks and init, and none
    from the score. Memory does not grow with the number of steps. No vmap; torch.compile breaks the
    graph around it.

    Raises:
        ValueError, TypeError: with the argument, what it must be and what it got; also for images
            of less than 16 pixels a side.

    >>> y, x = torch.meshgrid(torch.arange(32.0), torch.arange(40.0), indexing="ij")
    >>> blob = lambda u, v: torch.exp(-((x - u) ** 2 + (y - v) ** 2 / 4) / 20)[None]
    >>> result = align(blob(20, 15), 3 * blob(22.5, 14) + 1, model="translation")
    >>> result.matrix.round(decimals=2), bool(result.converged)
    (tensor([[ 1.0000,  0.0000,  2.5000],
            [ 0.0000,  1.0000, -1.0000]], dtype=torch.float64), True)
    >>> result.gain.round(decimals=1), result.bias.round(decimals=1)
    (tensor([3.], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    masks, limits = (moving_mask, fixed_mask), (steps, tolerance)
    solve: Any = _align
    if torch.compiler.is_compiling():  # the number of steps depends on the images
        solve = torch.compiler.disable(_align)
    return solve(moving, fixed, masks, init, model, loss, levels, limits)


def _align(moving: Tensor, fixed: Tensor, *rest: Any) -> Alignment:
    """Aligns moving (..., C, H, W) with fixed (..., C, h, w)."""
    call = arguments.check(moving, fixed, *rest)
    with torch.no_grad():
        fit = _in_chunks(call)
        matrix, failed = torch.linalg.inv_ex(fit.to_source)
        eye = torch.eye(3, dtype=torch.float64, device=matrix.device)
        usable = (failed == 0) & matrix.flatten(1).isfinite().all(-1)
        matrix = normalise(torch.where(usable[:, None, None], matrix, eye))
    pairs, options = call.pairs, call.options
    converged = fit.converged & usable
    answer = (matrix, fit.gain, fit.bias)
    if wants_gradient(pairs.moving, pairs.fixed):
        masks = (pairs.moving_mask, pairs.fixed_mask)
        ended = EndState(masks, converged, fit.sharp, options.model, options.loss)
        answer = Implicit.apply(pairs.moving, pairs.fixed, ended, *answer)
    matrix, gain, bias = answer
    if options.model != "perspective":
        matrix = matrix[:, :2]
    results = (matrix, fit.score, converged, fit.steps, gain, bias)
    return Alignment(*(tensor.reshape((*call.batch, *tensor.shape[1:])) for tensor in results))


def _in_chunks(call: Arguments) -> Fits:
    """Aligns pairs in groups of the fastest size."""
    pairs, count = call.pairs, len(call.pairs.moving)
    values = max(pairs.moving[0].numel(), pairs.fixed[0].numel()) if count else 1
    at_once = max(AT_ONCE.get(pairs.moving.device.type, AT_ONCE["cuda"]) // values, 1)
    index = torch.arange(count, device=pairs.moving.device)
    chunks = [_chunk(call, part) for part in index.split(at_once)]
    return Fits(*(torch.cat(parts) for parts in zip(*chunks, strict=True)))


def _chunk(call: Arguments, index: Tensor) -> Fits:
    """Aligns the pairs of an index (M,)."""
    options = call.options
    every = len(index) == len(call.pairs.moving)
    pairs = call.pairs if every else call.pairs.take(index)
    pyr = pyramid.build(pairs, options.loss, options.levels)
    if call.searches and len(index):  # MKL rejects the transform of an empty batch
        fit = coarse_to_fine.from_search(pyr, options)
    elif call.to_source is not None:
        fit = coarse_to_fine.from_starts(pyr, call.to_source[index], options)
    else:
        fit = coarse_to_fine.from_identity(pyr, options)
    gain, bias = pyr.in_units(fit.gain, fit.bias)
    return fit._replace(gain=gain, bias=bias)
