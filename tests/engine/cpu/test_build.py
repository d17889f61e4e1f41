"""The build of the native library: its commands, its errors, and the files that it leaves."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support import ROOT

ENVIRONMENT = ("WARPKIT_CXX", "WARPKIT_CXXFLAGS", "WARPKIT_TARGET")
LINUX = ("x86_64", "linux")


@pytest.fixture
def hook(monkeypatch) -> ModuleType:
    """The module hatch_build.py, which is not in a package."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(hook: ModuleType, family: str, target: tuple[str, str]) -> dict[str, list[str]]:
    """The command that makes each object file, by its name."""
    compiler = hook.Compiler(["c++"], family)
    made = hook.compile_commands(compiler, hook.Target(*target), Path("/to"))
    return {path.name: command for path, command in made.items()}


def test_every_file_is_compiled_for_each_instruction_set_and_linked_once(hook):
    sources = {path.stem for path in hook.sources().rglob("*.cpp")} - {"library"}
    assert sources
    sets = {"x86_64": {"sse4", "avx2", "avx512"}, "aarch64": {"neon"}}
    for processor, names in sets.items():
        for system in ("linux", "macos", "windows"):
            made = commands(hook, "zig", (processor, system))
            expected = {f"{source}-{name}.o" for source in sources for name in names}
            assert made.keys() == expected | {"library.o"}
            for file, command in made.items():
                isa = file.removesuffix(".o").rpartition("-")[2]
                assert (f"-DWARPKIT_ISA={isa}" in command) == (file != "library.o")
                target = command[command.index("-target") + 1]
                assert target.startswith(f"{processor}-{system}")
                assert "-fno-sanitize=all" in command
    said = [word for word in commands(hook, "zig", LINUX)["library.o"] if "WARPKIT_SOURCE" in word]
    assert said == [f'-DWARPKIT_SOURCE="{hook.library.source_digest(hook.sources())}"']


def test_one_set_is_compiled_for_this_processor_alone(hook, tree, monkeypatch, tmp_path):
    sources = {path.stem for path in hook.sources().rglob("*.cpp")} - {"library"}
    to, zig, target = Path("/to"), hook.Compiler(["c++"], "zig"), hook.Target(*LINUX)
    made = hook.compile_commands(zig, target, to, alone="avx2")
    assert made.keys() == {to / f"{source}-avx2.o" for source in sources} | {to / "library.o"}
    assert "-DWARPKIT_ONE_SET=avx2" in made[to / "library.o"]

    digest = hook.library.source_digest(tree / "native")
    library = tree / hook.this_machine().file
    monkeypatch.setattr(hook, "best_set", lambda: "avx2")
    log = tmp_path / "log"
    for text, words, builds in (
        (digest, ["--if-older", "--one-set"], False),  # all sets have this one
        (f"{digest} avx2", ["--if-older", "--one-set"], False),
        (f"{digest} sse4", ["--if-older", "--one-set"], True),
        (f"{digest} avx2", ["--if-older"], True),
    ):
        library.write_text(text)
        before = log.read_text() if log.exists() else ""
        assert hook.main(words) == 0
        after = log.read_text() if log.exists() else ""
        assert (after != before) == builds, (text, words)


def test_the_best_set_is_what_linux_names(hook, monkeypatch):
    flags = " ".join({*hook.FEATURES["avx2"], *hook.FEATURES["avx512"]})
    for text, isa in (
        (f"flags\t\t: fpu {flags} xsave\n", "avx512"),
        (f"flags\t\t: fpu {flags.replace('avx512vl', '')}\n", "avx2"),
        ("flags\t\t: fpu sse4_2\n", None),
        ("Features\t: asimd\n", None),
    ):
        monkeypatch.setattr(Path, "read_text", lambda _, text=text: text)
        assert hook.best_set() == isa


def test_the_header_of_vectors_is_precompiled_for_each_instruction_set(hook, tree):
    target = hook.Target(*LINUX)
    zig, gcc = (hook.Compiler(["c++"], family) for family in ("zig", "gcc"))
    made = hook.precompile_commands(zig, target, Path("/cache"))
    assert made.keys() == {"sse4", "avx2", "avx512"}
    assert hook.precompile_commands(gcc, target, Path("/cache")) == {}
    assert made == hook.precompile_commands(zig, target, Path("/cache"))
    other = hook.precompile_commands(zig._replace(words=["/tmp/zig"]), target, Path("/cache"))
    assert {command[-1] for command in other.values()}.isdisjoint(
        command[-1] for command in made.values()
    )  # one compiler's header names files of its own, which an isolated build removes
    (tree / "native" / "shared" / "vec.h").write_text("another")
    changed = hook.precompile_commands(zig, target, Path("/cache"))
    for isa in made:  # cached objects refer to it by name
        assert made[isa][-1] != changed[isa][-1]


