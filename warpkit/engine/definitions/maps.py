"""Maps: source positions of output pixels, as float64 matrices and points.

Plain closed formulas that do not depend on values, so they differentiate, vmap, trace and export.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from warpkit.engine.definitions.rules import LIMIT


def no_float64(image: Tensor) -> list[str]:
    """The reason why maps cannot be computed where the image is, if there is one."""
    if image.device.type == "mps":
        return ["needs float64, which this device lacks: use image.cpu()"]
    return []


def inverse_map(matrix: Tensor, *, singular: float = torch.nan) -> Tensor:
    """The inverse, computed without reading values; NaN if singular, with gradient zero.

    singular: the inverse's entries if a finite matrix has determinant 0; OpenCV uses 0.

    A NaN map gives every pixel the border's value. So a degenerate item of a batch, on any device,
    causes neither an exception nor a NaN in a gradient. The order of operations is OpenCV's, so its
    float64 inverse is reproduced to the last bit.
    """
    det = determinant(matrix)
    finite = matrix.isfinite().all(-1).all(-1)
    good = (finite & det.isfinite() & (1 / det).isfinite())[..., None, None]
    none = torch.where(finite & (det == 0), singular, torch.nan).to(matrix.dtype)[..., None, None]
    identity = torch.eye(3, dtype=matrix.dtype, device=matrix.device)[: matrix.shape[-2]]
    # the gradient contains 1 / det^2 and the adjugate's squared entries over det^2; these overflow
    # first (det < 1e-154, entries > 1e77), and would give inf x 0
    largest = matrix.detach().abs().amax((-1, -2)).square().square()
    steady = ((1 / det).square() * largest.clamp_min(1)).isfinite()[..., None, None]
    safe = torch.where(good, torch.where(steady, matrix, matrix.detach()), identity)
    per = 1 / determinant(safe)
    if matrix.shape[-2] == 3:
        return torch.where(good, adjugate(safe) * per[..., None, None], none)
    (m0, m1, m2), (m3, m4, m5) = (row.unbind(-1) for row in safe.unbind(-2))
    a, b, d, e = m4 * per, m1 * -per, m3 * -per, m0 * per
    to_source = matrix_of(((a, b, -a * m2 - b * m5), (d, e, -d * m2 - e * m5)))
    return torch.where(good, to_source, none)


def inverse_vjp(to_source: Tensor, grad: Tensor) -> Tensor:
    """-N' G N' for the inverse N, in sums, because cuBLAS is not always deterministic.

    to_source and grad (..., 2 or 3, 3), float64.
    """
    # no gradient for singular matrices, or if squares of the determinant or of products of entries
    # would overflow
    largest = to_source.abs().amax((-1, -2)).square().square()
    steady = (determinant(to_source).square() + largest).isfinite()[..., None, None]
    safe = to_3x3(torch.where(steady, to_source, 0.0))
    rows = to_source.shape[-2]
    # N' is safe with its indices exchanged; of G and of the result only `rows` rows matter
    right = (grad[..., :, None, :] * safe[..., None, :, :]).sum(-1)
    # narrow, since the slice of everything is an alias, which batches of gradients cannot have
    first = safe if rows == 3 else safe.narrow(-2, 0, rows)
    slope = -(first[..., None] * right[..., :, None, :]).sum(-3)
    return slope if rows == 3 else slope.narrow(-2, 0, rows)


def determinant(matrix: Tensor) -> Tensor:
    """The determinant of (..., 3, 3), or of the left (2, 2) of (..., 2, 3)."""
    (a, b, c), (d, e, f) = (row.unbind(-1) for row in matrix[..., :2, :].unbind(-2))
    if matrix.shape[-2] == 2:
        return a * e - b * d
    g, h, i = matrix[..., 2, :].unbind(-1)
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def adjugate(matrix: Tensor) -> Tensor:
    """The adjugate of (..., 3, 3): the inverse times the determinant, which may be zero."""
    (a, b, c), (d, e, f), (g, h, i) = (row.unbind(-1) for row in matrix.unbind(-2))
    return matrix_of(
        (
            (e * i - f * h, c * h - b * i, b * f - c * e),
            (f * g - d * i, a * i - c * g, c * d - a * f),
            (d * h - e * g, b * g - a * h, a * e - b * d),
        )
    )


def map_points(matrix: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The points to which a float64 matrix maps (x, y), as (..., 2); see `map_xy`.

    x and y broadcast with the batch of `matrix`, with one more dimension at the end.
    """
    rows = [row.unbind(-2) for row in matrix[..., None].unbind(-3)]
    return torch.stack(torch.broadcast_tensors(*map_xy(rows, x, y)), dim=-1)


