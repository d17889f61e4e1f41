"""The names of every option, without torch: `warpkit --help` lists them in a fraction of a second.

`warpkit.types` has their types for users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos4"]
"""The interpolations of the warps, of objects and of arrays."""
WarpInterpolation: TypeAlias = Literal[
    "nearest", "bilinear", "bicubic", "lanczos4", "spline3", "spline5"
]
"""Those of warps of whole images, with splines, whose filter reads all of them."""
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
    "spline2",
    "spline3",
    "spline4",
    "spline5",
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
    "exact",
    "opencv4",
    "opencv5",
    "opencv4_ipp",
    "opencv5_ipp",
    "pillow",
    "torchvision",
    "scipy",
    "skimage",
]
"""Whose pixels a resize returns."""
AxesArithmetic: TypeAlias = Literal["exact", "scipy", "skimage"]
"""Whose numbers `resize_axes` returns."""
Aligned: TypeAlias = Literal["centers", "corners"]
"""What SciPy's positions keep in place: the grid of pixels as squares, or the end pixels."""
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
Measure: TypeAlias = Literal["correlation", "difference", "absolute", "squared", "variance"]
"""How `camera.plane_sweep` compares pictures."""
SplatMode: TypeAlias = Literal["sum", "average", "softmax", "front"]
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

INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
WARP_INTERPOLATIONS: tuple[WarpInterpolation, ...] = get_args(WarpInterpolation)
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
RESIZE_ARITHMETICS: tuple[ResizeArithmetic, ...] = get_args(ResizeArithmetic)
AXES_ARITHMETICS: tuple[AxesArithmetic, ...] = get_args(AxesArithmetic)
ALIGNED: tuple[Aligned, ...] = get_args(Aligned)
ALIGNMENT_MODELS: tuple[AlignmentModel, ...] = get_args(AlignmentModel)
ALIGNMENT_LOSSES: tuple[AlignmentLoss, ...] = get_args(AlignmentLoss)

OPENCV_FILTERS: tuple[Filter, ...] = (
    "nearest",
    "nearest_exact",
    "bilinear",
    "bilinear_exact",
    "bicubic",
    "area",
    "lanczos4",
)
TORCH_FILTERS: tuple[Filter, ...] = (
    "nearest",
    "nearest_exact",
    "bilinear",
    "bicubic",
    "area",
    "lanczos",
)
PILLOW_FILTERS: tuple[Filter, ...] = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
SPLINE_FILTERS: tuple[Filter, ...] = ("spline2", "spline3", "spline4", "spline5")
SCIPY_FILTERS: tuple[Filter, ...] = ("nearest", "bilinear", *SPLINE_FILTERS)
"""SciPy's orders 0 to 5."""
