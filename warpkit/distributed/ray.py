"""Runs a pipeline over the rows of a Ray data set, for data too large for one machine.

Ray is imported only when `prepare` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from warpkit.attacks import Pipeline
from warpkit.core import checks
from warpkit.core.environment import how_to_install
from warpkit.core.numbers import check_count
from warpkit.distributed.rows import ERROR, NAME, Worker
from warpkit.validation.preprocessing import Preprocessing

if TYPE_CHECKING:
    from ray.data import Dataset  # pyright: ignore[reportMissingImports]

ROWS = 32
"""The default number of rows per call: 30 MB of photographs of 480 x 640, and 18 MB of results of
224 x 224 in float32. Larger calls are not faster."""


def prepare(
    dataset: Dataset,
    pipeline: Pipeline | Preprocessing | Callable[[Tensor], Any],
    *,
    column: str = "image",
    output: str = "pixel_values",
    batch_size: int | None = None,
    gpu: bool = False,
) -> Dataset:
    """Run a pipeline over the pictures of a Ray data set, on all machines of its cluster.

    dataset: a `ray.data.Dataset` whose column `column` has pictures: arrays (H, W) or (H, W, C), as
    `ray.data.read_images` gives them, or image files' bytes, alone or as {"bytes": ...}, which
    Pillow reads as RGB. Their sizes may differ. pipeline: an `attacks.Pipeline`, a result of
    `validation.identify` (its `.pipeline` is used), or a function of uint8 images (N, C, H, W) of
    one size that returns N results: a tensor, an array, or a list. It must be picklable.

    Returns the data set with two more columns, computed when the data set is read: `output`, the
    pipeline's results (C, h, w), and "error". A row that fails remains: its output is None, and
    "error", otherwise None, has the reason. Ray's batches have zeros for a missing output. The
    numbers are those of the same call in one process, whatever the workers and batches.

    batch_size: the rows per call, of which those of one size are computed together; None is 32.
    Each worker computes on one thread and uses one core of the cluster. gpu: each worker has a GPU,
    and the pipeline receives tensors on it. Ray replaces a lost worker and runs its rows again.

    Raises ImportError if Ray is not installed, TypeError or ValueError for other arguments. If the
    column is missing, or if one is already named `output` or "error", the run stops with an error.

    >>> import numpy as np, ray, warpkit as wk  # doctest: +SKIP
    >>> pictures = ray.data.from_numpy(np.zeros((2, 8, 8, 3), np.uint8))  # doctest: +SKIP
    >>> half = lambda images: wk.resize(images, (4, 4), arithmetic="pillow")  # doctest: +SKIP
    >>> prepare(pictures, half, column="data").take(1)[0]["pixel_values"].shape  # doctest: +SKIP
    (3, 4, 4)
    """
    try:
        import ray.data  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(f"{NAME} needs Ray: {how_to_install('ray')}") from error
    if not isinstance(dataset, ray.data.Dataset):
        checks.fail(NAME, "dataset", "a ray.data.Dataset", checks.kind_of(dataset), TypeError)
    for argument, name in (("column", column), ("output", output)):
        if not isinstance(name, str) or not name:
            checks.fail(NAME, argument, "the name of a column", repr(name), TypeError)
    if output in (column, ERROR):
        checks.fail(NAME, "output", f"another name than {column!r} and {ERROR!r}", repr(output))
    checks.check_bool(NAME, "gpu", gpu)
    rows = ROWS if batch_size is None else check_count(NAME, "batch_size", batch_size, 1)
    worker = Worker(_function(pipeline), column, output, "cuda" if gpu else "cpu")
    options: dict[str, Any] = {"batch_size": rows, "batch_format": "pyarrow"}
    if gpu:  # an actor keeps its GPU context; a task might not
        pool = ray.data.ActorPoolStrategy(min_size=1)
        arguments = (worker,)
        return dataset.map_batches(
            OnGpu, fn_constructor_args=arguments, num_gpus=1, compute=pool, **options
        )
    return dataset.map_batches(worker, num_cpus=1, **options)


class OnGpu:
    """A worker with a GPU of its own."""

    def __init__(self, worker: Worker) -> None:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError(f"{NAME}: `gpu` needs workers with a CUDA device that torch can use")
        self.worker = worker

    def __call__(self, table: Any) -> Any:
        return self.worker(table)


def _function(pipeline: object) -> Callable[[Tensor], Any]:
    """A pipeline as a function."""
    if isinstance(pipeline, Preprocessing):
        if pipeline.pipeline is None:
            got = f"one that is not known: {' '.join(pipeline.reasons)}".strip()
            checks.fail(NAME, "pipeline", "a Preprocessing with a .pipeline", got)
        return pipeline.pipeline
    if not callable(pipeline) or isinstance(pipeline, type):
        wanted = "a Pipeline, a Preprocessing, or a function of images (N, C, H, W)"
        checks.fail(NAME, "pipeline", wanted, checks.kind_of(pipeline), TypeError)
    return pipeline
