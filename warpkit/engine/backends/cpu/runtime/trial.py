"""Whether kernels can be compiled here: two small ones are, when this module is imported.

Much of what `compiler` and the vectors need of Numba has no public name, and a new version may lack
any of it. Whatever is wrong is found here, before a call depends on it.
"""

from __future__ import annotations

import numpy as np


def _run() -> None:
    """Import all that knows Numba, and call a kernel of each kind."""
    from warpkit.engine.backends.cpu.resize import vectors  # noqa: F401
    from warpkit.engine.backends.cpu.runtime import (  # noqa: F401
        packed_loads,
        simd,
        trial_kernels,
        vector_code,
    )

    for kernel in (trial_kernels.numbas_kernel(), trial_kernels.written_kernel()):
        numbers = np.ones(1)
        kernel(numbers)
        if numbers[0] != 2:
            raise ArithmeticError(f"a kernel doubled 1 to {numbers[0]}")


def _trouble() -> str:
    try:
        _run()
    except Exception as error:  # whatever it is: there is the reference
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""


TROUBLE = _trouble()
"""What is wrong, in one line; nothing where kernels compile."""
