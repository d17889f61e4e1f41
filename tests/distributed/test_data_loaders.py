"""Workers of a DataLoader warp after their parent: no deadlock, and the parent's bits."""

from __future__ import annotations

import multiprocessing
import subprocess

import pytest

from tests.support import ROOT
from tests.support.forks import python


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_persistent_workers_give_the_parents_bits(method: str):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    command = [*python(), "-m", "tests.support.data_loader", method]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "the same bits", done.stderr
