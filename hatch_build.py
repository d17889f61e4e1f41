"""Builds the native library: for pip's wheels and editable installs, or by hand.

pip runs the hook at the end of this file in an environment with the pinned ziglang, a clang for
every target. So all machines use the same compiler, and users need no compiler. By hand,

    python hatch_build.py [--one-set] [--if-older]

builds the library in place, beside the package's files; with --if-older only if the existing
library has other sources. --one-set compiles a third of it: this processor's best instruction set
alone, where Linux names that of an x86-64. The README beside the sources explains WARPKIT_CXX,
WARPKIT_CXXFLAGS and WARPKIT_TARGET.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # pyright: ignore
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
PACKAGE = "warpkit/engine/cpu"


def _load(name: str) -> Any:
    """Load a module from its file: the package itself would import torch, which builds lack."""
    spec = spec_from_file_location(f"warpkit_{name}", ROOT / PACKAGE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # its dataclasses look it up there
    spec.loader.exec_module(module)
    return module


library = _load("library")


def sources() -> Path:
    """The folder of the C++ files."""
    return ROOT / PACKAGE / "native"


class BuildError(Exception):
    """The reason why no library can be built."""


# What is built.

LEVELS = {
    "x86_64": {"sse4": "x86-64-v2", "avx2": "x86-64-v3", "avx512": "x86-64-v4"},
    "aarch64": {"neon": ""},
}
"""The instruction sets of each processor, the baseline first, with the compiler's names."""

FEATURES = {  # as `instruction_sets` in processor.h asks them of the processor itself
    "avx512": {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"},
    "avx2": {"fma", "movbe", "f16c", "bmi1", "avx2", "bmi2", "abm"},
}
"""What Linux calls the features of an instruction set, the best first."""

SYSTEMS = {
    "linux": ("linux-gnu.2.17", "manylinux_2_17"),  # the oldest C library of manylinux2014
    "macos": ("macos.11.0", "macosx_11_0"),  # the first for Apple's own processors
    "windows": ("windows-gnu", "win"),
}
"""The name of each system with its minimum version, for zig and in the name of a wheel."""


class Target(NamedTuple):
    """A processor and a system."""

    processor: str
    system: str

    @property
    def file(self) -> str:
        """The library's name."""
        return library.FILES[self.system]

    @property
    def tag(self) -> str:
        """The platform tag of a wheel that zig built."""
        processor = self.processor
        if self.system == "windows":
            processor = {"x86_64": "amd64", "aarch64": "arm64"}[processor]
        elif self.system == "macos":
            processor = processor.replace("aarch64", "arm64")
        return f"{SYSTEMS[self.system][1]}_{processor}"


def this_machine() -> Target:
    """The target of this Python."""
    processor = platform.machine().lower()
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(processor, processor)
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    return Target(processor, system)


def wanted_target() -> Target:
    """The target in WARPKIT_TARGET, such as aarch64-linux, or this machine."""
    processor, _, system = os.environ.get("WARPKIT_TARGET", "").partition("-")
    return Target(processor, system) if processor else this_machine()


# What builds it.


class Compiler(NamedTuple):
    """A C++ compiler: the words of its command, and its family: zig, clang or gcc."""

    words: list[str]
    family: str

    @property
    def linker(self) -> list[str]:
        """The C driver of the same family: it links no C++ library; nothing needs one."""
        *first, last = self.words
        for cxx, c in (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc")):
            if cxx in last:
                return [*first, last.replace(cxx, c)]
        return self.words


def wants_none() -> bool:
    """Whether WARPKIT_CXX asks for no library."""
    return os.environ.get("WARPKIT_CXX") == "none"


def find_compiler() -> Compiler:
    """The compiler in WARPKIT_CXX, or this Python's ziglang."""
    words = shlex.split(os.environ.get("WARPKIT_CXX", ""))
    if wants_none():
        raise BuildError("WARPKIT_CXX=none asks for no library")
    if not words:
        zig = find_zig()
        if zig is None:
            raise BuildError("there is no ziglang here, and WARPKIT_CXX names no other compiler")
        return Compiler([zig, "c++"], "zig")
    if words[-1] == "c++" and len(words) > 1:  # zig c++, python -m ziglang c++
        return Compiler(words, "zig")
    said = run([*words, "--version"])
    return Compiler(words, "clang" if "clang" in said else "gcc")


def find_zig() -> str | None:
    """The executable of the package ziglang."""
    spec = find_spec("ziglang")
    folder = spec.submodule_search_locations if spec else None
    return shutil.which("zig", path=os.pathsep.join(folder)) if folder else None


def pinned_zig() -> str:
    """The requirement of ziglang in pyproject.toml, in pip's form."""
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r'"(ziglang==[\w.]+)', text)
    assert found
    return found[1]


@contextmanager
def with_zig() -> Iterator[None]:
    """Install ziglang temporarily if it is needed and missing: 6 s, one download of 100 MB."""
    if os.environ.get("WARPKIT_CXX") or find_zig():
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        run([*pip, "--no-compile", "--target", folder, pinned_zig()])
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)


