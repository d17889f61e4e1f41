"""Many callers at once, processes of every kind, an interrupt, and memory after many calls."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import warpkit as wk
from tests.support import ROOT
from tests.support.inputs import noise

MATRIX = [[0.9, 0.2, 1.3], [-0.2, 1.1, 0.4]]


def both_ways(seed: int, side: int = 24) -> list[torch.Tensor]:
    """A warp and a patch pasted on it, and their gradients."""
    image = noise(2, 3, side, side, dtype=torch.float32, seed=seed).requires_grad_()
    matrix = torch.tensor(MATRIX).requires_grad_()
    out = wk.warp_affine(image, matrix, border="reflect_101")
    out.square().sum().backward()
    assert image.grad is not None
    assert matrix.grad is not None
    patch = noise(3, 7, 9, dtype=torch.float32, seed=seed).requires_grad_()
    boxes = [[2.5, 3, side - 2, side - 4], [1, 1, side - 1, 9]]
    places = wk.box_to_matrix(boxes, (7, 9), angle=10.0)
    pasted = wk.paste_patches(out.detach(), patch, places, [0, 1])
    pasted.square().sum().backward()
    assert patch.grad is not None
    return [out.detach(), image.grad, matrix.grad, pasted.detach(), patch.grad]


@pytest.mark.parametrize("side", [24, 320])  # without the pool of threads, and with it
def test_sixteen_threads_find_what_one_finds(side):
    alone = [both_ways(seed, side) for seed in range(4)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda n: both_ways(n % 4, side), range(32)))
    for n, found in enumerate(together):
        assert all(map(torch.equal, found, alone[n % 4]))


WORKERS = """
import multiprocessing, sys, torch
sys.path.insert(0, sys.argv[1])
from tests.core.test_concurrency import both_ways

if __name__ == "__main__":
    torch.set_num_threads(2)
    here = both_ways(0, 320)
    count = int(sys.argv[3])
    context = multiprocessing.get_context(sys.argv[2])
    # as in a DataLoader: after a fork OpenMP, and with it torch, hangs with more than one thread
    with context.Pool(count, torch.set_num_threads, (1,)) as pool:
        there = pool.starmap(both_ways, [(0, 320)] * count, chunksize=1)
    print(all(all(map(torch.equal, found, here)) for found in there))
"""


@pytest.mark.parametrize(("method", "count"), [("fork", 4), ("spawn", 2)])
def test_workers_find_what_one_process_finds(method, count, tmp_path):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"has no {method}")
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    command = [sys.executable, str(script), str(ROOT), method, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout == "True\n", done.stderr


def warp_until_interrupted(image: torch.Tensor, **options: str) -> None:
    for _ in range(1000):
        wk.warp_affine(image, MATRIX, **options)
    raise AssertionError("1000 calls and no interrupt")


def test_an_interrupt_leaves_the_pool_usable():
    before = torch.get_num_threads()
    image = noise(1, 3, 2000, 2000, dtype=torch.float32)
    options = {"interpolation": "lanczos4", "backend": "cpu"}
    expected = wk.warp_affine(image, MATRIX, **options)  # compiled
    torch.set_num_threads(2)
    caller = threading.get_ident()
    # jobs in a shell's background start with the signal ignored
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.02, lambda: signal.pthread_kill(caller, signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            warp_until_interrupted(image, **options)
        timer.join()
        assert torch.equal(wk.warp_affine(image, MATRIX, **options), expected)
    finally:
        signal.signal(signal.SIGINT, handler)
        torch.set_num_threads(before)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_many_calls_keep_no_memory(backend):
    image = noise(1, 3, 64, 64, dtype=torch.float32).requires_grad_()
    matrix = torch.tensor(MATRIX, requires_grad=True)

    def call() -> None:
        out = wk.warp_affine(image, matrix, backend=backend)
        torch.autograd.grad(out.sum(), (image, matrix))

    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("has no /proc")
    for _ in range(50):
        call()
    before = resident()
    for _ in range(300):
        call()
    # one result of 48 KiB kept a call would be 14 MiB
    assert resident() - before < 5 * 2**20
