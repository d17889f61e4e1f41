"""Labels: images of types that nearest copies and no arithmetic supports.

Their bits are moved as signed integers of the same width, for which torch has all operations and
the kernels one type each. Nothing is rounded: int64 beyond 2^53 is preserved.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from warpkit.core.checks import LABELS, LISTS
from warpkit.core.integers import WHOLE_NUMBERS
from warpkit.core.tracing import exports_to_onnx, is_transformed
from warpkit.engine.definitions.rounding import INT_MAX, INT_MIN, to_int32

CARRIERS = {1: torch.int8, 4: torch.int32, 8: torch.int64}
"""The types that carry the bits of labels, by their size in bytes."""

ROUNDED = (torch.int8, torch.int32)
"""The labels that OpenCV has: a border's value beyond int32 becomes the lowest number there."""


def as_bits(image: Tensor) -> Tensor:
    """A view of labels in the type that carries them; other images are unchanged."""
    return same_bits(image, CARRIERS[image.element_size()]) if image.dtype in LABELS else image


def as_labels(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse, to the image's `dtype`."""
    return same_bits(bits, dtype) if dtype in LABELS else bits


def as_signed(image: Tensor) -> Tensor:
    """As `as_bits`, and uint16 as int16: torch moves all signed types, uint16 only since 2.8."""
    return same_bits(image, torch.int16) if image.dtype == torch.uint16 else as_bits(image)


def from_signed(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse, to the image's `dtype`."""
    return same_bits(bits, dtype) if dtype == torch.uint16 else as_labels(bits, dtype)


def same_bits(numbers: Tensor, dtype: torch.dtype) -> Tensor:
    """A view of integers as another type of the same size; also works in transforms."""
    if numbers.dtype == dtype:
        return numbers
    if exports_to_onnx():  # ONNX converts modulo the type's range, and has no view
        return numbers.to(dtype)
    if torch.compiler.is_compiling():
        # bool is converted: before torch 2.8, Inductor cannot view it as another type
        return numbers.to(dtype) if torch.bool in (numbers.dtype, dtype) else numbers.view(dtype)
    if is_transformed(numbers):
        return SameBits.apply(numbers, dtype)  # pyright: ignore
    return numbers.view(dtype)


class SameBits(torch.autograd.Function):
    """`Tensor.view(dtype)` for integers; vmap has no rule for it before torch 2.8."""

    @staticmethod
    def forward(numbers: Tensor, dtype: torch.dtype) -> Tensor:
        """The view."""
        return numbers.view(dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Saves nothing: integers have no gradient."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
        """The same for the whole batch."""
        return SameBits.apply(*inputs), in_dims[0]


def limits(dtype: torch.dtype) -> tuple[int, int]:
    """The smallest and the largest label of a type."""
    if dtype == torch.bool:
        return 0, 1
    info = torch.iinfo(dtype)
    return info.min, info.max


def label_fill(
    value: Any, dtype: torch.dtype, device: torch.device, arithmetic: str = "exact"
) -> Tensor | None:
    """Python integers, also in lists, saturated to labels of `dtype`: their bits.

    None if there are other values. No number is converted to a float.
    """
    if isinstance(value, WHOLE_NUMBERS):
        (low, high), carrier = limits(dtype), CARRIERS[dtype.itemsize]
        number = int(value) if isinstance(value, Integral) else value
        if not -(2**63) <= number < 2**63:  # a constant for Dynamo, whose symbols have 64 bits
            number = int(f"{number}")
        if arithmetic != "exact" and dtype in ROUNDED and not INT_MIN <= number <= INT_MAX:
            number = INT_MIN
        number = min(max(number, low), high)
        if number > torch.iinfo(carrier).max:  # the upper half of an unsigned type
            number -= 1 << 8 * dtype.itemsize
        # made on the device: a copy from the host would synchronise, and end a graph's capture
        return torch.full((), number, dtype=carrier, device=device)
    if isinstance(value, LISTS) and value:
        items = [label_fill(item, dtype, device, arithmetic) for item in value]
        tensors = [item for item in items if item is not None]
        if len(tensors) == len(items) and len({item.shape for item in tensors}) == 1:
            return torch.stack(tensors)
    return None


def whole_scalar(value: Any, channels: int) -> list[int] | None:
    """cv2.Scalar of Python integers, for each channel; None for other values."""
    numbers = list(value) if isinstance(value, LISTS) else [value]
    if not 1 <= len(numbers) <= 4 or not all(isinstance(number, Integral) for number in numbers):
        return None
    four = [*map(int, numbers), 0, 0, 0]
    return [four[c % 4] for c in range(channels)]


def saturated(values: Tensor, dtype: torch.dtype, arithmetic: str = "exact") -> Tensor:
    """Numbers of any type as labels of `dtype`, rounded half to even and saturated: their bits.

    NaN becomes 0; in OpenCV's arithmetics, for types that OpenCV has, the lowest number.
    """
    if values.dtype == dtype:
        return as_bits(values)
    low, high = limits(dtype)
    if arithmetic != "exact" and dtype in ROUNDED:
        values = to_int32(values)
    if values.is_floating_point():
        if dtype == torch.uint64:
            # computed by halves: numbers that int64 cannot represent are multiples of 2048
            upper = (_whole(values / 2) << 1).where(values < 2.0**64, -1)
            return upper.where(values >= 2.0**63, _whole(values).clamp(min=0))
        values = _whole(values)
    elif values.dtype == torch.uint64:
        bits = same_bits(values, torch.int64)
        values = torch.where(bits < 0, torch.iinfo(torch.int64).max, bits)
    values = values.long().clamp(low, min(high, torch.iinfo(torch.int64).max))
    return values.to(CARRIERS[dtype.itemsize])


def _whole(values: Tensor) -> Tensor:
    """Floats rounded half to even and saturated as int64; 0 for NaN."""
    values = values.double().round()
    inside = values.abs() < 2.0**63  # false for NaN
    whole = torch.where(inside, values, 0.0).long()
    low, high = limits(torch.int64)
    whole = torch.where(values >= 2.0**63, high, whole)
    return torch.where(values <= -(2.0**63), low, whole)


def as_words(bits: Tensor) -> Tensor:
    """Bits (N, C, h, w) as float64 channels that hold them exactly: two of 32 bits for int64.

    For code that computes with weights, which are only 0 and 1 for nearest.
    """
    if bits.dtype != torch.int64:
        return bits.double()
    return torch.cat((bits & 0xFFFFFFFF, bits >> 32), dim=1).double()


def from_words(words: Tensor, dtype: torch.dtype) -> Tensor:
    """The labels of `dtype` in the words."""
    carrier = CARRIERS[dtype.itemsize]
    if carrier == torch.int64:
        low, high = words.long().chunk(2, 1)
        return as_labels(low | high << 32, dtype)
    return as_labels(words.to(carrier), dtype)