# How.

FLAGS = [
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",  # no fused multiply-adds but explicit ones: the same bits everywhere
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wextra",
]

FAMILY_FLAGS = {
    # zig enables UBSan and debug information by default: a fifth of the compile time.
    # With __SCE__ immintrin.h leaves out what the instruction set does not have: 0.1 s per file
    # instead of 0.5.
    "zig": ["-Wno-psabi", "-fno-sanitize=all", "-g0", "-D__SCE__"],
    "clang": ["-Wno-psabi"],
    "gcc": ["-fno-trapping-math", "-Wno-psabi"],  # otherwise gcc does not merge comparisons
}

LONGEST = ("opencv", "resize", "backward", "warp")
"""The slowest files, compiled first, so that no core waits for one of them at the end."""

UNDATED = ("-Xclang", "-fno-pch-timestamp")
"""A precompiled header stays valid if a checkout writes the same files again."""


def flags_for(compiler: Compiler, target: Target, isa: str) -> list[str]:
    """The compiler's flags for an instruction set."""
    level = LEVELS[target.processor][isa]
    if compiler.family == "zig":
        triple = f"{target.processor}-{SYSTEMS[target.system][0]}"
        if target.system == "macos" and target.processor == "aarch64":
            level = "apple_m1"
        return ["-target", triple, *([f"-mcpu={level.replace('-', '_')}"] if level else [])]
    wide = ["-mprefer-vector-width=512"] if isa == "avx512" else []  # both prefer 256 bits
    return [*([f"-march={level}"] if level else []), *wide]


def words_for(compiler: Compiler, target: Target, isa: str) -> list[str]:
    """The beginning of every command that compiles for an instruction set."""
    words = [*compiler.words, *FLAGS, *FAMILY_FLAGS[compiler.family], *extra_flags()]
    if target.system == "windows":
        words.remove("-fPIC")  # the default on Windows
    return [*words, *flags_for(compiler, target, isa)]


def best_set() -> str | None:
    """The best instruction set of this processor, if Linux names its features."""
    try:
        told = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    flags = set(told[1].split()) if told else set()
    return next((isa for isa, features in FEATURES.items() if features <= flags), None)


