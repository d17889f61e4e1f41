"""From memory to calls of the kernel of nearest."""

from __future__ import annotations

import numpy as np

from warpkit.engine.backends.cpu.runtime.scratch import aligned, of_this_thread
from warpkit.engine.backends.cpu.runtime.threads import run
from warpkit.engine.backends.cpu.runtime.vector_values import REGISTER
from warpkit.engine.backends.cpu.warps.nearest import MEMORY, NAMES, nearest_kernel
from warpkit.engine.backends.cpu.warps.pairs_launch import STREAMED, PairsCall
from warpkit.engine.backends.cpu.warps.work import WarpShapes

IMAGE, MAPPING, OUT, PLACES, STREAM = (
    NAMES.index(name) for name in ("image", "mapping", "out", "memory", "streamed")
)


def prepare(
    shapes: WarpShapes,
    image_numbers: int,
    mapping_numbers: int,
    double_points: bool,
    fill: np.ndarray,
    image_of: np.ndarray,
    *,
    channels_last: bool = False,
    relative: bool = False,
) -> PairsCall:
    """For images and mappings of so many numbers; fill, in the image's type, and image_of flat.

    relative: points are offsets from their pixel.
    """
    plan = shapes.plan
    kept = (fill, image_of, shapes.mapping_of)
    values = dict(zip(plan._fields, plan, strict=True))
    values |= {"image_size": image_numbers, "mapping_numbers": mapping_numbers}
    values |= {"fill": fill.ctypes.data, "fill_numbers": fill.size, "out_size": shapes.values}
    values |= {"image_of": image_of.ctypes.data, "mapping_of": shapes.mapping_of.ctypes.data}
    values |= {"channels_last": channels_last, "relative": relative}
    numbers = np.array([values.get(name, 0) for name in NAMES], np.int64)
    kernel = nearest_kernel(shapes.kind, fill.itemsize, double_points)
    units = plan.items * shapes.tile_rows
    return PairsCall(kernel, numbers, kept, units, shapes.values, fill.itemsize, plan.out_width)


def launch(call: PairsCall, image: int, mapping: int, out: int) -> None:
    """Fill the result at `out`; image, mapping and out are addresses."""
    numbers, size = call.numbers.copy(), call.item_size
    numbers[IMAGE], numbers[MAPPING], numbers[OUT] = image, mapping, out
    by_vectors = size >= 4 and (out | call.out_width * size) % REGISTER == 0
    numbers[STREAM] = by_vectors and call.values * size >= STREAMED

    def work(begin: int, end: int) -> None:
        mine = numbers.copy()
        mine[PLACES] = of_this_thread(_memory)[0]
        call.kernel(mine, begin, end)

    run(work, call.units, call.values)


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
