"""Runs one warp with warpkit and with the installed OpenCV."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warpkit import warp
from warpkit.core import checks
from warpkit.core.environment import how_to_install
from warpkit.core.mistakes import without_warnings
from warpkit.core.shapes import broadcast_shapes
from warpkit.engine.arithmetic.opencv import TYPES
from warpkit.engine.definitions.maps import inverse_map, output_points
from warpkit.engine.definitions.rule_names import ALIASES
from warpkit.engine.definitions.rules import TAPS
from warpkit.types import BorderName
from warpkit.validation.metrics import Parity, figures, peak_of

FLAGS = {"nearest": 0, "bilinear": 1, "bicubic": 2, "lanczos4": 4}
"""OpenCV's flag for each interpolation that it has."""
INVERSE_MAP = 16
MODES = {
    "constant": 0,
    "replicate": 1,
    "reflect": 2,
    "reflect_101": 4,
    "wrap": 3,
    "transparent": 5,
}
"""OpenCV's flag for each border that it has."""
ROUNDED = 1 / 64
"""Pixels: rounding positions to 1/32, as OpenCV does, moves a point by at most this much."""

PATIENCE = 1e10
"""The number of steps that OpenCV 5's loop over reflections takes in about ten seconds."""


class ParityCall(NamedTuple):
    """A warp: `kind` is "affine", "perspective" or "remap"; `where` its matrices or points."""

    kind: str
    image: Tensor
    where: Tensor
    options: dict[str, Any]

    @property
    def interpolation(self) -> str:
        return self.options.get("interpolation", "bilinear")

    @property
    def border(self) -> BorderName:
        name: BorderName = self.options.get("border", "constant")
        return ALIASES.get(name, name)

    def sources(self) -> Tensor:
        """The source point of every output pixel, (..., h, w, 2) float64; NaN if there is none."""
        where = self.where.detach().cpu().double()
        if self.kind == "remap":
            return where
        matrix = where if self.options.get("inverse") else inverse_map(where, singular=0.0)
        size = self.options.get("size")
        return output_points(matrix, self.image.shape[-2:] if size is None else size)


@without_warnings
def by_warpkit(call: ParityCall, arithmetic: str) -> Tensor:
    """warpkit's result (..., C, h, w), without gradients."""
    options = {**call.options, "arithmetic": arithmetic}
    with torch.no_grad():
        if call.kind == "remap":
            return warp.remap(call.image, call.where, **options)
        function = warp.warp_affine if call.kind == "affine" else warp.warp_perspective
        return function(call.image, call.where, **options)


def by_opencv(cv2: Any, call: ParityCall, name: str) -> Tensor:
    """OpenCV's result (..., C, h, w); the items of a batch are warped one by one."""
    check_call(cv2, call, name)
    image, where = (t.detach().cpu() for t in (call.image, call.where))
    item = 3 if call.kind == "remap" else 2
    batch = broadcast_shapes(image.shape[:-3], where.shape[:-item])
    images = spread(image, batch, 3).movedim(-3, -1)
    places = spread(where, batch, item)
    values = spread(border_values(call, name), batch, 1)
    background = call.options.get("background")
    below = None if background is None else spread(background.detach().cpu(), batch, 3)
    results = []
    with without_ipp(cv2):
        for k, (one, place, value) in enumerate(zip(images, places, values, strict=True)):
            start = None if below is None else below[k].movedim(0, -1).contiguous().numpy()
            try:
                result = call_cv2(cv2, call, one.contiguous().numpy(), place, value, start)
            except cv2.error as error:
                reason = " ".join(str(error).split())
                raise ValueError(f"{name}: OpenCV {cv2.__version__} refused: {reason}") from None
            results.append(torch.from_numpy(result.reshape(*result.shape[:2], -1)).movedim(-1, 0))
    if not results:
        return by_warpkit(call, "exact")  # an empty result of the right shape
    return torch.stack(results).unflatten(0, batch) if batch else results[0]


