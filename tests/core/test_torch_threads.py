"""One torch thread for a while: threads that overlap leave the number that was there before."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from warpkit.core.torch_threads import one_thread


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def in_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_threads_that_overlap_leave_the_number_from_before(first_leaves_first):
    for _ in range(2):  # the second round starts from what the first one left
        assert _numbers_seen((0, 1) if first_leaves_first else (1, 0)) == {
            **dict.fromkeys((0, 1), 1),
            **dict.fromkeys(((0, "after"), (1, "after")), 3),
        }
        assert in_a_new_thread() == 3
        assert torch.get_num_threads() == 3


def _numbers_seen(order: tuple[int, int]) -> dict:
    """What two threads see inside and after: the second enters before the first leaves."""
    entered, inside = threading.Event(), threading.Barrier(2)
    leave, seen = [threading.Event(), threading.Event()], {}

    def work(number: int) -> None:
        if number:
            entered.wait(30)
        with one_thread():
            entered.set()
            inside.wait(30)
            seen[number] = torch.get_num_threads()
            leave[number].wait(30)
        seen[number, "after"] = torch.get_num_threads()

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for number in order:
        leave[number].set()
        threads[number].join(30)
    return seen


@pytest.mark.usefixtures("three_threads")
def test_an_error_restores_the_number():
    with pytest.raises(KeyboardInterrupt), one_thread():
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 3
