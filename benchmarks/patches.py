"""Objects in images, compared with loops, canvases and roi_align: python -m benchmarks.patches

Every case first proves that its ways agree in value and gradients, then times them in turns. The
ratio is the median over the turns of (other / warpkit), so that a slow moment hits both. Memory is
the peak of one forward and backward beyond its inputs: the sum of torch's, from its profiler, and
of numpy's, which the compiled kernels write to, from tracemalloc. CPU time is given beside
wall-clock time, because it varies less on a shared machine.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.testing import assert_close

import warpkit as wk
from benchmarks.harness import about, table
from warpkit.cli.bench.timing import Turns, in_turns, ratio
from warpkit.engine.cpu.memory import release

BATCH, SIZE, SIDE = 4, 256, 32


class Objects(NamedTuple):
    """Images, boxes and the index, and a theta for each box or one patch for all.

    Leaves that need a gradient come first.
    """

    images: Any
    """A batch, or a list."""
    theta: Tensor
    patch: Tensor
    boxes: Tensor
    index: Tensor


Way = Callable[[Objects], Tensor]


class Case(NamedTuple):
    name: str
    objects: int
    ways: dict[str, Way]
    inputs: Callable[..., Objects]
    most: int | None = None
    """The number of turns for slow ways; None: all."""


def anywhere(count: int, dtype: torch.dtype = torch.float32) -> Objects:
    """Noise with boxes of 32 x 32 pixels anywhere in it."""
    generator = torch.Generator().manual_seed(0)
    low = torch.randint(0, SIZE - SIDE + 1, (count, 2), generator=generator)
    turn = 0.2 * torch.randn(count, 2, 3, generator=generator)
    return Objects(
        torch.rand(BATCH, 3, SIZE, SIZE, generator=generator).to(dtype).requires_grad_(),
        (torch.eye(2, 3) + turn).to(dtype).requires_grad_(),
        torch.zeros(()),
        torch.cat((low, low + SIDE), 1).to(dtype),
        torch.randint(0, BATCH, (count,), generator=generator),
    )


def one_each(count: int, dtype: torch.dtype = torch.float32) -> Objects:
    """Images of 224 x 224, each with a box of 110 x 130 pixels for a patch of 64 x 64."""
    generator = torch.Generator().manual_seed(0)
    low = 94 * torch.rand(count, 2, generator=generator)
    return Objects(
        torch.rand(count, 3, 224, 224, generator=generator).to(dtype).requires_grad_(),
        torch.zeros(()),
        torch.rand(3, 64, 64, generator=generator).to(dtype).requires_grad_(),
        torch.cat((low, low + torch.tensor([110.0, 130.0])), 1).to(dtype),
        torch.arange(count),
    )


def turned(count: int, dtype: torch.dtype = torch.float32) -> Objects:
    """Noise with boxes of 32 x 32 pixels in it, rotated by any angle."""
    objects = anywhere(count, dtype)
    middle = (objects.boxes[:, :2] + objects.boxes[:, 2:]) / 2
    angle = torch.linspace(-180, 180, count, dtype=dtype)[:, None]
    side = torch.full((count, 2), float(SIDE), dtype=dtype)
    return objects._replace(boxes=torch.cat((middle, side, angle), 1))


def of_sizes(count: int, dtype: torch.dtype = torch.float32) -> Objects:
    """A list of images of 200 to 480 x 200 to 640, with four boxes each."""
    generator = torch.Generator().manual_seed(0)
    images = []
    for _ in range(count // 4):
        height, width = (int(torch.randint(200, n, (), generator=generator)) for n in (481, 641))
        image = torch.rand(3, height, width, generator=generator)
        images.append(image.to(dtype).requires_grad_())
    low = 120 * torch.rand(count, 2, generator=generator)
    boxes = torch.cat((low, low + 40 + 40 * torch.rand(count, 2, generator=generator)), 1)
    index = torch.arange(count // 4).repeat_interleave(4)
    return Objects(images, torch.zeros(()), torch.zeros(()), boxes.to(dtype), index)


def warpkit_last(objects: Objects) -> Tensor:
    return wk.transform_patches(
        objects.images, objects.boxes, objects.theta, objects.index, space="theta"
    )


def warpkit_sequential(objects: Objects) -> Tensor:
    return wk.transform_patches(
        objects.images,
        objects.boxes,
        objects.theta,
        objects.index,
        space="theta",
        overlap="sequential",
    )


def loop(objects: Objects, *, sequential: bool, copy: bool) -> Tensor:
    """The handwritten loop: slice, grid_sample, write back, with the copies that autograd needs."""
    images, theta, _, boxes, index = objects
    result = images.clone()
    places = zip(index.tolist(), boxes.long().tolist(), strict=True)
    for i, (b, (x1, y1, x2, y2)) in enumerate(places):
        source = (result if sequential else images)[b : b + 1, :, y1:y2, x1:x2]
        grid = F.affine_grid(theta[i : i + 1], list(source.shape), align_corners=False)
        if copy:
            result = result.clone()
        result[b, :, y1:y2, x1:x2] = F.grid_sample(source, grid, align_corners=False)[0]
    return result


def copying_loop(objects: Objects) -> Tensor:
    return loop(objects, sequential=False, copy=True)


def in_place_loop(objects: Objects) -> Tensor:
    """Without the copies: correct if every object reads the original."""
    return loop(objects, sequential=False, copy=False)


def sequential_loop(objects: Objects) -> Tensor:
    return loop(objects, sequential=True, copy=True)


def crop(objects: Objects) -> Tensor:
    # roi_align clamps points less than a pixel outside the image
    size, border = (SIDE, SIDE), "replicate"
    return wk.crop_patches(objects.images, objects.boxes + 0.25, objects.index, size, border=border)


def crop_plainly(objects: Objects) -> Tensor:
    return wk.crop_patches(objects.images, objects.boxes, objects.index, (SIDE, SIDE))


def grids(objects: Objects) -> Tensor:
    """The handwritten way for rotated boxes: a copy of the image and a grid for each."""
    size = SIDE, SIDE
    matrices = wk.invert(wk.box_to_matrix(objects.boxes, size))
    theta = wk.to_theta(matrices, objects.images.shape[-2:], size)
    grid = F.affine_grid(theta, [len(theta), 3, *size], align_corners=False)
    return F.grid_sample(objects.images[objects.index], grid, align_corners=False)


def image_loop(objects: Objects) -> Tensor:
    """One call per image of a list."""
    parts = objects.boxes.split(4)
    crops = [
        wk.crop_patches(image, boxes, None, (SIDE, SIDE))
        for image, boxes in zip(objects.images, parts, strict=True)
    ]
    return torch.cat(crops)


def padded(objects: Objects) -> Tensor:
    """All images padded to the largest, then one call."""
    height, width = (max(image.shape[k] for image in objects.images) for k in (1, 2))
    batch = [F.pad(i, (0, width - i.shape[2], 0, height - i.shape[1])) for i in objects.images]
    return crop_plainly(objects._replace(images=torch.stack(batch)))


def roi_align(objects: Objects) -> Tensor:
    from torchvision.ops import roi_align

    rois = torch.cat((objects.index[:, None].to(objects.boxes.dtype), objects.boxes + 0.25), 1)
    return roi_align(objects.images, rois, (SIDE, SIDE), sampling_ratio=1, aligned=True)


def stickers(objects: Objects) -> tuple[Tensor, Tensor]:
    """Matrices that place the patch on the boxes at different angles, and a round mask."""
    angle = torch.linspace(-30, 30, len(objects.boxes), dtype=objects.boxes.dtype)
    matrices = wk.box_to_matrix(objects.boxes, objects.patch.shape[-2:], angle=angle)
    line = torch.linspace(-1, 1, 64, dtype=objects.patch.dtype)
    return matrices, (line[:, None].square() + line.square() < 1).to(line.dtype)[None]


def paste(objects: Objects) -> Tensor:
    matrices, mask = stickers(objects)
    return wk.paste_patches(objects.images, objects.patch, matrices, objects.index, mask=mask)


def canvas(objects: Objects, *, kornia: bool) -> Tensor:
    """The handwritten way: patch and mask are warped to the image's size, then blended."""
    matrices, mask = stickers(objects)
    layers = torch.cat((objects.patch * mask, mask)).expand(len(objects.images), 4, 64, 64)
    if kornia:
        from kornia.geometry.transform import warp_affine

        warped = warp_affine(layers, matrices, objects.images.shape[-2:], align_corners=True)
    else:
        theta = wk.to_theta(matrices, (64, 64), objects.images.shape[-2:])
        grid = F.affine_grid(theta, [*layers.shape[:2], 224, 224], align_corners=False)
        warped = F.grid_sample(layers, grid, align_corners=False)
    return warped[:, :3] + (1 - warped[:, 3:]) * objects.images


