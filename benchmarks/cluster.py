"""A data set under Ray, compared with Pillow, cv2 and torchvision: python -m benchmarks.cluster

Photographs of 640 x 480, as arrays and as JPEG files, become uint8 arrays of 224 x 224: in one
process without Ray, then under Ray by one worker, by two, and by two of which one is killed half
way. Each library decodes and shrinks with its own calls (cv2 with INTER_AREA, torchvision
antialiased), 32 photographs per call and one thread per worker. A check first proves for every row
that warpkit's bytes equal Pillow's. The ways take turns, and the time is the least of the rounds.
`core_ms` is a worker's CPU time per photograph, which depends little on other load; `memory_mib` is
a worker's private memory, without Ray's store, in a Ray started for this way alone.
Needs `.[ray,opencv]` and torchvision.
"""

from __future__ import annotations

import argparse
import csv
import io
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms.v2 import functional

import warpkit as wk
from benchmarks.files import make_photographs
from warpkit.core.environment import installed, processor
from warpkit.distributed.ray import ROWS, prepare
from warpkit.distributed.rows import picture_of

FILE = Path(__file__).parents[1] / "data" / "benchmarks" / "cluster.csv"
SMALL = (224, 224)

Array = np.ndarray[Any, Any]
ours = partial(wk.resize, size=SMALL, arithmetic="pillow")


def by_pillow(values: Sequence[Any]) -> Array:
    """Images (N, 3, h, w), the format of all ways."""
    images = [
        Image.open(io.BytesIO(v)) if isinstance(v, bytes) else Image.fromarray(v) for v in values
    ]
    small = [np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR)) for image in images]
    return np.stack(small).transpose(0, 3, 1, 2)


def by_cv2(values: Sequence[Any]) -> Array:
    cv2.setNumThreads(1)
    images = [
        cv2.imdecode(np.frombuffer(v, np.uint8), cv2.IMREAD_COLOR_RGB)
        if isinstance(v, bytes)
        else v
        for v in values
    ]
    small = [cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA) for image in images]
    return np.stack(small).transpose(0, 3, 1, 2)


def by_torchvision(values: Sequence[Any]) -> Array:
    torch.set_num_threads(1)
    images = [
        decode_jpeg(torch.frombuffer(bytearray(v), dtype=torch.uint8), ImageReadMode.RGB)
        if isinstance(v, bytes)
        else torch.tensor(v).permute(2, 0, 1)
        for v in values
    ]
    return functional.resize(torch.stack(images), [224, 224], antialias=True).numpy()


def by_warpkit(values: Sequence[Any]) -> Array:
    """warpkit without Ray; `prepare` does the same on a worker."""
    images = torch.from_numpy(np.stack([picture_of(v) for v in values]))
    return np.asarray(ours(images.permute(0, 3, 1, 2)))


WAYS = {
    "warpkit": by_warpkit,
    "Pillow": by_pillow,
    "cv2": by_cv2,
    "torchvision": by_torchvision,
}


def memory() -> float:
    """This process's own memory in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


@dataclass
class Watched:
    """A function of batches that records its process, CPU seconds and memory."""

    function: Callable[[Any], Any]
    folder: str

    def __call__(self, batch: Any) -> Any:
        result = self.function(batch)
        with open(os.path.join(self.folder, str(os.getpid())), "a") as file:
            file.write(f"{time.process_time()} {memory()}\n")
        return result


def columns(function: Callable[[Any], Any], batch: dict[str, Any]) -> dict[str, Any]:
    """Apply a library's function to a batch, as users without `prepare` would."""
    return {"id": batch["id"], "pixel_values": function(list(batch["image"]))}


def planned(dataset: Any, way: str, folder: str) -> Any:
    """The lazy data set of results."""
    if way == "warpkit":
        return prepare(dataset, Watched(ours, folder)).drop_columns(["image"])
    function = Watched(partial(columns, WAYS[way]), folder)
    return dataset.map_batches(function, batch_size=ROWS, batch_format="numpy", num_cpus=1)


