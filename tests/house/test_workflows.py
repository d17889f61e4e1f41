"""The workflows run scripts that exist, and the versions of ruff agree."""

from __future__ import annotations

import os
import re

import pytest
import yaml

from tests.support import ROOT

FILES = sorted((ROOT / ".github").rglob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_workflows_are_readable(path):
    assert yaml.safe_load(path.read_text())["name"]


def test_workflows_run_scripts_that_exist():
    commands = [
        step["run"]
        for path in FILES
        for job in yaml.safe_load(path.read_text()).get("jobs", {}).values()
        for step in job["steps"]
        if "run" in step
    ]
    assert set(commands) == {".ci/run", "scripts/build wheels", "scripts/document"}
    assert all(os.access(ROOT / command.split()[0], os.X_OK) for command in commands)


def test_pre_commit_has_the_locked_ruff():
    (hooks,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    locked = re.search(r"^ruff==([\d.]+)", (ROOT / "requirements/lock.txt").read_text(), re.M)
    assert locked is not None
    assert hooks["rev"] == f"v{locked[1]}"
