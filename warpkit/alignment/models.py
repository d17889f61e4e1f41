"""The five motion models: the update of a step, its matrix, and the motion of the corners.

A step is a matrix exp(A), where A is a sum of the model's generators, in coordinates that run from
about -1 to 1 over the fixed image: composed steps stay in the model. To first order a point moves
by polynomials of its x and y, of degree 0 (translation), 1, or 2 (perspective), so that the sums of
gradients times steps that Gauss-Newton needs are moments of the gradients.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from warpkit.core.lasting import lasting

Polynomial = dict[tuple[int, int], float]
"""Coefficients by the exponents of x and y."""


class Model(NamedTuple):
    """A model's generators, and how moments of gradients become normal equations."""

    generators: Tensor
    """(K, 3, 3)."""
    degree: int
    """The degree in x, and in y, of products of two steps: the moments needed."""
    quadratic: Tensor
    """(3 D, K K), D = (degree + 1)^2: moments of gx gx, gx gy and gy gy to J^T J."""
    linear: Tensor
    """(2 D, K): moments of gx r and gy r to J^T r."""

    @property
    def is_projective(self) -> bool:
        """Whether the last row of matrices is not always (0, 0, 1)."""
        return bool(self.generators[:, 2].any())


Generator = tuple[tuple[float, ...], ...]
"""The rows of a matrix (3, 3)."""


def _generator(*entries: tuple[int, int, float]) -> Generator:
    value_at = {(row, column): value for row, column, value in entries}
    return tuple(tuple(value_at.get((row, column), 0.0) for column in range(3)) for row in range(3))


_SHIFTS = (_generator((0, 2, 1.0)), _generator((1, 2, 1.0)))
_TURN = _generator((0, 1, -1.0), (1, 0, 1.0))
_SCALE = _generator((0, 0, 1.0), (1, 1, 1.0))
_LINEAR = tuple(_generator((row, column, 1.0)) for row in (0, 1) for column in (0, 1))
_TILTS = (_generator((2, 0, 1.0)), _generator((2, 1, 1.0)))
GENERATORS = {
    "translation": _SHIFTS,
    "euclidean": (*_SHIFTS, _TURN),
    "similarity": (*_SHIFTS, _TURN, _SCALE),
    "affine": (*_SHIFTS, *_LINEAR),
    "perspective": (*_SHIFTS, *_LINEAR, *_TILTS),
}
MODELS = tuple(GENERATORS)


@cache
@lasting
def model_named(name: str, device: torch.device) -> Model:
    """The tables of a model, float64, on a device."""
    generators = GENERATORS[name]
    fields = [_field(generator) for generator in generators]
    degree = 2 * max(i + j for field in fields for axis in field for i, j in axis)
    count, powers = len(fields), degree + 1
    quadratic = torch.zeros(3, powers, powers, count, count, dtype=torch.float64, device="cpu")
    linear = torch.zeros(2, powers, powers, count, dtype=torch.float64, device="cpu")
    for k, first in enumerate(fields):
        for a in (0, 1):
            for (i, j), value in first[a].items():
                linear[a, i, j, k] += value
                for m, second in enumerate(fields):
                    for b in (0, 1):
                        for (p, q), other in second[b].items():
                            quadratic[a + b, i + p, j + q, k, m] += value * other
    rows = torch.tensor(generators, dtype=torch.float64, device="cpu")
    tables = rows, quadratic.flatten(3).flatten(0, 2), linear.flatten(0, 2)
    on_device = [table.to(device) for table in tables]
    return Model(on_device[0], degree, on_device[1], on_device[2])


def _field(generator: Generator) -> tuple[Polynomial, Polynomial]:
    """How far I + generator moves (x, y), to first order: its rows minus (x, y) times the last."""
    x, y, last = generator
    exponents = ((1, 0), (0, 1), (0, 0))
    fields: list[Polynomial] = []
    for row, (i, j) in ((x, (1, 0)), (y, (0, 1))):
        field = {place: value for place, value in zip(exponents, row, strict=True) if value}
        for (p, q), value in zip(exponents, last, strict=True):
            if value:
                field[p + i, q + j] = field.get((p + i, q + j), 0.0) - value
        fields.append(field)
    return fields[0], fields[1]


def half_side(size: tuple[int, int]) -> float:
    """Pixels per unit of a step's coordinates, for a fixed image of `size` (H, W)."""
    return max(size) / 2


def step_matrix(model: Model, numbers: Tensor, size: tuple[int, int]) -> Tensor:
    """The matrices (N, 3, 3), in pixels, of steps (N, K), for a fixed image of `size` (H, W)."""
    to_pixels, to_units = _frames(size, numbers.device)
    step = torch.linalg.matrix_exp((numbers @ model.generators.flatten(1)).unflatten(-1, (3, 3)))
    return to_pixels @ step @ to_units


@lru_cache(maxsize=64)
@lasting
def _frames(size: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """The matrix (3, 3) from a step's coordinates to pixels, and back."""
    height, width = size
    half = half_side(size)
    rows = ((half, 0.0, (width - 1) / 2), (0.0, half, (height - 1) / 2), (0.0, 0.0, 1.0))
    to_pixels = torch.tensor(rows, dtype=torch.float64, device="cpu")
    return to_pixels.to(device), torch.linalg.inv(to_pixels).to(device)


def corner_motion(matrix: Tensor, size: tuple[int, int]) -> Tensor:
    """How far, in pixels, matrices (N, 3, 3) move the corner of an image that they move most."""
    height, width = size
    rows = ((0, width - 1, width - 1, 0), (0, 0, height - 1, height - 1), (1, 1, 1, 1))
    corners = torch.tensor(rows, dtype=torch.float64, device=matrix.device)
    ends = matrix @ corners
    return (ends[:, :2] / ends[:, 2:] - corners[:2]).norm(dim=1).amax(-1)