def kill_one(folder: str, calls: int, killed: list[int], ended: threading.Event) -> None:
    """Kill the most recently active worker after `calls` calls."""
    while not ended.wait(0.002):
        files = sorted(Path(folder).iterdir(), key=lambda path: path.stat().st_mtime)
        if files and sum(len(path.read_text().splitlines()) for path in files) >= calls:
            killed.append(int(files[-1].name))
            os.kill(killed[-1], signal.SIGKILL)
            return


@dataclass
class Run:
    """The time and memory of one turn of a way."""

    seconds: float
    core_ms: float = 0.0
    memory_mib: float = 0.0
    results: Any = None


def run_on_ray(dataset: Any, way: str, kill: bool = False) -> Run:
    """Compute every row, and read the workers' records."""
    with tempfile.TemporaryDirectory() as folder:
        plan = planned(dataset, way, folder)
        killed: list[int] = []
        ended = threading.Event()
        half = dataset.count() // ROWS // 2
        killer = threading.Thread(target=kill_one, args=(folder, half, killed, ended))
        if kill:
            killer.start()
        begun = time.perf_counter()
        results = plan.materialize()
        seconds = time.perf_counter() - begun
        ended.set()
        if kill:
            killer.join()
            assert killed, "nothing was killed"
        lines = [path.read_text().splitlines() for path in Path(folder).iterdir()]
    logs = [np.array([line.split() for line in each], float) for each in lines]
    spent = sum(each[-1, 0] - each[0, 0] for each in logs)
    calls = sum(len(each) - 1 for each in logs)
    most = max(each[:, 1].max() for each in logs)
    return Run(seconds, spent / max(calls, 1) / ROWS * 1e3, most, results)


def run_alone(values: Sequence[Any], way: str, times: int) -> Run:
    """Compute in this process, 32 photographs per call."""
    begun, spent = time.perf_counter(), time.process_time()
    for _ in range(times):
        parts = [WAYS[way](values[k : k + ROWS]) for k in range(0, len(values), ROWS)]
    seconds, spent = time.perf_counter() - begun, time.process_time() - spent
    rows = dict(enumerate(np.concatenate(parts)))
    return Run(seconds, spent / len(values) / times * 1e3, 0.0, rows)


def rows_of(run: Run) -> dict[int, Array]:
    """The result of each photograph, after a check that its repetitions are equal."""
    if isinstance(run.results, dict):
        return run.results
    pixels: dict[int, Array] = {}
    for row in run.results.iter_rows():
        assert row.get("error") is None, row["error"]
        array = np.asarray(row["pixel_values"])
        np.testing.assert_array_equal(pixels.setdefault(row["id"], array), array)
    return pixels


@dataclass
class Source:
    """The photographs in one format, Pillow's results, and each way's memory under Ray."""

    kind: str
    values: list[Any]
    pillows: Array
    memories: dict[str, float]


def sources(count: int) -> list[Source]:
    """The same photographs as arrays and as files."""
    with tempfile.TemporaryDirectory() as name:
        files = [Path(path).read_bytes() for path in make_photographs(Path(name), count)]
    pillows = by_pillow(files)
    arrays = [picture_of(data) for data in files]
    return [Source("arrays", arrays, pillows, {}), Source("JPEG files", files, pillows, {})]


