"""Short phrases for findings: what a program does with shapes, rounding and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpkit.validation.programs.geometry import OF_WHOLE, SIDES, Geometry
from warpkit.validation.programs.pictures import probes
from warpkit.validation.programs.report import Preprocessing


def aspect(found: Preprocessing) -> str:
    """How a program changes a picture's shape, in a few words."""
    size = shape(found.size)
    words = {
        "keep": "keeps the size",
        "fixed": f"squeezes to {size}",
        "shortest": f"keeps the aspect (shorter side {size})",
        "longest": f"keeps the aspect (longer side {size})",
        "factor": f"multiplies sides by {size}",
        "height": f"makes the height {size}",
        "area": f"keeps the aspect ({size} pixels)",
        "warp": f"warps to {size}",
    }[str(found.rule)]
    if found.before is not None:
        verb = {"crop": "cuts the centred square", "box": "takes the centred square"}
        words = f"{verb.get(found.before[0], 'pads to a square')} and resizes to {size}"
    elif found.crop is not None:
        words += " and crops the centre"
    elif found.pad is not None:
        words += " and pads"
    words += f", the longer one {found.limit} at most" if found.limit else ""
    words += f", to multiples of {found.multiple}" if found.multiple else ""
    return words + (
        ", and never enlarges"
        if found.enlarge is False
        else ", and never shrinks"
        if found.shrink is False
        else ""
    )


def filed(found: Preprocessing) -> str:
    """The JPEG file that comes first."""
    return "writes no JPEG file" if found.file is None else f"writes {found.file} first"


def matrix(found: Preprocessing) -> str:
    """A warp's matrix."""
    assert found.matrix is not None
    if found.matrix[0] == "center":
        return f"{found.matrix[1]:g} times the whole picture, centred"
    return "(" + ", ".join(f"({', '.join(f'{v:.6g}' for v in row)})" for row in found.matrix) + ")"


def border(found: Preprocessing) -> str:
    """A warp's border and its value."""
    value = "" if found.border_value is None else f" of {found.border_value}"
    return f"{found.border}{value}"


def returned(found: Preprocessing) -> str:
    """What shape a program returns."""
    if isinstance(found.canvas, int):
        return f"returns sides that are multiples of {found.canvas}"
    return f"returns {'what it resized' if found.canvas is None else shape(found.canvas)}"


def rounded_apart(first: Geometry, second: Geometry) -> str:
    """How two rules round sides, with a picture on which they differ."""
    text = f"A rounds sides {rounding(first)}, B {rounding(second)}"
    for height, width in probes(first.placed(480, 640).size[0]):
        one, other = (geometry.placed(height, width).size for geometry in (first, second))
        if one != other:
            return f"{text}: {height} x {width} becomes {shape(one)} in A, {shape(other)} in B"
    return text


NEAR = {
    "floor": "down",
    "even": "to the nearest",
    "ceil": "up",
    "half_up": "to the nearest, halves up",
    "floor_and_one": "down, plus one",
}


def rounding(geometry: Geometry) -> str:
    """How a rule rounds sides, in words."""
    how, near = SIDES[geometry.rounding]
    text = NEAR[near]
    if geometry.multiple is not None:
        to = NEAR[geometry.multiple_rounding.removesuffix(OF_WHOLE)]
        text = f"{to} multiple of {geometry.multiple}" if " " in to else f"{to} to multiples"
        if geometry.multiple_rounding.endswith(OF_WHOLE):
            text += f", after rounding {NEAR[near]}"
    elif how in FORMULAS:
        text += f" ({FORMULAS[how]})"
    if geometry.limit is not None and geometry.limit_rounding != "torchvision":
        text += f", at the limit as {LIMITED[geometry.limit_rounding]}"
    return text


FORMULAS = {
    "quotient": "size * side / other side",
    "both": "side * factor, both",
    "other": "side * factor",
    "aspect": "size * aspect",
    "single": "side / ratio in float32, both",
    "ratio": "side / ratio, both",
}
LIMITED = {"detr": "DETR", "factor": "mmcv and detectron2"}


def shape(size: Any) -> str:
    return f"{size[0]} x {size[1]}" if isinstance(size, tuple) else str(size)


def cropped(found: Preprocessing) -> str:
    return "does not crop" if found.crop is None else f"crops to {shape(found.crop)}"


def padded(found: Preprocessing) -> str:
    if found.pad is None:
        return "does not pad"
    place = {"center": "around", "end": "after", "start": "before"}[found.pad[0]]
    return f"pads with {found.pad[1]} {place} the picture"


def shifted(first: Preprocessing, second: Preprocessing) -> str:
    """The distance between sampling positions at the centre, for the usual reduction of 2 to 1."""
    if first.aligned != second.aligned:
        return (
            f"A aligns {first.aligned}, B {second.aligned}: pictures lie up to half a pixel apart"
        )
    return f"A's positions are those of the {first.scale}, B's of the {second.scale}"


def rounds(found: Preprocessing) -> str:
    text = {True: "rounds to 8 bits before normalising", "down": "cuts to 8 bits"}.get(
        found.rounded if found.rounded is not None else True, "stays in floats"
    )
    return text + (" and clamps" if found.clamped else "")


def scaled(found: Preprocessing) -> str:
    if found.gain is None or found.offset is None:
        return "not known"
    gain, offset = np.asarray(found.gain), np.asarray(found.offset)
    if np.allclose(gain, 1) and not offset.any():
        return "levels 0 to 255"
    if np.allclose(gain * 255, 1, rtol=1e-3) and np.allclose(offset, 0, atol=1e-6):
        return "0 to 1"
    low, high = (" ".join(f"{v:.4g}" for v in numbers) for numbers in (offset, 255 * gain + offset))
    return f"{low} to {high}"


def arranged(found: Preprocessing) -> str:
    batch = " with a batch" if found.batched else ""
    return f"{found.layout}{batch}, {found.dtype}"


def computes(found: Preprocessing, usual: str) -> str:
    """The library, with its own name for the filter if that differs from `usual`."""
    extra = "" if found.interpolation == usual else f" ({found.interpolation})"
    return f"{found.arithmetic}{extra}"
