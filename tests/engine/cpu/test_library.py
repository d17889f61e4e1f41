"""The native library is loaded, or rejected with a reason and replaced by the reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.forks import python
from warpkit.engine.cpu import library
from warpkit.engine.cpu.library import LibraryError, open_file
from warpkit.engine.cpu.native_library import LIBRARY, REFUSAL
from warpkit.engine.definitions.layout import AFFINE

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only ELF files are checked")


def between(entry: library.Entry, left: float, right: float, x: float) -> float:
    """The bilinear value at x in a row of two pixels, by a call block written by hand."""
    from warpkit.engine.cpu.warp_calls import WARPS

    image, out = np.array([left, right], np.float32), np.full(1, np.nan, np.float32)
    mapping, fill = np.array([1, 0, x, 0, 1, 0], np.float64), np.zeros(1, np.float32)
    first = np.zeros(1, np.int64)
    arrays = {"image": image, "mapping": mapping, "fill": fill, "out": out}
    arrays |= {"image_of": first, "mapping_of": first}
    numbers = {name: array.ctypes.data for name, array in arrays.items()}
    numbers |= {"items": 1, "channels": 1, "height": 1, "width": 2, "out_height": 1, "out_width": 1}
    numbers |= {"kind": AFFINE, "interpolation": 1, "taps": 2, "number_bytes": 4, "mapping_size": 6}
    numbers |= {"plane": 2, "line": 2, "pixel": 1, "end_unit": 1, "run": 1, "threads": 1}
    entry(WARPS.block("warp", numbers).ctypes.data)
    return out.item()


def test_a_kernel_runs_with_a_block_written_by_hand():
    assert REFUSAL is None
    assert LIBRARY is not None
    assert between(LIBRARY.run, 1.0, 5.0, 0.25) == 2.0
    assert between(LIBRARY.run, 1.0, 5.0, 1.5) == 2.5  # half of the weight is outside the image
    assert between(LIBRARY.run, 1.0, 5.0, np.nan) == 0.0


def available() -> list[str]:
    """This processor's instruction sets, from the error about an unknown one."""
    code = (
        "from warpkit.engine.cpu.library import *\n"
        "try: open_file(PATH)\n"
        "except LibraryError as error: print(error)"
    )
    said = run(code, WARPKIT_ISA="mmx").stdout
    found = re.fullmatch(r"WARPKIT_ISA=mmx, where the processor has ([\w, ]+)\n", said)
    assert found, said
    return found[1].split(", ")


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process, which opens the library again."""
    return subprocess.run(
        [*python(), "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


def test_the_environment_forces_an_instruction_set():
    assert LIBRARY is not None
    sets = available()
    expected = ["sse4", "avx2", "avx512"] if "sse4" in sets else ["neon"]
    assert sets == expected[: len(sets)]
    code = "from warpkit.engine.cpu.native_library import LIBRARY; print(LIBRARY.isa)"
    for name in sets:
        assert run(code, WARPKIT_ISA=name).stdout == f"{name}\n"
    assert run(code, WARPKIT_ISA="").stdout == f"{sets[-1]}\n"


SERVED = """
import sys, warnings
from pathlib import Path
from warpkit.engine.cpu import library
if sys.argv[1] == "sources":
    library.SOURCES = Path(sys.argv[2])
elif sys.argv[1]:
    library.PATH = Path(sys.argv[1])
import torch, warpkit as wk
import warpkit.opencv as cv2
image, matrix = torch.rand(1, 2, 5, 6), [[1.0, 0, 0.5], [0, 1, 0]]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    got = [wk.warp_affine(image, matrix) for _ in range(3)]
    smaller, whole = wk.resize(image, (3, 4)), image.mul(255).byte()
    moved = wk.warp_affine(whole, matrix, arithmetic="opencv5")
    cv2.pyrDown(whole[0, 0].numpy()), cv2.warpAffine(whole[0, 0].numpy(), matrix, (4, 3))
    boxes = [[0.0, 0.0, 4.0, 4.0]]
    wk.crop_patches(image, boxes, None, (2, 2)), wk.invert(matrix)
    wk.transform_patches(image, boxes, torch.eye(2, 3)[None], None)
    wk.align(torch.rand(1, 20, 20), torch.rand(1, 20, 20), steps=2)
    wk.flow.splat(image, torch.zeros(5, 6, 2))
assert torch.equal(got[0], wk.warp_affine(image, matrix, backend="reference"))
assert torch.equal(smaller, wk.resize(image, (3, 4), backend="reference"))
options = {"arithmetic": "opencv5", "backend": "reference"}
assert torch.equal(moved, wk.warp_affine(whole, matrix, **options))
try:
    wk.warp_affine(image, matrix, backend="cpu")
except ValueError as error:
    print("refused:", str(error).splitlines()[1])
assert len(caught) <= 1, [str(w.message) for w in caught]
for w in caught:
    assert w.category is RuntimeWarning and w.filename == "<string>", w
    print("warned:", w.message)
