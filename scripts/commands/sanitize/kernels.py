"""Run the native library's kernels under sanitizers, which check every read, write and lock.

    scripts/sanitize kernels [address] [thread] [--calls PATTERN] [--threads N] [--minutes M]
    scripts/sanitize kernels address|thread --tests [ARGUMENTS OF PYTEST]
    scripts/sanitize kernels address --tests tests/fuzz    # nightly: 400 calls of each function

Compiles the kernels of every instruction set with g++ (zig has no AddressSanitizer) into a program
without Python, which replays thousands of recorded calls of every task, with ordinary and with
hostile numbers: scripts/commands/kernels. `address` also checks for undefined behaviour and for
numbers converted to a type that cannot hold them. `thread` also makes each call with several
threads, as a team and unit by unit; the bits must equal those of one thread. The default is both.
Kernels keep no memory here, so that none is shared by accident and every read beyond its end is
seen. PATTERN is a regular expression that selects calls. Hostile calls run for M minutes (default:
10) and take each kind in turn, so that a short run has seen all kinds; the last line counts them.
Compiling takes 3.5 CPU minutes for `address` and 1.2 for `thread`, once per version of the sources.

With --tests the library itself is compiled with the sanitizer, in a copy of the tree (the package
only loads a library beside its files), and pytest runs there. TSan does not see the locks of
torch's OpenMP. Without files it runs the kernels' own tests.

WARPKIT_CXX names another g++, WARPKIT_CXXFLAGS adds flags. The exit status is 1 after any report.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
import hatch_build

ROOT = Path(__file__).resolve().parents[3]
T = TypeVar("T")
CXX = os.environ.setdefault("WARPKIT_CXX", "g++")
FLAGS = {
    "address": "-fsanitize=address,undefined,float-cast-overflow",
    "thread": "-fsanitize=thread",
}
COMMON = "-fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1 -Wno-maybe-uninitialized"
RUNTIME = {"address": ("asan", "ubsan"), "thread": ("tsan",)}
FATAL = {
    # Python and torch keep memory on purpose; that is not our leak
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "exitcode=99:halt_on_error=1",
}
REPORTS = 5
"""The number of reports after which it stops."""
PLACED = ["setarch", "-R"]
"""TSan needs its shadow at fixed addresses. clang 14's crashes at its start under Linux 6.18."""


def set_flags(name: str) -> None:
    os.environ["WARPKIT_CXXFLAGS"] = " ".join(
        (FLAGS[name], COMMON, os.environ.get("WARPKIT_CXXFLAGS", ""))
    )


def build(name: str) -> Path:
    """Compile the kernels and replay.cpp with a sanitizer, unless the sources are unchanged."""
    set_flags(name)
    folder, sources = ROOT / "build" / f"sanitize-{name}", hatch_build.sources()
    folder.mkdir(parents=True, exist_ok=True)
    compiler = hatch_build.find_compiler()
    commands = hatch_build.compile_commands(compiler, hatch_build.this_machine(), folder)
    for object_, command in commands.items():
        if object_.name == "library.o":
            command.append("-DWARPKIT_SLOTS=0")
    mark, wanted = folder / "built", hashlib.sha256(str(commands).encode()).hexdigest()
    if not mark.exists() or mark.read_text() != wanted:  # the commands contain the sources' digest
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda c: subprocess.run(c, cwd=sources, check=True), commands.values()))
        mark.write_text(wanted)
    code, program = ROOT / "scripts/commands/kernels/replay.cpp", folder / "replay"
    replay = [*hatch_build.FLAGS, *shlex.split(os.environ["WARPKIT_CXXFLAGS"]), str(code)]
    objects = [*map(str, commands), "-lm", "-lpthread", "-o", str(program)]
    subprocess.run([*compiler.linker, *replay, *objects], check=True)
    return program


def in_turn(table: Mapping[str, T]) -> dict[str, T]:
    """Reorder a table: one call of each kind, then the next of each.

    The first two words of a name are its kind.
    """
    kinds = defaultdict[str, list[str]](list)
    for name in table:
        kinds[" ".join(name.split()[:2])].append(name)
    for names in kinds.values():
        random.Random(0).shuffle(names)
    order = chain.from_iterable(zip_longest(*kinds.values()))
    return {name: table[name] for name in order if name is not None}


def bounded(calls: Iterable[T], seconds: float) -> Iterator[T]:
    """The calls that start within `seconds` of the first."""
    end = time.perf_counter() + seconds
    for call in calls:
        yield call
        if time.perf_counter() > end:
            return


