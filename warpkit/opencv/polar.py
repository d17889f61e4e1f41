"""Converts cv2's vectors to lengths and angles, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpkit.core import checks, exports
from warpkit.engine.arithmetic import opencv_angles
from warpkit.engine.arithmetic.guarantees import installed_arithmetic
from warpkit.engine.binding.plan import Once, Plan
from warpkit.engine.definitions.reference import with_gradient_of
from warpkit.opencv import door, point_lists
from warpkit.opencv.cameras import as_flag, common_device
from warpkit.opencv.door import check_output
from warpkit.opencv.layout import has_tensor, is_followed
from warpkit.types import ImageLike, NumbersLike

TYPES = (torch.float32, torch.float64)


def cartToPolar(
    x: NumbersLike,
    y: NumbersLike,
    magnitude: ImageLike | None = None,
    angle: ImageLike | None = None,
    angleInDegrees: bool = False,
) -> tuple[Any, Any]:
    """cv2.cartToPolar: the lengths of vectors, and their angles from 0 up to 2 pi or 360.

    x and y of one shape and type, float32 or float64, which OpenCV rounds to float32. Returns two
    of the same. The numbers are cv2's own (IPP off, arrays that are not views of others), whose
    polynomial is off by up to 0.01 degrees; NaN if either is. Gradients, if an argument is a
    tensor: all orders, those of the exact formulas, 0 at (0, 0).

    >>> import numpy as np
    >>> cartToPolar(np.float32([[3, 0]]), np.float32([[4, -2]]), angleInDegrees=True)
    (array([[5., 2.]], dtype=float32), array([[ 53.136284, 270.      ]], dtype=float32))
    """
    name = "cartToPolar"
    outputs = _outputs(name, (x, y), magnitude=magnitude, angle=angle)
    degrees = as_flag(name, "angleInDegrees", angleInDegrees)
    return door.numbers(_plan_to_polar, (x, y), (degrees,), *outputs)


def _plan_to_polar(keeps: bool, x: Any, y: Any, degrees: bool) -> Plan | Once:
    """The plan of `cartToPolar`."""
    first, second = _pair("cartToPolar", x=x, y=y)
    shape = _shape_of(first, has_tensor(x, y))
    if first.numel() and door.runs_kernels(first, second):

        def make(x: Any, y: Any) -> Plan:
            call = point_lists.in_polar(x, y, "to_polar", shape, degrees)
            return lambda x, y: call(x, y)[:2]

        return door.planned(keeps, make, (x, y), (first, second))
    single = _alone(first)
    values = opencv_angles.to_polar(
        first.detach().float(), second.detach().float(), single, degrees
    )
    found = [value.to(first.dtype) for value in values]
    if is_followed(first, second):
        here = (first == 0) & (second == 0)
        a, b = torch.where(here, 1.0, first), torch.where(here, 0.0, second)
        turn = torch.atan2(b, a) * (180 / math.pi if degrees else 1.0)
        exact = [torch.where(here, 0.0, value) for value in (exports.hypot(a, b), turn)]
        found = [with_gradient_of(v, e) for v, e in zip(found, exact, strict=True)]
    return Once(tuple(value.reshape(shape) for value in found))


def polarToCart(
    magnitude: NumbersLike,
    angle: NumbersLike,
    x: ImageLike | None = None,
    y: ImageLike | None = None,
    angleInDegrees: bool = False,
) -> tuple[Any, Any]:
    """cv2.polarToCart: vectors of lengths and angles.

    magnitude and angle of one shape and type, float32 or float64, which OpenCV rounds to float32;
    magnitude None: 1. Returns x and y of the same. The numbers are cv2's own (IPP off, arrays that
    are not views of others), within 3e-7 of the length for angles of a few turns; beyond 2^31
    eighths of a turn, where OpenCV overflows, they are exact. Gradients, if an argument is a
    tensor: all orders, those of the exact formulas.

    >>> import numpy as np
    >>> polarToCart(np.float32([[2]]), np.float32([[90]]), angleInDegrees=True)
    (array([[0.]], dtype=float32), array([[2.]], dtype=float32))
    """
    name = "polarToCart"
    outputs = _outputs(name, (magnitude, angle), x=x, y=y)
    degrees = as_flag(name, "angleInDegrees", angleInDegrees)
    return door.numbers(_plan_from_polar, (magnitude, angle), (degrees,), *outputs)


def _plan_from_polar(keeps: bool, magnitude: Any, angle: Any, degrees: bool) -> Plan | Once:
    """The plan of `polarToCart`."""
    name, given = "polarToCart", has_tensor(magnitude, angle)
    if magnitude is None or 0 in checks.shape_if_any(magnitude):
        magnitude, length, turn = None, None, _pair(name, angle=angle)[0]
    else:
        length, turn = _pair(name, magnitude=magnitude, angle=angle)
    shape = _shape_of(turn, given)

    def exact(length: Tensor | None, turn: Tensor) -> tuple[Tensor, ...]:
        """x and y of lengths and angles (...)."""
        found = _from_polar(length, turn, degrees)
        return tuple(value.reshape(shape) for value in found)

    def make(length: Any, turn: Any) -> Plan:
        call = point_lists.in_polar(length, turn, "from_polar", shape, degrees)

        def run(length: Any, turn: Any) -> Any:
            x, y, is_far = call(length, turn)
            if is_far:
                one = None if magnitude is None else torch.from_numpy(np.array(length))
                return exact(one, torch.from_numpy(np.array(turn)))
            return x, y

        return run

    if turn.numel() and door.runs_kernels(length, turn):
        return door.planned(keeps, make, (magnitude, angle), (length, turn))
    return Once(exact(length, turn))


def _from_polar(length: Tensor | None, turn: Tensor, degrees: bool) -> list[Tensor]:
    """x and y (...) of lengths, 1 if None, and angles (...)."""
    lengths = None if length is None else length.detach().float()
    values = opencv_angles.from_polar(lengths, turn.detach().float(), _alone(turn), degrees)
    found = [value.to(turn.dtype) for value in values]
    if is_followed(turn, *([] if length is None else [length])):
        radians = turn * (math.pi / 180 if degrees else 1.0)
        factor = 1.0 if length is None else length
        exact = (radians.cos() * factor, radians.sin() * factor)
        found = [with_gradient_of(v, e) for v, e in zip(found, exact, strict=True)]
    return found


def _pair(name: str, **values: Any) -> list[Tensor]:
    """Arrays or tensors of one shape and type, as tensors on one device."""
    device, tensors = common_device(*values.values()), []
    for argument, value in values.items():
        if not isinstance(value, (Tensor, *checks.ARRAYS)):
            checks.fail(name, argument, "a tensor or an array", type(value).__name__, TypeError)
        is_array = not isinstance(value, Tensor)
        tensor: Tensor = checks.from_array(name, argument, value, device) if is_array else value
        checks.check_dense(name, argument, tensor)
        checks.check_device(name, argument, tensor, device, "the other")
        if tensor.dtype not in TYPES:
            wanted = f"of one of the types {checks.names_of(TYPES)}"
            checks.fail(name, argument, wanted, tensor.dtype, TypeError)
        first = tensors[0] if tensors else tensor
        if tensor.shape != first.shape or tensor.dtype != first.dtype:
            wanted = f"{checks.shape_of(first)} {first.dtype} as `{next(iter(values))}`"
            got = f"{checks.shape_of(tensor)} {tensor.dtype}"
            checks.fail(name, argument, wanted, got)
        tensors.append(tensor)
    return tensors


def _alone(values: Tensor) -> Tensor:
    shape, double = tuple(values.shape), values.dtype == torch.float64
    return opencv_angles.alone(shape, double, values.device, installed_arithmetic())


def _outputs(name: str, given: tuple[Any, Any], **outputs: Any) -> list[Any]:
    tensors = [value for value in given if isinstance(value, Tensor)]
    source = tensors[0] if tensors else None
    return [check_output(name, argument, value, source) for argument, value in outputs.items()]


def _shape_of(values: Tensor, given: bool) -> tuple[int, ...]:
    """The shape of results: if no tensor is given, cv2's, which drops a single channel.

    OpenCV 4 turns one axis into a column.
    """
    shape = tuple(values.shape)
    if given:
        return shape
    shape = shape[:-1] if shape[-1:] == (1,) and len(shape) > 2 else shape
    return (*shape, 1) if len(shape) == 1 and installed_arithmetic() == "opencv4" else shape