def call_cv2(
    cv2: Any,
    call: ParityCall,
    image: np.ndarray,
    place: Tensor,
    value: Tensor,
    start: np.ndarray | None,
) -> np.ndarray:
    """One call of cv2; `start` is the background of a transparent border, which cv2 overwrites.

    place (h, w, 2), or a matrix (2 or 3, 3); value (C,).
    """
    flags = FLAGS[call.interpolation]
    options = {
        "dst": None if start is None else start.copy(),
        "borderMode": MODES[call.border],
        "borderValue": value.tolist(),
    }
    if call.kind == "remap":
        x, y = (axis.float().contiguous().numpy() for axis in place.unbind(-1))
        return cv2.remap(image, x, y, flags, **options)
    function = cv2.warpAffine if call.kind == "affine" else cv2.warpPerspective
    height, width = call.options.get("size") or image.shape[:2]
    flags |= INVERSE_MAP if call.options.get("inverse") else 0
    return function(image, place.double().numpy(), (width, height), flags=flags, **options)


def border_values(call: ParityCall, name: str) -> Tensor:
    """(..., 4) float64: cv2 takes four numbers and uses number c mod 4 for channel c."""
    channels = call.image.shape[-3]
    value = call.options.get("border_value", 0.0)
    value = checks.as_float(name, "border_value", value, call.image.device, torch.float64)
    value = value.detach().cpu().double()
    value = value.expand(channels) if value.ndim == 0 else value.expand(*value.shape[:-1], channels)
    four = value[..., [c % channels for c in range(4)]]
    if channels > 4 and (four[..., [c % 4 for c in range(channels)]] != value).any():
        wanted = "the same for channels that lie 4 apart, as OpenCV holds 4 numbers"
        checks.fail(name, "border_value", wanted, "others")
    return four


def check_call(cv2: Any, call: ParityCall, name: str) -> None:
    """Refuse calls that OpenCV cannot do, and those in which it would loop forever."""
    if call.image.dtype not in TYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in TYPES)
        wanted = f"of a type that OpenCV warps ({names})"
        checks.fail(name, "image", wanted, call.image.dtype, TypeError)
    if not call.border.startswith("reflect") or not cv2.__version__.startswith("5."):
        return
    height, width = call.image.shape[-2:]
    one = min(height, width) == 1 and call.border == "reflect_101"
    places = call.sources().abs().nan_to_num(nan=0.0)
    steps = places / places.new_tensor([width, height])
    if (one and call.interpolation == "bicubic") or steps.sum() > PATIENCE:
        far = "one pixel wide or high" if one else "so far outside"
        wanted = f"other than {call.border!r} for positions {far}, where OpenCV 5 loops for ever"
        checks.fail(name, "border", wanted, repr(call.border))


def interior(call: ParityCall) -> Tensor:
    """(..., 1, h, w): true if every neighbour that the interpolation reads is inside the image."""
    points = call.sources()
    height, width = call.image.shape[-2:]
    reach = TAPS[call.interpolation] / 2
    size = points.new_tensor([width, height])
    low = reach - 1 + ROUNDED  # the first pixel read is floor(p) - reach + 1
    high = size - reach - ROUNDED
    return ((points >= low) & (points <= high)).all(-1)[..., None, :, :]


def compare(call: ParityCall, got: Tensor, expected: Tensor, arithmetic: str, cv2: Any) -> Parity:
    """The figures of two results of one call: for all values, for the interior and for the border.

    got and expected (C, h, w).
    """
    got, inside, peak = got.detach().cpu(), interior(call), peak_of(call.image)
    whole = figures(got, expected, peak)
    return Parity(
        **vars(whole),
        interior=figures(got, expected, peak, inside),
        border=figures(got, expected, peak, ~inside),
        arithmetic=arithmetic,
        opencv_version=cv2.__version__,
        optimized=cv2.useOptimized(),
    )


@contextmanager
def without_ipp(cv2: Any) -> Iterator[None]:
    """Runs OpenCV's own code: its wheels include IPP, which gives different pixels in OpenCV 4.

    The switch applies to the calling thread, so threads do not disturb each other.
    """
    ipp = getattr(cv2, "ipp", None)
    was_on = ipp is not None and ipp.useIPP()
    if ipp is not None:
        ipp.setUseIPP(False)
    try:
        yield
    finally:
        if ipp is not None:
            ipp.setUseIPP(was_on)


def spread(tensor: Tensor, batch: tuple[int, ...], last: int) -> Tensor:
    """(n, ...): the items of a batch as one axis."""
    item = tensor.shape[tensor.ndim - last :]
    return tensor.expand(*batch, *item).reshape(-1 if 0 not in batch else 0, *item)


def load_cv2(name: str) -> Any:
    """The module cv2, or the error that says how to install OpenCV."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError(f"{name} needs OpenCV: {how_to_install('opencv')}") from error
    return cv2
