"""`Pipeline.outputs` beside the processors of transformers: python -m benchmarks.processors

Two pictures of 1024 x 1365, by the default configuration. Every case first proves that all outputs
are equal, with difference 0. The ways: `outputs` of bytes; the processor itself, given tensors
(torchvision) or PIL images (Pillow); and `outputs` of floats with the backward pass, which the
processor cannot do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks import harness
from benchmarks.harness import Case
from tests.support.processors import library_of, processor_classes
from tests.support.whole_processors import difference
from warpkit.attacks import Pipeline

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
    tensors = [x for x in pipeline.outputs(floats).values() if isinstance(x, Tensor)]
    pixels = [x for x in tensors if x.requires_grad]
    torch.autograd.grad(pixels, floats, [torch.ones_like(x) for x in pixels])


def proved(kind: str, processor: Any) -> Case:
    """The case of a processor, if all outputs are equal."""
    images, library = photographs(), library_of(processor)
    pipeline = Pipeline.from_processor(processor)
    arguments: list[Any] = images
    if library == "pillow":
        arguments = [Image.fromarray(np.ascontiguousarray(x.permute(1, 2, 0))) for x in images]
    wanted, got = processor(arguments, return_tensors="pt"), pipeline.outputs(images)
    largest = max(difference(wanted[key], got[key], key) for key in wanted)
    assert largest == 0, (kind, library, largest)
    ways = {
        "warpkit": partial(pipeline.outputs, images),
        "the processor": partial(processor, arguments, return_tensors="pt"),
        "warpkit, with the gradient": partial(with_gradient, pipeline, images),
    }
    return Case(f"{kind}, {library}", ways, "the processor: 1/3")


def cases() -> Iterator[Case]:
    warnings.filterwarnings("ignore")
    classes = processor_classes()
    for kind, options in CASES.items():
        for name in (f"{kind}ImageProcessor", f"{kind}ImageProcessorPil"):
            if name in classes:
                yield proved(kind, classes[name](**options))


if __name__ == "__main__":
    packages = ("transformers", "torchvision", "pillow")
    harness.main(__doc__, "processors", cases, seconds=4.0, packages=packages)
