"""The CPU backend in processes of their own: forked, without Numba, without a cache."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from numba.core.caching import IndexDataCacheFile

from warpkit.engine.backends.cpu.runtime.compiler import CacheFile

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
def test_forked_workers_have_threads_of_their_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


WITHOUT_NUMBA = """
import sys, warnings
sys.modules["numba"] = None
import torch, warpkit as wk
image, matrix = torch.rand(1, 2, 5, 6), [[1.0, 0, 0.5], [0, 1, 0]]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    got = [wk.warp_affine(image, matrix) for _ in range(3)]
assert [str(w.message) for w in caught] == [
    "warpkit: Numba is not installed; on the CPU the slow reference is used"
], caught
assert torch.equal(got[0], wk.warp_affine(image, matrix, backend="reference"))
try:
    wk.warp_affine(image, matrix, backend="cpu")
except ValueError as error:
    assert "needs Numba: pip install numba" in str(error)
else:
    raise AssertionError("served without Numba")
"""


def test_without_numba_the_reference_serves_after_one_warning():
    subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], check=True, timeout=300)


READ_ONLY = """
import torch, warpkit as wk
from warpkit.engine.backends.cpu.runtime import compiler
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # nowhere to write
image, matrix = torch.rand(1, 2, 5, 6), [[1.0, 0, 0.5], [0, 1, 0]]
nearest = {"interpolation": "nearest"}  # the kernel that is compiled the fastest
wanted = wk.warp_affine(image, matrix, backend="reference", **nearest)
torch.testing.assert_close(wk.warp_affine(image, matrix, backend="cpu", **nearest), wanted)
"""


def test_without_a_writable_cache_it_still_works():
    subprocess.run([sys.executable, "-c", READ_ONLY], check=True, timeout=300)


def test_a_cache_of_another_version_counts_as_none(tmp_path):
    def fresh(kind):
        return kind(cache_path=str(tmp_path), filename_base="kernel", source_stamp=(1, 2))

    fresh(CacheFile).save("signature", 3)
    (index,) = tmp_path.glob("*.nbi")
    version = pickle.dumps(fresh(CacheFile)._version)
    index.write_bytes(version + b"cwarpkit.gone\nPlan\n.")
    with pytest.raises(ImportError):
        fresh(IndexDataCacheFile).load("signature")
    assert fresh(CacheFile).load("signature") is None
    fresh(CacheFile).save("signature", 4)
    assert fresh(IndexDataCacheFile).load("signature") == 4
