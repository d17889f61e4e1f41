"""From memory to a call of the kernel of nearest."""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.scratch import aligned, of_this_thread
from warpkit.engine.backends.cpu.runtime.threads import run
from warpkit.engine.backends.cpu.runtime.vector_values import REGISTER
from warpkit.engine.backends.cpu.warps.nearest import MEMORY, NAMES, nearest_kernel
from warpkit.engine.backends.cpu.warps.pairs_launch import STREAMED
from warpkit.engine.backends.cpu.warps.work import WarpShapes

PLACES = NAMES.index("memory")


def launch(
    shapes: WarpShapes,
    image: np.ndarray,
    mapping: np.ndarray,
    fill: np.ndarray,
    out: np.ndarray,
    image_of: np.ndarray,
    *,
    channels_last: bool,
    relative: bool,
) -> None:
    """Fill `out`; all arrays flat, in the image's layout, image_of of every item.

    relative: points are offsets from their pixel.
    """
    plan = shapes.plan
    fill = as_shown(fill, image.dtype)
    arrays = {
        "image": (image, "image_size"), "mapping": (mapping, "mapping_numbers"),
        "fill": (fill, "fill_numbers"), "out": (out, "out_size"),
    }  # fmt: skip
    values = dict(zip(plan._fields, plan, strict=True))
    for name, (array, size) in arrays.items():
        values[name], values[size] = array.ctypes.data, array.size
    values |= {"image_of": image_of.ctypes.data, "mapping_of": shapes.mapping_of.ctypes.data}
    by_vectors = (
        image.itemsize >= 4 and (out.ctypes.data | plan.out_width * out.itemsize) % REGISTER == 0
    )
    values |= {"channels_last": channels_last, "relative": relative}
    values |= {"streamed": by_vectors and out.nbytes >= STREAMED}
    numbers = np.array([values.get(name, 0) for name in NAMES], np.int64)
    kernel = nearest_kernel(shapes.kind, image.itemsize, mapping.itemsize == 8)

    def work(begin: int, end: int) -> None:
        mine = numbers.copy()
        mine[PLACES] = of_this_thread(_memory)[0]
        kernel(mine, begin, end)

    run(work, plan.items * shapes.tile_rows, shapes.values)


@np.errstate(invalid="ignore")
def as_shown(fill: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What the border shows, in an image's type: rounded half to even and saturated, NaN lowest."""
    if fill.dtype == dtype:
        return fill
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.nan_to_num(np.rint(fill).clip(low, high), nan=low).astype(dtype)


def _memory() -> tuple[int, np.ndarray]:
    """A thread's memory for a tile: where it begins, and what keeps it."""
    return aligned(MEMORY)
