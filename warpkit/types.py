"""Types of arguments: numbers, matrices, points and images, and the names of every option.

They are for editors and type checkers, which complete the names and refuse others. A name that a
program reads from outside is a plain `str`; it works all the same, and `typing.cast` says so to a
type checker. The functions check what they are given by the same names.

>>> from typing import get_args
>>> get_args(Interpolation)
('nearest', 'bilinear', 'bicubic', 'lanczos4')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from torch import Tensor

# Sequences are spelled out to the depth that a function takes: a recursive alias would take any
# text, since a str is a sequence of str
Number: TypeAlias = float | Tensor | np.ndarray | np.generic
"""One number, as Python, numpy or torch holds it; of arrays and tensors a batch of them too."""
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
"""A picture (H, W) or (H, W, C) of `warpkit.opencv`; the other modules take tensors."""
Image = TypeVar("Image", Tensor, np.ndarray)
"""The same, of a function that returns what it takes."""

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos4"]
"""How the warps sample."""
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
"""How `resize` samples or averages; each arithmetic has some of them."""
BorderName: TypeAlias = Literal[
    "constant", "replicate", "reflect", "reflect_101", "wrap", "transparent", "zeros", "border"
]
"""What lies outside an image: OpenCV's names, and torch's for constant 0 and replicate."""
Border: TypeAlias = BorderName | Sequence[BorderName]
"""One border, or two: (along y, along x)."""
Continuation: TypeAlias = Literal["replicate", "reflect", "reflect_101", "wrap", "border"]
"""The borders that continue an array with its own rows."""

Arithmetic: TypeAlias = Literal["exact", "opencv4", "opencv5"]
"""Whose pixels a warp gives."""
FaceArithmetic: TypeAlias = Literal["auto", "exact", "opencv4", "opencv5"]
"""The same, or the installed OpenCV's."""
ResizeArithmetic: TypeAlias = Literal[
    "exact", "opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp", "pillow", "torchvision"
]
"""Whose pixels a resize gives."""
FaceResizeArithmetic: TypeAlias = Literal[
    "auto", "exact", "opencv4", "opencv5", "opencv4_ipp", "opencv5_ipp"
]
"""Those of OpenCV's, or the installed OpenCV's own."""

BackendName: TypeAlias = Literal["auto", "cpu", "cuda", "grid_sample", "reference"]
"""Who computes a warp."""
ResizeBackendName: TypeAlias = Literal["auto", "cpu", "reference"]
"""Who computes a resize."""
ImageGradient: TypeAlias = Literal["exact", "straight_through"]
"""Which gradient an image gets."""

AlignmentModel: TypeAlias = Literal[
    "translation", "euclidean", "similarity", "affine", "perspective"
]
"""What `align` looks for."""
AlignmentLoss: TypeAlias = Literal["ecc", "ssd", "robust"]
"""What `align` makes small."""
LensModel: TypeAlias = Literal["brown", "fisheye"]
"""The models of lenses, with OpenCV's coefficients."""
SplatMode: TypeAlias = Literal["sum", "average", "softmax"]
"""What becomes of pixels that `flow.splat` lays on one place."""
Space: TypeAlias = Literal["pixel", "theta"]
"""What the matrices of `transform_patches` speak of."""
MaskSpace: TypeAlias = Literal["box", "image"]
"""What a mask of `transform_patches` lies over."""
Overlap: TypeAlias = Literal["last", "sequential"]
"""What the objects of `transform_patches` read."""
Edge: TypeAlias = Literal["hard", "soft"]
"""How `transform_patches` ends a box that lies between pixels."""
Place: TypeAlias = Literal["center", "start"]
"""Where `letterbox` puts the image."""
RoundingRule: TypeAlias = Literal["even", "down", "half_up"]
"""How `letterbox` rounds the resized sides."""
Transformer: TypeAlias = Literal["affine", "similarity", "perspective", "thin_plate"]
"""What a spatial transformer's head makes."""
Norm: TypeAlias = Literal["linf", "l2"]
"""What measures a perturbation."""
StepName: TypeAlias = Literal["sign", "gradient"]
"""The attacks' own steps; an optimizer of torch's is the other way."""
Subsampling: TypeAlias = Literal["4:4:4", "4:2:2", "4:2:0"]
"""How a JPEG file stores colours."""
Library: TypeAlias = Literal["pillow", "torchvision"]
"""Whose resize an image processor calls."""
Takes: TypeAlias = Literal["auto", "pil", "array", "tensor"]
"""The kind of image that a preprocessing program takes."""


class SamplingKeywords(TypedDict, total=False):
    """The keywords of `warp_affine` but for its size and arithmetic."""

    interpolation: Interpolation
    border: Border
    border_value: NumbersLike
    inverse: bool
    background: Tensor | None
    antialias: bool | int
    image_gradient: ImageGradient
    backend: BackendName


class WarpKeywords(SamplingKeywords, total=False):
    """The keywords of `warp_affine`, for functions that hand them on."""

    size: Sequence[int] | None
    arithmetic: Arithmetic
