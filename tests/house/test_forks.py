"""Processes forked after torch's import behave like those that Python starts."""

from __future__ import annotations

import subprocess
import sys

from tests.support.forks import python

NAMES = "import sys; names = {name.partition('.')[0] for name in sys.modules}; "
SHOW = "print(*sorted(names - set(sys.stdlib_module_names)))"


def said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_forks_have_only_modules_that_torch_imports():
    """Each fork would also finalise other modules of the server, and some extensions print then."""
    plain = said([sys.executable, "-c", f"import torch; {NAMES}{SHOW}"]).split()
    forked = said([*python(), "-c", NAMES + SHOW]).split()
    assert set(forked) <= set(plain)
    compiler = "import sys; print(*sorted({'torch._dynamo', 'triton'} & set(sys.modules)))"
    assert said([*python(), "-c", compiler]).split() == []


def test_a_fork_prints_nothing_when_it_ends():
    done = subprocess.run([*python(), "-c", "pass"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_fork_runs_its_exit_handlers():
    code = "import atexit, sys; atexit.register(print, 'bye', file=sys.stderr); sys.exit(3)"
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "bye\n")