def torch_canvas(objects: Objects) -> Tensor:
    return canvas(objects, kornia=False)


def kornia_canvas(objects: Objects) -> Tensor:
    return canvas(objects, kornia=True)


def cases() -> Iterator[Case]:
    loops = {"in-place loop": in_place_loop, "copying loop": copying_loop}
    yield Case("transform, last", 400, {"warpkit": warpkit_last, **loops}, anywhere)
    yield Case("transform, last", 4000, {"warpkit": warpkit_last, **loops}, anywhere, most=1)
    sequential = {"warpkit": warpkit_sequential, "copying loop": sequential_loop}
    yield Case("transform, sequential", 400, sequential, anywhere)
    yield Case("crop", 400, {"warpkit": crop, "roi_align": roi_align}, anywhere)
    yield Case("crop, turned", 400, {"warpkit": crop_plainly, "grid_sample": grids}, turned)
    lists = {"warpkit": crop_plainly, "a loop": image_loop, "padded": padded}
    yield Case("crop, images of 64 sizes", 256, lists, of_sizes)
    canvases = {"grid_sample canvas": torch_canvas, "kornia canvas": kornia_canvas}
    yield Case("paste, one an image", 32, {"warpkit": paste, **canvases}, one_each)


def run(way: Way, objects: Objects) -> list[Tensor | None]:
    """Forward and backward: the value and the gradients."""
    value = way(objects)
    weight = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).reshape(value.shape)
    images = objects.images if isinstance(objects.images, list) else [objects.images]
    leaves = [leaf for leaf in (*images, *objects[1:3]) if leaf.requires_grad]
    gradients = torch.autograd.grad(value, leaves, weight, allow_unused=True)
    return [value.detach(), *gradients]