def replay(name: str, threads: int, pattern: str, minutes: float) -> bool:
    """Replay the recorded calls under a sanitizer; True if it reports nothing."""
    begun = time.perf_counter()
    program = build(name)
    print(f"{name}: compiled in {time.perf_counter() - begun:.0f} s", flush=True)
    import torch

    from scripts.commands.kernels.hostile import hostile_calls
    from scripts.commands.kernels.record import LIBRARY, Recorder, Replayer
    from scripts.commands.kernels.usual import usual_calls

    command, ways = [*PLACED, str(program)], 1
    if name == "thread":
        command, ways = [*command, str(threads)], 3
    sets = list(hatch_build.LEVELS[hatch_build.this_machine().processor])
    programs = {
        isa: Replayer(command, os.environ | FATAL | {"WARPKIT_ISA": isa})
        for isa in sets[: sets.index(LIBRARY.isa) + 1]
    }
    torch.manual_seed(0)
    begun, counts, shared, wrong = time.perf_counter(), Counter[str](), Counter[str](), 0
    recorder = Recorder()
    warnings.simplefilter("ignore")  # about numbers that numpy converts, and about gradients
    hostile = in_turn(hostile_calls())
    some = bounded(recorder.recorded(hostile, pattern), 60 * minutes)
    for call in chain(recorder.recorded(usual_calls(), pattern), some):
        counts[call.task] += 1
        shared[call.task] += call.units > 1
        for isa, program in programs.items():
            results = program.make(call, ways)
            if results is None:
                print(f"{name}: a report from {isa} of {call}", flush=True)
            elif len(set(results)) > 1:
                print(f"{name}: {isa} gave different bits for {call} with threads", flush=True)
            else:
                continue
            wrong += 1
            if wrong == REPORTS:
                return False
    ended = [program.close() for program in programs.values()]
    print("calls by task:", dict(counts))
    missing = set() if pattern else LIBRARY.tasks.keys() - counts
    alone = set() if pattern or name == "address" else {t for t in counts if not shared[t]}
    for problem, tasks in (("no call of", missing), ("no call of several units of", alone)):
        if tasks:
            print(f"{name}: {problem} {', '.join(sorted(tasks))}")
    reached = 1 + list(hostile).index(recorder.name) if recorder.name in hostile else 0
    print(
        f"{name}: {wrong} reports in {counts.total()} calls by {', '.join(programs)}, "
        f"{time.perf_counter() - begun:.0f} s; "
        f"{reached} of {len(hostile)} hostile ones were reached"
    )
    return not (wrong or missing or alone or any(ended))


def run_tests(name: str, arguments: list[str]) -> int:
    """Run pytest with a sanitized library in a copy of the tree."""
    set_flags(name)
    python = os.environ.get("PYTHON", sys.executable)
    copy = ROOT / "build" / f"sanitize-{name}-tree"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for file in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        if file and (ROOT / file).exists():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, copy / file)
    subprocess.run([python, str(copy / "hatch_build.py"), "--if-older"], check=True)
    # Python is not compiled with the sanitizer, so preload its runtime before everything else, and
    # libstdc++ with it, or the runtime does not find the function that throws torch's exceptions
    names = [f"lib{each}.so" for each in (*RUNTIME[name], "stdc++")]
    paths = [subprocess.check_output([CXX, f"-print-file-name={n}"], text=True) for n in names]
    there = {"LD_PRELOAD": " ".join(map(str.strip, paths)), "PYTHONPATH": str(copy)}
    command = [*PLACED, "env", *(f"{k}={v}" for k, v in there.items())]
    os.environ.setdefault("FUZZ_EXAMPLES", "400")
    tests = arguments or ["tests/engine/cpu"]
    return subprocess.run(
        [*command, python, "-m", "pytest", "-p", "no:cacheprovider", *tests],
        cwd=copy, env=os.environ | FATAL,
    ).returncode  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sanitizers", nargs="*", metavar="address|thread")
    parser.add_argument("--calls", default="", metavar="PATTERN")
    parser.add_argument("--threads", type=int, default=4, metavar="N")
    parser.add_argument("--minutes", type=float, default=10.0, metavar="M")
    parser.add_argument("--tests", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    for name in arguments.sanitizers:
        if name not in FLAGS:
            parser.error(f"address or thread, got {name!r}")
    if arguments.tests is not None:
        if len(arguments.sanitizers) != 1:
            parser.error("--tests needs one of address and thread")
        return run_tests(arguments.sanitizers[0], arguments.tests)
    # one process per sanitizer, because flags and recorded functions persist in a process
    names = arguments.sanitizers or list(FLAGS)
    if len(names) == 1:
        return 0 if replay(names[0], arguments.threads, arguments.calls, arguments.minutes) else 1
    more = ["--calls", arguments.calls, "--threads", str(arguments.threads)]
    more += ["--minutes", str(arguments.minutes)]
    return max(subprocess.run([sys.executable, __file__, name, *more]).returncode for name in names)


if __name__ == "__main__":
    sys.exit(main())
