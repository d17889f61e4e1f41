"""`prepare` on a Ray that the tests start: two workers, no dashboard."""

from __future__ import annotations

import doctest
import logging
import os
import re
import signal
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import warpkit as wk
from examples import parquet_data_set
from tests.distributed.test_rows import encoded, half, photograph, pillows
from warpkit import attacks, validation
from warpkit.distributed import ray as distributed_ray
from warpkit.distributed.ray import prepare

ray: Any = pytest.importorskip("ray", reason="Ray is not installed; scripts/test ray installs it")
pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of Ray itself


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray.data

        # a pretended GPU, so that a worker that asks for one starts
        local = {"address": "local", "include_dashboard": False, "log_to_driver": False}
        ray.init(num_cpus=2, num_gpus=1, **local)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
        ray.shutdown()


def items(values: list[Any]) -> Any:
    """A data set of these images in this order."""
    rows = [{"image": value, "id": k} for k, value in enumerate(values)]
    return ray.data.from_items(rows, override_num_blocks=2)


def taken(dataset: Any) -> list[dict[str, Any]]:
    return sorted(dataset.take_all(), key=lambda row: row["id"])


PICTURES = [photograph(20 + k % 3, 30, k) for k in range(24)]


@pytest.mark.parametrize("batch_size", [1, 5, None])
def test_images_of_many_sizes_have_pillows_pixels(batch_size: int | None):
    rows = taken(prepare(items(PICTURES), half, batch_size=batch_size))
    assert len(rows) == len(PICTURES)
    for row, picture in zip(rows, PICTURES, strict=True):
        np.testing.assert_array_equal(row["pixel_values"], pillows(picture))
        np.testing.assert_array_equal(row["image"], picture)
        assert row["error"] is None


def test_a_pipeline_gives_the_results_of_one_process():
    pipeline = attacks.Pipeline(half, attacks.normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]))
    for row in taken(prepare(items(PICTURES[::4]), pipeline, output="x")):
        images = torch.from_numpy(row["image"].copy()).permute(2, 0, 1)[None]
        np.testing.assert_array_equal(row["x"], pipeline(images)[0])


def test_a_pipeline_found_by_identify_runs():
    def program(image: Any) -> np.ndarray:
        return np.asarray(image.resize((17, 12), 2))[..., ::-1].transpose(2, 0, 1)

    found = validation.identify(program, takes="pil")
    assert found.known
    for row in taken(prepare(items(PICTURES[:6]), found)):
        np.testing.assert_array_equal(row["pixel_values"], pillows(row["image"])[::-1])


def test_a_row_that_fails_is_kept_with_its_error(tmp_path: Path):
    values = [encoded(picture) for picture in PICTURES]
    values[3], values[17] = b"no picture", values[17][:200]
    prepared = prepare(items(values), half, batch_size=6)
    rows = taken(prepared)
    for k, row in enumerate(rows):
        if k in (3, 17):
            assert row["pixel_values"] is None
        else:
            np.testing.assert_array_equal(row["pixel_values"], pillows(PICTURES[k]))
    assert rows[3]["error"].startswith("UnidentifiedImageError: cannot identify image file")
    assert [k for k, row in enumerate(rows) if row["error"]] == [3, 17]
    batch = prepared.take_batch(24)["pixel_values"]  # None becomes zeros
    assert batch.shape == (24, 3, 12, 17)
    whole = prepared.filter(lambda row: row["error"] is None)
    whole.write_parquet(str(tmp_path / "prepared"))
    read = ray.data.read_parquet(str(tmp_path / "prepared"), columns=["id", "pixel_values"])
    for batch in read.iter_torch_batches(batch_size=22):
        assert batch["pixel_values"].shape == (22, 3, 12, 17)
        for k, result in zip(batch["id"].tolist(), batch["pixel_values"], strict=True):
            np.testing.assert_array_equal(result, pillows(PICTURES[k]))


def test_a_batch_of_failures_has_the_others_type():
    values = [b"no picture"] * 12 + [encoded(picture) for picture in PICTURES[:12]]
    prepared = prepare(items(values), half, batch_size=4)
    kind = str(prepared.schema().types[-2])
    assert "shape=(3, 12, 17)" in kind
    assert "Variable" not in kind
    assert [row["error"] is None for row in taken(prepared)] == [False] * 12 + [True] * 12
    assert prepared.take_batch(24)["pixel_values"].shape == (24, 3, 12, 17)


