"""Calls that came before: of plain tensors, checked once, and made again without the checks.

A small warp takes less than its arguments' checks. What they look at is the same for calls of equal
types, shapes and options: so the first such call is checked and leaves a recipe, which the next one
is made by. Nothing of a tensor's values or memory is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import copysign
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import hooks_take_saved_tensors, is_eager
from warpkit.engine.sampling.reference import compute_dtype

PLAIN = {Tensor, torch.nn.Parameter}

LARGE = 1e38
"""Numbers of this magnitude are infinite in float32, which torch refuses to make."""

KEPT = 256
"""Recipes, at most."""

Recipe = Callable[[Tensor, Tensor], Tensor]

_recipes: dict[Hashable, Recipe] = {}


def key_of(
    image: Any, matrix: Any, size: Any, border_value: Any, is_inverse: Any, names: tuple[Any, ...]
) -> Hashable | None:
    """What a call of plain tensors on the CPU is known by; None for others.

    Of integers bytes alone, which nearest moves. names: the interpolation first.

    image (..., C, H, W) and matrix (..., 2, 3), each dense in its order.
    """
    if torch.compiler.is_compiling() or type(image) not in PLAIN or type(matrix) not in PLAIN:
        return None
    if type(border_value) not in (float, int) or type(is_inverse) is not bool:
        return None
    if set(map(type, names)) != {str}:
        return None
    moved = image.dtype is torch.uint8 and names[0] == "nearest"
    if not (image.is_floating_point() or moved) or not abs(border_value) < LARGE:
        return None
    if size is not None and (type(size) is not tuple or set(map(type, size)) != {int}):
        return None
    if not (image.is_cpu and matrix.is_cpu):
        return None
    if not (image.layout == matrix.layout == torch.strided):
        return None
    if not (image.is_contiguous() and matrix.is_contiguous()):
        return None
    types = image.dtype, matrix.dtype, border_value, copysign(1, border_value), is_inverse
    return image.shape, matrix.shape, size, *types, names


def call(key: Hashable | None, image: Tensor, matrix: Tensor) -> Tensor | None:
    """The result, or None where there is no recipe or more than numbers is asked for.

    image (..., C, H, W); matrix (..., 2, 3).
    """
    recipe = _recipes.get(key)
    if recipe is None or not is_eager(image, matrix):
        return None
    if torch._C._len_torch_function_stack() > 0:  # pyright: ignore
        return None  # a mode that watches torch's functions would see none
    if hooks_take_saved_tensors():
        return None
    return recipe(image, matrix)


def leave(
    key: Hashable | None,
    image: Tensor,
    matrix: Tensor,
    border_value: Any,
    options: Any,
) -> None:
    """A recipe for calls of this key, if their backend has one; all arguments are checked.

    image (..., C, H, W); matrix (..., 2, 3); options: a WarpOptions.
    """
    rule, backend = options.rule, options.backend
    exact = rule.arithmetic == options.image_gradient == "exact" and rule.border != "transparent"
    if not (key and exact and hasattr(backend, "recipe") and is_eager(image, matrix)):
        return
    real = compute_dtype(image.dtype)
    fill = torch.full((), float(border_value), dtype=real, device="cpu")
    if recipe := backend.recipe(image, matrix, options.size, fill, rule, not options.inverse):
        if len(_recipes) >= KEPT:
            _recipes.clear()
        _recipes[key] = recipe
