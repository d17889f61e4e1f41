"""The addresses of arrays that kernels get."""

from __future__ import annotations

import numpy as np
import pytest

from warpkit.engine.backends.cpu.opened import LIBRARY

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, ">f8", np.bool_])
def test_addresses_equal_numpys(dtype):
    from warpkit.engine.backends.cpu.calls import address_of

    whole = np.zeros((6, 8, 3), dtype)
    still = whole.copy()
    still.flags.writeable = False
    views = (
        whole,
        still,
        whole[2:],
        whole[:, 1::2],
        whole[::-1],
        whole.T,
        whole[:0],
        whole[0, 0, 0:1],
    )
    for array in views:
        assert address_of(array) == array.ctypes.data
