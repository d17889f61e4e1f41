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
from typing import TypeAlias, TypedDict, TypeVar

import numpy as np
from torch import Tensor

from warpkit.choices import Aligned as Aligned
from warpkit.choices import AlignmentLoss as AlignmentLoss
from warpkit.choices import AlignmentModel as AlignmentModel
from warpkit.choices import Arithmetic as Arithmetic
from warpkit.choices import AxesArithmetic as AxesArithmetic
from warpkit.choices import BackendName as BackendName
from warpkit.choices import Border as Border
from warpkit.choices import BorderName as BorderName
from warpkit.choices import Continuation as Continuation
from warpkit.choices import DepthKind as DepthKind
from warpkit.choices import Edge as Edge
from warpkit.choices import FaceArithmetic as FaceArithmetic
from warpkit.choices import FaceResizeArithmetic as FaceResizeArithmetic
from warpkit.choices import Filter as Filter
from warpkit.choices import ImageGradient as ImageGradient
from warpkit.choices import Interpolation as Interpolation
from warpkit.choices import LensModel as LensModel
from warpkit.choices import Library as Library
from warpkit.choices import MaskSpace as MaskSpace
from warpkit.choices import Measure as Measure
from warpkit.choices import Norm as Norm
from warpkit.choices import Overlap as Overlap
from warpkit.choices import Place as Place
from warpkit.choices import ResizeArithmetic as ResizeArithmetic
from warpkit.choices import ResizeBackendName as ResizeBackendName
from warpkit.choices import RoundingRule as RoundingRule
from warpkit.choices import Space as Space
from warpkit.choices import SplatMode as SplatMode
from warpkit.choices import StepName as StepName
from warpkit.choices import Subsampling as Subsampling
from warpkit.choices import Takes as Takes
from warpkit.choices import Transformer as Transformer
from warpkit.choices import WarpInterpolation as WarpInterpolation
from warpkit.core.public import listing

__all__ = [
    "Aligned",
    "AlignmentLoss",
    "AlignmentModel",
    "Arithmetic",
    "ArrayLike",
    "AxesArithmetic",
    "BackendName",
    "Border",
    "BorderName",
    "BoxesLike",
    "Continuation",
    "DepthKind",
    "Edge",
    "FaceArithmetic",
    "FaceResizeArithmetic",
    "Filter",
    "FlowLike",
    "Image",
    "ImageGradient",
    "ImageLike",
    "IndexLike",
    "Interpolation",
    "LensModel",
    "Library",
    "MaskSpace",
    "MatrixLike",
    "Measure",
    "Norm",
    "Number",
    "NumbersLike",
    "Overlap",
    "Place",
    "PointsLike",
    "ResizeArithmetic",
    "ResizeBackendName",
    "RoundingRule",
    "SamplingKeywords",
    "Space",
    "SplatMode",
    "StepName",
    "Subsampling",
    "Takes",
    "Transformer",
    "WarpInterpolation",
    "WarpKeywords",
]
__dir__ = listing(__all__)

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


class SamplingKeywords(TypedDict, total=False):
    """The keywords of `warp_affine` except size and arithmetic."""

    interpolation: WarpInterpolation
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
