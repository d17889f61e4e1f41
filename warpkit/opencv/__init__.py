"""The drop-in replacement for cv2: ``import warpkit.opencv as cv2``, for tensors and arrays.

OpenCV's names, argument order and defaults; images (H, W) or (H, W, C), sizes (W, H). Tensor in,
tensor out, with gradients; array in, array out. An additional keyword, ``arithmetic``, is "auto" by
default: the pixels of the installed OpenCV (of OpenCV 5 if none is installed); "opencv4", "opencv5"
and "exact" are as in `warpkit.warp_affine`.

These modules translate names and layouts, and choose the gradients of cv2's pixels. Differences
from cv2, in addition to docs/opencv-versions.md:

- a `dst` array of the result's shape and type is written to and returned, as in cv2, but a
  tensor passed as `dst` is only read;
- BORDER_TRANSPARENT without `dst` raises an error, while cv2 shows uninitialised memory; warpPolar
  without WARP_FILL_OUTLIERS shows 0;
- points of every type are accepted, and rounded to float32; cv2 accepts only float32;
- what cv2 computes wrongly raises an error or is computed correctly: perspectiveTransform by
  matrices that are not square, convertMaps of integer maps to two float maps;
- findHomography has only method 0, and rejects collinear points;
- findTransformECC works coarse to fine, takes any number of channels, and raises `error`, not
  cv2.error, if it does not converge.

`warps`, `resizing`, `matrices`, `homography`, `alignment`, `lenses` and `fisheye`, `projection` and
`jacobians` (scenes to pixels), `maps`, `polar`, `points`, `pyramids` and `arrangements` (moving
whole pixels) have the functions by subject. Their calls go through `door`; `sampling` and
`lens_maps` have plans. `layout`, `values`, `sizes` and `cameras` translate arguments, and
`constants` are cv2's.

For everything else in cv2, ``import cv2`` as well.
"""

from __future__ import annotations

import difflib
from typing import Any

from warpkit.core.public import listing
from warpkit.engine.arithmetic.guarantees import installed_arithmetic as installed_arithmetic
from warpkit.opencv import fisheye
from warpkit.opencv.alignment import error, findTransformECC
from warpkit.opencv.arrangements import (
    copyMakeBorder,
    flip,
    hconcat,
    rotate,
    transpose,
    vconcat,
)
from warpkit.opencv.constants import (
    ALGO_HINT_ACCURATE,
    ALGO_HINT_APPROX,
    ALGO_HINT_DEFAULT,
    BORDER_CONSTANT,
    BORDER_DEFAULT,
    BORDER_ISOLATED,
    BORDER_REFLECT,
    BORDER_REFLECT101,
    BORDER_REFLECT_101,
    BORDER_REPLICATE,
    BORDER_TRANSPARENT,
    BORDER_WRAP,
    CV_8S,
    CV_8U,
    CV_16S,
    CV_16SC2,
    CV_16U,
    CV_16UC1,
    CV_32F,
    CV_32FC1,
    CV_32FC2,
    CV_32S,
    CV_64F,
    DECOMP_CHOLESKY,
    DECOMP_EIG,
    DECOMP_LU,
    DECOMP_NORMAL,
    DECOMP_QR,
    DECOMP_SVD,
    INTER_AREA,
    INTER_CUBIC,
    INTER_LANCZOS4,
    INTER_LINEAR,
    INTER_LINEAR_EXACT,
    INTER_MAX,
    INTER_NEAREST,
    INTER_NEAREST_EXACT,
    MOTION_AFFINE,
    MOTION_EUCLIDEAN,
    MOTION_HOMOGRAPHY,
    MOTION_TRANSLATION,
    ROTATE_90_CLOCKWISE,
    ROTATE_90_COUNTERCLOCKWISE,
    ROTATE_180,
    TERM_CRITERIA_COUNT,
    TERM_CRITERIA_EPS,
    TERM_CRITERIA_MAX_ITER,
    WARP_FILL_OUTLIERS,
    WARP_INVERSE_MAP,
    WARP_POLAR_LINEAR,
    WARP_POLAR_LOG,
    WARP_RELATIVE_MAP,
    TermCriteria_COUNT,
    TermCriteria_EPS,
    TermCriteria_MAX_ITER,
)
from warpkit.opencv.homography import findHomography
from warpkit.opencv.lenses import (
    getOptimalNewCameraMatrix,
    initUndistortRectifyMap,
    undistort,
    undistortPoints,
)
from warpkit.opencv.maps import convertMaps, warpPolar
from warpkit.opencv.matrices import (
    boxPoints,
    getAffineTransform,
    getPerspectiveTransform,
    getRotationMatrix2D,
    invertAffineTransform,
)
from warpkit.opencv.points import perspectiveTransform, transform
from warpkit.opencv.polar import cartToPolar, polarToCart
from warpkit.opencv.projection import Rodrigues, projectPoints
from warpkit.opencv.pyramids import getRectSubPix, pyrDown, pyrUp
from warpkit.opencv.resizing import resize
from warpkit.opencv.warps import remap, warpAffine, warpPerspective

