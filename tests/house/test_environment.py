"""scripts/environment installs the lock by uv, or what pip can; scripts/lock renews it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support import ROOT

LOCK = ROOT / "requirements" / "lock.txt"
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="has no bash")

PYTHON = """#!/bin/bash
# an interpreter that notes what pip is asked for, and fails as it is told
[ "$2" = pip ] || exit 0
[ "$3" = install ] || exit 0
echo "pip $*" >> "$ROOT/asked"
case "$FAIL:$*" in
    nouv:*uv | all:*editable*) echo "ERROR: no such thing" >&2; exit 1 ;;
    interrupted:*) kill -INT "$PPID"; exit 1 ;;
esac
"""
UV = """#!/bin/bash
# uv, which does the same; what it compiles are versions
echo "uv $*" >> "$ROOT/asked"
[ "$FAIL" != uv ] && [ "$FAIL" != all ] || { echo "error: no such hash" >&2; exit 2; }
[ "$2" != compile ] || echo "numpy==2.4.6" > "${@: -1}"
"""
SAID = "uv cannot install requirements/lock.txt here: pip takes what pyproject.toml allows\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the scripts with environments whose pip and uv install nothing."""
    (tmp_path / "scripts" / "commands").mkdir(parents=True)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name in ("environment", "lock", "commands/run.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    (tmp_path / "pyproject.toml").write_text("one")
    (tmp_path / "hatch_build.py").write_text("one")
    for venv in (".venv", ".venv-oldest", ".venv-newest"):
        (tmp_path / venv / "bin").mkdir(parents=True)
        for name, text in (("python", PYTHON), ("uv", UV)):
            (tmp_path / venv / "bin" / name).write_text(text)
            (tmp_path / venv / "bin" / name).chmod(0o755)
    return tmp_path


def source(checkout: Path, words: str, fail: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail; source scripts/environment {words}; echo done"],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "ROOT": str(checkout), "FAIL": fail},
        capture_output=True,
        text=True,
        # background jobs of a shell, and all processes that they start, ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )


def asked(checkout: Path) -> list[str]:
    """What pip and uv were asked for since the last time."""
    path = checkout / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [line for line in lines if not line.endswith("--quiet uv")]


def marks(checkout: Path) -> list[str]:
    return sorted(path.name for path in (checkout / ".venv").glob("installed-*"))


def test_locked_packages_are_installed_once_by_uv(checkout: Path):
    done = source(checkout, "cli,opencv")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = asked(checkout)
    assert line.startswith("uv pip install")
    assert f"--constraint {checkout / 'requirements' / 'lock.txt'}" in line
    assert line.endswith(f"--editable {checkout}[cli,opencv]")
    assert marks(checkout) == ["installed-cli,opencv"]
    assert source(checkout, "cli,opencv").stdout == "done\n"
    assert asked(checkout) == []


@pytest.mark.parametrize("edited", ["pyproject.toml", "requirements/lock.txt"])
def test_edited_requirements_are_installed_again(checkout: Path, edited: str):
    source(checkout, "dev")
    source(checkout, "docs")
    assert len(asked(checkout)) == 1  # dev includes all
    with open(checkout / edited, "a") as file:
        file.write("# more\n")
    source(checkout, "docs", "all")
    assert len(asked(checkout)) == 2
    assert marks(checkout) == []  # neither is valid during an installation
    source(checkout, "dev")
    assert len(asked(checkout)) == 1


@pytest.mark.parametrize(
    ("fail", "error"), [("uv", "error: no such hash\n"), ("nouv", "ERROR: no such thing\n")]
)
def test_pip_installs_what_uv_cannot(checkout: Path, fail: str, error: str):
    done = source(checkout, "cli", fail)
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n")
    assert done.stderr == error + SAID
    last = asked(checkout)[-1]
    assert last.startswith("pip")
    assert last.endswith(f"--editable {checkout}[cli]")
    assert "--constraint" not in last
    assert marks(checkout) == ["installed-cli"]
    source(checkout, "cli")
    assert asked(checkout) == []


def test_two_failures_show_both_errors_and_leave_no_mark(checkout: Path):
    done = source(checkout, "cli", "all")
    assert done.returncode == 1
    assert "done" not in done.stdout
    assert done.stderr == f"error: no such hash\n{SAID}ERROR: no such thing\n"
    assert marks(checkout) == []


def test_an_interrupt_ends_the_script(checkout: Path):
    done = source(checkout, "cli", "interrupted")
    assert done.returncode == 130
    assert "done" not in done.stdout
    assert marks(checkout) == []


def test_named_sets_are_installed_exactly_or_not_at_all(checkout: Path):
    assert source(checkout, "dev oldest", "uv").returncode == 1
    (line,) = asked(checkout)
    assert f"--constraint {checkout}/requirements/oldest.txt" in line
    assert source(checkout, "dev newest").returncode == 0
    (line,) = asked(checkout)
    assert "--constraint" not in line
    assert "--upgrade" in line


def test_without_a_lock_the_version_ranges_are_installed(checkout: Path):
    (checkout / "requirements" / "lock.txt").unlink()
    assert source(checkout, "cli").returncode == 0
    assert ["--constraint" in line for line in asked(checkout)] == [False]


def test_lock_writes_the_newest_versions_for_all_pythons(checkout: Path):
    environment = {**os.environ, "ROOT": str(checkout), "FAIL": ""}
    subprocess.run([checkout / "scripts" / "lock"], env=environment, check=True)
    assert (checkout / "requirements" / "lock.txt").read_text() == "numpy==2.4.6\n"
    line = asked(checkout)[-1]
    for word in ("--universal", "--generate-hashes", "--upgrade", "--extra dev"):
        assert word in line


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("now", 2)])
def test_help_and_bad_arguments_of_lock(argument: str, status: int):
    done = subprocess.run([ROOT / "scripts" / "lock", argument], capture_output=True, text=True)
    assert done.returncode == status
    assert ("run scripts/test" if status == 0 else "got 'now'") in done.stdout + done.stderr