def test_compilers_of_different_folders_share_only_the_global_cache(hook, monkeypatch, tmp_path):
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path))
    first, other = (
        hook.caches(hook.Compiler([folder + "/zig", "c++"], "zig"), Path("/nowhere"))
        for folder in ("/one", "/other")
    )
    assert first["ZIG_GLOBAL_CACHE_DIR"] == other["ZIG_GLOBAL_CACHE_DIR"] == str(tmp_path)
    local, another = (Path(names["ZIG_LOCAL_CACHE_DIR"]) for names in (first, other))
    assert local != another
    assert local.is_dir()
    assert another.is_dir()


def test_each_compiler_gets_the_same_instruction_set_levels(hook):
    levels = {"sse4": "v2", "avx2": "v3", "avx512": "v4"}
    for family, before, joint in (
        ("zig", "-mcpu=x86", "_64_"),
        ("gcc", "-march=x86", "-64-"),
        ("clang", "-march=x86", "-64-"),
    ):
        made = commands(hook, family, LINUX)
        for isa, level in levels.items():
            assert f"{before}{joint}{level}" in made[f"warp-{isa}.o"]
            assert "-ffp-contract=off" in made[f"warp-{isa}.o"]
        assert f"{before}{joint}v2" in made["library.o"]
        assert ("-fno-trapping-math" in made["library.o"]) == (family == "gcc")


@pytest.mark.parametrize(
    ("cxx", "c"),
    [
        ("g++", "gcc"),
        ("clang++-18", "clang-18"),
        ("/opt/c++", "/opt/cc"),
        ("ccache g++", "ccache gcc"),
    ],
)
def test_the_c_driver_links(hook, cxx, c):
    compiler = hook.Compiler(cxx.split(), "gcc")
    command = hook.link_command(compiler, hook.Target(*LINUX), [Path("a.o")], Path("b.so"))
    assert command[: len(c.split())] == c.split()
    assert {"-shared", "-s", "-Wl,-z,defs"} <= set(command)


def test_no_library_contains_the_path_of_its_build_folder(hook):
    """On macOS the linker would write it."""
    compiler = hook.Compiler(["zig", "c++"], "zig")
    for system in hook.SYSTEMS:
        to = Path("/somewhere") / hook.Target("aarch64", system).file
        command = hook.link_command(compiler, hook.Target("aarch64", system), [Path("a.o")], to)
        named = "-Wl,-install_name,@rpath/libwarpkit.dylib" in command
        assert named == (system == "macos")


def test_wheel_tags_of_each_platform(hook):
    tags = {hook.Target(p, s).tag for p in hook.LEVELS for s in hook.SYSTEMS}
    assert tags == {
        "manylinux_2_17_x86_64",
        "manylinux_2_17_aarch64",
        "macosx_11_0_x86_64",
        "macosx_11_0_arm64",
        "win_amd64",
        "win_arm64",
    }


def test_the_environment_selects_the_target_of_a_wheel(hook, monkeypatch):
    assert hook.wanted_target() == hook.this_machine()
    monkeypatch.setenv("WARPKIT_TARGET", "aarch64-macos")
    assert hook.wanted_target() == ("aarch64", "macos")
    for wrong in ("vax-linux", "x86_64", "aarch64-beos"):
        monkeypatch.setenv("WARPKIT_TARGET", wrong)
        with pytest.raises(hook.BuildError, match=f"no kernels for {wrong}"):
            hook.build(Path("/nowhere"), hook.wanted_target())


def test_pyproject_and_the_hook_pin_one_compiler_version(hook):
    text = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r'"(ziglang[^;"]*)', text) == [hook.pinned_zig()] * 2


COMPILER = """
echo "$@" >> {log}
case " $* " in *" wrong "*) echo "there is no such flag" >&2; exit 1 ;; esac
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then printf made > "$2"; fi
    shift
done
"""
"""Of sh, which starts in 1 ms where Python takes 20: a build calls it 180 times."""


@pytest.fixture
def tree(hook, monkeypatch, tmp_path) -> Path:
    """A copy of the sources in a checkout, a compiler that logs its arguments, and the log."""
    folder = tmp_path / hook.PACKAGE
    shutil.copytree(hook.sources(), folder / "native")
    monkeypatch.setattr(hook, "ROOT", tmp_path)
    script = tmp_path / "compiler.sh"
    script.write_text(COMPILER.format(log=str(tmp_path / "log")))
    monkeypatch.setenv("WARPKIT_CXX", f"sh {script} c++")
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path / "cache"))  # otherwise `main` sets it
    return folder