__all__ = [
    "ALGO_HINT_ACCURATE",
    "ALGO_HINT_APPROX",
    "ALGO_HINT_DEFAULT",
    "BORDER_CONSTANT",
    "BORDER_DEFAULT",
    "BORDER_ISOLATED",
    "BORDER_REFLECT",
    "BORDER_REFLECT101",
    "BORDER_REFLECT_101",
    "BORDER_REPLICATE",
    "BORDER_TRANSPARENT",
    "BORDER_WRAP",
    "CV_8S",
    "CV_8U",
    "CV_16S",
    "CV_16SC2",
    "CV_16U",
    "CV_16UC1",
    "CV_32F",
    "CV_32FC1",
    "CV_32FC2",
    "CV_32S",
    "CV_64F",
    "DECOMP_CHOLESKY",
    "DECOMP_EIG",
    "DECOMP_LU",
    "DECOMP_NORMAL",
    "DECOMP_QR",
    "DECOMP_SVD",
    "INTER_AREA",
    "INTER_CUBIC",
    "INTER_LANCZOS4",
    "INTER_LINEAR",
    "INTER_LINEAR_EXACT",
    "INTER_MAX",
    "INTER_NEAREST",
    "INTER_NEAREST_EXACT",
    "MOTION_AFFINE",
    "MOTION_EUCLIDEAN",
    "MOTION_HOMOGRAPHY",
    "MOTION_TRANSLATION",
    "ROTATE_90_CLOCKWISE",
    "ROTATE_90_COUNTERCLOCKWISE",
    "ROTATE_180",
    "TERM_CRITERIA_COUNT",
    "TERM_CRITERIA_EPS",
    "TERM_CRITERIA_MAX_ITER",
    "WARP_FILL_OUTLIERS",
    "WARP_INVERSE_MAP",
    "WARP_POLAR_LINEAR",
    "WARP_POLAR_LOG",
    "WARP_RELATIVE_MAP",
    "Rodrigues",
    "TermCriteria_COUNT",
    "TermCriteria_EPS",
    "TermCriteria_MAX_ITER",
    "boxPoints",
    "cartToPolar",
    "convertMaps",
    "copyMakeBorder",
    "error",
    "findHomography",
    "findTransformECC",
    "fisheye",
    "flip",
    "getAffineTransform",
    "getOptimalNewCameraMatrix",
    "getPerspectiveTransform",
    "getRectSubPix",
    "getRotationMatrix2D",
    "hconcat",
    "initUndistortRectifyMap",
    "invertAffineTransform",
    "perspectiveTransform",
    "polarToCart",
    "projectPoints",
    "pyrDown",
    "pyrUp",
    "remap",
    "resize",
    "rotate",
    "transform",
    "transpose",
    "undistort",
    "undistortPoints",
    "vconcat",
    "warpAffine",
    "warpPerspective",
    "warpPolar",
]
__dir__ = listing(__all__)


def __getattr__(name: str) -> Any:
    """Raises AttributeError; unless the name looks misspelled, it refers to cv2."""
    text = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("_") and not difflib.get_close_matches(name, __all__, cutoff=0.85):
        text += ": warpkit.opencv has only a part of cv2; import cv2 for the rest"
    raise AttributeError(text)
