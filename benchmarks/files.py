"""Many files, compared with ImageMagick, vips and Pillow in a pool: python -m benchmarks.files

1,000 photographs of 640 x 480, JPEG files made of those in data/images, become JPEG files of
224 x 224, with one worker and with two. Each way is a separate process, timed from its start to its
end, in turns; the time is the least of the rounds. A check first proves that warpkit's files equal
Pillow's byte for byte. For mogrify and vips the mean difference from these is given, because vips
decodes JPEG files at half their size and mogrify has other arithmetic.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import warpkit as wk
from warpkit.core.environment import processor

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "data" / "benchmarks" / "files.csv"
SIZE, SMALL, QUALITY = (640, 480), (224, 224), 90
BY_PILLOW = """
import sys
from multiprocessing import Pool
from pathlib import Path
from PIL import Image

def small(job):
    with Image.open(job[0]) as image:
        image.resize((224, 224), Image.Resampling.BILINEAR).save(job[1], quality=90)

if __name__ == "__main__":
    folder, workers, *names = sys.argv[1:]
    jobs = [(name, Path(folder) / Path(name).name) for name in names]
    if workers == "1":
        list(map(small, jobs))
    else:
        with Pool(int(workers)) as pool:
            pool.map(small, jobs, chunksize=8)
"""


def make_photographs(folder: Path, count: int) -> list[str]:
    """Write different crops of the shipped photographs as JPEG files."""
    sources = []
    for name in ("astronaut", "coffee", "rocket"):
        with Image.open(ROOT / "data" / "images" / f"{name}.png") as image:
            sources.append(image.convert("RGB"))
    random = np.random.default_rng(0)
    for k in range(count):
        source = sources[k % len(sources)]
        height = int(random.integers(128, 193))
        width = height * 4 // 3
        x = int(random.integers(source.width - width + 1))
        y = int(random.integers(source.height - height + 1))
        piece = source.resize(SIZE, Image.Resampling.BICUBIC, (x, y, x + width, y + height))
        piece.save(folder / f"{k:04}.jpg", quality=QUALITY)
    return [str(folder / f"{k:04}.jpg") for k in range(count)]


def commands(names: list[str], workers: int, folder: Path) -> dict[str, tuple[list[str], str]]:
    """The command of each way, and its standard input: names, for xargs."""
    out = {way: folder / f"{way.partition(' ')[0]}-{workers}" for way in WAYS}
    for path in out.values():
        path.mkdir(exist_ok=True)
    pool = folder / "pool.py"
    pool.write_text(BY_PILLOW)
    options = f"--size {SMALL[0]} {SMALL[1]} --arithmetic pillow --quality {QUALITY}"
    ours = [sys.executable, "-m", "warpkit", "resize", *names, "--out", str(out["warpkit"])]
    size = f"{SMALL[1]}x{SMALL[0]}!"
    each = ["xargs", "-P", str(workers), "-n", str(max(1, -(-len(names) // (4 * workers))))]
    each = each if workers > 1 else ["xargs"]
    magick = ["mogrify", "-filter", "Triangle", "-resize", size, "-quality", str(QUALITY)]
    vips = ["vipsthumbnail", "--size", size, "-o", f"{out['vips']}/%s.jpg[Q={QUALITY}]"]
    return {
        "warpkit": ([*ours, "--workers", str(workers), *options.split()], ""),
        "Pillow": ([sys.executable, str(pool), str(out["Pillow"]), str(workers), *names], ""),
        "mogrify": ([*each, *magick, "-path", str(out["mogrify"])], "\n".join(names)),
        "vips": ([*each, *vips], "\n".join(names)),
    }


WAYS = ("warpkit", "Pillow", "mogrify", "vips")


def timed(words: list[str], text: str) -> tuple[float, float]:
    """Wall-clock and CPU seconds; every way uses one thread per worker."""
    one = {"OMP_NUM_THREADS": "1", "MAGICK_THREAD_LIMIT": "1", "VIPS_CONCURRENCY": "1"}
    environment = {**os.environ, **one, "PYTHONPATH": str(ROOT)}
    before, start = os.times(), time.perf_counter()
    process = subprocess.run(words, input=text, text=True, env=environment, capture_output=True)
    seconds, after = time.perf_counter() - start, os.times()
    if process.returncode:
        raise SystemExit(f"{shlex.join(words[:4])}: {process.stderr[-300:]}")
    spent = after.children_user + after.children_system
    return seconds, spent - before.children_user - before.children_system


def levels(folder: Path, way: str, workers: int) -> float:
    """The mean distance of a way's files from Pillow's."""
    distances = []
    for path in sorted((folder / f"Pillow-{workers}").iterdir()):
        theirs = folder / f"{way}-{workers}" / path.name
        with Image.open(path) as one, Image.open(theirs) as other:
            assert one.size == other.size == SMALL
            distances.append(np.abs(np.asarray(one, int) - np.asarray(other, int)).mean())
    return float(np.mean(distances))


def measure(count: int, rounds: int) -> Iterator[dict[str, object]]:
    """A row for each way and number of workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        names = make_photographs(folder / "in", count)
        for files, workers in ((1, 1), (count, 1), (count, 2)):
            calls = commands(names[:files], workers, folder)
            load = os.getloadavg()[0]
            seconds_of: dict[str, list[tuple[float, float]]] = {way: [] for way in calls}
            for _ in range(rounds):
                for way, (words, text) in calls.items():
                    seconds_of[way].append(timed(words, text))
            for path in (folder / f"Pillow-{workers}").iterdir():
                ours = folder / f"warpkit-{workers}" / path.name
                assert ours.read_bytes() == path.read_bytes(), path.name
            least = {way: min(each) for way, each in seconds_of.items()}
            for way, (seconds, _) in least.items():
                yield {
                    "files": files,
                    "workers": workers,
                    "way": way,
                    "ms": f"{seconds * 1e3:.0f}",
                    "times_warpkit": f"{seconds / least['warpkit'][0]:.2f}",
                    "cpu_seconds": f"{min(cpu for _, cpu in seconds_of[way]):.2f}",
                    "images_per_second": f"{files / seconds:.0f}",
                    "levels_from_pillow": f"{levels(folder, way, workers):.3f}",
                    "rounds": rounds,
                    "load": f"{load:.1f}",
                    "machine": processor(),
                    "pillow": Image.__version__,
                    "torch": torch.__version__,
                    "warpkit": wk.__version__,
                    "date": time.strftime("%Y-%m-%d"),
                }


def main() -> None:
    """Measure and print; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many photographs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help=f"a CSV file to write, such as {ROWS.name}")
    options = parser.parse_args()
    rows = []
    for row in measure(options.count, options.rounds):
        rows.append(row)
        print("  ".join(f"{value!s:<9}" for value in list(row.values())[:8]), flush=True)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
