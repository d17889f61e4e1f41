"""A worker's processing of the rows of a Ray data set: from images to results and errors.

A row's picture is an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), as from
`ray.data.read_images`. Or it is an image file's bytes, as in Parquet data sets, alone or as Hugging
Face's `{"bytes": ..., "path": ...}`. Rows with pictures of one shape share a call of the pipeline.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpkit.core import checks

NAME = "prepare"
ERROR = "error"
"""The column with the reason why a row has no result."""

PROBE = np.full((256, 320, 3), 128, np.uint8)
"""The picture that determines a column's type if every row of a batch fails."""


@dataclass(frozen=True)
class Result:
    """A row's result: an array, or the reason why there is none."""

    array: NDArray[Any] | None
    error: str | None = None


@dataclass(frozen=True)
class Worker:
    """A function from batches to batches (`pyarrow.Table`) that can be pickled."""

    pipeline: Callable[[Tensor], Any]
    column: str
    output: str
    device: str

    def __call__(self, table: Any) -> Any:
        """The batch with two more columns."""
        import pyarrow  # pyright: ignore[reportMissingImports]

        torch.set_num_threads(1)  # there are as many workers as cores
        if self.column not in table.column_names:
            wanted = f"one of the columns {', '.join(map(repr, table.column_names))}"
            checks.fail(NAME, "column", wanted, repr(self.column))
        for name in (self.output, ERROR):
            if name in table.column_names:
                text = f"{NAME}: the data set has a column {name!r} already: rename or drop it"
                raise ValueError(text)
        results = self.results(_values(table[self.column]))
        column = column_of(results, self._probed)
        table = table.append_column(self.output, column)
        errors = pyarrow.array([result.error for result in results], pyarrow.string())
        return table.append_column(ERROR, errors)

    def results(self, values: Sequence[Any]) -> list[Result]:
        """One result for each row; rows with pictures of one shape and type share a call."""
        by_row: list[Result | None] = [None] * len(values)
        groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        pictures: list[NDArray[Any]] = []
        for row, value in enumerate(values):
            try:
                picture = picture_of(value)
                groups[picture.shape, picture.dtype.str].append(row)
            except Exception as error:  # a broken file can raise nearly any error in Pillow
                by_row[row], picture = Result(None, _reason(error)), PROBE
            pictures.append(picture)
        for rows in groups.values():
            outputs = self._run([pictures[row] for row in rows])
            for row, result in zip(rows, outputs, strict=True):
                by_row[row] = result
        return [result for result in by_row if result is not None]

    def _run(self, pictures: Sequence[NDArray[Any]]) -> list[Result]:
        """Results for pictures of one shape: together, or one by one if some of them fail."""
        try:
            return [Result(array) for array in self._call(pictures)]
        except Exception as error:
            if len(pictures) == 1:
                return [Result(None, _reason(error))]
        return [result for picture in pictures for result in self._run([picture])]

    def _call(self, pictures: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The pipeline's results for pictures (H, W, C) of one shape."""
        # (N, C, H, W) without a copy: resizing such bytes takes 0.4 of the time for planes
        images = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).to(self.device)
        with torch.no_grad():
            outputs = self.pipeline(images)
        wanted = f"a function that returns a tensor or an array of {len(pictures)} results"
        if not isinstance(outputs, (Tensor, np.ndarray, *checks.LISTS)):
            checks.fail(NAME, "pipeline", wanted, type(outputs).__name__, TypeError)
        if checks.shape_if_any(outputs)[:1] != (len(pictures),) and len(outputs) != len(pictures):
            checks.fail(NAME, "pipeline", wanted, checks.shape_if_any(outputs))
        return [_as_array(result) for result in outputs]

    def _probed(self) -> NDArray[Any] | None:
        """The result for a test picture, for its shape and type; None if that fails, too."""
        return self._run([PROBE])[0].array


def _values(column: Any) -> list[Any]:
    """The rows of an Arrow column; tensors become arrays that share its memory."""
    scalars = [scalar for chunk in column.chunks for scalar in chunk]
    # for Ray's scalars of tensors as_py() gives arrays, for pyarrow's lists
    has_numpy = column.type.__class__.__name__ == "FixedShapeTensorType"
    return [s.to_numpy() if has_numpy and s.is_valid else s.as_py() for s in scalars]


def picture_of(value: Any) -> NDArray[Any]:
    """A row's picture (H, W, C): uint8, or floats in [0, 1].

    >>> picture_of(np.zeros((2, 3), np.uint8)).shape
    (2, 3, 1)
    """
    if isinstance(value, Mapping) and "bytes" in value:
        value = value["bytes"]
    if isinstance(value, bytes):
        return _decode(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"no picture: an array or an image file's bytes, got {_describe(value)}")
    picture = value[..., None] if value.ndim == 2 else value
    if picture.ndim != 3 or picture.shape[-1] not in (1, 3, 4) or 0 in picture.shape:
        wanted = "of shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)"
        raise ValueError(f"no picture: an array must be {wanted}, got {value.shape}")
    return picture


def _decode(data: bytes) -> NDArray[Any]:
    """An image file read by Pillow, in RGB."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as file:
        return np.asarray(file.convert("RGB"))


def _as_array(result: Any) -> NDArray[Any]:
    """One row's result in its own memory."""
    if isinstance(result, Tensor):
        result = result.detach().cpu()
        # numpy has no bfloat16
        result = (result.float() if result.dtype == torch.bfloat16 else result).numpy()
    return np.ascontiguousarray(result)


def column_of(results: Sequence[Result], probe: Callable[[], NDArray[Any] | None]) -> Any:
    """The results as an Arrow column of Ray's tensors, with null for missing ones.

    Results of one shape have Ray's type for them; a null then has zeros in memory, as Ray's batches
    do. If None is mixed with arrays, Ray would make pickled objects, whose type does not combine
    with tensors. `probe` determines the type if every row failed.
    """
    import pyarrow  # pyright: ignore[reportMissingImports]
    from ray.data import extensions  # pyright: ignore[reportMissingImports]

    arrays = [result.array for result in results]
    is_null = [array is None for array in arrays]
    present = [array for array in arrays if array is not None]
    if not present:
        probed = probe()
        present = [np.zeros(0, np.float32) if probed is None else probed]
    empty = np.zeros_like(present[0])
    filled = [empty if array is None else array for array in arrays]
    same = len({(array.shape, array.dtype) for array in present}) == 1
    if same:
        column = extensions.ArrowTensorArray.from_numpy(np.stack(filled))
    else:
        ragged = np.empty(len(filled), object)
        ragged[:] = filled
        column = extensions.ArrowVariableShapedTensorArray.from_numpy(ragged)
    if not any(is_null):
        return column
    storage, mask = column.storage, pyarrow.array(is_null)
    if pyarrow.types.is_struct(storage.type):
        parts = [storage.field(k) for k in range(storage.type.num_fields)]
        storage = pyarrow.StructArray.from_arrays(parts, fields=list(storage.type), mask=mask)
    else:
        kind = type(storage)  # a type of lists with 32-bit or 64-bit lengths
        storage = kind.from_arrays(storage.offsets, storage.values, mask=mask)
    return pyarrow.ExtensionArray.from_storage(column.type, storage)


def _reason(error: Exception) -> str:
    """An error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _describe(value: object) -> str:
    """A description of a value that is no picture."""
    return "None" if value is None else checks.kind_of(value)
