"""The kernels of `trial`: one of Numba's Python with a helper, one as `vector_code` writes them."""

from __future__ import annotations

from typing import Any

from warpkit.engine.backends.cpu.runtime.compiler import DIGEST, Written, inline, kernel


@inline
def twice(number):
    return number + number


def numbas_kernel() -> Any:
    """Doubles the first number of an array."""
    digest = DIGEST

    def double(numbers):
        _ = digest
        numbers[0] = twice(numbers[0])

    return kernel(double)


def written_kernel() -> Any:
    """The same, through the other pipeline."""
    digest = DIGEST

    def double_lightly(numbers):
        _ = digest
        numbers[0] = numbers[0] + numbers[0]

    return kernel(double_lightly, Written)
