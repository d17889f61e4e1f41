"""cv2.findTransformECC by `warpkit.align`: translates names, layouts and the error."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.alignment import align
from warpkit.core import checks, exports
from warpkit.engine.definitions.maps import to_3x3
from warpkit.opencv.cameras import checked_criteria
from warpkit.opencv.constants import (
    MOTION_AFFINE,
    MOTION_EUCLIDEAN,
    MOTION_HOMOGRAPHY,
    MOTION_TRANSLATION,
    TERM_CRITERIA_COUNT,
    TERM_CRITERIA_EPS,
)
from warpkit.opencv.door import written
from warpkit.opencv.layout import check_picture, device_of, has_tensor, planes
from warpkit.types import AlignmentModel, ImageLike, MatrixLike

NAME = "findTransformECC"
MODELS: dict[int, AlignmentModel] = {
    MOTION_TRANSLATION: "translation",
    MOTION_EUCLIDEAN: "euclidean",
    MOTION_AFFINE: "affine",
    MOTION_HOMOGRAPHY: "perspective",
}
TYPES = (torch.uint8, torch.uint16, torch.float32, torch.float64)
STEPS = 50


class error(Exception):
    """The counterpart of findTransformECC's cv2.error; `code` is -7, cv2.Error.StsNoConv."""

    code = -7


def findTransformECC(
    templateImage: ImageLike,
    inputImage: ImageLike,
    warpMatrix: MatrixLike | None,
    motionType: int = MOTION_AFFINE,
    criteria: Any = (TERM_CRITERIA_COUNT + TERM_CRITERIA_EPS, STEPS, 1e-3),
    inputMask: ImageLike | None = None,
    gaussFiltSize: int = 5,
) -> tuple[float, Any]:
    """cv2.findTransformECC: `warpkit.align` of the input with the template, with loss="ecc".

    templateImage (h, w) or (h, w, C), inputImage (H, W) or (H, W, C); warpMatrix (2, 3), for
    MOTION_HOMOGRAPHY (3, 3), template pixel -> input pixel: the starting point. A float32 array is
    written to, as in cv2. inputMask (H, W): nonzero input pixels count. Returns the correlation and
    the matrix, as warpAffine takes it with WARP_INVERSE_MAP: float32, and a tensor with gradients
    to the images if one of them is a tensor. Raises `error` where cv2 raises cv2.error, and also if
    the images do not agree although the iteration has stopped.

    criteria: the maximum number of steps on each level; the iteration stops when a step moves no
    corner by 0.001 pixels, instead of epsilon. gaussFiltSize must be odd, and is ignored: pyramids
    smooth.

    >>> y, x = np.mgrid[:32, :40].astype(np.float32)
    >>> def blob(u, v):
    ...     return np.exp(-((x - u) ** 2 + (y - v) ** 2 / 4) / 20)
    >>> start = np.eye(2, 3, dtype=np.float32)
    >>> score, matrix = findTransformECC(blob(20, 15), blob(22, 14), start, MOTION_TRANSLATION)
    >>> matrix.round(1)
    array([[ 1.,  0.,  2.],
           [ 0.,  1., -1.]], dtype=float32)
    """
    exports.refuse_values("opencv.findTransformECC", templateImage, inputImage)
    if not isinstance(motionType, Integral) or motionType not in MODELS:
        got = f"{motionType!r:.60}"
        checks.fail(NAME, "motionType", "one of the MOTION_* values", got)
    pictures = (("templateImage", templateImage), ("inputImage", inputImage))
    for argument, picture in pictures:
        check_picture(NAME, argument, picture, TYPES)
    if not isinstance(gaussFiltSize, Integral) or gaussFiltSize < 1 or gaussFiltSize % 2 == 0:
        checks.fail(NAME, "gaussFiltSize", "an odd integer of at least 1", repr(gaussFiltSize))
    fixed, moving = (planes(picture)[0] for _, picture in pictures)
    mask = None
    if inputMask is not None:
        mask = planes(check_picture(NAME, "inputMask", inputMask, (torch.uint8, torch.bool)))[0]
    model = MODELS[motionType]
    start = _start(warpMatrix, model, device_of(inputImage))
    try:
        found = align(
            moving, fixed, model=model, moving_mask=mask, init=start, steps=_steps(criteria)
        )
    except (ValueError, TypeError) as wrong:
        raise type(wrong)(_renamed(str(wrong))) from None
    if not found.converged:
        text = "the algorithm stopped before its convergence: the images may be uncorrelated or "
        raise error(f"{NAME}: {text}not overlap (-7: Iterations do not converge); {found}")
    matrix = _inverse(found.matrix).float()
    score = found.score.item()
    if has_tensor(templateImage, inputImage, warpMatrix):
        return score, matrix
    return score, written(
        warpMatrix if isinstance(warpMatrix, np.ndarray) else None, matrix.detach().numpy()
    )


def _start(value: Any, model: str, device: torch.device) -> Tensor:
    """warpMatrix, template -> input, as the init of `align`."""
    rows = 3 if model == "perspective" else 2
    if value is None:
        return torch.eye(rows, 3, dtype=torch.float64, device=device)
    matrix = checks.as_float(NAME, "warpMatrix", value, device, torch.float64).detach().double()
    checks.check_held(NAME, "warpMatrix", matrix)
    wanted = f"of shape ({rows}, 3)" + " or (3, 3)" * (rows == 2)
    if matrix.ndim != 2 or matrix.shape[1] != 3 or matrix.shape[0] not in (rows, 3):
        checks.fail(NAME, "warpMatrix", wanted, checks.shape_of(matrix))
    inverse = _inverse(matrix[:rows])
    if not inverse.isfinite().all():
        checks.fail(NAME, "warpMatrix", "finite and invertible", f"{matrix.tolist()}")
    return inverse


def _inverse(matrix: Tensor) -> Tensor:
    """The inverse of a matrix (2 or 3, 3), of the same shape; a homography's last entry is 1."""
    inverse = torch.linalg.inv_ex(to_3x3(matrix)).inverse
    return inverse[:2] if len(matrix) == 2 else inverse / inverse[2, 2]


def _steps(criteria: Any) -> int:
    """The number of steps in (type, maxCount, epsilon)."""
    kind, count, _ = checked_criteria(NAME, criteria)
    if not kind & TERM_CRITERIA_COUNT:
        return STEPS
    return max(int(count), 1)


def _renamed(text: str) -> str:
    """The text of an error of `align`, with cv2's argument names."""
    names = {
        "align": NAME,
        "`moving_mask`": "`inputMask`",
        "`moving`": "`inputImage`",
        "`fixed`": "`templateImage`",
    }
    for ours, theirs in names.items():
        text = text.replace(ours, theirs)
    return text
