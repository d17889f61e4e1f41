"""Compares warpkit's resizes with those of other libraries, and these with each other.

A row is about the pixels of one library; it uses this library's names for filters. OpenCV has rows
with and without IPP. Every library is called with its own defaults: torchvision's resize is
antialiased, and those of F.interpolate and kornia are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from warpkit.core.environment import installed, versions_of
from warpkit.engine.arithmetic import opencv_ipp_resize
from warpkit.engine.arithmetic.guarantees import (
    OTHER_PROCESSORS,
    Guarantee,
    arithmetic_of,
    guaranteed,
    guaranteed_resize,
)
from warpkit.engine.arithmetic.resize import OPENCV_FILTERS, PILLOW_FILTERS
from warpkit.engine.arithmetic.torch_resize import has_kernel
from warpkit.opencv import resizing
from warpkit.resizing import resize
from warpkit.types import FaceResizeArithmetic, Filter
from warpkit.validation.calls import without_ipp
from warpkit.validation.metrics import Figures, figures
from warpkit.validation.suite import to_type

SIZES = ((16, 25), (33, 57), (160, 250), (47, 300))
"""(h, w) from 80 x 125: 1/5, about 1/2.3, twice the size, and smaller along one axis alone."""

OPENCV_DTYPES = ("uint8", "uint16", "float32")
PEER_DTYPES = ("uint8", "float32")
FLAGS = {name: flag for flag, name in resizing.FILTERS.items()}

PACKAGES = {"pillow": "pillow", "torchvision": "torchvision", "torch": "torch", "kornia": "kornia"}
"""The libraries beside a row's own, and their packages; OpenCV is always compared."""

# the nearest filter of each library: Pillow's "nearest" samples centres, as nearest_exact does
TO_OPENCV = {"box": "area", "lanczos": "lanczos4", "nearest": "nearest_exact"}
TO_PILLOW = {"area": "box", "lanczos4": "lanczos"}
TO_TORCH = {"box": "area", "nearest_exact": "nearest-exact"}
TORCHES = {
    "torchvision": ("nearest", "nearest_exact", "bilinear", "bicubic", "lanczos"),
    "torch": ("bilinear", "bicubic", "area"),
}
"""Libraries that resize tensors: torchvision, and F.interpolate where it differs from it."""

INTEGERS = ("AVX2", "AVX512")
"""torch's names for the processors on which it resizes bytes in integer arithmetic."""

TORCH_FILTERS = ("nearest", "nearest-exact", "bilinear", "bicubic", "area")


SMOOTH = ("bilinear", "bicubic", "lanczos")
"""Filters for which torch supports antialias."""


def antialiased(library: str) -> bool:
    """Whether a library of tensors antialiases by default."""
    return library == "torchvision"


@dataclass(frozen=True)
class ResizeSetting:
    """One row's question: does warpkit reproduce this library's resize?"""

    library: str
    """ "opencv" with IPP off, "opencv_ipp" with it on, "pillow", "torchvision" or "torch"."""
    interpolation: Filter
    dtype: str
    channels: int

    @property
    def call(self) -> str:
        """The call of the library, as text."""
        if self.library == "pillow":
            return f"PIL.Image.resize(resample={self.interpolation.upper()})"
        if self.library in TORCHES:
            how = self.interpolation.replace("_", "-")
            by_default = f", antialias={antialiased(self.library)}" * (how in SMOOTH)
            if self.library == "torch":
                return f"F.interpolate(mode={how!r}{by_default})"
            return f"v2.functional.resize(interpolation={how!r}{by_default})"
        ipp = "on" if self.library == "opencv_ipp" else "off"
        flag = self.interpolation.upper().replace("BILINEAR", "LINEAR").replace("BICUBIC", "CUBIC")
        return f"cv2.resize(interpolation=INTER_{flag}), IPP {ipp}"