def compile_commands(
    compiler: Compiler,
    target: Target,
    to: Path,
    headers: dict[str, Path] | None = None,
    alone: str | None = None,
) -> dict[Path, list[str]]:
    """The command of each object: library.cpp for the baseline, all other files for every set.

    headers: the precompiled vec.h of each set, if there is one; alone: the only set, if not all.
    """
    baseline, *_ = sets = list(LEVELS[target.processor])
    digest = library.source_digest(sources())
    source_text = [f'-DWARPKIT_SOURCE="{digest}"']
    if alone:
        sets = [alone]
        source_text = [f'-DWARPKIT_SOURCE="{digest} {alone}"', f"-DWARPKIT_ONE_SET={alone}"]
    commands = {}
    files = sorted(sources().rglob("*.cpp"), key=lambda file: (file.stem not in LONGEST, file))
    for source in files:
        once, name = source.name == "library.cpp", source.relative_to(sources()).as_posix()
        for isa in [baseline] if once else sets:
            defined = source_text if once else [f"-DWARPKIT_ISA={isa}"]
            out = to / (f"{source.stem}.o" if once else f"{source.stem}-{isa}.o")
            # relative names: the library must not contain folders of this machine
            what = [*defined, "-I.", "-c", name, "-o", str(out)]
            if headers and not once:
                what = [*UNDATED, "-include-pch", str(headers[isa]), *what]
            commands[out] = [*words_for(compiler, target, isa), *what]
    return commands


def precompile_commands(compiler: Compiler, target: Target, to: Path) -> dict[str, list[str]]:
    """The command that precompiles vec.h for each set, the file last; none for gcc.

    Intrinsics take most of the compile time of small files. The file's name depends on compiler,
    tree, contents and flags: several trees may share a cache, whose objects refer to the header by
    its name, and the header refers to the compiler's own by theirs: those of an isolated build are
    gone after it. The header is named with its folder, or zig would take another tree's.
    """
    if compiler.family == "gcc":
        return {}
    header, commands = sources() / "shared" / "vec.h", {}
    for isa in LEVELS[target.processor]:
        words = words_for(compiler, target, isa)
        what = [f"-DWARPKIT_ISA={isa}", *UNDATED, "-I.", "-x", "c++-header", str(header), "-o"]
        told = [str(header), header.read_text(), *words]
        name = f"vec-{isa}-{hashlib.sha256(repr(told).encode()).hexdigest()[:16]}.pch"
        commands[isa] = [*words, *what, str(to / name)]
    return commands


def link_command(compiler: Compiler, target: Target, objects: list[Path], to: Path) -> list[str]:
    baseline = next(iter(LEVELS[target.processor]))
    which = flags_for(compiler, target, baseline)
    more = extra_flags()
    if not more:  # keep debug information in builds with the user's own flags
        more = ["-s"]
    if target.system == "linux":
        more = [*more, "-lm", "-lpthread"]  # from glibc 2.34 on libpthread is part of libc
        if not any("-fsanitize" in flag for flag in more):
            more.append("-Wl,-z,defs")  # report missing symbols now, not at load time
    elif target.system == "macos":  # otherwise the file contains the folder of the link
        more = [*more, f"-Wl,-install_name,@rpath/{target.file}"]
    return [*compiler.linker, "-shared", *which, *map(str, objects), *more, "-o", str(to)]


def extra_flags() -> list[str]:
    """The flags in WARPKIT_CXXFLAGS, for every object and for the link."""
    return shlex.split(os.environ.get("WARPKIT_CXXFLAGS", ""))


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output; raises `BuildError` with the output if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=sources(),
            env={**os.environ, **(environment or {})},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise BuildError(f"{command[0]} does not run: {error}") from error
    if done.returncode:
        raise BuildError(f"{command[0]} failed\n{shlex.join(command)}\n{done.stdout}")
    if done.stdout and "--version" not in command:
        print(done.stdout, file=sys.stderr)  # warnings
    return done.stdout


def build(folder: Path, target: Target, alone: str | None = None) -> Path:
    """Build the library of a target in a folder, or only one set of it; raises `BuildError`."""
    if target.processor not in LEVELS or target.system not in SYSTEMS:
        raise BuildError(f"there are no kernels for {target.processor}-{target.system}")
    compiler = find_compiler()
    if compiler.family != "zig" and target != this_machine():
        raise BuildError(f"WARPKIT_TARGET needs zig, not {shlex.join(compiler.words)}")
    with tempfile.TemporaryDirectory() as temporary:
        at = Path(temporary)
        environment = caches(compiler, at / "cache")
        precompile = precompile_commands(compiler, target, Path(environment["ZIG_LOCAL_CACHE_DIR"]))
        if alone and precompile:
            precompile = {alone: precompile[alone]}
        headers = {isa: Path(command[-1]) for isa, command in precompile.items()}
        commands = compile_commands(compiler, target, at, headers, alone)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for these in (precompile, commands):
                list(pool.map(lambda command: run(command, environment), these.values()))
        built = at / target.file
        run(link_command(compiler, target, list(commands), built), environment)
        folder.mkdir(parents=True, exist_ok=True)
        place(built, folder / target.file)
    return folder / target.file


