"""cv2's functions that move whole pixels: borders, flips, rotations, transpose, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.engine.backends import select_pictures
from warpkit.engine.binding import plan
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.labels import as_signed, from_signed, saturated
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.rules import resolve
from warpkit.opencv.constants import (
    BORDER_ISOLATED,
    ROTATE_90_CLOCKWISE,
    ROTATE_90_COUNTERCLOCKWISE,
    ROTATE_180,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import (
    as_picture,
    check_picture,
    device_of,
    finish,
    from_picture,
    planes,
    whole,
)
from warpkit.opencv.values import as_border, as_scalar
from warpkit.types import Image, NumbersLike

TYPES = checks.FLOATS + checks.INTEGERS + checks.LABELS
BORDERS = ("constant", "replicate", "reflect", "wrap", "reflect_101")


def copyMakeBorder(
    src: Image,
    top: int,
    bottom: int,
    left: int,
    right: int,
    borderType: int,
    dst: Image | None = None,
    value: NumbersLike | None = None,
) -> Image:
    """cv2.copyMakeBorder: add rows and columns around an image.

    src (H, W) or (H, W, C) of any type; the number on each side; borderType any but
    BORDER_TRANSPARENT; value: for BORDER_CONSTANT, a number, which fills only the first channel, as
    in cv2, or up to four; with more than four channels all equal. Gradients, if src is a tensor:
    all orders, to src and a tensor `value`.

    >>> import numpy as np
    >>> from warpkit.opencv import BORDER_REFLECT_101
    >>> copyMakeBorder(np.array([[1, 2, 3]]), 0, 1, 2, 0, BORDER_REFLECT_101)
    array([[3, 2, 1, 2, 3],
           [3, 2, 1, 2, 3]])
    """
    options = (top, bottom, left, right, borderType, tuple(value) if type(value) is list else value)
    return plan.call(_plan_border, (src,), (*options, dst))


def _plan_border(keeps: bool, src: Any, *others: Any) -> Plan | Once:
    """The plan of `copyMakeBorder`; others: its other arguments."""
    top, bottom, left, right, borderType, value, dst = others
    keeps = keeps and dst is None  # a number in its place warns each time
    name = "copyMakeBorder"
    check_picture(name, "src", src, TYPES)
    dst = check_output(name, "dst", dst, src)
    sides: dict[str, int] = {"top": top, "bottom": bottom, "left": left, "right": right}
    for argument, count in sides.items():
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 0:
            checks.fail(name, argument, "a whole number of at least 0", f"{count!r:.60}")
        if count >= checks.MAX_SIDE:
            checks.fail(name, argument, "a whole number below 2^31", f"{count!r:.60}")
    border = as_border(name, "borderType", borderType, BORDERS, ignored=BORDER_ISOLATED)
    dtype = src.dtype if isinstance(src, Tensor) else checks.array_dtype(src)
    fill = torch.empty(0, dtype=torch.uint8, device="cpu")
    if border == "constant":
        channels = 1 if src.ndim == 2 else src.shape[2]
        fill = _fill(name, value, channels, dtype, device_of(src))
    picture, kernels = as_picture(src, fill), select_pictures()
    if picture is not None and kernels:
        around = (int(top), int(bottom), int(left), int(right))
        bits, framed = fill.view(torch.uint8).numpy(), kernels.framed
        if keeps and isinstance(src, np.ndarray):
            return lambda src: from_picture(src, None, framed(whole(src), around, border, bits))
        return Once(from_picture(src, dst, framed(picture, around, border, bits)))
    source = planes(src)
    height, width = source.shape[-2:]
    y = torch.arange(-int(top), height + int(bottom), device=source.device)
    x = torch.arange(-int(left), width + int(right), device=source.device)
    (rows, in_rows), (columns, in_columns) = resolve(y, height, border), resolve(x, width, border)
    moved = as_signed(source).index_select(-2, rows).index_select(-1, columns)
    if in_rows is not None and in_columns is not None:
        moved = torch.where(in_rows[:, None] & in_columns, moved, fill[:, None, None])
    return Once(finish(src, dst, from_signed(moved, source.dtype)))


def _fill(name: str, value: Any, channels: int, dtype: Any, device: torch.device) -> Tensor:
    """cv2.Scalar for each channel, (C,), as bits of the image's type."""
    value = 0.0 if value is None else value
    four = as_scalar(name, "value", value, device)
    if channels > 4 and bool((four != four[0]).any()):
        wanted = f"four equal numbers for {channels} channels, as in cv2"
        checks.fail(name, "value", wanted, four.tolist())
    numbers = four[torch.arange(channels, device=device) % 4]
    if dtype in checks.LABELS:
        return saturated(numbers, dtype)
    return as_signed(convert(numbers, dtype))


def flip(src: Image, flipCode: int, dst: Image | None = None) -> Image:
    """cv2.flip: upside down (0), left to right (above 0), or both (below 0).

    src (H, W) or (H, W, C) of any type. Gradients, if src is a tensor: all orders.

    >>> import numpy as np
    >>> flip(np.array([[1, 2], [3, 4]]), 1)
    array([[2, 1],
           [4, 3]])
    """
    if not isinstance(flipCode, Integral):
        checks.fail("flip", "flipCode", "a whole number", repr(flipCode))
    dims = (-2,) if flipCode == 0 else (-1,) if flipCode > 0 else (-2, -1)  # pyright: ignore
    axes = tuple(dim + 2 for dim in dims)
    return _moved("flip", src, dst, lambda a: np.flip(a, axes), lambda image: image.flip(dims))


