"""The recorded calls that scripts/commands/kernels replays under sanitizers and emulators."""

from __future__ import annotations

from tests.engine.cpu.test_library import run
from tests.support import ROOT

RECORD = """
import sys
sys.path.insert(0, sys.argv[1])
from scripts.commands.kernels.record import LIBRARY, Recorder
from scripts.commands.kernels.usual import usual_calls
recorder = Recorder()
shared = {call.task for call in recorder.recorded(usual_calls()) if call.units > 1}
refused = [why for why in recorder.refused if "arithmetic=" not in why]
print(sorted(LIBRARY.tasks.keys() - shared), refused)
"""


def test_recorded_calls_run_every_task_with_several_units():
    """Threads could not race in a single unit; calls that have no fixed numbers are left out."""
    assert run(RECORD, str(ROOT)).stdout.strip() == "[] []"