def measured(
    source: Source,
    case: dict[str, Any],
    calls: dict[str, Callable[[], Run]],
    images: int,
    rounds: int,
) -> Iterator[dict[str, Any]]:
    """The rows of one case: equality first, then the ways in turns."""
    load = os.getloadavg()[0]
    results = {way: rows_of(call()) for way, call in calls.items()}  # and warms every worker
    for k, row in results["warpkit"].items():
        np.testing.assert_array_equal(row, source.pillows[k])
    runs: dict[str, list[Run]] = {way: [] for way in calls}
    for _ in range(rounds):
        for way, call in calls.items():
            run = call()
            if case["killed"]:
                assert run.results.count() == images
                for k, row in rows_of(run).items():
                    np.testing.assert_array_equal(row, source.pillows[k])
            run.results = None
            runs[way].append(run)
    seconds = {way: min(run.seconds for run in each) for way, each in runs.items()}
    for way, each in runs.items():
        apart = [np.abs(row - source.pillows[k].astype(int)) for k, row in results[way].items()]
        memory_mib = source.memories.get(way) if case["under"] == "Ray" else None
        yield {
            "pictures": source.kind,
            **case,
            "way": way,
            "ms": f"{seconds[way] * 1e3:.0f}",
            "times_warpkit": f"{seconds[way] / seconds['warpkit']:.2f}",
            "images_per_second": f"{images / seconds[way]:.0f}",
            "core_ms": f"{min(run.core_ms for run in each):.2f}",
            "memory_mib": "" if memory_mib is None else f"{memory_mib:.0f}",
            "levels_from_pillow": f"{np.mean(apart):.3f}",
            "images": images,
            "rounds": rounds,
            "load": f"{load:.1f}",
            "machine": processor(),
            "ray": installed("ray"),
            "pillow": Image.__version__,
            "cv2": cv2.__version__,
            "torchvision": torchvision.__version__,
            "torch": torch.__version__,
            "warpkit": wk.__version__,
            "date": time.strftime("%Y-%m-%d"),
        }


def measure(count: int, times: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Every row of the file."""
    torch.set_num_threads(1)
    images = count * times
    for source in (pictures := sources(count)):
        case = {"under": "no Ray", "workers": 1, "killed": ""}
        calls = {way: partial(run_alone, source.values, way, times) for way in WAYS}
        yield from measured(source, case, calls, images, rounds)
        for way in WAYS if source.kind == "arrays" else ():
            with ray_of(1):
                source.memories[way] = run_on_ray(dataset_of(source.values, 1), way).memory_mib
    for workers in (1, 2):
        with ray_of(workers):
            for source in pictures:
                yield from measured_on_ray(source, workers, times, rounds)


def measured_on_ray(
    source: Source, workers: int, times: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """The rows of one number of workers."""
    dataset, images = dataset_of(source.values, times), len(source.values) * times
    case = {"under": "Ray", "workers": workers, "killed": ""}
    calls = {way: partial(run_on_ray, dataset, way) for way in WAYS}
    yield from measured(source, case, calls, images, rounds)
    if workers > 1:
        killing = {"warpkit": partial(run_on_ray, dataset, "warpkit", kill=True)}
        yield from measured(source, case | {"killed": 1}, killing, images, rounds)


@contextmanager
def ray_of(workers: int) -> Iterator[None]:
    """A Ray on this machine, with this number of workers."""
    import ray.data  # pyright: ignore[reportMissingImports]

    # the default of 15 would starve workers on a busy machine
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    local = {"address": "local", "include_dashboard": False, "log_to_driver": False}
    ray.init(num_cpus=workers, **local)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def dataset_of(values: Sequence[Any], times: int) -> Any:
    """Rows in Ray's store, each repeated, in blocks of 32."""
    import ray.data  # pyright: ignore[reportMissingImports]

    items = [{"id": k, "image": value} for k, value in enumerate(values)]
    once = ray.data.from_items(items, override_num_blocks=-(-len(items) // ROWS)).materialize()
    return once.union(*[once] * (times - 1)) if times > 1 else once


def main() -> None:
    """Measure and print; write each row where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=160, help="photographs")
    parser.add_argument("--times", type=int, default=4, help="repetitions of each photograph")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(os.devnull), help=f"such as {FILE.name}")
    options = parser.parse_args()
    with options.out.open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in measure(options.count, options.times, options.rounds):
            if writer is None:
                writer = csv.DictWriter(file, row, lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print("  ".join(f"{value!s:<10}" for value in list(row.values())[:10]), flush=True)


if __name__ == "__main__":
    main()