@dataclass(frozen=True)
class ResizeRow:
    """One setting, and how far warpkit and the peers are from its library over all images."""

    setting: ResizeSetting
    figures: Figures
    promise: Guarantee
    peers: dict[str, Figures | None]
    """By name; None for a peer that does not support the setting, and for the library itself."""

    @property
    def guaranteed(self) -> Figures | None:
        """The figures, if they are guaranteed to be zero."""
        return None if self.promise.where == "nowhere" else self.figures

    @property
    def open(self) -> Figures | None:
        """The figures, if nothing is guaranteed."""
        return self.figures if self.promise.where == "nowhere" else None

    @property
    def passed(self) -> bool:
        """Whether all guaranteed values are equal."""
        return self.guaranteed is None or not self.guaranteed.differing

    @property
    def white(self) -> float:
        """The difference between white and black in the image's type, to state differences in
        levels."""
        return {"uint8": 255.0, "uint16": 65535.0}.get(self.setting.dtype, 1.0)


def resize_settings(cv2: Any) -> tuple[ResizeSetting, ...]:
    """Every filter, type and number of channels of each library, with IPP if OpenCV has it."""
    libraries = ["opencv", "opencv_ipp"] if has_ipp(cv2) else ["opencv"]
    settings = [
        ResizeSetting(library, interpolation, dtype, channels)
        for library in libraries
        for interpolation in OPENCV_FILTERS
        for dtype in OPENCV_DTYPES
        for channels in (1, 3)
    ]
    if installed("pillow"):
        kinds = (("uint8", 1), ("uint8", 3), ("float32", 1))
        settings += [
            ResizeSetting("pillow", name, *kind) for name in PILLOW_FILTERS for kind in kinds
        ]
    kinds = (("uint8", 1), ("uint8", 3), ("float32", 3))
    for library in filter(installed, TORCHES):
        names = [name for name in TORCHES[library] if _has(name)]
        settings += [ResizeSetting(library, name, *kind) for name in names for kind in kinds]
    return tuple(settings)


def _has(name: str) -> bool:
    """Whether this version of torch has the filter; only lanczos may be missing."""
    return name != "lanczos" or has_kernel("lanczos", True, torch.uint8, "cpu")


def resize_peers() -> dict[str, str]:
    """The installed libraries and their versions."""
    return versions_of(PACKAGES)


def run_resize(setting: ResizeSetting, image: Tensor, cv2: Any, arithmetic: str) -> ResizeRow:
    """One row: image (B, C, H, W) uint8; `arithmetic` is warpkit's for the rows of OpenCV."""
    image = to_type(image[:, : setting.channels], setting.dtype)
    names = ["opencv", *resize_peers()]
    got, expected = [], []
    others: dict[str, list[Tensor] | None] = {name: [] for name in names}
    for size in SIZES:
        expected.append(by_library(setting, image, size, cv2))
        got.append(by_warpkit(setting, image, size, arithmetic))
        for name in names:
            result = None
            if setting.dtype in PEER_DTYPES and name != setting.library.removesuffix("_ipp"):
                result = beside(name, setting, image, size, cv2)
            earlier = others[name]
            others[name] = None if result is None or earlier is None else [*earlier, result]
    peak = 1.0 if setting.dtype == "float32" else torch.iinfo(image.dtype).max
    truth = flat(expected)
    return ResizeRow(
        setting,
        figures(flat(got), truth, peak),
        promised(setting, cv2, arithmetic),
        {n: None if o is None else figures(flat(o), truth, peak) for n, o in others.items()},
    )


