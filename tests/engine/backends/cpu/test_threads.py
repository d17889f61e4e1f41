"""How work is dealt to threads: every unit once, and errors come out, with torch's team or ours."""

from __future__ import annotations

import threading

import pytest
import torch

pytest.importorskip("numba")

from warpkit.engine.backends.cpu.runtime import threads
from warpkit.engine.backends.cpu.runtime.scratch import of_this_thread


@pytest.fixture(params=["torch's", "ours"], autouse=True)
def two_threads(request, monkeypatch):
    if request.param == "ours":
        monkeypatch.setattr(threads, "_team", None)
    elif threads._team is None:
        pytest.skip("this torch has no team to share")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("units", [1, 2, 3, 7, 16, 1001])
@pytest.mark.parametrize("values", [10, threads.INLINE, 100 * threads.LONGEST])
def test_every_unit_is_done_once(units, values):
    seen = []
    threads.run(lambda begin, end: seen.extend(range(begin, end)), units, values)
    assert sorted(seen) == list(range(units))


def test_two_threads_work_at_once():
    both = threading.Barrier(2, timeout=30)  # one thread alone would wait at it in vain

    def work(begin: int, end: int) -> None:
        both.wait()

    threads.run(work, 2, threads.INLINE)


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_an_error_comes_out(error):
    def work(begin: int, end: int) -> None:
        if begin <= 1 < end:
            raise error

    with pytest.raises(type(error)):
        threads.run(work, 4, threads.INLINE)
    seen = []
    threads.run(lambda begin, end: seen.extend(range(begin, end)), 4, threads.INLINE)
    assert sorted(seen) == [0, 1, 2, 3]


def test_memory_is_each_threads_own_and_stays():
    found, both = [], threading.Barrier(2, timeout=30)

    def work(begin: int, end: int) -> None:
        found.append(of_this_thread(list, (begin,)))
        both.wait()

    threads.run(work, 2, threads.INLINE)
    assert found[0] is not found[1]
    assert of_this_thread(list, (7,)) is of_this_thread(list, (7,))