def rotate(src: Image, rotateCode: int, dst: Image | None = None) -> Image:
    """cv2.rotate: by ROTATE_90_CLOCKWISE, ROTATE_180 or ROTATE_90_COUNTERCLOCKWISE.

    src (H, W) or (H, W, C) of any type. Gradients, if src is a tensor: all orders.

    >>> import numpy as np
    >>> rotate(np.array([[1, 2], [3, 4]]), ROTATE_90_CLOCKWISE)
    array([[3, 1],
           [4, 2]])
    """
    turns = {ROTATE_90_CLOCKWISE: -1, ROTATE_180: 2, ROTATE_90_COUNTERCLOCKWISE: 1}
    if not isinstance(rotateCode, Integral) or rotateCode not in turns:
        wanted = "ROTATE_90_CLOCKWISE, ROTATE_180 or ROTATE_90_COUNTERCLOCKWISE"
        checks.fail("rotate", "rotateCode", wanted, repr(rotateCode))
    turn = turns[rotateCode]  # pyright: ignore
    return _moved(
        "rotate", src, dst, lambda a: np.rot90(a, turn), lambda image: image.rot90(turn, (-2, -1))
    )


def transpose(src: Image, dst: Image | None = None) -> Image:
    """cv2.transpose: rows become columns.

    src (H, W) or (H, W, C) of any type. Gradients, if src is a tensor: all orders.

    >>> import numpy as np
    >>> transpose(np.array([[1, 2, 3]]))
    array([[1],
           [2],
           [3]])
    """
    return _moved("transpose", src, dst, lambda a: a.swapaxes(0, 1), lambda image: image.mT)


def hconcat(src: Sequence[Image], dst: Image | None = None) -> Image:
    """cv2.hconcat: images side by side.

    src: a sequence of images (H, W) or (H, W, C) of one type, all arrays or all tensors, that
    differ only in W. Gradients, if they are tensors: all orders.

    >>> import numpy as np
    >>> hconcat([np.array([[1, 2], [3, 4]]), np.array([[5], [6]])])
    array([[1, 2, 5],
           [3, 4, 6]])
    """
    return _joined("hconcat", src, dst, -1)


def vconcat(src: Sequence[Image], dst: Image | None = None) -> Image:
    """cv2.vconcat: images one below the other.

    src: a sequence of images (H, W) or (H, W, C) of one type, all arrays or all tensors, that
    differ only in H. Gradients, if they are tensors: all orders.

    >>> import numpy as np
    >>> vconcat([np.array([[1, 2], [3, 4]]), np.array([[5, 6]])])
    array([[1, 2],
           [3, 4],
           [5, 6]])
    """
    return _joined("vconcat", src, dst, -2)


def _joined(name: str, src: Any, dst: Any, dim: int) -> Any:
    parts = list(src) if isinstance(src, (*checks.LISTS, np.ndarray, Tensor)) else []
    if not parts:
        checks.fail(name, "src", "a sequence of images", f"{src!r:.60}")
    for n, part in enumerate(parts):
        check_picture(name, f"src[{n}]", part, TYPES)
    first = parts[0]
    dst = check_output(name, "dst", dst, first)
    sources = [planes(part).to(device_of(part)) for part in parts]
    kept = 3 if dim == -2 else 2  # the dimension of (1, C, H, W) that must be equal, besides C
    for n, (part, source) in enumerate(zip(parts, sources, strict=True)):
        same = (
            source.shape[1] == sources[0].shape[1] and source.shape[kept] == sources[0].shape[kept]
        )
        if not same or source.dtype != sources[0].dtype or type(part) is not type(first):
            side = "width" if dim == -2 else "height"
            wanted = (
                f"a {type(first).__name__} of {first.dtype} of the {side} and channels of src[0], "
            )
            got = f"a {type(part).__name__} of {part.dtype}, {tuple(part.shape)}"
            checks.fail(name, f"src[{n}]", f"{wanted}{tuple(first.shape)}", got)
        checks.check_device(name, f"src[{n}]", source, sources[0].device, "src[0]")
    pictures = [as_picture(part) for part in parts]
    if not any(picture is None for picture in pictures):
        return from_picture(first, dst, np.concatenate(pictures, axis=dim + 2))  # pyright: ignore
    moved = torch.cat([as_signed(source) for source in sources], dim=dim)
    return finish(first, dst, from_signed(moved, sources[0].dtype))


def _moved(
    name: str,
    src: Any,
    dst: Any,
    view: Callable[[np.ndarray], np.ndarray],
    move: Callable[[Tensor], Tensor],
) -> Any:
    """Move pixels: `view` does so for a picture (H, W, C), and `move` for an image (..., H, W)."""
    check_picture(name, "src", src, TYPES)
    dst = check_output(name, "dst", dst, src)
    picture, kernels = as_picture(src), select_pictures()
    if picture is not None and kernels:
        return from_picture(src, dst, kernels.arranged(view(picture)))
    source = planes(src).to(device_of(src))
    return finish(src, dst, from_signed(move(as_signed(source)), source.dtype))
