"""Memory of results: never shared while in use, reused afterwards, and bounded."""

from __future__ import annotations

import _thread
import gc
import re
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

import warpkit as wk
from warpkit.engine.cpu import memory

FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)


@pytest.fixture(autouse=True)
def nothing_waits():
    gc.collect()
    memory.release()


def test_a_freed_results_memory_is_reused():
    image = torch.rand(1, 3, 400, 400)
    first = wk.warp_affine(image, [[1.0, 0, 3], [0, 1, 0]])
    address = first.data_ptr()
    view = first[0, 1]
    del first
    second = wk.warp_affine(image, [[1.0, 0, 5], [0, 1, 0]])
    assert second.data_ptr() != address  # a view still reads it
    assert torch.equal(view[:, 3:], image[0, 1, :, :-3])
    del view
    assert wk.warp_affine(image, [[1.0, 0, 7], [0, 1, 0]]).data_ptr() == address


def test_arrays_in_use_never_overlap():
    def fill(n):
        kept = [memory.empty(300_000 + 1000 * n, FLOAT) for _ in range(3)]
        for k, array in enumerate(kept):
            array[:] = 10 * n + k
        return all((array == 10 * n + k).all() for k, array in enumerate(kept))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fill, range(64)))


def test_results_are_ordinary_arrays():
    for shape, dtype in product((0, (0, 3), 5, (3, 700, 701)), (np.uint8, np.float32, np.float64)):
        array = memory.empty(shape, np.dtype(dtype))
        assert array.shape == np.empty(shape).shape, (shape, dtype)
        assert array.dtype == dtype, (shape, dtype)
        assert array.flags.writeable, (shape, dtype)
        assert array.flags.c_contiguous, (shape, dtype)
        if array.nbytes >= memory.LEAST:
            assert array.ctypes.data % memory.LINE == 0, (shape, dtype)


def test_the_memory_kept_for_reuse_is_bounded(monkeypatch):
    size = -(-memory.LEAST // memory.UNIT) * memory.UNIT + memory.LINE
    monkeypatch.setattr(memory, "KEPT", 3 * size)
    held = [memory.empty(memory.LEAST, BYTE) for _ in range(5)]
    addresses = [array.ctypes.data for array in held]
    kept = [block.memory.ctypes.data for block in memory._kept]
    assert [0 <= a - k < memory.LINE for a, k in zip(addresses[2:], kept, strict=True)] == [
        True
    ] * 3
    del held[:2]  # not kept any more: freed
    again = [memory.empty(memory.LEAST, BYTE) for _ in range(2)]
    assert len(memory._kept) == 3
    del held, again
    assert [block.lease() for block in memory._kept] == [None] * 3
    reused = [memory.empty(memory.LEAST, BYTE) for _ in range(3)]
    assert addresses[4] in [array.ctypes.data for array in reused]
    large = memory.empty(4 * memory.LEAST, BYTE)
    assert large.base is None  # larger than all memory that may be kept
    assert len(memory._kept) == 3


def test_an_interrupt_while_memory_is_freed_is_raised():
    """Python drops a KeyboardInterrupt that is raised in `__del__`."""
    held = [memory.empty(memory.LEAST, BYTE)]
    # both run in C, one after the other: no other Python code notices the interrupt first
    steps = [partial(_thread.interrupt_main), partial(held.clear)]
    with pytest.raises(KeyboardInterrupt):
        deque(map(partial.__call__, steps), maxlen=0)
    assert held == []
    assert memory._kept[-1].lease() is None


def test_a_result_alive_at_exit_prints_nothing():
    script = "import torch, warpkit as wk\nkept = wk.warp_affine(torch.rand(1, 3, 400, 400), "
    script += "[[1.0, 0, 3], [0, 1, 0]])\nclass Last:\n  out = kept\n  me = None\nLast.me = Last"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_limit_is_in_mebibytes():
    assert memory.limit("0") == 0
    assert memory.limit("3") == 3 << 20


@pytest.mark.parametrize("text", ["", "-1", "1.5", "much"])
def test_the_limit_must_be_a_number(text):
    wanted = f"warpkit: WARPKIT_KEPT_MB must be a number such as 256, got {text!r}"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        memory.limit(text)
