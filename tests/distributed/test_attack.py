"""examples.attack_distributed: a killed run continues to the same result."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from examples.attack_distributed import checkpoints
from examples.photographs import Crops, learn
from tests.support import ROOT
from tests.support.forks import python

STEPS = 24


def start(out: Path, *options: str) -> subprocess.Popen[str]:
    """Start a run in two processes."""
    command = [*python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--no-python", *python(), "-m", "examples.attack_distributed"]
    command += ["--out", str(out), "--batch", "15"]
    command += ["--size", "8", "--every", "3", "--steps", str(STEPS), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> str:
    """The output of a run, once it has succeeded."""
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return out


def kill(process: subprocess.Popen[str], out: Path) -> None:
    """Kill torchrun and the processes that it has started."""
    listed = subprocess.run(["pgrep", "-f", str(out)], capture_output=True, text=True)
    commands = [int(pid) for pid in listed.stdout.split()]
    assert len(commands) == 3
    for pid in commands:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=180)  # until none of them holds the streams
    assert process.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("net") / "model.pt"
    torch.save(learn(Crops(100, seed=0), steps=20).state_dict(), path)
    return path


def test_a_killed_run_resumes_to_the_same_result(net: Path, tmp_path: Path):
    """The bits are the same, with the same number of processes."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        (folder / "model.pt").write_bytes(net.read_bytes())
    out = finish(start(whole))
    assert "the optimised patch" in out
    assert (whole / "patch.png").stat().st_size > 1000

    process = start(killed)
    end = time.monotonic() + 180
    while not checkpoints(killed) and time.monotonic() < end:
        time.sleep(0.01)
    kill(process, killed)
    (reached,) = checkpoints(killed)[-1:]
    assert 0 < int(reached.name.removeprefix("step-")) < STEPS
    assert not (killed / "patch.pt").exists()

    finish(start(killed))
    patch = torch.load(whole / "patch.pt", weights_only=True)
    assert patch.std() > 0.05
    assert torch.equal(torch.load(killed / "patch.pt", weights_only=True), patch)
    assert [path.name for path in checkpoints(killed)] == [f"step-{STEPS:06d}"]