def prove_equal(case: Case) -> None:
    """Values and gradients of all ways against warpkit's, in float64 at up to 200 objects."""
    objects = case.inputs(min(200, case.objects), torch.float64)
    ours = run(case.ways["warpkit"], objects)
    for way in case.ways.values():
        for mine, other in zip(ours, run(way, objects), strict=True):
            if mine is not None and other is not None:
                assert_close(other, mine, rtol=0, atol=1e-9)


def memory(way: Way, objects: Objects) -> float:
    """`peak_mb` of one run."""
    return peak_mb(lambda: run(way, objects))


def peak_mb(call: Callable[[], object]) -> float:
    """The peak memory, in MB, that torch and numpy allocate during one call."""
    call()  # compile first
    gc.collect()
    release()  # memory kept for reuse would not be counted
    tracemalloc.start()
    result = call()
    del result
    arrays = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        result = call()
    del result
    total = peak = 0
    events = record.profiler.kineto_results.events() if record.profiler else []
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    for _, change in sorted(changes, key=lambda item: item[0]):
        total += change
        peak = max(peak, total)
    return (peak + arrays) / 1e6


def measure(case: Case, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    prove_equal(case)
    objects = case.inputs(case.objects)
    turns = min(turns, case.most or turns)
    calls = {name: partial(run, way, objects) for name, way in case.ways.items()}
    how = Turns(turns, warm=turns > 1)  # slow calls do not need warm caches
    seconds = in_turns(calls, how)
    busy = in_turns(calls, how._replace(clock=time.process_time))
    for name, times in seconds.items():
        # the profiler's record of a loop over thousands of copies would not fit into memory
        peak = (
            memory(case.ways[name], objects) if name == "warpkit" or case.objects < 1000 else None
        )
        yield {
            "case": case.name,
            "objects": case.objects,
            "way": name,
            "forward_backward_ms": f"{1e3 * statistics.median(times):.1f}",
            "times_warpkit": f"{ratio(times, seconds['warpkit']):.2f}",
            "cpu_ms": f"{1e3 * statistics.median(busy[name]):.1f}",
            "peak_mb": "" if peak is None else f"{peak:.0f}",
            "turns": turns,
        }


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row for each way of every case."""
    for case in cases():
        for row in measure(case, options.turns):
            yield {**row, **about()}


if __name__ == "__main__":
    table(__doc__, "patches", rows, columns=7, threads=2, turns=7)
