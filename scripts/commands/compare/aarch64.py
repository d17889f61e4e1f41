"""Compare every task of the native library bit by bit with an emulated aarch64 processor.

    scripts/compare aarch64 [PATTERN]

Calls warpkit here with the AVX2 kernels (which have NEON's fused multiply-adds), records the
library's inputs and results, and repeats the calls with the NEON kernels under QEMU. Needs
qemu-aarch64, but neither root nor an aarch64 Python: one program runs under QEMU.
PATTERN is a regular expression that selects calls. scripts/test aarch64 tests the wheel itself.

Fisheye kernels call the C library's atan and tan, whose last bits depend on the library. The wheel
uses glibc: QEMU_LD_PREFIX names a folder with glibc for aarch64, such as the root that
scripts/test aarch64 makes. Without it the program is linked statically with musl, and these calls
differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

os.environ["WARPKIT_ISA"] = "avx2"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

import hatch_build
from scripts.commands.kernels.record import LIBRARY, Recorder, Replayer
from scripts.commands.kernels.usual import usual_calls

ROOT = Path(__file__).resolve().parents[3]


def build() -> Path:
    """Compile the kernels and replay.cpp into a program for aarch64, with glibc or musl."""
    folder = ROOT / "build" / "aarch64"
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    target = hatch_build.Target("aarch64", "linux")
    with hatch_build.with_zig():
        compiler = hatch_build.find_compiler()
        library = ["-target", "aarch64-linux-musl", "-static"]
        if "QEMU_LD_PREFIX" in os.environ:
            library = ["-target", "aarch64-linux-gnu.2.17"]
        commands = hatch_build.compile_commands(compiler, target, folder)
        for command in commands.values():
            subprocess.run(
                [*command, *library], cwd=hatch_build.sources(), env=environment, check=True
            )
        program = folder / "replay"
        subprocess.run(
            [*compiler.words, *library, "-std=c++17", "-O1", "-fno-exceptions", "-fno-rtti",
             "-Wno-unused-command-line-argument",
             "-x", "c++", str(ROOT / "scripts/commands/kernels/replay.cpp"),
             "-x", "none", *map(str, commands), "-o", str(program)],
            env=environment, check=True,
        )  # fmt: skip
    return program


def main() -> int:
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        return 0
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    there = {name: text for name, text in os.environ.items() if name != "WARPKIT_ISA"}
    emulated = Replayer(["qemu-aarch64", str(build())], there)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # integer images have no gradients, and warpkit warns
    recorder, counts, wrong = Recorder(), Counter[str](), list[str]()
    for call in recorder.recorded(usual_calls(), pattern):
        counts[call.task] += 1
        results = emulated.make(call)
        if results is None:
            wrong.append(f"{call}: the program crashed")
        elif results[0] != call.after:
            differ = np.frombuffer(results[0], np.uint8) != np.frombuffer(call.after, np.uint8)
            wrong.append(f"{call}: {differ.sum()} of {len(differ)} bytes differ")
    print(*recorder.refused, *wrong, sep="\n")
    print("calls by task:", dict(counts))
    count, missing = counts.total(), set() if pattern else LIBRARY.tasks.keys() - counts
    print(f"compare_aarch64: {count - len(wrong)} of {count} calls have the same bits")
    if missing:
        print("no call of", *sorted(missing))
    return 1 if wrong or missing or emulated.close() else 0


if __name__ == "__main__":
    sys.exit(main())
