"""Whether kernels can be compiled here: two small ones are, before the first call of any other.

Much of what `compiler` and the vectors need of Numba has no public name, and a new version may lack
any of it. Whatever is wrong is found here, before a call depends on it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


try:
    from warpkit.engine.backends.cpu.runtime import (  # noqa: F401
        packed_loads,
        simd,
        trial_kernels,
        vector_code,
    )

    UNLOADED = ""
except Exception as error:  # whatever it is: there is the reference
    UNLOADED = _said(error)
"""What is wrong with the modules that know Numba, in one line; nothing where they load."""


def trouble() -> str:
    """What is wrong with the kernels, in one line; nothing where they compile.

    While torch traces, its patches of Python's functions break Numba, and no kernel is called.
    """
    if UNLOADED or torch.compiler.is_compiling():
        return UNLOADED
    modes = torch._C._len_torch_dispatch_stack()  # pyright: ignore
    return UNLOADED if modes > 0 else _tried()


@cache
def _tried() -> str:
    from warpkit.engine.backends.cpu.runtime import trial_kernels

    try:
        for kernel in (trial_kernels.numbas_kernel(), trial_kernels.written_kernel()):
            numbers = np.ones(1)
            kernel(numbers)
            if numbers[0] != 2:
                raise ArithmeticError(f"a kernel doubled 1 to {numbers[0]}")
    except Exception as error:
        return _said(error)
    return ""
