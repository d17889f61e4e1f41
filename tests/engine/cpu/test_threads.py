"""Work is split among torch's or our threads: each unit runs once, and errors propagate."""

from __future__ import annotations

import threading

import pytest
import torch

from warpkit.engine.cpu import threads


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


def test_two_threads_work_at_the_same_time():
    both = threading.Barrier(2, timeout=30)  # a single thread would time out here

    def work(begin: int, end: int) -> None:
        both.wait()

    threads.run(work, 2, threads.INLINE)


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_an_error_in_a_unit_propagates(error):
    def work(begin: int, end: int) -> None:
        if begin <= 1 < end:
            raise error

    with pytest.raises(type(error)):
        threads.run(work, 4, threads.INLINE)
    seen = []
    threads.run(lambda begin, end: seen.extend(range(begin, end)), 4, threads.INLINE)
    assert sorted(seen) == [0, 1, 2, 3]


def test_an_interrupt_in_this_threads_callback_propagates_though_another_does_all(monkeypatch):
    def team(body, *_):  # ctypes drops what is raised in this thread before `share` begins
        other = threading.Thread(target=body, args=(None,))
        other.start()
        other.join()

    monkeypatch.setattr(threads, "_team", team)
    seen = []
    with pytest.raises(KeyboardInterrupt):
        threads.run(lambda begin, end: seen.extend(range(begin, end)), 4, threads.INLINE)
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize("units", [1, 2, 3, 7, 1001])
@pytest.mark.parametrize("values", [threads.INLINE, 5 * threads.SLICE])
def test_native_code_gets_every_unit_once(units, values):
    """In slices, between which interrupts are noticed; a thread takes `each` units at a time."""
    seen, slices = [], []

    def part(begin: int, end: int, each: int, count: int, team: int) -> None:
        assert each >= 1
        assert 1 <= count <= 2
        assert team == threads._team_address != 0
        slices.append((begin, end))
        seen.extend(range(begin, end))

    dealt = threads.run_on_team(part, units, values)
    assert dealt == (threads._team is not None)
    assert seen == (list(range(units)) if dealt else [])
    assert len(slices) <= max(1, values // threads.SLICE)
    if dealt and values > threads.SLICE and units > 1:
        assert len(slices) > 1
