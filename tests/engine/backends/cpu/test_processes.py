"""The CPU backend in processes of their own: forked, interrupted, without Numba or its cache."""

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
points, boxes = torch.rand(1, 4, 3, 2), [[0.5, 0.5, 4.0, 4.0]]
with warnings.catch_warnings(record=True) as caught:  # the native library needs none
    warnings.simplefilter("always")
    leaf = image.clone().requires_grad_()
    wk.warp_affine(leaf, matrix, backend="cpu").sum().backward()
    wk.remap(image, points, backend="cpu", interpolation="lanczos4")
    wk.warp_affine(image.byte(), matrix, backend="cpu", interpolation="nearest")
    wk.crop_patches(image, boxes, [0], (2, 2))
    wk.flow.splat(image, torch.zeros(5, 6, 2))
assert not caught, [str(w.message) for w in caught]
opencv = {"arithmetic": "opencv5"}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    got = [wk.warp_affine(image, matrix, **opencv) for _ in range(3)]
    smaller = wk.resize(image, (3, 4))
    wk.transform_patches(image, boxes, torch.eye(2, 3)[None], [0])
    wk.align(torch.rand(1, 20, 20), torch.rand(1, 20, 20), steps=2)
assert [str(w.message) for w in caught] == [
    "warpkit: Numba is not installed; on the CPU the slow reference is used"
], [str(w.message) for w in caught]
assert torch.equal(got[0], wk.warp_affine(image, matrix, backend="reference", **opencv))
assert torch.equal(smaller, wk.resize(image, (3, 4), backend="reference"))
for call in (
    lambda: wk.warp_affine(image, matrix, backend="cpu", **opencv),
    lambda: wk.resize(image, (3, 4), backend="cpu"),
):
    try:
        call()
    except ValueError as error:
        assert "needs Numba: pip install numba" in str(error)
    else:
        raise AssertionError("served without Numba")
"""


def test_without_numba_warps_are_served_and_the_rest_by_the_reference():
    subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], check=True, timeout=300)


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


READ_ONLY = """
import torch, warpkit as wk
from warpkit.engine.backends.cpu.runtime import compiler
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # nowhere to write
image = torch.rand(1, 2, 5, 6)
wanted = wk.resize(image, (3, 4), backend="reference")
torch.testing.assert_close(wk.resize(image, (3, 4), backend="cpu"), wanted)
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
    assert fresh(CacheFile).load("signature") == 4


DAMAGES = {
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "overwritten": lambda data: data[:-30] + b"\xff" + data[-29:],
    "replaced": lambda data: pickle.dumps((b"seal", b"code")),
}


@pytest.mark.parametrize("file", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_counts_as_none_and_is_written_again(damage, file, tmp_path):
    def fresh():
        return CacheFile(cache_path=str(tmp_path), filename_base="kernel", source_stamp=(1, 2))

    fresh().save("signature", list(range(100)))
    (path,) = tmp_path.glob(f"*.{file}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert fresh().load("signature") is None
    fresh().save("signature", "again")
    assert fresh().load("signature") == "again"


def test_code_of_another_kernel_counts_as_none(tmp_path):
    """An index that is damaged can name the wrong file."""
    file = CacheFile(cache_path=str(tmp_path), filename_base="kernel", source_stamp=(1, 2))
    file.save("one", 1)
    file.save("two", 2)
    one, two = sorted(tmp_path.glob("*.nbc"))
    one.write_bytes(two.read_bytes())
    assert file.load("one") is None
    assert file.load("two") == 2


NEAREST = """
import sys, warnings, torch, warpkit as wk
if sys.argv[1:]:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file takes a byte, as on a full disk
image, matrix = torch.arange(60).byte().reshape(1, 2, 5, 6), [[1.0, 0, 0.5], [0, 1, 0]]
nearest = {"interpolation": "nearest", "arithmetic": "opencv5"}  # compiled the fastest
wanted = wk.warp_affine(image, matrix, backend="reference", **nearest)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.testing.assert_close(wk.warp_affine(image, matrix, backend="cpu", **nearest), wanted)
print(*{str(w.message) for w in caught}, sep="")
"""


def test_a_damaged_cache_and_a_full_disk_stop_no_warp(tmp_path):
    def warp(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", NEAREST, *arguments],
            **{"check": True, "timeout": 300, "stdout": subprocess.PIPE, "text": True},
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.strip()

    assert warp() == ""
    files = [*tmp_path.rglob("*.nbc")]
    assert files
    whole = {path: path.read_bytes() for path in files}
    for path in files:
        path.write_bytes(whole[path][:200])
    assert warp() == ""
    assert all(path.stat().st_size > 200 for path in files)  # compiled again, and kept
    if sys.platform != "win32":  # which has no such limit
        for path in tmp_path.rglob("*.nb?"):
            path.unlink()
        assert warp("full").startswith("warpkit: compiled kernels cannot be kept in ")


WITHOUT_A_NAME = """
import sys, warnings, importlib
import numba
module, _, name = "{name}".rpartition(".")
delattr(importlib.import_module(module), name)
import torch, warpkit as wk
image, matrix = torch.rand(1, 2, 5, 6), [[1.0, 0, 0.5], [0, 1, 0]]
boxes = [[0.0, 0.0, 4.0, 4.0]]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    got = [wk.warp_affine(image.byte(), matrix, arithmetic="opencv5") for _ in range(3)]
    wk.resize(image, (2, 3)), wk.crop_patches(image, boxes, None, (2, 2))
    wk.transform_patches(image, boxes, torch.eye(2, 3)[None], None)
    wk.align(torch.rand(1, 20, 20), torch.rand(1, 20, 20), steps=2)
    wk.flow.splat(image, torch.zeros(5, 6, 2)), wk.invert(matrix)
(said,) = {{str(w.message) for w in caught if "warpkit" in str(w.message)}}
assert said.startswith(f"warpkit: Numba {{numba.__version__}} does not compile the kernels ("), said
assert said.endswith("; on the CPU the slow reference is used"), said
options = {{"arithmetic": "opencv5"}}
assert torch.equal(got[0], wk.warp_affine(image.byte(), matrix, backend="reference", **options))
try:
    wk.warp_affine(image.byte(), matrix, backend="cpu", **options)
except ValueError as error:
    assert "needs Numba: " in str(error)
else:
    raise AssertionError("served without kernels")
"""


@pytest.mark.parametrize(
    "name",
    [
        "numba.core.untyped_passes.ReconstructSSA",  # seen when `compiler` is imported
        "numba.core.cgutils.alloca_once",  # when `simd`'s functions are made into code, or before
        "numba.core.codegen.CPUCodeLibrary._optimize_final_module",  # when a kernel is compiled
        "numba.core.codegen.CPUCodegen._module_pass_manager",  # of one of ours alone
    ],
)
def test_where_numba_lacks_a_name_the_reference_serves_after_one_warning(name, tmp_path):
    code = WITHOUT_A_NAME.format(name=name)
    if ".codegen." in name:  # a name of a class
        code = code.replace(
            "importlib.import_module(module)", "getattr(numba.core.codegen, module.split('.')[-1])"
        )
    options = {"env": {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, **options)
