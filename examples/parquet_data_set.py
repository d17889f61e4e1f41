"""Prepare a Parquet data set on a cluster, with every value equal to Pillow's.

python -m examples.parquet_data_set

`warpkit.distributed.ray.prepare` resizes JPEG files of many sizes, as in image data sets on the
Hub, to 224 x 224 pixels; a truncated file becomes a row with its error. The new Parquet files are
read again and compared with PIL's results for the same JPEG files: more than ten million values.
Needs Ray: pip install '.[ray]' in a checkout.
"""

from __future__ import annotations

import argparse
import io
import logging
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import warpkit as wk
from warpkit.distributed.ray import prepare

IMAGES = Path(__file__).parents[1] / "data" / "images"
SIZE = (224, 224)
COUNT, BLOCKS, CUT = 72, 4, 5
"""The numbers of pictures and of files, and the picture whose JPEG is truncated."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Result:
    """What was compared."""

    rows: int
    errors: dict[int, str]
    values: int
    differing: int


def draw_pictures(count: int) -> list[bytes]:
    """JPEG files of crops of the photographs in data/images, of many sizes."""
    photographs = [Image.open(path).convert("RGB") for path in sorted(IMAGES.glob("*.png"))]
    random = np.random.default_rng(0)
    files = []
    for k in range(count):
        photograph = photographs[k % len(photographs)]
        width, height = (int(random.integers(side // 2, side)) for side in photograph.size)
        left, top = photograph.width - width, photograph.height - height
        memory = io.BytesIO()
        photograph.crop((left, top, left + width, top + height)).save(memory, "JPEG", quality=90)
        files.append(memory.getvalue())
    files[CUT] = files[CUT][: len(files[CUT]) // 2]
    return files


def write_data_set(files: Sequence[bytes], folder: Path) -> None:
    """Parquet files with the columns that Hugging Face gives images."""
    import pyarrow  # pyright: ignore[reportMissingImports]
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    folder.mkdir()
    for block in range(BLOCKS):
        ids = range(block, len(files), BLOCKS)
        images = [{"bytes": files[k], "path": f"{k}.jpg"} for k in ids]
        table = pyarrow.table({"id": list(ids), "image": images})
        parquet.write_table(table, folder / f"{block}.parquet")


def prepare_data_set(source: Path, target: Path) -> dict[int, str]:
    """Prepare Parquet files on all workers; returns the errors of rows without results."""
    import ray.data  # pyright: ignore[reportMissingImports]
    from ray.data.expressions import col  # pyright: ignore[reportMissingImports]

    pipeline = partial(wk.resize, size=SIZE, arithmetic="pillow")
    prepared = prepare(ray.data.read_parquet(str(source)), pipeline).materialize()
    whole = prepared.filter(expr=col("error").is_null())
    whole.drop_columns(["image", "error"]).write_parquet(str(target))
    failed = prepared.filter(expr=col("error").is_not_null()).select_columns(["id", "error"])
    return {row["id"]: row["error"] for row in failed.take_all()}


def by_pillow(file: bytes) -> Array:
    """PIL's own (3, h, w)."""
    with Image.open(io.BytesIO(file)) as image:
        small = image.resize(SIZE[::-1], Image.Resampling.BILINEAR)
    return np.asarray(small).transpose(2, 0, 1)


def run(count: int = COUNT) -> Result:
    """Write, prepare, read and compare, on the running Ray or on a local one."""
    import ray.data  # pyright: ignore[reportMissingImports]

    files = draw_pictures(count)
    with tempfile.TemporaryDirectory() as name:
        write_data_set(files, Path(name, "pictures"))
        errors = prepare_data_set(Path(name, "pictures"), Path(name, "prepared"))
        rows = values = differing = 0
        for row in ray.data.read_parquet(str(Path(name, "prepared"))).iter_rows():
            ours, theirs = row["pixel_values"], by_pillow(files[row["id"]])
            assert ours.shape == theirs.shape
            rows, values = rows + 1, values + theirs.size
            differing += int((ours != theirs).sum())
    return Result(rows, errors, values, differing)


def table(result: Result) -> Table:
    """The results in words."""
    shown = Table("", "", show_header=False)
    shown.add_row("rows written", f"{result.rows}")
    for row, error in result.errors.items():
        shown.add_row(f"row {row} has no result", error)
    shown.add_row("values compared with Pillow's", f"{result.values:,}")
    shown.add_row("values that differ", f"{result.differing:,}")
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; the exit status is 1 if a value differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="pictures (default: %(default)s)")
    count = parser.parse_args(arguments).count
    if find_spec("ray") is None:
        print("skipped: this example needs Ray, pip install '.[ray]' in a checkout")
        return 0
    import ray.data  # pyright: ignore[reportMissingImports]

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    result = run(count)
    ray.shutdown()
    Console().print(table(result))
    return int(result.differing > 0)


if __name__ == "__main__":
    sys.exit(main())
