"""From memory to calls of the kernels that read pairs of neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from warpkit.engine.backends.cpu.runtime.scratch import aligned, of_this_thread
from warpkit.engine.backends.cpu.runtime.threads import INLINE, run
from warpkit.engine.backends.cpu.runtime.vector_values import REGISTER
from warpkit.engine.backends.cpu.warps.pair_gradients import gradient_bytes
from warpkit.engine.backends.cpu.warps.pair_jobs import Jobs
from warpkit.engine.backends.cpu.warps.pair_tile import memory_bytes
from warpkit.engine.backends.cpu.warps.pairs import NAMES, pairs_kernel
from warpkit.engine.backends.cpu.warps.pairs_backward import NAMES as BACKWARD_NAMES
from warpkit.engine.backends.cpu.warps.pairs_backward import pairs_backward_kernel
from warpkit.engine.backends.cpu.warps.work import WarpShapes

PAIRED = 32
"""Channels up to which pairs of neighbours are read from the image itself, without a window."""

STREAMED = 8 << 20
"""Bytes of a result from which on it is written past the caches."""

IMAGE, MAPPING, OUT, MEMORY, STREAM = (
    NAMES.index(name) for name in ("image", "mapping", "out", "memory", "streamed")
)


BACK_MEMORY, BACK_GRADIENT = (BACKWARD_NAMES.index(n) for n in ("memory", "gradient_memory"))
WANTED = BACKWARD_NAMES.index("needs_grad_image")

CHANGING: tuple[str, ...] = ("grad", "image", "mapping", "grad_image", "grad_mapping", "grad_fill")
"""The arrays that differ from call to call."""

CHANGING_PLACES = tuple(BACKWARD_NAMES.index(name) for name in CHANGING)


class PairsCall(NamedTuple):
    """All of a call but the addresses of its tensors; `nearest_launch` makes them, too."""

    kernel: Any
    numbers: np.ndarray
    """The parameters; those that differ from call to call are 0."""
    kept: tuple[np.ndarray, ...]
    """Whose addresses are among them."""
    units: int
    values: int
    item_size: int
    out_width: int


def takes_pairs(dtype: torch.dtype, shapes: WarpShapes, taps: int) -> bool:
    """Whether the kernels of `pairs` serve a call; of a tap an axis that of the way back alone."""
    plan = shapes.plan
    floats = dtype in (torch.float32, torch.float64)
    small = plan.height * plan.width < 2**31 and plan.channels <= PAIRED
    return taps <= 4 and floats and small and not plan.dense


def prepare(
    shapes: WarpShapes,
    image_numbers: int,
    mapping_numbers: int,
    double_points: bool,
    fill: np.ndarray,
    image_of: np.ndarray,
    relative: bool = False,
    taps: int = 2,
) -> PairsCall:
    """For images and mappings of so many numbers; fill and image_of flat, of every item.

    relative: points are offsets from their pixel.
    """
    plan = shapes.plan
    kept = (fill, image_of, shapes.mapping_of)
    numbers = np.array([
        0, image_numbers, 0, mapping_numbers, fill.ctypes.data, fill.size, 0, shapes.values,
        image_of.ctypes.data, shapes.mapping_of.ctypes.data, 0, *plan[:8], plan.fill_item,
        plan.fill_channel, 0, relative,
    ])  # fmt: skip
    kernel = pairs_kernel(shapes.kind, fill.itemsize == 8, double_points, taps)
    units = plan.items * shapes.tile_rows
    return PairsCall(kernel, numbers, kept, units, shapes.values, fill.itemsize, plan.out_width)


def launch(call: PairsCall, image: int, mapping: int, out: int) -> None:
    """Fill the result at `out`; image, mapping and out are addresses."""
    numbers = call.numbers.copy()
    numbers[IMAGE], numbers[MAPPING], numbers[OUT] = image, mapping, out
    if call.values < INLINE:
        numbers[MEMORY] = of_this_thread(_tile_memory, call.item_size)[0]
        call.kernel(numbers, 0, call.units)
        return
    whole_lines = (out | call.out_width * call.item_size) % REGISTER == 0
    numbers[STREAM] = whole_lines and call.values * call.item_size >= STREAMED

    def work(begin: int, end: int) -> None:
        mine = numbers.copy()
        mine[MEMORY] = of_this_thread(_tile_memory, call.item_size)[0]
        call.kernel(mine, begin, end)

    run(work, call.units, call.values)


class BackwardCall(NamedTuple):
    """The same of a backward pass."""

    kernel: Any
    numbers: np.ndarray
    kept: tuple[np.ndarray, ...]
    phases: tuple[tuple[int, int], ...]
    values: int
    item_size: int


def prepare_backward(
    shapes: WarpShapes,
    jobs: Jobs,
    sizes: Mapping[str, int],
    double_points: bool,
    fill: np.ndarray,
    image_of: np.ndarray,
    relative: bool = False,
    single: bool = False,
    taps: int = 2,
) -> BackwardCall:
    """sizes: how many numbers the arrays of `CHANGING` have; the others as of `prepare`.

    single: the gradient to the points is float32.
    """
    plan = shapes.plan
    kept = {"fill": fill, "image_of": image_of, "mapping_of": shapes.mapping_of}
    kept |= {"jobs": jobs.jobs.ravel(), "starts": jobs.starts}
    values = dict(zip(plan._fields, plan, strict=True))
    values |= {f"{name}_numbers": size for name, size in sizes.items()}
    for name, array in kept.items():
        values[name], values[f"{name}_numbers"] = array.ctypes.data, array.size
    values |= {"relative": relative, "single": single}
    numbers = np.array([values.get(name, 0) for name in BACKWARD_NAMES], np.int64)
    kernel = pairs_backward_kernel(shapes.kind, fill.itemsize == 8, double_points, taps)
    arrays = tuple(kept.values())
    return BackwardCall(kernel, numbers, arrays, jobs.phases, shapes.values, fill.itemsize)


def launch_backward(call: BackwardCall, addresses: Sequence[int], wanted: Sequence[bool]) -> None:
    """Fill the gradients to image, mapping and fill, of which some are wanted.

    addresses: of the arrays of `CHANGING`.
    """
    numbers = call.numbers.copy()
    for place, address in zip(CHANGING_PLACES, addresses, strict=True):
        numbers[place] = address
    numbers[WANTED:] = wanted
    for first, end in call.phases:

        def work(begin: int, stop: int, first: int = first) -> None:
            mine = numbers.copy()
            mine[BACK_MEMORY] = of_this_thread(_tile_memory, call.item_size)[0]
            mine[BACK_GRADIENT] = of_this_thread(_gradient_memory, call.item_size)[0]
            call.kernel(mine, first + begin, first + stop)

        run(work, end - first, call.values)


def _gradient_memory(item_size: int) -> tuple[int, np.ndarray]:
    """The same for the gradients of a tile."""
    return aligned(gradient_bytes(item_size))


def _tile_memory(item_size: int) -> tuple[int, np.ndarray]:
    """A thread's memory for a tile: where it begins, and what keeps it."""
    return aligned(memory_bytes(item_size))