def promised(setting: ResizeSetting, cv2: Any, arithmetic: str) -> Guarantee:
    """What is guaranteed for a row."""
    if setting.library == "pillow":
        return guaranteed_resize(
            "pillow",
            interpolation=setting.interpolation,
            channels=setting.channels,
            dtype=setting.dtype,
        )
    if setting.library in TORCHES:
        processor = torch.backends.cpu.get_cpu_capability()
        if setting.dtype == "uint8" and processor not in INTEGERS:
            return Guarantee("nowhere", f"torch resizes bytes as floats on this CPU ({processor})")
        return Guarantee("everywhere")
    version, ipp = cv2.__version__, setting.library == "opencv_ipp"
    guarantee = guaranteed(
        version, dtype="uint8", channels=1, interpolation="nearest", border="constant"
    )
    if guarantee.where == "nowhere":
        return guarantee
    if arithmetic != arithmetic_of(version):
        return Guarantee("nowhere", "another arithmetic")
    if not cv2.useOptimized():
        return Guarantee("nowhere", "OpenCV's vector code is off")
    if ipp and ("AVX-512" if opencv_ipp_resize.AVX512 else "AVX2") not in cv2.ipp.getIppVersion():
        return Guarantee("nowhere", OTHER_PROCESSORS)
    return guaranteed_resize(
        arithmetic + "_ipp" * ipp,
        interpolation=setting.interpolation,
        channels=setting.channels,
        dtype=setting.dtype,
    )


def has_ipp(cv2: Any) -> bool:
    """Whether this OpenCV was built with Intel's IPP and can switch it on."""
    with without_ipp(cv2):
        ipp = getattr(cv2, "ipp", None)
        if ipp is not None:
            ipp.setUseIPP(True)
        return ipp is not None and bool(ipp.useIPP())


def flat(results: list[Tensor]) -> Tensor:
    """Results of several sizes, flattened and concatenated."""
    return torch.cat([result.flatten() for result in results])


def by_warpkit(
    setting: ResizeSetting, image: Tensor, size: tuple[int, int], arithmetic: str
) -> Tensor:
    """warpkit's version of the library's resize; image (B, C, H, W)."""
    if setting.library == "pillow":
        interpolation = setting.interpolation
        return resize(image, size, interpolation=interpolation, arithmetic="pillow")
    if setting.library in TORCHES:
        name = setting.interpolation
        smooth = antialiased(setting.library) if name in SMOOTH else None
        how = {"interpolation": name, "antialias": smooth}
        return resize(image, size, arithmetic="torchvision", **how)
    ipp = setting.library == "opencv_ipp" and arithmetic != "exact"
    whose = cast(FaceResizeArithmetic, arithmetic + "_ipp" * ipp)

    def call(one: np.ndarray, dsize: tuple[int, int]) -> np.ndarray:
        flag = FLAGS[setting.interpolation]
        return np.asarray(resizing.resize(one, dsize, interpolation=flag, arithmetic=whose))

    return each(call, image, size)


def by_library(setting: ResizeSetting, image: Tensor, size: tuple[int, int], cv2: Any) -> Tensor:
    """The library's own result."""
    if setting.library == "pillow":
        return by_pillow(setting.interpolation, image, size)
    if setting.library in TORCHES:
        result = _tensors(setting.library, setting.interpolation.replace("_", "-"), image, size)
        assert result is not None
        return result
    return by_cv2(cv2, setting.interpolation, image, size, setting.library == "opencv_ipp")


def beside(
    name: str, setting: ResizeSetting, image: Tensor, size: tuple[int, int], cv2: Any
) -> Tensor | None:
    """Another library's result for the same setting; None if it has no such filter."""
    wanted, centred = setting.interpolation, setting.library == "pillow"
    inexact = wanted if wanted == "nearest_exact" else wanted.removesuffix("_exact")
    if name == "opencv":
        is_known = wanted in OPENCV_FILTERS and not centred
        wanted = wanted if is_known else TO_OPENCV.get(wanted, wanted)
        return by_cv2(cv2, wanted, image, size, True) if wanted in OPENCV_FILTERS else None
    if name == "pillow":
        wanted = TO_PILLOW.get(inexact, inexact.removesuffix("_exact"))
        return by_pillow(wanted, image, size) if wanted in PILLOW_FILTERS else None
    wanted = "nearest-exact" if centred and wanted == "nearest" else TO_TORCH.get(inexact, inexact)
    return _tensors(name, wanted, image, size) if wanted in TORCH_FILTERS else None


