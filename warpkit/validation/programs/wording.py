"""Short phrases for findings: what a program does with shapes, rounding and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpkit.validation.programs.geometry import OF_WHOLE, SIDES, Geometry
from warpkit.validation.programs.pictures import probes
from warpkit.validation.programs.report import Preprocessing, corners


def aspect(answer: Preprocessing) -> str:
    """How a program changes a picture's shape, in a few words."""
    size = shape(answer.size)
    words = {
        "keep": "keeps the size",
        "fixed": f"squeezes to {size}",
        "shortest": f"keeps the aspect (shorter side {size})",
        "longest": f"keeps the aspect (longer side {size})",
        "factor": f"multiplies sides by {size}",
        "height": f"makes the height {size}",
        "area": f"keeps the aspect ({size} pixels)",
        "warp": f"warps to {size}",
    }[str(answer.rule)]
    if answer.before is not None:
        verb = {"crop": "cuts the centred square", "box": "takes the centred square"}
        words = f"{verb.get(answer.before[0], 'pads to a square')} and resizes to {size}"
    elif answer.crop is not None:
        words += " and crops the centre"
    elif answer.pad is not None:
        words += " and pads"
    words += f", the longer one {answer.limit} at most" if answer.limit else ""
    words += f", to multiples of {answer.multiple}" if answer.multiple else ""
    return words + (
        ", and never enlarges"
        if answer.enlarge is False
        else ", and never shrinks"
        if answer.shrink is False
        else ""
    )


def file(answer: Preprocessing) -> str:
    """The JPEG file that comes first."""
    return "writes no JPEG file" if answer.file is None else f"writes {answer.file} first"


def matrix(answer: Preprocessing) -> str:
    """A warp's matrix."""
    assert answer.matrix is not None
    if answer.matrix[0] == "center":
        return f"{answer.matrix[1]:g} times the whole picture, centred"
    if answer.matrix[0] == "corners":
        return corners(answer.matrix)
    return "(" + ", ".join(f"({', '.join(f'{v:.6g}' for v in row)})" for row in answer.matrix) + ")"


def border(answer: Preprocessing) -> str:
    """A warp's border and its value."""
    value = "" if answer.border_value is None else f" of {answer.border_value}"
    return f"{answer.border}{value}"


def result(answer: Preprocessing) -> str:
    """What shape a program returns."""
    if isinstance(answer.canvas, int):
        return f"returns sides that are multiples of {answer.canvas}"
    return f"returns {'what it resized' if answer.canvas is None else shape(answer.canvas)}"


def rounded_apart(first: Geometry, second: Geometry) -> str:
    """How two rules round sides, with a picture on which they differ."""
    text = f"A rounds sides {rounding(first)}, B {rounding(second)}"
    for height, width in probes(first.placement(480, 640).size[0]):
        one, other = (geometry.placement(height, width).size for geometry in (first, second))
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


def crop(answer: Preprocessing) -> str:
    return "does not crop" if answer.crop is None else f"crops to {shape(answer.crop)}"


def pad(answer: Preprocessing) -> str:
    if answer.pad is None:
        return "does not pad"
    place = {"center": "around", "end": "after", "start": "before"}[answer.pad[0]]
    return f"pads with {answer.pad[1]} {place} the picture"


def shift(first: Preprocessing, second: Preprocessing) -> str:
    """The distance between sampling positions at the centre, for the usual reduction of 2 to 1."""
    if first.aligned != second.aligned:
        return (
            f"A aligns {first.aligned}, B {second.aligned}: pictures lie up to half a pixel apart"
        )
    return f"A's positions are those of the {first.scale}, B's of the {second.scale}"


def rounds(answer: Preprocessing) -> str:
    text = {True: "rounds to 8 bits before normalising", "down": "cuts to 8 bits"}.get(
        answer.rounded if answer.rounded is not None else True, "stays in floats"
    )
    return text + (" and clamps" if answer.clamped else "")


def scale(answer: Preprocessing) -> str:
    if answer.gain is None or answer.offset is None:
        return "not known"
    gain, offset = np.asarray(answer.gain), np.asarray(answer.offset)
    if np.allclose(gain, 1) and not offset.any():
        return "levels 0 to 255"
    if np.allclose(gain * 255, 1, rtol=1e-3) and np.allclose(offset, 0, atol=1e-6):
        return "0 to 1"
    low, high = (" ".join(f"{v:.4g}" for v in numbers) for numbers in (offset, 255 * gain + offset))
    return f"{low} to {high}"


def layout(answer: Preprocessing) -> str:
    batch = " with a batch" if answer.batched else ""
    return f"{answer.layout}{batch}, {answer.dtype}"


def computes(answer: Preprocessing, usual: str) -> str:
    """The library, with its own name for the filter if that differs from `usual`."""
    extra = "" if answer.interpolation == usual else f" ({answer.interpolation})"
    return f"{answer.arithmetic}{extra}"