@pytest.mark.parametrize("script", ["build", "compare", "digest", "identify", "record", "sanitize"])
def test_scripts_list_their_commands(script: str):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "scripts" / script, *words], capture_output=True, text=True)

    folder = ROOT / "scripts" / "commands" / script
    names = sorted(path.stem for path in folder.iterdir() if path.suffix in (".py", ".sh"))
    for done, status in ((run("--help"), 0), (run(), 2)):
        assert done.returncode == status
        listed = re.findall(rf"^ +scripts/{script} (\w+)", done.stdout + done.stderr, re.M)
        assert sorted(listed) == names
    wrong = run("nothing")
    assert wrong.returncode == 2
    assert wrong.stderr == f"{script}: the commands are {', '.join(names)}, got 'nothing'\n"


def test_every_command_of_the_tests_explains_itself():
    def said(*words: str) -> str:
        command = [ROOT / "scripts" / "test", *words, "--help"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    names = sorted(path.stem for path in (ROOT / "scripts/commands/test").glob("*.sh"))
    assert sorted(re.findall(r"^ +scripts/test (\w+)", said(), re.M)) == names
    for name in names:
        assert f"scripts/test {name}" in said(name)


def test_the_lock_holds_only_versions_and_hashes():
    head, name, *lines = LOCK.read_text().splitlines()
    assert (head[0], name) == ("#", "#    scripts/lock")
    version = re.compile(r"[a-z0-9-]+==\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?( ; .*)? \\")
    for line in lines:
        assert version.fullmatch(line) or re.fullmatch(
            r"    --hash=sha256:[0-9a-f]{64}( \\)?", line
        )


def test_the_lock_is_within_the_version_ranges():
    """It also has every package that pyproject.toml names for the demonstration and the tests."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK.read_text(), re.M):
        versions.setdefault(name, []).append(version)
    text = (ROOT / "pyproject.toml").read_text()
    text = text[text.index("\ndependencies = [") : text.index("[project.scripts]")]
    # not in dev; only scripts/test ray and scripts/identify shipped install them
    text = re.sub(r"^(ray|processors) = .*$", "", text, flags=re.M)
    named = [Requirement(each) for each in re.findall(r'"([a-z][^"]*[=<>][^"]*)"', text)]
    assert len(named) > 20
    for each in named:
        for version in versions[each.name]:
            assert each.specifier.contains(version), each