def _tensors(name: str, mode: str, image: Tensor, size: tuple[int, int]) -> Tensor | None:
    """The result of a library of tensors with its defaults; None if it has no such filter."""
    antialias = antialiased(name) and mode in SMOOTH
    peers = {"torch": by_torch, "torchvision": by_torchvision, "kornia": by_kornia}
    return peers[name](mode, image, size, antialias)


def by_cv2(cv2: Any, interpolation: str, image: Tensor, size: tuple[int, int], ipp: bool) -> Tensor:
    """cv2.resize of images (B, C, H, W), with IPP switched on or off."""

    def call(one: np.ndarray, dsize: tuple[int, int]) -> np.ndarray:
        return cv2.resize(one, dsize, interpolation=FLAGS[interpolation])

    with without_ipp(cv2):
        if ipp and hasattr(cv2, "ipp"):
            cv2.ipp.setUseIPP(True)
        return each(call, image, size)


def by_pillow(interpolation: str, image: Tensor, size: tuple[int, int]) -> Tensor:
    """PIL.Image.resize in the modes L, RGB and, channel by channel, F."""
    pillow = import_module("PIL.Image")
    resample = pillow.Resampling[interpolation.upper()]
    whole = image.dtype == torch.uint8

    def call(one: np.ndarray, dsize: tuple[int, int]) -> np.ndarray:
        planes = [one] if whole else [one[..., c] for c in range(one.shape[-1])]
        planes = [p[..., 0] if p.ndim == 3 and p.shape[-1] == 1 else p for p in planes]
        results = [np.asarray(pillow.fromarray(p).resize(dsize, resample)) for p in planes]
        return results[0] if whole else np.stack(results, -1)

    return each(call, image, size)


def by_torch(mode: str, image: Tensor, size: tuple[int, int], antialias: bool) -> Tensor:
    """F.interpolate; 8-bit images stay 8-bit if torch has a kernel for them."""
    has_mode = image.is_floating_point() or mode != "area"
    source = image if has_mode else image.float()
    result = F.interpolate(source, size, mode=mode, antialias=antialias)
    return result if has_mode else result.round().to(image.dtype)


def by_torchvision(
    mode: str, image: Tensor, size: tuple[int, int], antialias: bool
) -> Tensor | None:
    """torchvision.transforms.v2.functional.resize of a tensor."""
    if mode == "area":
        return None
    functional = import_module("torchvision.transforms.v2.functional")
    member = import_module("torchvision.transforms").InterpolationMode(mode)
    return functional.resize(image, list(size), interpolation=member, antialias=antialias)


def by_kornia(mode: str, image: Tensor, size: tuple[int, int], antialias: bool) -> Tensor | None:
    """kornia.geometry.transform.resize; 8-bit images are converted to floats."""
    if mode == "nearest-exact":
        return None
    transform = import_module("kornia.geometry.transform")
    source = image if image.is_floating_point() else image.float()
    result = transform.resize(source, size, interpolation=mode, antialias=antialias)
    return result if image.is_floating_point() else result.round().clamp(0, 255).to(image.dtype)


def each(
    call: Callable[[np.ndarray, tuple[int, int]], np.ndarray],
    image: Tensor,
    size: tuple[int, int],
) -> Tensor:
    """Calls a function on arrays (H, W, C) and (w, h), for every image of (B, C, H, W)."""
    arrays = image.permute(0, 2, 3, 1).contiguous().numpy()
    results = [call(one, (size[1], size[0])).reshape(*size, -1) for one in arrays]
    return torch.from_numpy(np.ascontiguousarray(np.stack(results))).permute(0, 3, 1, 2)
