"""`Pipeline.outputs` beside the processors of transformers: python -m benchmarks.processors

Two pictures of 1024 x 1365, by the default configuration. Every case first proves that all outputs
are equal, with difference 0. Then the ways are timed in turns: the processor itself, given tensors
(torchvision) or PIL images (Pillow), `outputs` of the same bytes, and `outputs` of floats with the
backward pass, which the processor cannot do. The ratio is the median over the turns of (way /
processor), of this process's CPU time, so that other programs on the machine count less.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.indexing import about
from tests.support.processors import library_of, processor_classes
from tests.support.whole_processors import difference
from warpkit.attacks import Pipeline
from warpkit.cli.bench.timing import Turns, in_turns, ratio

ROWS = Path(__file__).parents[1] / "data" / "benchmarks" / "processors.csv"
TURNS = 7
CASES: dict[str, dict[str, Any]] = {
    "CLIP": {},
    "Detr": {},
    "Qwen2VL": {},
    "LlavaNext": {},
    "LlavaOnevision": {},
    "GotOcr2": {"crop_to_patches": True},
    "Idefics3": {},
    "Gemma3": {
        "do_pan_and_scan": True,
        **{
            "pan_and_scan_min_crop_size": 256,
            "pan_and_scan_max_num_crops": 4,
            "pan_and_scan_min_ratio_to_activate": 1.2,
        },
    },
    "Mllama": {"size": {"height": 560, "width": 560}},
    "Llama4": {},
    "Phi4Multimodal": {},
    "MiniCPMV4_6": {},
    "Molmo2": {},
    "Lfm2Vl": {},
    "DeepseekOcr2": {},
}
"""The kinds, by the options that make tiles; Mllama's side is that of its published models."""


def photographs() -> list[Tensor]:
    """Two smooth pictures with noise (3, 1024, 1365), uint8."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(2, 3, 32, 43, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (1024, 1365), mode="bicubic")
    noisy = smooth * 255 + torch.randn(smooth.shape, generator=generator) * 8
    return list(noisy.round().clamp(0, 255).to(torch.uint8))


def with_gradient(pipeline: Pipeline, images: list[Tensor]) -> None:
    """All outputs of floats, and the gradient of the pixels to each image."""
    floats = [(image / 255).requires_grad_() for image in images]
    made = [x for x in pipeline.outputs(floats).values() if isinstance(x, Tensor)]
    pixels = [x for x in made if x.requires_grad]
    torch.autograd.grad(pixels, floats, [torch.ones_like(x) for x in pixels])


def measure(kind: str, made: Any, turns: int) -> Iterator[dict[str, object]]:
    """One row for each way."""
    images, library = photographs(), library_of(made)
    pipeline = Pipeline.from_processor(made)
    given: list[Any] = images
    if library == "pillow":
        given = [Image.fromarray(np.ascontiguousarray(x.permute(1, 2, 0))) for x in images]
    wanted, got = made(given, return_tensors="pt"), pipeline.outputs(images)
    largest = max(difference(wanted[key], got[key], key) for key in wanted)
    assert largest == 0, (kind, library, largest)
    ways: dict[str, Callable[[], Any]] = {
        "the processor": lambda: made(given, return_tensors="pt"),
        "outputs": lambda: pipeline.outputs(images),
        "outputs and gradient": lambda: with_gradient(pipeline, images),
    }
    seconds = in_turns(ways, Turns(turns, rotate=True, clock=time.process_time))
    for name, taken in seconds.items():
        yield {
            "kind": kind,
            "library": library,
            "way": name,
            "cpu_ms": f"{1e3 * statistics.median(taken):.1f}",
            "times_processor": f"{ratio(taken, seconds['the processor']):.2f}",
            "turns": turns,
        }


def rows(turns: int) -> Iterator[dict[str, object]]:
    classes = processor_classes()
    for kind, options in CASES.items():
        for name in (f"{kind}ImageProcessor", f"{kind}ImageProcessorPil"):
            if name in classes:
                yield from measure(kind, classes[name](**options), turns)


def main() -> None:
    """Measure all cases; write the rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--csv", type=Path, default=ROWS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    made = []
    for row in rows(options.turns):
        made.append({**row, **about()})
        print(*list(row.values())[:5], sep="  ", flush=True)
    with options.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, made[0])
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main()