class App:
    """A stand-in for hatchling's app, which shows warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def hatch(hook: ModuleType, version: str, data: dict[str, Any]) -> Any:
    """The hook, run as hatchling does."""
    run = hook.NativeBuild.__new__(hook.NativeBuild)
    run.__dict__["app" if hook.BuildHookInterface is object else "_BuildHookInterface__app"] = App()
    run.initialize(version, data)
    return run


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"native"}


def test_a_wheel_has_the_library_and_leaves_no_file_behind(hook, tree, monkeypatch, tmp_path):
    monkeypatch.setenv("WARPKIT_TARGET", "aarch64-linux")
    data: dict[str, Any] = {"force_include": {}}
    run = hatch(hook, "standard", data)
    assert data["tag"] == "py3-none-manylinux_2_17_aarch64"
    assert not data["pure_python"]
    ((built, inside),) = data["force_include"].items()
    assert inside == f"{hook.PACKAGE}/libwarpkit.so"
    assert Path(built).read_bytes() == b"made"
    run.finalize("standard", data, "")
    assert not Path(built).exists()
    assert names(tree) == set()
    log = (tmp_path / "log").read_text().splitlines()
    files = len(list(hook.sources().rglob("*.cpp")))
    assert len(log) == files + 2  # vec.h before the objects, the link after them
    header = log[0].split()[-1]
    assert log[0].split()[-4:-1] == ["c++-header", str(tree / "native" / "shared" / "vec.h"), "-o"]
    with_it = [line for line in log if f"-include-pch {header}" in line]
    assert len(with_it) == files - 1  # library.cpp does not include it
    assert log[-1].startswith("cc -shared -target aarch64-linux-gnu.2.17")


def test_an_editable_install_puts_the_library_beside_the_package(hook, tree):
    data: dict[str, Any] = {"force_include": {}}
    (tree / "libwarpkit.txt").write_text("an earlier reason")
    hatch(hook, "editable", data).finalize("editable", data, "")
    assert data == {"force_include": {}}
    assert names(tree) == {hook.this_machine().file}


def test_an_editable_install_without_a_compiler_keeps_an_up_to_date_library(
    hook, tree, monkeypatch
):
    library = tree / hook.this_machine().file
    library.write_text(hook.library.source_digest(tree / "native"))
    monkeypatch.setenv("WARPKIT_CXX", "none")
    assert hatch(hook, "editable", {}).app.warnings == []
    assert names(tree) == {library.name}
    library.write_text("older")
    assert len(hatch(hook, "editable", {}).app.warnings) == 1
    assert names(tree) == {library.name, "libwarpkit.txt"}


@pytest.mark.parametrize(
    ("cxx", "flags", "said"),
    [
        ("none", "", "WARPKIT_CXX=none"),
        ("/nowhere/g++", "", "/nowhere/g++ does not run"),
        (None, "wrong", "there is no such flag"),
    ],
)
def test_without_a_compiler_the_wheel_is_pure_python(hook, tree, monkeypatch, cxx, flags, said):
    if cxx:
        monkeypatch.setenv("WARPKIT_CXX", cxx)
    monkeypatch.setenv("WARPKIT_CXXFLAGS", flags)
    data: dict[str, Any] = {"force_include": {}}
    run = hatch(hook, "standard", data)
    ((reason, inside),) = data["force_include"].items()
    assert data.keys() == {"force_include"}
    assert inside == f"{hook.PACKAGE}/libwarpkit.txt"
    assert said in Path(reason).read_text()
    (warning,) = run.app.warnings
    assert said in warning
    run.finalize("standard", data, "")

    run = hatch(hook, "editable", {})
    assert names(tree) == {"libwarpkit.txt"}
    assert said in (tree / "libwarpkit.txt").read_text()
    assert len(run.app.warnings) == 1


def test_the_library_is_rebuilt_only_if_its_sources_changed(hook, tree, monkeypatch, tmp_path):
    log = tmp_path / "log"
    assert hook.main(["--if-older"]) == 0
    assert names(tree) == {hook.this_machine().file}
    before = log.read_text()
    (tree / hook.this_machine().file).write_text(hook.library.source_digest(tree / "native"))
    assert hook.main(["--if-older"]) == 0
    assert log.read_text() == before
    (tree / "native" / "warp" / "new.h").write_text("")
    assert hook.main(["--if-older"]) == 0
    assert log.read_text() != before
    monkeypatch.setenv("WARPKIT_CXXFLAGS", "wrong")
    assert hook.main([]) == 1
    assert (tree / hook.this_machine().file).read_bytes() == b"made"


def test_another_compiler_builds_only_for_this_machine(hook, tree, monkeypatch):
    monkeypatch.setattr(hook, "find_compiler", lambda: hook.Compiler(["g++"], "gcc"))
    other = next(p for p in hook.LEVELS if p != hook.this_machine().processor)
    with pytest.raises(hook.BuildError, match=r"needs zig, not g\+\+"):
        hook.build(tree, hook.Target(other, "linux"))