def test_a_pipeline_that_always_fails_gives_only_errors():
    rows = taken(prepare(items(PICTURES[:4]), partial(wk.resize, size=(2, 2), interpolation="x")))
    assert all(row["pixel_values"] is None for row in rows)
    assert all(row["error"].startswith("ValueError: resize: `interpolation`") for row in rows)


def test_results_of_many_sizes():
    def turned(images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2] == 21:
            raise ValueError("odd")
        return images.transpose(-1, -2)

    for row in taken(prepare(items(PICTURES), turned)):
        if len(row["image"]) == 21:
            assert row["pixel_values"] is None
        else:
            np.testing.assert_array_equal(row["pixel_values"], row["image"].transpose(2, 1, 0))


def test_hugging_faces_image_column_is_read():
    values = [{"bytes": encoded(picture), "path": "x.png"} for picture in PICTURES[:4]]
    for row, picture in zip(taken(prepare(items(values), half)), PICTURES, strict=False):
        np.testing.assert_array_equal(row["pixel_values"], pillows(picture))


def test_a_worker_computes_on_one_thread():
    def threads(images: torch.Tensor) -> torch.Tensor:
        return torch.full((len(images), 1), torch.get_num_threads())

    assert {int(row["pixel_values"][0]) for row in taken(prepare(items(PICTURES), threads))} == {1}


def test_a_killed_worker_loses_only_its_batch(tmp_path: Path):
    struck = tmp_path / "struck"

    def deadly(images: torch.Tensor) -> torch.Tensor:
        if not struck.exists():
            struck.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return half(images)

    rows = taken(prepare(items(PICTURES), deadly, batch_size=4))
    assert struck.exists()
    for row, picture in zip(rows, PICTURES, strict=True):
        np.testing.assert_array_equal(row["pixel_values"], pillows(picture))


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_missing_gpu_is_named():
    with pytest.raises(Exception, match="`gpu` needs workers with a CUDA device"):
        prepare(items(PICTURES[:4]), half, gpu=True).take_all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_worker_with_a_gpu_computes_there():
    def placed(images: torch.Tensor) -> torch.Tensor:
        assert images.is_cuda
        return half(images)

    for row in taken(prepare(items(PICTURES), placed, gpu=True)):
        np.testing.assert_array_equal(row["pixel_values"], pillows(row["image"]))


BAD = {
    "dataset": ({"dataset": [1]}, TypeError, "a ray.data.Dataset, got list"),
    "pipeline": ({"pipeline": 3}, TypeError, "a Pipeline, a Preprocessing, or a function of"),
    "class": ({"pipeline": attacks.Pipeline}, TypeError, "got the class Pipeline"),
    "unknown": ({"pipeline": validation.Preprocessing(reasons=["It is random."])}, ValueError, ""),
    "column": ({"column": 3}, TypeError, "the name of a column, got 3"),
    "output": ({"output": "image"}, ValueError, "another name than 'image' and 'error'"),
    "error": ({"output": "error"}, ValueError, "another name than 'image' and 'error'"),
    "batch_size": ({"batch_size": 0}, ValueError, "an integer of at least 1, got 0"),
    "gpu": ({"gpu": 1}, TypeError, "True or False, got 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name: str):
    changed, kind, said = BAD[name]
    argument = next(iter(changed))
    arguments = {"dataset": items(PICTURES[:2]), "pipeline": half, **changed}
    with pytest.raises(kind, match=f"prepare: `{argument}` must be.*{re.escape(said)}"):
        prepare(arguments.pop("dataset"), arguments.pop("pipeline"), **arguments)


def test_unusable_columns_stop_the_run():
    with pytest.raises(Exception, match="`column` must be one of the columns 'image', 'id', got"):
        prepare(items(PICTURES[:2]), half, column="picture").take_all()
    with pytest.raises(Exception, match="has a column 'id' already: rename or drop it"):
        prepare(items(PICTURES[:2]), half, output="id").take_all()


def test_the_example_compares_ten_million_values():
    result = parquet_data_set.run()
    assert list(result.errors) == [parquet_data_set.CUT]
    assert "truncated" in result.errors[parquet_data_set.CUT]
    assert result.rows == parquet_data_set.COUNT - 1
    assert result.values == result.rows * 3 * 224 * 224 > 10_000_000
    assert result.differing == 0
    assert parquet_data_set.table(result).row_count == 4


def test_the_example_in_the_docstring_runs():
    text = (distributed_ray.prepare.__doc__ or "").replace("# doctest: +SKIP", "")
    parsed = doctest.DocTestParser().get_doctest(
        text, vars(distributed_ray).copy(), "prepare", "", 0
    )
    assert doctest.DocTestRunner().run(parsed).failed == 0
    assert len(parsed.examples) == 4
