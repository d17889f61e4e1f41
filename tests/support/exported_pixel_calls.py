"""Warps and resizes as models for export; `exported_calls` has the others."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

import warpkit as wk
from tests.support.exported_inputs import (
    BYTES,
    DOUBLES,
    FIELD,
    FLOW,
    HOMOGRAPHY,
    IMAGE,
    LABELS,
    MATRIX,
    PLACES,
    SIZE,
    ExportedCall,
    levels,
)

OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "nearest": {"interpolation": "nearest"},
    "bicubic": {"interpolation": "bicubic"},
    "lanczos4": {"interpolation": "lanczos4"},
    "antialias=2": {"antialias": 2},
    "opencv4": {"arithmetic": "opencv4"},
    "opencv5": {"arithmetic": "opencv5"},
    "backend grid_sample": {"backend": "grid_sample"},
}


def _transformer(kind: str, **options: Any) -> nn.Module:
    """A transformer that is not at the identity."""
    localization = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 31, 4))
    module = wk.nn.SpatialTransformer(localization, SIZE, features=4, transform=kind, **options)
    nn.init.normal_(module.head.weight, std=0.02)
    return module.eval()


def _warps() -> list[ExportedCall]:
    calls = [
        ExportedCall("warp_affine", words, partial(wk.warp_affine, **options), (IMAGE, MATRIX))
        for words, options in OPTIONS.items()
    ]
    calls.append(ExportedCall("warp_perspective", "", wk.warp_perspective, (IMAGE, HOMOGRAPHY)))
    for words in ("", "opencv4", "opencv5"):
        warp = partial(wk.warp_affine, **OPTIONS[words])
        label = f"uint8, {words}".removesuffix(", ")
        calls.append(ExportedCall("warp_affine", label, warp, (BYTES, MATRIX)))
    warp = partial(wk.warp_affine, interpolation="nearest")
    calls.append(ExportedCall("warp_affine", "int64, nearest", warp, (LABELS, MATRIX)))
    return [
        *calls,
        ExportedCall("remap", "", wk.remap, (IMAGE, FIELD)),
        ExportedCall("sample_pixels", "", wk.sample_pixels, (IMAGE, PLACES)),
        ExportedCall("warp_flow", "", wk.warp_flow, (IMAGE, FLOW)),
        ExportedCall("nn.Warp", "", wk.nn.Warp(size=SIZE), (IMAGE, MATRIX)),
        *(
            ExportedCall("nn.SpatialTransformer", kind, _transformer(kind), (IMAGE,))
            for kind in ("affine", "similarity", "perspective")
        ),
        ExportedCall(
            "nn.SpatialTransformer",
            "thin_plate, 3 x 3",
            _transformer("thin_plate", lattice=(3, 3)),
            (IMAGE,),
        ),
    ]


OF_BYTES = {
    "pillow": "nearest box bilinear hamming bicubic lanczos",
    "torchvision": "nearest nearest_exact bilinear bicubic lanczos area",
    "opencv4": "bilinear bicubic area",
    "opencv5": "nearest nearest_exact bilinear bilinear_exact bicubic lanczos4 area",
    "opencv5_ipp": "bilinear bicubic",
    "exact": "bilinear",
}
OF_FLOATS = {
    "exact": "nearest bilinear bicubic lanczos area",
    "pillow": "bilinear",
    "torchvision": "nearest bilinear",
    "opencv5": "bilinear bicubic area",
    "opencv5_ipp": "bilinear bicubic",
}


INPUTS = {
    "uint8": (BYTES, OF_BYTES),
    "float32": (IMAGE, OF_FLOATS),
    "float64": (DOUBLES, {"torchvision": "nearest bilinear"}),
    "int64": (LABELS, {"exact": "nearest"}),
}


def _resizes() -> list[ExportedCall]:
    calls = []
    for words, (image, names_of) in INPUTS.items():
        for arithmetic, names in names_of.items():
            for name in names.split():
                options: dict[str, Any] = {"interpolation": name, "arithmetic": arithmetic}
                resize = partial(wk.resize, size=SIZE, **options)
                label = f"{words}, {arithmetic}, {name}"
                calls.append(ExportedCall("resize", label, resize, (image,)))
    sizes = levels("batch", 3, "height", "width")
    for name in ("bilinear", "bicubic", "lanczos"):
        options = {"interpolation": name, "arithmetic": "pillow"}
        resize = partial(wk.resize, size=SIZE, **options)
        calls.append(ExportedCall("resize", f"uint8, pillow, {name}", resize, (sizes,)))
    for options in (
        {"interpolation": "bicubic"},
        {"interpolation": "spline3", "arithmetic": "scipy"},
        {"arithmetic": "skimage"},
    ):
        along = partial(wk.resize_axes, size=SIZE, **options)
        calls.append(ExportedCall("resize_axes", ", ".join(options.values()), along, (IMAGE,)))
    for arithmetic in ("exact", "pillow", "torchvision", "opencv5"):
        box: Any = partial(wk.letterbox, size=(32, 32), arithmetic=arithmetic)
        calls.append(ExportedCall("letterbox", f"uint8, {arithmetic}", box, (BYTES,)))
    return calls


def calls() -> list[ExportedCall]:
    """All calls of warps and resizes."""
    return [*_warps(), *_resizes()]
