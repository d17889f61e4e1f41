"""`warpkit bench`, and that the scripts of benchmarks/ still load."""

from __future__ import annotations

import csv
import importlib
from functools import partial
from pathlib import Path

import pytest
import torch

import benchmarks
from warpkit.cli.app import main
from warpkit.cli.bench import noise, run
from warpkit.cli.bench import work as bench

SCRIPTS = sorted(path.stem for path in Path(benchmarks.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_loads(name):
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in ("benchmarks", "warpkit"):
            raise
        pytest.skip(f"compares with {error.name}, which is not installed")


def test_the_command_measures_and_writes(tmp_path, capsys):
    threads, file = torch.get_num_threads(), tmp_path / "rows.csv"
    try:
        words = ["bench", "--quick", "--only", "32x32", "--threads", "1", "--out", str(file)]
        assert main([*words, "--loud"]) == 0
    finally:
        torch.set_num_threads(threads)
    shown = capsys.readouterr().out
    assert "1x3x32x32" in shown
    assert "grid_sample" in shown
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    ways = {(row["does"], row["way"]) for row in rows}
    assert {("forward", "warpkit"), ("forward + gradients", "grid_sample")} <= ways
    for row in rows:
        assert float(row["ms"]) > 0
        assert row["turns"] == "5"
        assert row["threads"] == "1"
        assert row["noise"] in ("loud", "quiet")


@pytest.mark.parametrize("load", [0.0, 0.5])
def test_a_run_on_a_busy_machine_gives_no_result(load, tmp_path, monkeypatch, capsys):
    row = {"workload": "w", "interpolation": "i", "does": "d", "way": "warpkit", "ms": "1"}

    def measure(work, turns, heard):
        heard.walls, heard.missing = [1.0, 1.0, 1.1], [load, load, load]
        yield row

    monkeypatch.setattr(run, "measure", measure)
    file = tmp_path / "rows.csv"
    status = main(["bench", "--only", "32x32 call", "--threads", "1", "--out", str(file)])
    shown = capsys.readouterr().out
    assert (status, file.exists()) == ((1, False) if load else (0, True))
    assert ("no result" in shown) == bool(load)


def test_noise_is_measured_from_lost_time_and_spread():
    heard = noise.Noise(1)
    heard.walls, heard.missing = [1.0, 1.1, 1.2], [0.0, 0.01, 0.02]
    assert not heard.is_loud
    assert heard.share == pytest.approx(0.03 / 3.3)
    assert heard.spread == pytest.approx(0.1)
    heard.walls[1:] = [1.6, 1.6]
    assert heard.is_loud
    heard.walls, heard.missing = [1.0] * 3, [0.1] * 3
    assert heard.is_loud


@pytest.mark.parametrize("work", bench.WORKLOADS, ids=lambda work: f"{work.name}, {work.does}")
def test_every_workload_agrees(work):
    """On small images, all ways compute the same numbers."""
    small = work._replace(shape=(*work.shape[:2], 24, 32), matrices=min(work.matrices, 2))
    small = small._replace(shape=(min(work.shape[0], 2), *small.shape[1:]))
    calls = bench.prepare(small)
    assert "warpkit" in calls
    assert len(calls) > 1
    for call in calls.values():
        call()


def test_an_unknown_workload_is_one_line(capsys):
    assert main(["bench", "--only", "nothing"]) == 2
    assert "--only nothing is in no workload's name: 8x3x512x512," in capsys.readouterr().err


def test_ways_that_disagree_are_not_timed(monkeypatch):
    work = bench.WORKLOADS[0]._replace(name="small", shape=(1, 3, 9, 9), matrices=1)

    def ways(work):
        image = torch.rand(work.shape)
        yield "warpkit", torch.clone, [image]
        yield "other", partial(torch.add, other=0.01), [image]

    monkeypatch.setattr(bench, "ways", ways)
    with pytest.raises(AssertionError, match=r"small: other differs in 100\.0% of the values"):
        bench.prepare(work)
