"""Pipelines of processors under torch.compile, and as ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support import whole_processors as whole
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline

KINDS = ["CLIP", "Detr", "Gemma3", "GotOcr2", "Idefics3", "Lfm2Vl", "Llama4", "LlavaOnevision"]
KINDS += ["MiniCPMV4_6", "Mllama", "Molmo2", "Phi4Multimodal", "Qwen2VL", "Siglip2"]
"""One at least of each way to cut, to pad, and to order."""


def pipeline_of(kind: str, library: str = "torchvision") -> Pipeline:
    options = whole.configurations(kind)[0]
    config = {"image_processor_type": f"{kind}ImageProcessor", **options}
    return Pipeline.from_processor(config, library=library)  # pyright: ignore[reportArgumentType]


def pictures() -> Tensor:
    """Two of (3, 61, 84), uint8."""
    picture = whole.image((61, 84))
    return torch.stack([picture, picture.flip(-1)])


def pixels(outputs: dict[str, Any]) -> list[Tensor]:
    return [x for x in outputs.values() if isinstance(x, Tensor) and x.is_floating_point()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_pipeline_has_the_values_and_the_gradient(kind: str, fresh_compiler: object):
    """Of all outputs, in one graph."""
    pipeline = pipeline_of(kind)

    def run(images: Tensor) -> list[Tensor]:
        return pixels(pipeline.outputs(images))

    found = []
    for function in (run, torch.compile(run, backend="eager", fullgraph=True)):
        images = (pictures() / 255).requires_grad_()
        made = function(images)
        carrying = [x.square().sum() for x in made if x.requires_grad]
        found.append((made, torch.autograd.grad(carrying, images)[0]))
    (wanted, push), (got, traced) = found
    assert all(torch.equal(*pair) for pair in zip(wanted, got, strict=True))
    torch.testing.assert_close(traced, push, atol=1e-5 * float(push.abs().max()), rtol=0)


@pytest.mark.parametrize("library", ["torchvision", "pillow"])
@pytest.mark.parametrize("kind", ["LlavaOnevision", "Llama4", "Qwen2VL", "Idefics3"])
def test_an_onnx_graph_has_the_processors_values(kind: str, library: str, tmp_path: Path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pipeline, images, file = pipeline_of(kind, library), pictures(), tmp_path / "processor.onnx"

    class Served(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return pipeline(images)

    with torch.no_grad():
        pipeline(images)
        batch = ({0: torch.export.Dim("batch")},)
        given = {"dynamo": True, "opset_version": 20, "dynamic_shapes": batch, "verbose": False}
        torch.onnx.export(Served().eval(), (images,), file, **given)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        for batch in (images, torch.cat([images, 255 - images])):
            (got,) = session.run(None, {session.get_inputs()[0].name: batch.numpy()})
            wanted = pipeline(batch)
            torch.testing.assert_close(
                torch.from_numpy(got), wanted, atol=TOLERANCE["processors"], rtol=0
            )
