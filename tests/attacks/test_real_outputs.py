"""`Pipeline.outputs` compared with transformers' own processors, on random lists with a seed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from tests.support import processors as asked
from tests.support import whole_processors as whole
from tests.support.tolerances import TOLERANCE
from warpkit.attacks import Pipeline
from warpkit.attacks.processors.kinds import KINDS

pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CALLS = 6
SEED = 4


@pytest.fixture(scope="module")
def classes() -> dict[str, type]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return asked.processor_classes()


@pytest.mark.parametrize("ending", ["", "Pil"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_outputs_are_the_processors(classes: dict[str, Any], kind: str, ending: str):
    kind_class = classes.get(f"{kind}ImageProcessor{ending}")
    if kind_class is None:
        pytest.skip("one library")
    compared = 0
    for options in whole.configurations(kind):
        processor = kind_class(**options)
        pipeline = Pipeline.from_processor(processor)
        for sizes in whole.calls(kind, CALLS if kind in whole.CHANGED else 2, SEED):
            with torch.no_grad():
                found = whole.compared(processor, kind, pipeline, sizes)
            if not isinstance(found, str):
                assert found <= TOLERANCE["processors"]
                compared += 1
    assert compared


@pytest.mark.parametrize("kind", ["Llama4", "GotOcr2", "LlavaNext", "Molmo2", "MiniCPMV4_6"])
def test_default_configurations_give_the_processors_outputs(classes: dict[str, Any], kind: str):
    """On a photograph's size, from the object."""
    processor = classes[f"{kind}ImageProcessor"]()
    pipeline = Pipeline.from_processor(processor)
    with torch.no_grad():
        assert whole.compared(processor, kind, pipeline, [(480, 640), (301, 200)]) == 0


def test_both_sides_refuse_long_pictures(classes: dict[str, Any]):
    for kind in ("Qwen2VL", "Glm4v", "HunYuanVL", "PaddleOCRVL", "Phi4Multimodal"):
        processor = classes[f"{kind}ImageProcessor"]()
        pipeline = Pipeline.from_processor(processor)
        for size in ((1, 1000), (1000, 1)):
            assert whole.compared(processor, kind, pipeline, [size]) == "refused"
