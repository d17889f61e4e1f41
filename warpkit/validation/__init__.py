"""Measures how far warpkit is from OpenCV, and identifies preprocessing programs.

OpenCV is loaded on first use. Its IPP, which gives other pixels in OpenCV 4, is switched off for
the comparison and restored afterwards.

`calls` runs one warp with both and `metrics` counts the differences; `suite` has all settings of
warps, `resizes` those of resizes, `peers` the results of other libraries. `report` runs them,
`results` holds the results, `table` prints them and `html` writes a page.

`preprocessing` identifies a program by calling it, or from its results, and compares two;
`programs` and `pairs` implement this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from warpkit.core import checks
from warpkit.core.public import listing
from warpkit.engine.arithmetic.guarantees import arithmetic_of
from warpkit.types import Arithmetic, FaceArithmetic, MatrixLike, SamplingKeywords
from warpkit.validation.calls import ParityCall, by_opencv, by_warpkit, compare, load_cv2
from warpkit.validation.metrics import Figures as Figures
from warpkit.validation.metrics import Parity as Parity
from warpkit.validation.preprocessing import assert_same_pipeline as assert_same_pipeline
from warpkit.validation.preprocessing import compare_pipelines as compare_pipelines
from warpkit.validation.preprocessing import identify as identify
from warpkit.validation.preprocessing import identify_pairs as identify_pairs
from warpkit.validation.programs.comparison import PipelineComparison as PipelineComparison
from warpkit.validation.programs.findings import Finding as Finding
from warpkit.validation.programs.report import Preprocessing as Preprocessing
from warpkit.validation.report import ParityReport as ParityReport
from warpkit.validation.report import make_report

if TYPE_CHECKING:
    from typing_extensions import Unpack


__all__ = [
    "Figures",
    "Finding",
    "Parity",
    "ParityReport",
    "PipelineComparison",
    "Preprocessing",
    "assert_same_pipeline",
    "compare_pipelines",
    "compare_with_opencv",
    "identify",
    "identify_pairs",
    "parity_suite",
]
__dir__ = listing(__all__)


def compare_with_opencv(
    image: Tensor,
    matrix: MatrixLike,
    *,
    size: Sequence[int] | None = None,
    arithmetic: FaceArithmetic = "auto",
    **options: Unpack[SamplingKeywords],
) -> Parity:
    """Warp with warpkit and with the installed OpenCV, and count the differences.

    image (..., C, H, W) of a type that OpenCV warps; matrix (..., 2, 3) for `warp_affine` and
    cv2.warpAffine, (..., 3, 3) for `warp_perspective` and cv2.warpPerspective, source pixel ->
    destination pixel; size (H, W). The other options are those of these functions. arithmetic:
    "auto" is the installed OpenCV's. Figures are in the image's units; `interior` covers the pixels
    whose neighbours all lie in the image, `border` the rest.

    Raises ImportError if OpenCV is not installed, ValueError for calls that OpenCV rejects.

    >>> import torch
    >>> image = torch.arange(12, dtype=torch.uint8).reshape(1, 3, 4)
    >>> parity = compare_with_opencv(image, [[1, 0, 0.5], [0, 1, 0]])
    >>> parity.differing, parity.total, parity.max_abs
    (0, 12, 0.0)
    """
    name = "compare_with_opencv"
    image = checks.check_image(name, "image", image)
    matrix = checks.as_float(name, "matrix", matrix, image.device)
    checks.check_matrix_shape(name, "matrix", matrix, (2, 3))
    for argument, tensor in (("image", image), ("matrix", matrix)):
        checks.check_held(name, argument, tensor)
    kind = "affine" if matrix.shape[-2] == 2 else "perspective"
    cv2 = load_cv2(name)
    arithmetic = known_arithmetic(name, arithmetic, cv2)
    call = ParityCall(kind, image, matrix, {**options, "size": size})
    with torch.device("cpu"):  # where OpenCV is, whatever torch's default device
        got = by_warpkit(call, arithmetic)
        return compare(call, got, by_opencv(cv2, call, name), arithmetic, cv2)


def parity_suite(
    images: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    *,
    progress: bool = False,
    arithmetic: FaceArithmetic = "auto",
) -> ParityReport:
    """Compare every map, interpolation, border, type and number of channels with OpenCV.

    images: photographs (C, H, W), grey or RGB, integers or floats in [0, 1]; a batch, a sequence or
    a mapping by name. Their centres and white noise are warped, each by one of two maps; 1,080
    rows, about a minute on two cores. kornia, torchvision and grid_sample are included if they are
    installed and support the setting. Then they are resized, in the 102 rows of `.resizes`, by
    every filter of OpenCV and Pillow. progress: a bar on the terminal.
    """
    name = "parity_suite"
    cv2 = load_cv2(name)
    with torch.device("cpu"):
        return make_report(name, images, cv2, known_arithmetic(name, arithmetic, cv2), progress)


def known_arithmetic(name: str, arithmetic: str, cv2: Any) -> Arithmetic:
    """The arithmetic's own name; "auto" is replaced by that of the installed OpenCV."""
    names: tuple[FaceArithmetic, ...] = get_args(FaceArithmetic)
    chosen = checks.check_name(name, "arithmetic", arithmetic, names)
    return arithmetic_of(cv2.__version__) if chosen == "auto" else chosen
