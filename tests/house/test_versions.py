"""The versions that scripts/test versions runs are those that the project supports."""

from __future__ import annotations

import re
import subprocess

import pytest

import warpkit as wk
from tests.support import ROOT

SCRIPT = ROOT / "scripts/commands/test/versions.sh"


def pins(name: str) -> dict[str, str]:
    """Package -> version."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def least() -> dict[str, str]:
    """Package -> lowest version, for all packages that warpkit and its tests import."""
    text = re.sub(r"\ndocs = \[.*?\]\n", "\n", (ROOT / "pyproject.toml").read_text(), flags=re.S)
    text = re.sub(r"\nprocessors = .*", "", text)  # no test with these sets uses transformers
    text = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    return dict(re.findall(r'"([a-z][\w-]*)>=([\d.]+)', text))


def test_the_oldest_set_has_the_lowest_supported_versions():
    oldest, promised = pins("oldest"), least()
    assert len(promised) > 15
    assert oldest.keys() == promised.keys()
    for name, version in promised.items():
        assert f"{oldest[name]}.".startswith(f"{version}."), name


def test_the_middle_set_is_above_the_oldest():
    def key(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    oldest = pins("oldest")
    for name, version in pins("middle").items():
        assert key(version) > key(oldest[name]), name


def test_the_quick_tests_exist():
    listed = re.search(r"\nquick=\((.*?)\n\)", SCRIPT.read_text(), re.S)
    assert listed
    files = re.findall(r"tests/[\w/]+\.py", listed[1])
    assert files
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_package_metadata_and_changelog_name_one_version():
    assert f'\nversion = "{wk.__version__}"\n' in (ROOT / "pyproject.toml").read_text()
    released = re.findall(r"\n## (\d\S*) - \d{4}-", (ROOT / "CHANGELOG.md").read_text())
    assert released[0] == wk.__version__


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("oldst", 2)])
def test_help_and_bad_arguments_of_test_versions(argument: str, status: int):
    done = subprocess.run([SCRIPT, argument], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "oldest" in (done.stdout if status == 0 else done.stderr)
    assert "set -euo" not in done.stdout