"""


def served_by_the_reference(*arguments: str, **environment: str) -> str:
    """The reason, the same in the warning and in the error of a call with backend="cpu"."""
    said = run(SERVED, *arguments, **environment).stdout
    found = re.fullmatch(
        r"refused:   cpu: (.*)\nwarned: warpkit: (.*); on the CPU the slow reference is used\n",
        said,
    )
    assert found, said
    assert found[1] == found[2]
    return found[1]


def test_an_available_library_gives_no_warning():
    assert run(SERVED, "").stdout == ""


def test_without_a_library_the_reference_is_used(tmp_path):
    reason = served_by_the_reference(str(tmp_path / library.PATH.name))
    assert reason == "no native library: run scripts/build native"


@LINUX
def test_a_truncated_library_is_not_opened(tmp_path):
    whole, cut = library.PATH.read_bytes(), tmp_path / library.PATH.name
    cut.write_bytes(whole[: len(whole) // 2])
    reason = served_by_the_reference(str(cut))
    assert reason == f"{cut.name} is cut off: run scripts/build native"


def test_a_library_of_other_sources_is_not_used(tmp_path):
    (tmp_path / "library.cpp").write_text("// edited")
    reason = served_by_the_reference("sources", str(tmp_path))
    assert reason == (
        f"{library.PATH.name} is not of the sources beside it: run scripts/build native"
    )


def test_an_unavailable_instruction_set_is_named():
    reason = served_by_the_reference("", WARPKIT_ISA="avx1024")
    assert reason.startswith("WARPKIT_ISA=avx1024, where the processor has ")


def damaged() -> dict[str, tuple[bytes, str]]:
    """Files in the library's place, and the reason against each."""
    whole = library.PATH.read_bytes()
    other = {b"\x3e": b"\xb7", b"\xb7": b"\x3e"}[whole[18:19]]  # x86-64, aarch64
    return {
        "nothing": (b"", "is no library"),
        "text": (b"version https://git-lfs.github.com/spec/v1\n" * 9, "is no library"),
        "head": (whole[:63], "is no library"),
        "head_alone": (whole[:64], "is cut off"),
        "last_byte": (whole[:-1], "is cut off"),
        "other_processor": (whole[:18] + other + whole[19:], "code"),
        "32_bits": (whole[:4] + b"\x01" + whole[5:], "is cut off|does not open"),
        "no_segments": (whole[:56] + b"\0\0" + whole[58:], "does not open"),
    }


@LINUX
def test_a_damaged_library_is_rejected(tmp_path):
    path = tmp_path / "libwarpkit.so"
    for name, (content, said) in damaged().items():
        path.write_bytes(content)
        with pytest.raises(LibraryError, match=r"^libwarpkit\.so .*: run scripts/") as refused:
            open_file(path)
        assert re.search(said, str(refused.value)), name


def test_a_foreign_library_is_rejected(tmp_path):
    import _ctypes

    path = tmp_path / library.PATH.name
    path.write_bytes(Path(_ctypes.__file__).read_bytes())
    with pytest.raises(LibraryError, match=r"does not open \(.*warpkit_isa"):
        open_file(path)
    with pytest.raises(LibraryError, match=r"does not open|is no library"):
        open_file(tmp_path)  # a folder


def test_a_failed_build_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "HERE", tmp_path)
    (tmp_path / library.REASON).write_text("g++ does not run: No such file\nlong story\n")
    with pytest.raises(
        LibraryError, match=r"^no native library \(g\+\+ does not run: No such file\): "
    ):
        open_file(tmp_path / library.PATH.name)
    monkeypatch.setattr(library, "SOURCES", tmp_path / "native")  # a wheel has no sources
    with pytest.raises(
        LibraryError, match=r"run pip install --force-reinstall --no-deps \. in a checkout"
    ):
        open_file(tmp_path / library.PATH.name)


def test_importing_the_package_does_not_open_the_library():
    code = "import sys, warpkit; print(*[m for m in sys.modules if m.endswith('native_library')])"
    assert run(code).stdout == "\n"


COMPILED = """
import torch, warpkit as wk
warp = torch.compile(lambda *given: wk.warp_affine(*given), fullgraph=True, backend="eager")
image, matrix = torch.rand(1, 2, 5, 6), torch.eye(2, 3)
print(torch.equal(warp(image, matrix), wk.warp_affine(image, matrix)))
"""


def test_the_first_call_may_be_a_compiled_one():
    assert run(COMPILED).stdout == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_uses_the_library_that_its_parent_opened():
    assert LIBRARY is not None
    child = os.fork()
    if child == 0:
        os._exit(0 if between(LIBRARY.run, 1.0, 5.0, 0.75) == 4.0 else 1)
    assert os.waitpid(child, 0)[1] == 0


STARVED = """
import resource
import torch, warpkit as wk
image, matrix = torch.rand(1, 1, 8, 8), [[1.0, 0, 0.25], [0, 1, 0]]
expected = wk.warp_affine(image, matrix)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
held = []  # how much the process had left over depends on what it did before
try:
    while True:
        held.append(bytearray(1 << 16))
except MemoryError:
    pass
try:
    wk.warp_affine(image.double(), matrix, interpolation="lanczos4")
except MemoryError as error:
    print(error)
del held
assert torch.equal(wk.warp_affine(image, matrix), expected)
"""


@LINUX
def test_a_kernel_without_memory_raises():
    assert run(STARVED).stdout == "warpkit: no memory for a kernel to work in\n"
