"""In an export to ONNX: what no graph holds is refused, what ONNX lacks is done otherwise."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from warpkit.core.tracing import exports_to_onnx


def refuse(where: str, because: str, instead: str) -> None:
    """Raise RuntimeError in an export to ONNX, and say what to do instead.

    Not where the operator is missing: torch would name it once it has traced all of the model, and
    what iterates makes it trace for minutes.
    """
    if exports_to_onnx():
        raise RuntimeError(f"{where}: cannot be exported to ONNX {because}: {instead}")


def refuse_values(function: str, *values: object) -> None:
    """`refuse` of what decides by the values of tensors; those of arrays are constants."""
    if any(isinstance(value, Tensor) for value in values):
        refuse(
            function,
            "because it branches on the values of its arguments",
            "call it before the export, and pass the result to the model",
        )


def number(value: float, beside: Tensor) -> Any:
    """A number that float32 may not hold, for a computation with `beside`, of any shape.

    In a graph of ONNX, torch's exporter writes Python's numbers as float32.
    """
    return beside.new_tensor(value) if exports_to_onnx() else value


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """torch.atan2; onnxruntime has no arc tangent of float64: a float32 one and Newton's step.

    The step is (y cos - x sin) / length, the sine of the error of at most 4e-7. y and x (...).
    Along an axis the angle is exact, and +pi for y = 0: pixels of nearest are ties there.
    """
    if not (exports_to_onnx() and x.dtype == torch.float64):
        return torch.atan2(y, x)
    angle = torch.atan2(y.float(), x.float()).double()
    length = (x * x + y * y).sqrt()
    error = (y * angle.cos() - x * angle.sin()) / torch.where(length > 0, length, 1.0)
    upright = torch.sign(y) * number(math.pi / 2, y)
    level = (x < 0).to(x.dtype) * number(math.pi, x)
    return torch.where(x == 0, upright, torch.where(y == 0, level, angle + error))


def atan(x: Tensor) -> Tensor:
    """The arc tangent, as `atan2`."""
    return atan2(x, torch.ones_like(x)) if exports_to_onnx() else x.atan()


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """torch.hypot of x and y (...), which has no ONNX operator."""
    return (x * x + y * y).sqrt() if exports_to_onnx() else torch.hypot(x, y)


WIDER = {torch.int16: torch.int32, torch.bfloat16: torch.float32}
"""Types for which onnxruntime has few kernels, and types that hold their numbers."""


def widen(image: Tensor) -> Tensor:
    """In an export, the numbers in a type for which onnxruntime pads and selects."""
    return image.to(WIDER.get(image.dtype, image.dtype)) if exports_to_onnx() else image
