"""Explain what Pillow and torchvision change in the processors of five families of models.

    scripts/compare processors      # writes the table of docs/processors.md

`compare_pipelines` sees two functions of pictures: of each processor's result the view of the whole
picture, or its rows of patches laid out as the picture that they were cut from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from warpkit.attacks import Pipeline
from warpkit.types import Library
from warpkit.validation import compare_pipelines

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "processors.md"
PHOTOGRAPHS = sorted((ROOT / "data" / "images").glob("*.png"))
PIXELS = {"shortest_edge": 28 * 28 * 4, "longest_edge": 28 * 28 * 64}


def as_it_is(pixels: Tensor) -> Tensor:
    return pixels


def first(pixels: Tensor) -> Tensor:
    return pixels[:, 0]


def last(pixels: Tensor) -> Tensor:
    return pixels[:, -1]


FAMILIES: dict[str, tuple[str, dict[str, Any], Callable[[Tensor], Tensor] | None]] = {
    "Qwen2-VL, the rows as a picture": ("Qwen2VL", {"size": PIXELS}, None),
    "LLaVA-OneVision, the whole picture": ("LlavaOnevision", {}, first),
    "InternVL, the whole picture": ("GotOcr2", {"crop_to_patches": True}, last),
    "Idefics3, the whole picture": ("Idefics3", {"size": {"longest_edge": 1092}}, last),
    "Gemma 3": ("Gemma3", {}, as_it_is),
}


def picture_of_rows(pipeline: Pipeline, images: Tensor) -> Tensor:
    """Qwen2-VL's rows (c t p p), blocks of 2 x 2, as the picture (1, 3, h, w)."""
    outputs = pipeline.outputs(images)
    _, rows, columns = outputs["image_grid_thw"][0].tolist()
    parts = outputs["pixel_values"].reshape(rows // 2, columns // 2, 2, 2, 3, 2, 14, 14)[
        ..., 0, :, :
    ]
    return parts.permute(4, 0, 2, 5, 1, 3, 6).reshape(1, 3, rows * 14, columns * 14)


def program(
    kind: str, options: dict[str, Any], view: Callable[[Tensor], Tensor] | None, library: Library
) -> Callable[[Tensor], Tensor]:
    """A function of a picture (3, H, W), uint8."""
    source = {"image_processor_type": f"{kind}ImageProcessor", **options}
    pipeline = Pipeline.from_processor(source, library=library)

    def run(picture: Tensor) -> Tensor:
        batch = picture[None]
        return picture_of_rows(pipeline, batch) if view is None else view(pipeline(batch))

    return run


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_grad_enabled(False)
    lines = ["| family | what `compare_pipelines` finds |", "|---|---|"]
    for name, (kind, options, view) in FAMILIES.items():
        programs = [program(kind, options, view, library) for library in ("pillow", "torchvision")]
        comparison = compare_pipelines(*programs, takes=("tensor", "tensor"), images=PHOTOGRAPHS)
        summary = "; ".join(part.strip() for part in str(comparison).splitlines())
        lines.append(f"| {name} | {summary} |")
        print(lines[-1], flush=True)
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- libraries -->", "<!-- end of libraries -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
