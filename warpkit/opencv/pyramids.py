"""cv2's pyramids, and getRectSubPix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import c_float
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.engine.arithmetic import opencv_pyramids, opencv_rectangles
from warpkit.engine.arithmetic.opencv import TYPES as OPENCV_TYPES
from warpkit.engine.backends import (
    PictureBackend,
    backend_module,
    select_backend,
    select_pictures,
)
from warpkit.engine.definitions.exact_gradient import with_exact_gradient
from warpkit.engine.definitions.maps import pixel_points
from warpkit.engine.definitions.reference import convert
from warpkit.engine.definitions.rules import SamplingRule
from warpkit.geometry.arguments import floats
from warpkit.opencv import numbers
from warpkit.opencv.constants import (
    BORDER_DEFAULT,
    CV_8U,
    CV_32F,
)
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import (
    as_picture,
    check_picture,
    device_of,
    finish,
    from_picture,
    is_followed,
    planes,
)
from warpkit.opencv.sizes import as_list, as_size, is_empty
from warpkit.opencv.values import as_border
from warpkit.types import Image, PointsLike

BORDERS = ("replicate", "reflect", "wrap", "reflect_101")


def pyrDown(
    src: Image,
    dst: Image | None = None,
    dstsize: Sequence[int] | None = None,
    borderType: Any = BORDER_DEFAULT,
) -> Image:
    """cv2.pyrDown: blur by 1 4 6 4 1 and take every second pixel.

    src (H, W) or (H, W, C); dstsize (W, H), within a pixel of half, ((W + 1) // 2, (H + 1) // 2) if
    None; borderType any but BORDER_CONSTANT and _TRANSPARENT. Integers and whole floats are cv2's
    own, other floats to the last bits. Gradients, if src is a tensor: all orders.

    >>> import numpy as np
    >>> pyrDown(np.arange(0, 64, 8, dtype=np.uint8)[None])
    array([[ 6, 16, 32, 47]], dtype=uint8)
    """
    name = "pyrDown"
    check_picture(name, "src", src, OPENCV_TYPES)
    dst = check_output(name, "dst", dst, src)
    border = as_border(name, "borderType", borderType, BORDERS)
    height, width = src.shape[:2]
    size = _size(name, dstsize, ((height + 1) // 2, (width + 1) // 2))
    if abs(2 * size[0] - height) > 2 or abs(2 * size[1] - width) > 2:
        wanted = f"(W, H) within a pixel of half of ({width}, {height})"
        checks.fail(name, "dstsize", wanted, repr(dstsize))
    picture, kernels = as_picture(src), select_pictures()
    if picture is not None and kernels:
        return from_picture(src, dst, kernels.pyramid_down(picture, size, border))
    return finish(src, dst, opencv_pyramids.down(planes(src), size, border))


def pyrUp(
    src: Image,
    dst: Image | None = None,
    dstsize: Sequence[int] | None = None,
    borderType: Any = BORDER_DEFAULT,
) -> Image:
    """cv2.pyrUp: double the size, by the weights of `pyrDown`.

    src (H, W) or (H, W, C); dstsize (W, H), twice src's if None, or one more or less; borderType
    BORDER_DEFAULT. Integers and whole floats are cv2's own, other floats to the last bits.
    Gradients, if src is a tensor: all orders.

    >>> import numpy as np
    >>> pyrUp(np.array([[0, 64]], dtype=np.uint8))
    array([[16, 32, 56, 64],
           [16, 32, 56, 64]], dtype=uint8)
    """
    name = "pyrUp"
    check_picture(name, "src", src, OPENCV_TYPES)
    dst = check_output(name, "dst", dst, src)
    if not isinstance(borderType, Integral) or borderType != BORDER_DEFAULT:
        checks.fail(name, "borderType", "BORDER_DEFAULT", repr(borderType))
    height, width = src.shape[:2]
    size = _size(name, dstsize, (2 * height, 2 * width))
    if abs(size[0] - 2 * height) > 1 or abs(size[1] - 2 * width) > 1:
        wanted = f"(W, H) within a pixel of twice ({width}, {height})"
        checks.fail(name, "dstsize", wanted, repr(dstsize))
    picture, kernels = as_picture(src), select_pictures()
    if picture is not None and kernels:
        return from_picture(src, dst, kernels.pyramid_up(picture, size))
    return finish(src, dst, opencv_pyramids.up(planes(src), size))


def _size(name: str, dstsize: Any, default: tuple[int, int]) -> tuple[int, int]:
    dstsize = as_list(name, "dstsize", dstsize)
    return default if is_empty(dstsize) else as_size(name, "dstsize", dstsize)


def getRectSubPix(
    image: Image,
    patchSize: Sequence[int],
    center: PointsLike,
    patch: Image | None = None,
    patchType: int = -1,
) -> Image:
    """cv2.getRectSubPix: a rectangle about a fractional position, bilinear.

    image (H, W) or (H, W, C), uint8, float32, or (not in cv2) float64; patchSize (W, H); center (x,
    y) in pixels; patchType CV_32F converts bytes to floats. Outside the image the nearest pixel is
    repeated. The pixels are cv2's own without IPP, which reads wrong pixels of one-channel images
    if a rectangle reaches beyond the top right corner. Gradients: all orders to a float image; to a
    tensor `center` if the result is float.

    >>> import numpy as np
    >>> getRectSubPix(np.arange(12, dtype=np.uint8).reshape(3, 4) * 10, (2, 1), (1.0, 1.5))
    array([[65, 75]], dtype=uint8)
    """
    name = "getRectSubPix"
    check_picture(name, "image", image, (torch.uint8, torch.float32, torch.float64))
    height, width = as_size(name, "patchSize", patchSize)
    source_type = image.dtype if isinstance(image, Tensor) else checks.array_dtype(image)
    whole = isinstance(patchType, Integral) and patchType in (-1, CV_8U, CV_32F)
    if not whole or (patchType == CV_8U and source_type != torch.uint8):
        checks.fail(name, "patchType", "-1, or CV_32F of bytes", repr(patchType))
    output = check_output(name, "patch", patch, image)
    floating = source_type != torch.uint8 or patchType == CV_32F
    pair = numbers.single(center) if numbers.are_pairs(center) else None
    if pair is not None and all(map(math.isfinite, pair)):
        picture = as_picture(image)
    else:
        center = _checked_center(name, center, device_of(image))
        picture = as_picture(image, center) if center.device.type == "cpu" else None
        pair = None if picture is None else tuple(center.detach().float().tolist())
    kernels = select_pictures()
    if picture is not None and pair is not None and kernels:
        value = _rectangle(kernels, picture, pair, (height, width), floating)
        return from_picture(image, output, value)
    source, center = planes(image), _checked_center(name, center, device_of(image))
    dtype = torch.float32 if source.dtype == torch.uint8 and floating else source.dtype

    def values() -> Tensor:
        given = source.detach(), center.detach(), (height, width), floating
        found = opencv_rectangles.rectangle(*given)
        return found.to(dtype) if floating else convert(found, dtype)

    if not (floating and is_followed(source, center)):
        return finish(image, output, values())
    half = torch.tensor([(width - 1) / 2, (height - 1) / 2], device=center.device)
    points = pixel_points((height, width), torch.float64, center.device) + center.double() - half
    rule, pixels = SamplingRule("bilinear", "replicate"), source.to(dtype)
    exact = partial(warp.remap_by, name, pixels, points, rule, 0.0, None, "auto")
    fused = select_backend(name, "auto", pixels, rule) is backend_module("cpu")
    value = with_exact_gradient(values, exact, pixels, points, fused=fused)
    return finish(image, output, value)


def _checked_center(name: str, center: Any, device: torch.device) -> Tensor:
    center = floats(name, "center", center, device, checks.as_pair)
    if tuple(center.shape) != (2,):
        checks.fail(name, "center", "(x, y)", checks.shape_of(center))
    checks.check_values(name, "center", ~center.detach().isfinite(), "finite")
    return center


def _rectangle(
    kernels: PictureBackend,
    image: np.ndarray,
    center: tuple[float, float],
    size: tuple[int, int],
    floating: bool,
) -> np.ndarray:
    """`opencv_rectangles.rectangle` of a picture (H, W, C) by kernels; center: float32 values."""
    x, y = (
        c_float(middle - (side - 1) / 2).value  # as if computed in float32
        for middle, side in zip(center, size[::-1], strict=True)
    )
    left, top = math.floor(x), math.floor(y)  # a corner far outside reads only the edge
    first = (
        min(max(top, -size[0] - 2), image.shape[0] + 1),
        min(max(left, -size[1] - 2), image.shape[1] + 1),
    )
    fractions = np.array((x - left, y - top), np.float32)
    return kernels.rectangle(image, size, first, fractions, floating)
