"""The drop-in face: ``import warpkit.opencv as cv2``, for tensors and arrays alike.

OpenCV's names, argument order and defaults; images (H, W) or (H, W, C), sizes (W, H). Tensor in,
tensor out, with gradients; array in, array out. One keyword more: ``arithmetic``, by default
"auto", the pixels of the OpenCV that is installed (of OpenCV 5 where there is none); "opencv4",
"opencv5" and "exact" as in `warpkit.warp_affine`.

This module translates names and layouts, nothing else. Where it differs from cv2, beside
docs/opencv-versions.md:

- a `dst` array of the result's shape and type is written to and returned, as in cv2, but a
  tensor given as `dst` is only read;
- BORDER_TRANSPARENT without `dst` is an error, where cv2 shows uninitialised memory;
- degenerate points and singular matrices are errors in the functions that make matrices, where
  cv2 returns zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from warpkit import _checks as checks
from warpkit import geometry, warp
from warpkit.kernels.opencv import TYPES as OPENCV_TYPES
from warpkit.kernels.promises import installed_arithmetic
from warpkit.kernels.rules import ARITHMETICS, Rule

INTER_NEAREST, INTER_LINEAR, INTER_CUBIC, INTER_AREA, INTER_LANCZOS4 = range(5)
INTER_LINEAR_EXACT, INTER_NEAREST_EXACT, INTER_MAX = 5, 6, 7
WARP_FILL_OUTLIERS, WARP_INVERSE_MAP, WARP_RELATIVE_MAP = 8, 16, 32
BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_WRAP, BORDER_REFLECT_101 = range(5)
BORDER_TRANSPARENT, BORDER_ISOLATED = 5, 16
BORDER_REFLECT101 = BORDER_DEFAULT = BORDER_REFLECT_101

INTERPOLATIONS = {
    INTER_NEAREST: "nearest",
    INTER_LINEAR: "bilinear",
    INTER_CUBIC: "bicubic",
    INTER_AREA: "bilinear",  # OpenCV's warps replace it without a word
    INTER_LANCZOS4: "lanczos4",
}
BORDERS = {
    BORDER_CONSTANT: "constant",
    BORDER_REPLICATE: "replicate",
    BORDER_REFLECT: "reflect",
    BORDER_WRAP: "wrap",
    BORDER_REFLECT_101: "reflect_101",
    BORDER_TRANSPARENT: "transparent",
}

Image = TypeVar("Image", Tensor, np.ndarray)


def warpAffine(
    src: Image,
    M: Any,
    dsize: Sequence[int] | None,
    dst: Image | None = None,
    flags: int = INTER_LINEAR,
    borderMode: int = BORDER_CONSTANT,
    borderValue: Any = 0,
    *,
    arithmetic: str = "auto",
) -> Image:
    """cv2.warpAffine: M (2, 3); dsize (W, H), None or (0, 0) for the source's.

    src (H, W) or (H, W, C). flags: an INTER_* value, with WARP_INVERSE_MAP if M maps destination
    -> source. borderValue: a number, which as in cv2 fills the first channel alone, or up to four.
    Gradients, where src is a tensor: those of `warpkit.warp_affine`.

    >>> image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> warpAffine(image, np.array([[1.0, 0, 1], [0, 1, 0]]), (3, 2))
    array([[0, 0, 1],
           [0, 3, 4]], dtype=uint8)
    """
    name = "warpAffine"
    options = _options(name, src, dst, flags, borderMode, borderValue, arithmetic)
    M = _matrix(name, M, src, 2)
    return _warp(name, warp.warp_affine, src, M, dsize, dst, flags, options)


def warpPerspective(
    src: Image,
    M: Any,
    dsize: Sequence[int] | None,
    dst: Image | None = None,
    flags: int = INTER_LINEAR,
    borderMode: int = BORDER_CONSTANT,
    borderValue: Any = 0,
    *,
    arithmetic: str = "auto",
) -> Image:
    """cv2.warpPerspective: M (3, 3); everything else as in `warpAffine`.

    >>> image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> warpPerspective(image, np.diag([2.0, 2.0, 2.0]), (3, 2))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """
    name = "warpPerspective"
    options = _options(name, src, dst, flags, borderMode, borderValue, arithmetic)
    M = _matrix(name, M, src, 3)
    return _warp(name, warp.warp_perspective, src, M, dsize, dst, flags, options)


def remap(
    src: Image,
    map1: Any,
    map2: Any,
    interpolation: int,
    dst: Image | None = None,
    borderMode: int = BORDER_CONSTANT,
    borderValue: Any = 0,
    *,
    arithmetic: str = "auto",
) -> Image:
    """cv2.remap: two float maps (h, w), or one (h, w, 2) and None, or cv2.convertMaps's integers.

    The integers are (h, w, 2) int16 and (h, w) uint16 or None. WARP_RELATIVE_MAP may be added to
    `interpolation`: the maps then hold offsets from each output pixel. Gradients to src and maps.

    >>> image = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> remap(image, np.float32([[0.5, 2]]), np.float32([[0, 1]]), INTER_LINEAR)
    array([[0.5, 5. ]], dtype=float32)
    """
    name = "remap"
    options = _options(name, src, dst, interpolation, borderMode, borderValue, arithmetic)
    if interpolation & WARP_INVERSE_MAP:
        checks.fail(name, "interpolation", "without WARP_INVERSE_MAP", interpolation)
    points, fixed = _points(name, map1, map2, src)
    height, width = points.shape[:2]
    if interpolation & WARP_RELATIVE_MAP:
        rows, columns = torch.meshgrid(
            torch.arange(height, device=points.device),
            torch.arange(width, device=points.device),
            indexing="ij",
        )
        points = points + torch.stack((columns, rows), dim=-1)
    background = _background(name, src, dst, (height, width), options["border"])
    rule = Rule(options["interpolation"], options["border"], options["arithmetic"])
    extra = {"fixed_map": True} if fixed and rule.arithmetic != "exact" else {}
    value = options["border_value"]
    result = warp.remap_by(name, _planes(src), points, rule, value, background, "auto", **extra)
    return _finish(src, dst, result)


def getRotationMatrix2D(center: Any, angle: Any, scale: Any) -> Any:
    """cv2.getRotationMatrix2D: `warpkit.rotation_matrix` of the centre rounded to float32.

    >>> getRotationMatrix2D((2, 1), 0, 2)
    array([[ 2.,  0., -2.],
           [ 0.,  2., -1.]])
    """
    values = (center, angle, scale)
    name = "getRotationMatrix2D"
    if any(isinstance(value, Tensor) for value in values):
        return _call(name, geometry.rotation_matrix, *values)
    center = _numbers(name, "center", center, torch.float32).double()  # cv2's Point2f
    angle, scale = _numbers(name, "angle", angle), _numbers(name, "scale", scale)
    return _call(name, geometry.rotation_matrix, center, angle, scale).numpy()


def getAffineTransform(src: Any, dst: Any) -> Any:
    """cv2.getAffineTransform: `warpkit.affine_from_points` of two times three points.

    >>> getAffineTransform([[0, 0], [1, 0], [0, 1]], [[5, 7], [6, 7], [5, 9]])
    array([[1., 0., 5.],
           [0., 2., 7.]])
    """
    return _from_points(geometry.affine_from_points, src, dst, 3)


def getPerspectiveTransform(src: Any, dst: Any) -> Any:
    """cv2.getPerspectiveTransform: `warpkit.perspective_from_points` of two times four points.

    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> getPerspectiveTransform(square, [[0, 0], [2, 0], [2, 2], [0, 2]])
    array([[2., 0., 0.],
           [0., 2., 0.],
           [0., 0., 1.]])
    """
    return _from_points(geometry.perspective_from_points, src, dst, 4)


def invertAffineTransform(M: Any) -> Any:
    """cv2.invertAffineTransform: `warpkit.invert` of a matrix (2, 3).

    >>> invertAffineTransform(np.array([[2.0, 0, 4], [0, 1, -3]]))
    array([[ 0.5,  0. , -2. ],
           [ 0. ,  1. ,  3. ]])
    """
    name = "invertAffineTransform"
    if isinstance(M, Tensor):
        return _call(name, geometry.invert, M)
    single = getattr(M, "dtype", None) == np.float32
    dtype = torch.float32 if single else torch.float64
    return _call(name, geometry.invert, _numbers(name, "M", M, dtype)).numpy()


def _from_points(make: Callable[[Any, Any], Tensor], src: Any, dst: Any, n: int) -> Any:
    name = "getAffineTransform" if n == 3 else "getPerspectiveTransform"
    if isinstance(src, Tensor) or isinstance(dst, Tensor):
        return _call(name, make, src, dst)
    pairs = [_numbers(name, argument, p) for argument, p in (("src", src), ("dst", dst))]
    # cv2 takes (n, 1, 2) and (1, n, 2) too, as its own functions return points
    pairs = [p.reshape(n, 2) if p.numel() == 2 * n and p.shape[-1] == 2 else p for p in pairs]
    return _call(name, make, *pairs).numpy()


def _call(name: str, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """What the function makes; its errors under the name, and with the argument's name, of cv2."""
    try:
        return function(*args)
    except (ValueError, TypeError) as error:
        text = str(error).removeprefix(f"{function.__name__}: ").replace("`matrix`", "`M`")
        raise type(error)(f"{name}: {text}") from None


