"""scripts/environment installs the lock or reports that it cannot; scripts/lock renews it."""

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

LOCK = ROOT / "scripts" / "versions" / "lock.txt"
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="has no bash")

PYTHON = """#!/bin/bash
# an interpreter that notes what pip is asked for, and fails as it is told
[ "$2" = pip ] || exit 0
case "$*" in
    *--version*) exit 0 ;;
    *" list "*) cat "$ROOT/installed"; exit 0 ;;
esac
echo "$*" >> "$ROOT/asked"
printf 'WARNING: something\\n' >&2
case "$FAIL:$*" in
    interrupted:*) kill -INT "$PPID"; exit 1 ;;
    all:* | locked:*--constraint*)
        printf '  ERROR: no numpy==2.4.6 here.\\nerror: subprocess-exited-with-error\\n' >&2
        printf 'ERROR: ResolutionImpossible: for help visit\\n' >&2
        exit 1 ;;
esac
"""
SAID = (
    "scripts/versions/lock.txt: pip cannot install it here (no numpy==2.4.6 here.): "
    "taking the newest that pyproject.toml allows\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the scripts with an environment whose pip installs nothing."""
    (tmp_path / "scripts" / "versions").mkdir(parents=True)
    for name in ("environment", "lock", "versions/lock.txt", "versions/oldest.txt"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    (tmp_path / "pyproject.toml").write_text("one")
    (tmp_path / "hatch_build.py").write_text("one")
    for venv in (".venv", ".venv-oldest", ".venv-newest"):
        (tmp_path / venv / "bin").mkdir(parents=True)
        (tmp_path / venv / "bin" / "python").write_text(PYTHON)
        (tmp_path / venv / "bin" / "python").chmod(0o755)
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
    """The arguments of pip's calls since the last time."""
    path = checkout / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def marks(checkout: Path) -> list[str]:
    return sorted(path.name for path in (checkout / ".venv").glob("installed-*"))


def test_locked_packages_are_installed_once(checkout: Path):
    done = source(checkout, "cli,opencv")
    assert (done.returncode, done.stderr) == (0, "WARNING: something\n")
    lock = checkout / "scripts" / "versions" / "lock.txt"
    (line,) = asked(checkout)
    assert f"--constraint {lock}" in line
    assert line.endswith(f"--editable {checkout}[cli,opencv]")
    assert marks(checkout) == ["installed-cli,opencv"]
    assert source(checkout, "cli,opencv").stdout == "done\n"
    assert asked(checkout) == []


@pytest.mark.parametrize("edited", ["pyproject.toml", "scripts/versions/lock.txt"])
def test_edited_requirements_are_installed_again(checkout: Path, edited: str):
    source(checkout, "dev")
    source(checkout, "docs")
    assert len(asked(checkout)) == 1  # dev includes all
    with open(checkout / edited, "a") as file:
        file.write("# more\n")
    source(checkout, "docs", "all")
    assert len(asked(checkout)) == 2
    assert marks(checkout) == []  # neither is valid while pip runs
    source(checkout, "dev")
    assert len(asked(checkout)) == 1


def test_a_failed_lock_is_reported_in_one_line(checkout: Path):
    done = source(checkout, "cli", "locked")
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n")
    assert done.stderr == SAID + "WARNING: something\n"
    locked, free = asked(checkout)
    assert "--constraint" in locked
    assert "--constraint" not in free
    assert marks(checkout) == ["installed-cli"]
    source(checkout, "cli")
    assert asked(checkout) == []


def test_two_failures_show_pips_error_and_leave_no_mark(checkout: Path):
    done = source(checkout, "cli", "all")
    assert done.returncode == 1
    assert "done" not in done.stdout
    assert done.stderr.startswith(SAID)
    assert done.stderr.endswith("ResolutionImpossible: for help visit\n")
    assert len(asked(checkout)) == 2
    assert marks(checkout) == []


def test_an_interrupt_ends_the_script(checkout: Path):
    done = source(checkout, "cli", "interrupted")
    assert done.returncode == 130
    assert "done" not in done.stdout
    assert len(asked(checkout)) == 1
    assert marks(checkout) == []


def test_named_sets_are_installed_exactly_or_not_at_all(checkout: Path):
    assert source(checkout, "dev oldest", "locked").returncode == 1
    (line,) = asked(checkout)
    assert f"--constraint {checkout}/scripts/versions/oldest.txt" in line
    assert source(checkout, "dev newest").returncode == 0
    (line,) = asked(checkout)
    assert "--constraint" not in line
    assert "--upgrade" in line


def test_without_a_lock_the_version_ranges_are_installed(checkout: Path):
    (checkout / "scripts" / "versions" / "lock.txt").unlink()
    assert source(checkout, "cli").returncode == 0
    assert ["--constraint" in line for line in asked(checkout)] == [False]


@pytest.mark.parametrize("status", [0, 1])
def test_the_lock_holds_the_versions_that_the_newest_set_passed_with(checkout: Path, status: int):
    before = (checkout / "scripts" / "versions" / "lock.txt").read_text()
    (checkout / "scripts" / "test_versions").write_text(
        f'#!/bin/bash\n[ "$*" = newest ]; exit {status}\n'
    )
    (checkout / "scripts" / "test_versions").chmod(0o755)
    (checkout / "installed").write_text(
        "torch==2.13.0+cpu\npip==23.0\nml_dtypes==0.6.0\nnvidia-nccl-cu13==2.3\n"
        "Jinja2==3.1.6\ncuda-toolkit==13.2\ncuda_bindings==13.5\nnumpy==2.4.6\n"
    )
    done = subprocess.run(
        [checkout / "scripts" / "lock"],
        env={**os.environ, "ROOT": str(checkout), "FAIL": ""},
        capture_output=True,
        text=True,
    )
    text = (checkout / "scripts" / "versions" / "lock.txt").read_text()
    assert done.returncode == status, done.stderr
    if status:
        assert text == before
        return
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["jinja2==3.1.6", "ml-dtypes==0.6.0", "numpy==2.4.6", "torch==2.13.0"]


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("now", 2)])
def test_help_and_bad_arguments_of_lock(argument: str, status: int):
    done = subprocess.run([ROOT / "scripts" / "lock", argument], capture_output=True, text=True)
    assert done.returncode == status
    assert ("test_versions newest" if status == 0 else "got 'now'") in done.stdout + done.stderr


def test_the_lock_holds_only_versions():
    head, *lines = LOCK.read_text().splitlines()
    assert re.fullmatch(r"# Versions that .* Python 3\.\d+ on \w+ \w+: scripts/lock .*", head)
    lines = [line for line in lines if not line.startswith("#")]
    assert lines == sorted(set(lines))
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?", line)
        assert not re.match("pip==|nvidia-|cuda-", line)


def test_the_lock_is_within_the_version_ranges():
    """It also has every package that pyproject.toml names for the demonstration and the tests."""
    versions = dict(line.split("==") for line in LOCK.read_text().splitlines() if "==" in line)
    text = (ROOT / "pyproject.toml").read_text()
    text = text[text.index("\ndependencies = [") : text.index("[project.scripts]")]
    # not in dev; only scripts/test_ray and scripts/identify_shipped install them
    text = re.sub(r"^(ray|processors) = .*$", "", text, flags=re.M)
    named = [Requirement(each) for each in re.findall(r'"([a-z][^"]*[=<>][^"]*)"', text)]
    assert len(named) > 20
    for each in named:
        assert each.specifier.contains(versions[each.name]), each
