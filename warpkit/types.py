"""Types of arguments: numbers, matrices, points and images, and the names of every option.

Editors complete these names, and type checkers reject others. A name that a program reads at run
time is a plain `str`; it works, too, but a type checker needs `typing.cast`. The functions validate
their arguments by the same names.

>>> from typing import get_args
>>> get_args(Interpolation)
('nearest', 'bilinear', 'bicubic', 'lanczos4')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from torch import Tensor

_IMPORTED = frozenset(globals())


def __dir__() -> list[str]:
    """The types alone, for an editor's completion."""
    return sorted(name for name in globals() if not (name.startswith("_") or name in _IMPORTED))


# Sequences are spelled out to the depth that a function takes: a recursive alias would accept any
# text, since a str is a sequence of str
Number: TypeAlias = float | Tensor | np.ndarray | np.generic
"""One number of Python, numpy or torch; arrays and tensors may hold a batch."""
_Vector: TypeAlias = Tensor | np.ndarray | Sequence[Number]
_Table: TypeAlias = Tensor | np.ndarray | Sequence[_Vector]
_Field: TypeAlias = Tensor | np.ndarray | Sequence[_Table]

NumbersLike: TypeAlias = Number | _Vector | _Table
"""A number, or a batch of them."""
ArrayLike: TypeAlias = Number | _Vector | _Table | _Field
"""An array of any shape (of sequences: at most three dimensions)."""
MatrixLike: TypeAlias = _Table | _Field
"""(..., 2, 3) or (..., 3, 3): a tensor, an array, rows of numbers, or a sequence of those."""
PointsLike: TypeAlias = _Vector | _Table | _Field | Sequence[_Field]
"""(..., 2), (x, y) in pixels: a point, a list of points, a field, or a batch of fields."""
BoxesLike: TypeAlias = _Vector | _Table | _Field
"""(..., 4), (..., 5) or (..., 4, 2): one box or several, in edge coordinates."""
FlowLike: TypeAlias = _Field | Sequence[_Field]
"""(..., h, w, 2), (dx, dy) in pixels for every pixel."""
IndexLike: TypeAlias = Tensor | np.ndarray | Sequence[int]
"""(N,) integers: which image each object belongs to."""
ImageLike: TypeAlias = Tensor | np.ndarray
"""An image (H, W) or (H, W, C) for `warpkit.opencv`; the other modules take tensors."""
Image = TypeVar("Image", Tensor, np.ndarray)
"""The same, for a function that returns the type that it takes."""

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos4"]
"""The interpolations of the warps."""
Filter: TypeAlias = Literal[
    "nearest",
    "nearest_exact",
    "bilinear",
    "bilinear_exact",
    "bicubic",
    "lanczos4",
    "box",
    "hamming",
    "lanczos",
    "area",
]
"""The filters of `resize`; each arithmetic has some of them."""
BorderName: TypeAlias = Literal[
    "constant", "replicate", "reflect", "reflect_101", "wrap", "transparent", "zeros", "border"
]
"""The borders: OpenCV's names, and torch's for constant 0 and replicate."""
Border: TypeAlias = BorderName | Sequence[BorderName]
"""One border, or two: (along y, along x)."""
Continuation: TypeAlias = Literal["replicate", "reflect", "reflect_101", "wrap", "border"]
"""The borders that continue an array with its own rows."""

Arithmetic: TypeAlias = Literal["exact", "opencv4", "opencv5"]
"""Whose pixels a warp returns."""
FaceArithmetic: TypeAlias = Literal["auto", "exact", "opencv4", "opencv5"]
"""The same, or the installed OpenCV's."""
ResizeArithmetic: TypeAlias = Literal[
    "exact", "opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp", "pillow", "torchvision"
]
"""Whose pixels a resize returns."""
FaceResizeArithmetic: TypeAlias = Literal[
    "auto", "exact", "opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp"
]
"""OpenCV's arithmetics, or that of the installed OpenCV."""

BackendName: TypeAlias = Literal["auto", "cpu", "cuda", "grid_sample", "reference"]
"""The backends of the warps."""
ResizeBackendName: TypeAlias = Literal["auto", "cpu", "reference"]
"""The backends of `resize`."""
ImageGradient: TypeAlias = Literal["exact", "straight_through"]
"""The gradient to the image."""

AlignmentModel: TypeAlias = Literal[
    "translation", "euclidean", "similarity", "affine", "perspective"
]
"""The motion models of `align`."""
AlignmentLoss: TypeAlias = Literal["ecc", "ssd", "robust"]
"""The losses of `align`."""
LensModel: TypeAlias = Literal["brown", "fisheye"]
"""The lens models, with OpenCV's coefficients."""
DepthKind: TypeAlias = Literal["z", "ray", "inverse"]
"""What depths are: along the optical axis, from the camera's centre, or 1 / z."""
SplatMode: TypeAlias = Literal["sum", "average", "softmax"]
"""How `flow.splat` combines pixels that land on one position."""
Space: TypeAlias = Literal["pixel", "theta"]
"""The coordinates of the matrices of `transform_patches`."""
MaskSpace: TypeAlias = Literal["box", "image"]
"""What a mask of `transform_patches` covers."""
Overlap: TypeAlias = Literal["last", "sequential"]
"""What overlapping objects of `transform_patches` read."""
Edge: TypeAlias = Literal["hard", "soft"]
"""How `transform_patches` handles a fractional box."""
Place: TypeAlias = Literal["center", "start"]
"""Where `letterbox` puts the image."""
RoundingRule: TypeAlias = Literal["even", "down", "half_up"]
"""How `letterbox` rounds the resized sides."""
Transformer: TypeAlias = Literal["affine", "similarity", "perspective", "thin_plate"]
"""The transforms of a spatial transformer."""
Norm: TypeAlias = Literal["linf", "l2"]
"""The norms of a perturbation."""
StepName: TypeAlias = Literal["sign", "gradient"]
"""The attacks' own steps, as an alternative to torch's optimizers."""
Subsampling: TypeAlias = Literal["4:4:4", "4:2:2", "4:2:0"]
"""How a JPEG file stores colours."""
Library: TypeAlias = Literal["pillow", "torchvision"]
"""The library whose resize an image processor calls."""
Takes: TypeAlias = Literal["auto", "pil", "array", "tensor", "file"]
"""The kind of image that a preprocessing program takes."""


class SamplingKeywords(TypedDict, total=False):
    """The keywords of `warp_affine` except size and arithmetic."""

    interpolation: Interpolation
    border: Border
    border_value: NumbersLike
    inverse: bool
    background: Tensor | None
    antialias: bool | int
    image_gradient: ImageGradient
    backend: BackendName


class WarpKeywords(SamplingKeywords, total=False):
    """The keywords of `warp_affine`, for functions that pass them on."""

    size: Sequence[int] | None
    arithmetic: Arithmetic