def map_xy(rows: Sequence[Sequence[Tensor]], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The point to which the matrix with these float64 entries, two or three rows, maps (x, y).

    Everything broadcasts. If a perspective maps a point to 2^31 or beyond, the result is NaN, with
    gradient zero.

    x, y (...), pixels.
    """
    u, v = (a * x + b * y + c for a, b, c in rows[:2])
    if len(rows) == 3:
        g, h, i = rows[2]
        w = g * x + h * y + i
        # false for NaN and for w = 0; beyond LIMIT nothing is sampled, and u / w / w could overflow
        near = (u.abs() < LIMIT * w.abs()) & (v.abs() < LIMIT * w.abs())
        good = near & w.isfinite()
        # both sides of torch.where get a gradient: the unused one must be finite to become zero
        u, v, w = (torch.where(good, value, 1.0) for value in (u, v, w))
        u, v = (torch.where(good, value / w, torch.nan) for value in (u, v))
    return u, v


def rows_at(matrix: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
    """A matrix (..., 3, 3), whose batch broadcasts with x and y (...), times (x, y, 1): its rows.

    The caller decides what to do with the third row, the depth.
    """
    return [matrix[..., i, 0] * x + matrix[..., i, 1] * y + matrix[..., i, 2] for i in range(3)]


def theta_of_inverse(
    to_source: Tensor, size_in: Sequence[int], size_out: Sequence[int], align_corners: bool
) -> Tensor:
    """The theta of F.affine_grid for a float64 matrix that maps destination -> source pixels."""
    to_pixels = pixels_from_theta(size_out, align_corners, to_source)
    to_norm = inverse_map(pixels_from_theta(size_in, align_corners, to_source))
    return (to_norm @ to_3x3(to_source) @ to_pixels)[..., : to_source.shape[-2], :]


def inverse_of_theta(
    theta: Tensor, size_in: Sequence[int], size_out: Sequence[int], align_corners: bool
) -> Tensor:
    """The float64 matrix, destination -> source pixels, of a float64 theta of F.affine_grid."""
    to_norm = inverse_map(pixels_from_theta(size_out, align_corners, theta))
    to_pixels = pixels_from_theta(size_in, align_corners, theta)
    return (to_pixels @ to_3x3(theta) @ to_norm)[..., : theta.shape[-2], :]


def pixels_from_theta(size: Sequence[int], align_corners: bool, tensor: Tensor) -> Tensor:
    """[-1, 1] -> pixels: the ends are outer edges, or pixel centres with align_corners."""
    height, width = size
    x = (width - 1 if align_corners else width) / 2
    y = (height - 1 if align_corners else height) / 2
    rows = [[x, 0, (width - 1) / 2], [0, y, (height - 1) / 2], [0, 0, 1]]
    return torch.tensor(rows, dtype=tensor.dtype, device=tensor.device)


def to_3x3(matrix: Tensor) -> Tensor:
    """(..., 2, 3) with the additional row (0, 0, 1); (..., 3, 3) unchanged."""
    if matrix.shape[-2] == 3:
        return matrix
    # made on the device: a copy from the host would synchronise, and end a graph's capture
    last = torch.eye(3, dtype=matrix.dtype, device=matrix.device)[2:]
    return torch.cat((matrix, last.expand(*matrix.shape[:-2], 1, 3)), dim=-2)


def output_points(to_source: Tensor, size: Sequence[int]) -> Tensor:
    """The source position of every pixel of an output of `size`: (..., h, w, 2) from (..., 2 or 3,
    3)."""
    height, width = size
    options = {"dtype": to_source.dtype, "device": to_source.device}
    y = torch.arange(height, **options)[:, None]
    x = torch.arange(width, **options)
    # a copy of the map for every row, so that its gradient is summed by rows first: a single sum
    # over all pixels is split among threads, and its rounding depends on their number
    rows = to_source[..., None, :, :].expand(*to_source.shape[:-2], height, -1, 3)
    return map_points(rows, x, y)


def pixel_points(
    size: Sequence[int], dtype: torch.dtype, device: torch.device | None = None
) -> Tensor:
    """The (x, y) of every pixel of `size` (h, w): (h, w, 2)."""
    y, x = (torch.arange(n, dtype=dtype, device=device) for n in size)
    return torch.stack((x.expand(len(y), -1), y[:, None].expand(-1, len(x))), dim=-1)


def added_to_pixels(offsets: Tensor) -> Tensor:
    """The points of offsets (*P, h, w, 2) from their pixel, in float64."""
    size = (offsets.shape[-3], offsets.shape[-2])
    return offsets.double() + pixel_points(size, torch.float64, offsets.device)


def seen_from(to_source: Tensor, dx: Tensor | float, dy: Tensor | float) -> Tensor:
    """The map for positions (x + dx, y + dy) instead of (x, y); dx and dy broadcast to a row.

    to_source (*M, 2 or 3, 3); dx and dy (*M, 1), pixels.
    """
    x, y, shift = to_source.unbind(-1)
    return torch.stack((x, y, x * dx + y * dy + shift), dim=-1)


def matrix_of(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    """A matrix (..., rows, 3) from its entries, which broadcast."""
    entries = torch.broadcast_tensors(*(entry for row in rows for entry in row))
    return torch.stack(entries, dim=-1).unflatten(-1, (len(rows), 3))