def _numbers(name: str, argument: str, value: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers and arrays on the CPU, where arrays are, whatever torch's default device is."""
    return checks.as_float(name, argument, value, torch.device("cpu"), dtype).to(dtype)


def _warp(
    name: str,
    function: Callable[..., Tensor],
    src: Any,
    matrix: Tensor,
    dsize: Sequence[int] | None,
    dst: Any,
    flags: int,
    options: dict[str, Any],
) -> Any:
    size = _size(name, dsize, src)
    background = _background(name, src, dst, size, options["border"])
    inverse = bool(flags & WARP_INVERSE_MAP)
    planes = _planes(src)
    result = function(planes, matrix, size=size, inverse=inverse, background=background, **options)
    return _finish(src, dst, result)


def _options(
    name: str, src: Any, dst: Any, flags: int, border_mode: int, border_value: Any, arithmetic: str
) -> dict[str, Any]:
    """The options of the core that flags, borderMode, borderValue and arithmetic ask for."""
    arithmetic = checks.check_name(name, "arithmetic", arithmetic, ("auto", *ARITHMETICS))
    arithmetic = installed_arithmetic() if arithmetic == "auto" else arithmetic
    if not isinstance(src, Tensor | np.ndarray):
        checks.fail(name, "src", "a tensor or an array", type(src).__name__, TypeError)
    types = checks.FLOATS + checks.INTEGERS if arithmetic == "exact" else OPENCV_TYPES
    dtype = src.dtype if isinstance(src, Tensor) else checks.array_dtype(src)
    if dtype not in types:
        wanted = f"of one of the types {checks.names_of(types)} with arithmetic={arithmetic!r}"
        checks.fail(name, "src", wanted, src.dtype, TypeError)
    if src.ndim not in (2, 3) or 0 in src.shape:
        checks.fail(name, "src", "of shape (H, W) or (H, W, C)", tuple(src.shape))
    for argument, image in (("src", src), ("dst", dst)):
        if isinstance(image, Tensor):
            checks.check_dense(name, argument, image)
            checks.check_device(name, argument, image, _device(src), "`src`")
    if dst is not None and type(dst) is not type(src):
        checks.fail(name, "dst", f"a {type(src).__name__}", type(dst).__name__, TypeError)
    if isinstance(dst, np.ndarray) and not dst.flags.writeable:
        checks.fail(name, "dst", "an array that can be written to", "a read-only one")
    argument = "interpolation" if name == "remap" else "flags"
    known = INTER_MAX | WARP_FILL_OUTLIERS | WARP_INVERSE_MAP
    known |= WARP_RELATIVE_MAP if name == "remap" else 0
    whole = isinstance(flags, Integral) and not isinstance(flags, bool)
    if not whole or flags | known != known or flags & INTER_MAX not in INTERPOLATIONS:
        wanted = "one of INTER_NEAREST, _LINEAR, _CUBIC, _AREA, _LANCZOS4, and WARP_ flags"
        checks.fail(name, argument, wanted, repr(flags))
    if not isinstance(border_mode, Integral) or border_mode not in BORDERS:
        wanted = "one of BORDER_CONSTANT, _REPLICATE, _REFLECT, _WRAP, _REFLECT_101, _TRANSPARENT"
        checks.fail(name, "borderMode", wanted, repr(border_mode))
    return {
        "interpolation": INTERPOLATIONS[flags & INTER_MAX],
        "border": BORDERS[border_mode],
        "border_value": _scalar(name, border_value, src),
        "arithmetic": arithmetic,
    }


def _scalar(name: str, value: Any, src: Any) -> Tensor:
    """cv2.Scalar: up to four numbers, zeros behind them; channel c takes number c mod 4."""
    channels = src.shape[2] if src.ndim == 3 else 1
    if isinstance(value, int | float):  # by far the most common, in one operation
        number = checks.float64_of(name, "borderValue", value)  # pyright: ignore
        first = [number if c % 4 == 0 else 0.0 for c in range(channels)]
        return torch.tensor(first, dtype=torch.float64, device=_device(src))
    value = checks.as_float(name, "borderValue", value, _device(src), torch.float64)
    checks.check_device(name, "borderValue", value, _device(src), "`src`")
    scalar = torch.atleast_1d(value)
    if scalar.ndim != 1 or not 1 <= len(scalar) <= 4:
        checks.fail(name, "borderValue", "a number or up to four", f"shape {tuple(value.shape)}")
    four = torch.cat((scalar, scalar.new_zeros(4 - len(scalar))))
    return four[torch.arange(channels, device=scalar.device) % 4]


def _size(name: str, dsize: Any, src: Any) -> tuple[int, int]:
    """dsize (W, H) as (H, W)."""
    if isinstance(dsize, Tensor):
        checks.check_device(name, "dsize", dsize, torch.device("cpu"), "a size")
        checks.check_dense(name, "dsize", dsize)
    pair = dsize.tolist() if isinstance(dsize, np.ndarray | Tensor) else dsize
    if pair is None or (isinstance(pair, Sequence) and tuple(pair) == (0, 0)):
        return src.shape[0], src.shape[1]
    width, height = checks.check_size(name, "dsize", pair, "(W, H)")
    return int(height), int(width)


def _matrix(name: str, matrix: Any, src: Any, rows: int) -> Tensor:
    matrix = checks.as_float(name, "M", matrix, _device(src), torch.float64)
    if tuple(matrix.shape) != (rows, 3):
        checks.fail(name, "M", f"of shape ({rows}, 3)", tuple(matrix.shape))
    checks.check_device(name, "M", matrix, _device(src), "`src`")
    return matrix


def _points(name: str, map1: Any, map2: Any, src: Any) -> tuple[Tensor, bool]:
    """The maps as points (h, w, 2); and whether they are convertMaps's pixels and 1/32 parts.

    Those keep OpenCV 5 on OpenCV 4's path.
    """
    map1 = _map(name, "map1", map1, src)
    map2 = None if map2 is None else _map(name, "map2", map2, src)
    if map2 is not None and map2.numel() == 0:
        map2 = None  # cv2's empty Mat
    shape = tuple(map1.shape)
    pair = map1.ndim == 3 and shape[2] == 2
    if pair and map1.dtype == torch.int16 and (map2 is None or tuple(map2.shape) == shape[:2]):
        if map2 is None:
            return map1.double(), False
        table = map2.long() & 1023  # 5 bits of y, 5 bits of x
        return map1.double() + torch.stack((table & 31, table >> 5), dim=-1) / 32, True
    if pair and map2 is None and map1.is_floating_point():
        return map1, False
    planar = map2 is not None and map1.ndim == 2 and tuple(map2.shape) == shape
    if planar and map1.is_floating_point() and map2.is_floating_point():  # pyright: ignore
        return torch.stack((map1, map2), dim=-1), False  # pyright: ignore
    wanted = "two (h, w) of floats, (h, w, 2) of floats and None, or convertMaps's (h, w, 2) int16"
    wanted += " with (h, w) uint16 or None"
    second = "None" if map2 is None else f"{tuple(map2.shape)} {map2.dtype}"
    return checks.fail(name, "map1, map2", wanted, f"{shape} {map1.dtype} and {second}")


def _map(name: str, argument: str, value: Any, src: Any) -> Tensor:
    """One map, in its own type: convertMaps's integers are not coordinates."""
    if isinstance(value, np.ndarray):
        return checks.from_array(name, argument, value, _device(src))
    if not isinstance(value, Tensor) or value.is_floating_point():
        value = checks.as_float(name, argument, value, _device(src))
    checks.check_dense(name, argument, value)
    checks.check_device(name, argument, value, _device(src), "`src`")
    return value


def _device(src: Any) -> torch.device:
    return src.device if isinstance(src, Tensor) else torch.device("cpu")


def _planes(image: Any) -> Tensor:
    """(H, W) or (H, W, C) as a view (1, C, H, W), which is channels-last for the core."""
    if isinstance(image, np.ndarray):
        image = checks.from_array("warpkit.opencv", "src", image, torch.device("cpu"))
    if image.ndim == 2:
        return image[None, None]
    return image.permute(2, 0, 1)[None]


def _background(name: str, src: Any, dst: Any, size: tuple[int, int], border: str) -> Tensor | None:
    if border != "transparent":
        return None
    shape = (*size, *src.shape[2:])
    wanted = f"of shape {shape} and the type of src with BORDER_TRANSPARENT"
    if dst is None:
        checks.fail(name, "dst", wanted, "None")
    if tuple(dst.shape) != shape or dst.dtype != src.dtype:
        checks.fail(name, "dst", wanted, f"{tuple(dst.shape)} {dst.dtype}")
    return _planes(dst)


def _finish(src: Any, dst: Any, result: Tensor) -> Any:
    """Back to src's layout and kind."""
    image = result[0, 0] if src.ndim == 2 else result[0].permute(1, 2, 0)
    if isinstance(src, Tensor):
        return image
    array = np.ascontiguousarray(image.detach().numpy())  # M may be a tensor in a graph
    if dst is not None and dst.shape == array.shape and dst.dtype == array.dtype:
        dst[...] = array
        return dst
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]  # cv2 returns (H, W) for (H, W, 1)
    return array