def caches(compiler: Compiler, folder: Path) -> dict[str, str]:
    """Make zig's caches, in ZIG_GLOBAL_CACHE_DIR or `folder`; return the variables that name them.

    zig would leave them in the home and in the tree. Precompiled headers refer to files of the
    compiler, but zig does not look whether these have moved: "malformed AST file". So compilers of
    different folders, such as one that pip installed for one build, share only the global cache.
    """
    shared = Path(os.environ.get("ZIG_GLOBAL_CACHE_DIR", folder))
    local = shared / hashlib.sha256(repr(compiler.words).encode()).hexdigest()[:16]
    local.mkdir(parents=True, exist_ok=True)
    return {"ZIG_GLOBAL_CACHE_DIR": str(shared), "ZIG_LOCAL_CACHE_DIR": str(local)}


def place(file: Path, at: Path) -> None:
    """Copy a file atomically: processes that have opened the old one keep it."""
    descriptor, name = tempfile.mkstemp(dir=at.parent, prefix=f"{at.name}.")
    os.close(descriptor)
    shutil.copy(file, name)
    os.replace(name, at)


# By whom.


class NativeBuild(BuildHookInterface):  # pyright: ignore
    """hatchling's hook: builds the library into wheels, or in the tree of an editable install.

    If the build fails the package is pure Python, and a file keeps the reason for error messages.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            if not (wants_none() and is_current()):  # scripts/environment builds it
                build_here(self.app.display_warning)
            return
        self.folder = tempfile.TemporaryDirectory()
        at = Path(self.folder.name)
        try:
            target = wanted_target()
            built = build(at, target)
        except BuildError as error:
            self.app.display_warning(f"warpkit: no native library: {error}")
            built = at / library.REASON
            built.write_text(f"{error}\n")
        else:
            zig = find_compiler().family == "zig"
            ours = re.sub(r"[-.]", "_", sysconfig.get_platform())
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{target.tag if zig else ours}"
        build_data["force_include"][str(built)] = f"{PACKAGE}/{built.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.folder.cleanup()


def is_current(alone: str | None = None) -> bool:
    """Whether the tree's library matches its sources, with all sets, or at least with one."""
    file = ROOT / PACKAGE / library.PATH.name
    if not file.exists():
        return False
    digest, data = library.source_digest(sources()).encode(), file.read_bytes()
    all_sets = digest in data and digest + b" " not in data
    return all_sets or (alone is not None and b"%b %b" % (digest, alone.encode()) in data)


def build_here(warn: Any, alone: str | None = None) -> bool:
    """Build this machine's library in the tree; returns whether it succeeded."""
    folder = ROOT / PACKAGE
    reason = folder / library.REASON
    try:
        build(folder, this_machine(), alone)
    except BuildError as error:
        warn(f"warpkit: no native library: {error}")
        reason.write_text(f"{error}\n")
        return False
    reason.unlink(missing_ok=True)
    return True


def main(arguments: list[str]) -> int:
    if not {*arguments} <= {"--if-older", "--one-set"}:
        print(__doc__, file=sys.stderr)
        return 0 if arguments == ["--help"] else 2
    alone = best_set() if "--one-set" in arguments else None
    if "--if-older" in arguments and (wants_none() or is_current(alone)):
        return 0
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(ROOT / "build" / "zig"))
    with with_zig():
        built = build_here(lambda text: print(text, file=sys.stderr), alone)
    return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
