"""The CPU backend in forked and interrupted processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKED = """
import torch, warpkit as wk
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(2)
image, matrix = torch.rand(4, 3, 300, 300), wk.rotation_matrix((150.0, 150.0), 33.0)
parent = wk.warp_affine(image, matrix, backend="cpu")
class Warped(Dataset):
    def __len__(self): return 4
    def __getitem__(self, n):
        torch.set_num_threads(2)  # for ours alone: torch's own operators would wait for ever
        out = wk.warp_affine(image, matrix, backend="cpu")
        torch.set_num_threads(1)
        return out
if __name__ == "__main__":
    for batch in DataLoader(Warped(), num_workers=2, multiprocessing_context="fork"):
        assert torch.equal(batch[0], parent)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_workers_start_their_own_threads():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


INTERRUPTED = """
import os, signal, threading, time, torch, warpkit as wk
torch.set_num_threads(2)
image = torch.rand(4, 3, 2000, 2000)
matrix = wk.rotation_matrix((900.0, 900.0), 33.0)
options = {"interpolation": "lanczos4", "size": (4000, 4000), "backend": "cpu"}
wk.warp_affine(image[:1, :, :50, :50], matrix, backend="cpu")
began = time.perf_counter()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    wk.warp_affine(image, matrix, **options)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted" if time.perf_counter() - began < 2 else "late")
small = wk.warp_affine(image[:1, :, :400, :400], matrix, backend="cpu")
torch.set_num_threads(1)
print(torch.equal(small, wk.warp_affine(image[:1, :, :400, :400], matrix, backend="cpu")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_an_interrupt_ends_a_long_warp_and_the_next_one_works():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["interrupted", "True"], done.stdout + done.stderr
